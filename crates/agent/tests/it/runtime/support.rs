//! Agents that run in a test.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, HistoryEntry, TurnError, TurnInput};
use bandstand_agent::client::ClientOptions;
use bandstand_agent::runtime::{Agent, AgentError, IdlePauses, RuntimeSettings, Stopped};
use bandstand_testkit::{AgentSeat, PATIENCE, TestServer};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What an adapter was given, by message.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) content: String,
    pub(crate) history: Vec<HistoryEntry>,
    pub(crate) participants: Option<String>,
    pub(crate) contacts: Option<String>,
}

/// Replies with a count, notes what it was given, and waits at a gate where the test wants it to.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Inner>);

#[derive(Default)]
struct Inner {
    given: Mutex<Vec<Given>>,
    finished: Mutex<Vec<String>>,
    gate: watch::Sender<bool>,
    begun: watch::Sender<usize>,
}

impl Recorder {
    /// Turns wait until [`Self::open`].
    pub(crate) fn close(&self) {
        self.0.gate.send_replace(true);
    }

    pub(crate) fn open(&self) {
        self.0.gate.send_replace(false);
    }

    /// Waits until so many turns have begun.
    pub(crate) async fn begun(&self, turns: usize) {
        let mut begun = self.0.begun.subscribe();
        let waiting = begun.wait_for(|begun| *begun >= turns);
        tokio::time::timeout(PATIENCE, waiting).await.expect("turns begin").expect("the sender lives");
    }

    pub(crate) fn given(&self) -> Vec<Given> {
        self.0.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The messages that were dealt with to the end, in order.
    pub(crate) fn finished(&self) -> Vec<String> {
        self.0.finished.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Adapter for Recorder {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        self.0.given.lock().unwrap_or_else(PoisonError::into_inner).push(Given {
            content: input.message.content.clone(),
            history: input.history.clone(),
            participants: input.participants.clone(),
            contacts: input.contacts.clone(),
        });
        self.0.begun.send_modify(|begun| *begun += 1);
        let mut gate = self.0.gate.subscribe();
        gate.wait_for(|closed| !closed).await.map_err(TurnError::failed)?;
        match input.message.sender.id() {
            Some(sender) => {
                let text = format!("Heard: {}", bare(&input.message.content));
                input.tools.send_message(&text, &[sender.to_string().as_str()]).await?;
            }
            None => {
                input.tools.no_reply(None);
            }
        }
        self.0.finished.lock().unwrap_or_else(PoisonError::into_inner).push(bare(&input.message.content).to_owned());
        Ok(())
    }
}

/// A text without the mention that the server puts before it.
pub(crate) fn bare(text: &str) -> &str {
    match text.strip_prefix('@') {
        Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest),
        None => text,
    }
}

/// An agent that runs beside the test.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<Stopped, AgentError>>,
}

impl Running {
    /// Of a task that ends when told.
    pub(crate) fn of(stop: CancellationToken, task: JoinHandle<Result<Stopped, AgentError>>) -> Self {
        Self { stop, task }
    }

    /// Lets it end.
    pub(crate) async fn stop(self) -> Stopped {
        self.stop.cancel();
        self.ended().await.expect("the agent stops as it was told")
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(self) -> Result<Stopped, AgentError> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("the agent ends").expect("it does not panic")
    }

    /// What a power cut does: nothing is said any more.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Short pauses, so that what a push should have told is found soon.
pub(crate) fn settings() -> RuntimeSettings {
    let pause = Duration::from_millis(200);
    RuntimeSettings {
        idle: IdlePauses { first: pause, longest: pause, stopped: pause },
        single_instance: false,
        ..RuntimeSettings::default()
    }
}

pub(crate) fn run(server: &TestServer, seat: &AgentSeat, adapter: impl Adapter + 'static) -> Running {
    run_with(server, seat, adapter, settings())
}

pub(crate) fn run_with(
    server: &TestServer,
    seat: &AgentSeat,
    adapter: impl Adapter + 'static,
    settings: RuntimeSettings,
) -> Running {
    let mut options = ClientOptions::new(&server.url(), seat.key.clone());
    options.proxies = false;
    options.retry_base = Duration::from_millis(20);
    let agent = Agent::new(options.build().expect("a client"), adapter).settings(settings);
    let stop = CancellationToken::new();
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { agent.run(stop).await }
    });
    Running { stop, task }
}

//! Drives the [tool loop](crate::tool_loop): calls the model, runs the tools, keeps the time.

mod registered;

use std::sync::Arc;
use std::time::Duration;

use bandstand_transcript::stream::Delta;
use bandstand_transcript::{
    Message, Reply, Role, ToolCall, ToolCallId, ToolName, ToolOutput, ToolResult, Transcript, Usage, Warnings,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::client::{Ask, Model, ModelError, WireTap};
use crate::registry::{Spec, Stopped};
use crate::time::{SystemTiming, Timing};
use crate::tool_loop::{Command, Input, Outcome, Policy, ToolLoop, Tools};

pub use registered::{Approve, RegisteredTools, to_output};

/// How a call ended.
#[derive(Debug)]
pub enum Called {
    /// It ran, or failed to.
    Done(ToolOutput),
    /// It was not allowed; why, in words for the model.
    Denied(String),
    /// The run must end at once.
    Stopped(Stopped),
}

/// Tools that can be run.
pub trait Toolset: Tools + Send + Sync {
    /// What the model is told of them.
    fn specs(&self) -> Vec<Spec>;

    /// Runs a call whose arguments were checked. Dropping the future cancels it. Asking for an approval is part of it.
    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Called>;
}

/// Is told what happens. Nothing that it does changes the run.
pub trait Observer: Send {
    /// Who is told what goes over the wire. Nobody unless it says so.
    fn tap(&self) -> Option<Arc<dyn WireTap>> {
        None
    }

    /// The model's turn grows.
    fn on_delta(&mut self, delta: &Delta) {
        let _ = delta;
    }

    /// The model's turn is complete, and none of its calls has run.
    fn on_reply<'a>(&'a mut self, reply: &'a Reply) -> BoxFuture<'a, ()> {
        let _ = reply;
        std::future::ready(()).boxed()
    }

    /// All calls of a turn are answered: each with the tool's name, in the order of the calls. `transcript` is valid as
    /// it is.
    fn on_results<'a>(
        &'a mut self,
        results: &'a [(ToolName, ToolResult)],
        transcript: &'a Transcript,
    ) -> BoxFuture<'a, ()> {
        let _ = (results, transcript);
        std::future::ready(()).boxed()
    }
}

/// Nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// How a run behaves.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Stop conditions and limits.
    pub policy: Policy,
    /// The longest that it may take, approvals included.
    pub time_limit: Option<Duration>,
    /// Ends it; the history is valid.
    pub cancel: CancellationToken,
    /// Time.
    pub timing: Arc<dyn Timing>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            time_limit: None,
            cancel: CancellationToken::new(),
            timing: Arc::new(SystemTiming),
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Why.
    pub outcome: Outcome,
    /// The conversation: every call has its result, however the run ended.
    pub transcript: Transcript,
    /// Replies of the model.
    pub steps: u32,
    /// Tokens of all replies together.
    pub usage: Usage,
    /// What had to be guessed.
    pub warnings: Warnings,
    /// Why the model failed, if it did: the outcome knows of no network.
    pub failure: Option<ModelError>,
    /// A tool ended the run; the outcome is then [`Outcome::Cancelled`].
    pub stopped: Option<Stopped>,
}

/// Runs the loop to its end. Dropping the future ends it too, but then nobody has the transcript: cancel instead.
pub async fn run(
    model: &dyn Model,
    tools: &dyn Toolset,
    transcript: Transcript,
    options: RunOptions,
    observer: &mut dyn Observer,
) -> Finished {
    let mut run = Run {
        model,
        tools,
        specs: tools.specs(),
        machine: ToolLoop::new(transcript, options.policy),
        usage: Usage::default(),
        failure: None,
        stopped: None,
        asked: Vec::new(),
    };
    let deadline = match options.time_limit {
        Some(limit) => options.timing.sleep(limit),
        None => std::future::pending().boxed(),
    };
    let outcome = run.drive(&options.cancel, deadline, observer).await;
    Finished {
        outcome,
        steps: run.machine.steps(),
        usage: run.usage,
        warnings: std::mem::take(&mut run.machine.warnings),
        failure: run.failure,
        stopped: run.stopped,
        transcript: run.machine.into_transcript(),
    }
}

struct Run<'a> {
    model: &'a dyn Model,
    tools: &'a dyn Toolset,
    specs: Vec<Spec>,
    machine: ToolLoop,
    usage: Usage,
    failure: Option<ModelError>,
    stopped: Option<Stopped>,
    /// Calls whose results nobody was told of.
    asked: Vec<ToolCall>,
}

impl Run<'_> {
    async fn drive(
        &mut self,
        cancel: &CancellationToken,
        mut deadline: BoxFuture<'static, ()>,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let mut running = FuturesUnordered::new();
        let mut commands = self.machine.start();
        loop {
            let mut ask = false;
            let mut ended = None;
            for command in commands {
                match command {
                    Command::CallModel => ask = true,
                    Command::RunTool(call) => running.push(called(self.tools, call)),
                    Command::Finish(outcome) => ended = Some(outcome),
                }
            }
            self.tell(observer).await;
            if let Some(outcome) = ended {
                return outcome;
            }
            let input = tokio::select! {
                biased;
                () = cancel.cancelled() => Input::Cancelled,
                () = &mut deadline => Input::TimeUp,
                Some((id, called)) = running.next() => self.called(id, called),
                reply = self.reply(cancel, observer), if ask => match reply {
                    Ok(reply) => Input::Reply(Box::new(reply)),
                    Err(ModelError::Cancelled) => Input::Cancelled,
                    Err(error) => {
                        let told = error.to_provider_error();
                        self.failure = Some(error);
                        Input::ModelFailed(told)
                    }
                },
                // The machine always waits for something; if it did not, this would be its fault, not an endless wait.
                else => Input::Cancelled,
            };
            if let Input::Reply(reply) = &input {
                self.count(reply);
                self.asked = reply.message.calls().cloned().collect();
                observer.on_reply(reply).await;
            }
            commands = self.machine.step(input, self.tools);
        }
    }

    async fn reply(&self, cancel: &CancellationToken, observer: &mut dyn Observer) -> Result<Reply, ModelError> {
        let ask = Ask { transcript: self.machine.transcript(), tools: &self.specs, cancel };
        match observer.tap() {
            Some(tap) => self.model.reply_tapped(ask, &mut |delta| observer.on_delta(delta), tap.as_ref()).await,
            None => self.model.reply(ask, &mut |delta| observer.on_delta(delta)).await,
        }
    }

    fn called(&mut self, id: ToolCallId, called: Called) -> Input {
        match called {
            Called::Done(output) => Input::ToolDone { id, output },
            Called::Denied(reason) => Input::Denied { id, reason },
            Called::Stopped(stopped) => {
                self.stopped = Some(stopped);
                Input::Cancelled
            }
        }
    }

    fn count(&mut self, reply: &Reply) {
        let Some(usage) = reply.usage else { return };
        let sum = &mut self.usage;
        for (total, more) in [
            (&mut sum.input, usage.input),
            (&mut sum.output, usage.output),
            (&mut sum.cache_read, usage.cache_read),
            (&mut sum.cache_write, usage.cache_write),
            (&mut sum.reasoning, usage.reasoning),
        ] {
            *total = total.saturating_add(more);
        }
    }

    /// Tells of results, once all calls of the turn have theirs.
    async fn tell(&mut self, observer: &mut dyn Observer) {
        if self.asked.is_empty() || !self.machine.transcript().open_calls().is_empty() {
            return;
        }
        let transcript = self.machine.transcript();
        let results: Vec<(ToolName, ToolResult)> = std::mem::take(&mut self.asked)
            .into_iter()
            .filter_map(|call| Some((call.name, result_of(transcript, &call.id)?)))
            .collect();
        observer.on_results(&results, transcript).await;
    }
}

/// The newest result of a call.
fn result_of(transcript: &Transcript, id: &ToolCallId) -> Option<ToolResult> {
    let tools = |message: &&Message| message.role == Role::Tool;
    let mut results = transcript.messages.iter().rev().filter(tools).flat_map(Message::results);
    results.find(|result| result.call_id == *id).cloned()
}

async fn called(tools: &dyn Toolset, call: ToolCall) -> (ToolCallId, Called) {
    let ended = tools.call(&call).await;
    (call.id, ended)
}

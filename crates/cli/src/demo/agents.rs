//! The programs of the three agents, as anybody would write them with the SDK. A few lines stand in for a model.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, TurnError, TurnInput};
use bandstand_agent::client::{Client, ClientOptions, EventDraft};
use bandstand_agent::registry::ToolError;
use bandstand_agent::runtime::{Agent, RuntimeSettings};
use bandstand_agent::tools::{AgentTools, Capabilities, Effect, Tool, Toolbox};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;

use crate::environment;
use crate::output::Failure;

/// How long a step takes, in milliseconds.
pub(super) const PACE: &str = "BANDSTAND_DEMO_PACE";
/// Set for a researcher that works on and on.
pub(super) const SLOW: &str = "BANDSTAND_DEMO_SLOW";

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Brings those together who are needed.
    Planner,
    /// Looks things up, with a tool of its own.
    Researcher,
    /// Checks what others found, and nothing else.
    Reviewer,
}

impl Part {
    /// The name, which is also the last part of the handle.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Researcher => "researcher",
            Self::Reviewer => "reviewer",
        }
    }

    /// What it does, for people and for other agents.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Planner => "Brings together who is needed for a question.",
            Self::Researcher => "Looks things up in the notes.",
            Self::Reviewer => "Checks what others found.",
        }
    }
}

/// Runs one of them until it is told to stop, or until the demo is gone.
pub(crate) fn run(part: Part) -> Result<ExitCode, Failure> {
    std::thread::spawn(|| {
        // Nothing is ever written there: this ends when the demo's process does.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from)?;
    runtime.block_on(Box::pin(live(part)))?;
    Ok(ExitCode::SUCCESS)
}

async fn live(part: Part) -> anyhow::Result<()> {
    let set = |name: &str| environment(name).map(|value| value.to_string_lossy().into_owned());
    let url = set("BANDSTAND_URL").context("BANDSTAND_URL is not set")?;
    let key = set("BANDSTAND_KEY").context("BANDSTAND_KEY is not set")?;
    let pace = set(PACE).and_then(|text| text.parse().ok()).unwrap_or_default();
    let (pace, slow) = (Duration::from_millis(pace), set(SLOW).is_some());
    let mut options = ClientOptions::new(&url, key);
    // The server is on this machine.
    options.proxies = false;
    options.tls = Some(Arc::new(crate::people::tls::for_address(&url)?));
    let client: Client = options.build()?;
    let agent = match part {
        Part::Planner => Agent::new(client, Planner { pace }),
        Part::Reviewer => Agent::new(client, Reviewer { pace }),
        Part::Researcher => Agent::new(client, Researcher).toolbox(notes(pace, slow)?),
    };
    // Each has one process, and a lock would be left in the machine's temporary folder.
    let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
    agent.settings(settings).run_until_signal().await.map_err(|error| anyhow!("{}: {error}", part.name()))?;
    Ok(())
}

/// Takes the time that a model would take to think.
async fn think(tools: &AgentTools, pace: Duration, text: &str) -> Result<(), TurnError> {
    tools.send_event(EventDraft::thought(text)).await?;
    tools.client().options().clock.sleep(pace).await;
    Ok(())
}

struct Planner {
    pace: Duration,
}

#[async_trait]
impl Adapter for Planner {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let tools = &input.tools;
        if input.message.sender.kind() == "User" {
            think(tools, self.pace, "I need somebody who looks it up, and somebody who checks it.").await?;
            for wanted in ["Researcher", "Reviewer"] {
                tools.add_participant(wanted, "member").await?;
                tools.client().options().clock.sleep(self.pace).await;
            }
            let text = "please find out what the server promises about a message, and then check it.";
            tools.send_message(text, &["Researcher", "Reviewer"]).await?;
            return Ok(());
        }
        let people = tools.get_participants().await?;
        let Some(person) = people.iter().find(|it| it.kind == "User") else {
            tools.no_reply(Some("nobody is waiting for an answer"));
            return Ok(());
        };
        tools.client().options().clock.sleep(self.pace).await;
        let text = "a message that the server acknowledged is on disk, and each agent that it mentions gets it, \
                    whatever crashes in between. Found by the researcher, checked by the reviewer.";
        tools.send_message(text, &[person.id.to_string().as_str()]).await?;
        Ok(())
    }
}

/// Looks something up in the notes.
#[derive(Deserialize, schemars::JsonSchema)]
struct SearchNotes {
    /// What to look for.
    query: String,
}

/// The researcher's own tool. Any function with typed arguments can be one.
fn notes(pace: Duration, slow: bool) -> anyhow::Result<Toolbox> {
    let search = Tool::new("search_notes", move |tools: AgentTools, asked: SearchNotes| async move {
        let called = EventDraft::new("tool_call", format!("search_notes({:?})", asked.query));
        tools.send_event(called).await?;
        // Whoever is slow is still at it when the demo kills it.
        let time = if slow { Duration::from_secs(60) } else { pace };
        tools.client().options().clock.sleep(time).await;
        let found = match asked.query.as_str() {
            "crash" => "what an agent did not finish is served to it again",
            _ => "an acknowledged message is on disk",
        };
        tools.send_event(EventDraft::new("tool_result", found)).await?;
        Ok::<_, ToolError>(found.to_owned())
    });
    Ok(Toolbox::new(Capabilities::none()).with(search.effect(Effect::Act))?)
}

struct Researcher;

#[async_trait]
impl Adapter for Researcher {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let (tools, person) = (&input.tools, input.message.sender.kind() == "User");
        let query = if person { "crash" } else { "promises" };
        let outcome = tools.execute_tool_call_structured("search_notes", json!({ "query": query })).await?;
        let found = outcome.text();
        if person {
            let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
            let text = format!("the notes say: {found}. This is the proof: I was killed, and here is your answer.");
            tools.send_message(&text, &[sender.as_str()]).await?;
        } else {
            tools.send_message(&format!("the notes say: {found}."), &["Reviewer"]).await?;
        }
        Ok(())
    }
}

struct Reviewer {
    pace: Duration,
}

#[async_trait]
impl Adapter for Reviewer {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        if input.message.sender.name() != "Researcher" {
            input.tools.no_reply(Some("there is nothing to check yet"));
            return Ok(());
        }
        think(&input.tools, self.pace, "That is what the tests with kill -9 show as well.").await?;
        input.tools.send_message("checked, it is right.", &["Planner"]).await?;
        Ok(())
    }
}

//! An agent that plays a script instead of asking a model: for demonstrations, and to hold this SDK against another one.
//!
//! `BANDSTAND_KEY=band_a_… cargo run -p bandstand-agent --example scripted -- script.json`
//!
//! ```json
//! {"turns": [[{"think": "Hm."}, {"reply": "Hello"}], ["decline"]], "contacts": "approve"}
//! ```
//!
//! Each turn plays its list of steps; when none is left, the last one again. The agent has three tools of its own:
//! `file_ticket` (real work), `look_up` (only looks) and `break_down` (fails). It prints a line of JSON when a turn begins,
//! with what it was given, and stops in order when its standard input ends.

use std::io::Read as _;
use std::sync::Arc;

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, Scripted, Step, TurnError, TurnInput};
use bandstand_agent::client::Client;
use bandstand_agent::registry::ToolError;
use bandstand_agent::runtime::{
    Agent, ContactEvent, ContactHandler, ContactSettings, ContactStrategy, RuntimeSettings,
};
use bandstand_agent::tools::{AgentTools, Capabilities, ContactTools, Effect, Tool, Toolbox};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// What to play.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    turns: Vec<Vec<Step>>,
    #[serde(default)]
    contacts: Contacts,
}

/// What to do with contact requests.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Contacts {
    #[default]
    Ignore,
    Approve,
}

/// Files a support ticket.
#[derive(Deserialize, schemars::JsonSchema)]
struct FileTicket {
    /// What it is about.
    title: String,
}

/// Looks something up.
#[derive(Deserialize, schemars::JsonSchema)]
struct LookUp {}

/// Fails.
#[derive(Deserialize, schemars::JsonSchema)]
struct BreakDown {}

fn toolbox() -> Result<Toolbox, AnyError> {
    let file_ticket = Tool::new("file_ticket", |_: AgentTools, ticket: FileTicket| async move {
        Ok::<_, ToolError>(format!("filed: {}", ticket.title))
    });
    let look_up =
        Tool::new("look_up", |_: AgentTools, _: LookUp| async move { Ok::<_, ToolError>("nothing".to_owned()) });
    let break_down = Tool::new("break_down", |_: AgentTools, _: BreakDown| async move {
        Err::<String, _>(ToolError::failed("it broke"))
    });
    let toolbox = Toolbox::new(Capabilities::none())
        .with(file_ticket.effect(Effect::Act))?
        .with(look_up)?
        .with(break_down.effect(Effect::Act))?;
    Ok(toolbox)
}

/// Tells what it was given, and plays.
struct Telling(Scripted);

#[async_trait]
impl Adapter for Telling {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none()
    }

    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let history: Vec<_> = input.history.iter().map(|row| json!([row.message_type, row.content, row.own])).collect();
        println!("{}", json!({ "turn": input.message.id, "content": input.message.content, "history": history }));
        self.0.on_message(input).await
    }
}

/// Lets everybody in.
struct Approving;

#[async_trait]
impl ContactHandler for Approving {
    async fn on_event(&self, event: &ContactEvent, tools: &ContactTools) -> Result<(), AnyError> {
        if let ContactEvent::RequestReceived(request) = event {
            tools.respond_contact_request("approve", None, Some(&request.id)).await?;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let path = std::env::args().nth(1).ok_or("which script? scripted SCRIPT.json")?;
    let script: Script = serde_json::from_slice(&std::fs::read(path)?)?;
    let url = std::env::var("BANDSTAND_URL").unwrap_or_else(|_| "http://localhost:4000".into());
    let client = Client::new(&url, std::env::var("BANDSTAND_KEY")?)?;
    let strategy = match script.contacts {
        Contacts::Ignore => ContactStrategy::Disabled,
        Contacts::Approve => ContactStrategy::Callback(Arc::new(Approving)),
    };
    let settings =
        RuntimeSettings { contacts: ContactSettings { strategy, broadcast: false }, ..RuntimeSettings::default() };
    let stop = CancellationToken::new();
    std::thread::spawn({
        let stop = stop.clone();
        move || {
            // Whatever ends it, nobody is there any more who would say so.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.cancel();
        }
    });
    let agent = Agent::new(client, Telling(Scripted::turns(script.turns)));
    agent.toolbox(toolbox()?).settings(settings).run(stop).await?;
    Ok(())
}

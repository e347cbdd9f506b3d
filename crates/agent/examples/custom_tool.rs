//! An agent with a tool of its own, which counts as work done, and one that a person must allow.
//!
//! `BANDSTAND_KEY=band_a_… cargo run -p bandstand-agent --example custom_tool`, then say something to the agent in a room:
//! it files a ticket about it. `pay 5` makes it ask before it pays; answer it with `/approve`.
//!
//! A model would choose between the tools; here a few lines do.

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, TurnError, TurnInput};
use bandstand_agent::client::Client;
use bandstand_agent::registry::ToolError;
use bandstand_agent::runtime::Agent;
use bandstand_agent::tools::{AgentTools, Approval, Capabilities, Effect, Tool, Toolbox};
use serde::Deserialize;
use serde_json::json;

/// Files a support ticket.
#[derive(Deserialize, schemars::JsonSchema)]
struct FileTicket {
    /// What it is about.
    title: String,
}

/// Pays an amount.
#[derive(Deserialize, schemars::JsonSchema)]
struct Pay {
    /// How much, in euros.
    #[schemars(range(min = 1, max = 1000))]
    amount: i64,
}

fn toolbox() -> Result<Toolbox, Box<dyn std::error::Error>> {
    let file_ticket = Tool::new("file_ticket", |_: AgentTools, ticket: FileTicket| async move {
        Ok::<_, ToolError>(format!("filed: {}", ticket.title))
    });
    let pay =
        Tool::new("pay", |_: AgentTools, pay: Pay| async move { Ok::<_, ToolError>(format!("paid {}", pay.amount)) });
    let toolbox = Toolbox::new(Capabilities::none())
        .with(file_ticket.effect(Effect::Act))?
        .with(pay.effect(Effect::Act).approval(Approval::Ask))?;
    Ok(toolbox)
}

/// Stands in for a model.
struct Clerk;

#[async_trait]
impl Adapter for Clerk {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let words: Vec<&str> = input.message.content.split_whitespace().collect();
        let (tool, arguments) = match words.as_slice() {
            [.., "pay", amount] => ("pay", json!({"amount": amount})),
            _ => ("file_ticket", json!({"title": input.message.content})),
        };
        let outcome = input.tools.execute_tool_call_structured(tool, arguments).await?;
        println!("{tool}: {}", outcome.text());
        if !outcome.ok() {
            input.tools.no_reply(Some("the tool said why"));
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("BANDSTAND_URL").unwrap_or_else(|_| "http://localhost:4000".into());
    let client = Client::new(&url, std::env::var("BANDSTAND_KEY")?)?;
    Agent::new(client, Clerk).toolbox(toolbox()?).run_until_signal().await?;
    Ok(())
}

//! An agent with a tool of its own, which counts as work done, and one that a person must allow.
//!
//! `BANDSTAND_KEY=band_a_… cargo run -p bandstand-agent --example custom_tool`, then say something to the agent in a room:
//! it files a ticket about it. `pay 5` makes it ask before it pays.
//!
//! A model would choose between the tools; here a few lines do.

use std::sync::Arc;

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, IncomingMessage, TurnError, TurnInput};
use bandstand_agent::approval::Taken;
use bandstand_agent::client::Client;
use bandstand_agent::client::socket::{Push, SocketEvent, SocketOptions};
use bandstand_agent::registry::ToolError;
use bandstand_agent::tools::{AgentTools, Approval, Binding, Capabilities, Effect, Tool, Toolbox};
use bandstand_agent::turn::{Conclusion, MISSING_REPLY_MARK, RunEnd};
use bandstand_agent::wire::ids::RoomId;
use bandstand_agent::wire::phoenix::Topic;
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
    let me = client.me().await?;
    let (toolbox, clerk) = (Arc::new(toolbox()?), Arc::new(Clerk));
    let (socket, mut incoming) = client.connect(SocketOptions::new(me.id)).await?;
    for room in client.rooms(1, 100).await?.data {
        socket.join(Topic::ChatRoom(room.id)).await?;
    }
    println!("{} listens; say something to @{}", me.name, me.handle.unwrap_or_default());
    // The runtime does this, and all that can go wrong meanwhile, by itself; here it is by hand, to show the parts.
    while let Some(event) = incoming.events.recv().await {
        let SocketEvent::Push { topic: Topic::ChatRoom(room), push: Push::MessageCreated(message) } = event else {
            continue;
        };
        let message = IncomingMessage::of(*message, room);
        // An answer to a question must not wait behind the turn that asks.
        let taken = toolbox.approvals().take(&message);
        let binding = Binding { agent: Some(me.id), toolbox: Arc::clone(&toolbox), ..Binding::default() };
        let tools = AgentTools::new(client.clone(), room, binding);
        tokio::spawn(turn(client.clone(), Arc::clone(&clerk), tools, room, message, taken));
    }
    Ok(())
}

async fn turn(
    client: Client,
    clerk: Arc<Clerk>,
    tools: AgentTools,
    room: RoomId,
    message: IncomingMessage,
    taken: Taken,
) {
    let id = message.id;
    if client.mark_processing(room, id).await.is_err() {
        return;
    }
    if let Taken::Yes(text) = taken {
        println!("{text}");
        let _ = client.mark_processed(room, id).await;
        return;
    }
    tools.turn().begin(clerk.judges_turns());
    let input = TurnInput {
        message,
        tools: tools.clone(),
        history: Vec::new(),
        participants: None,
        contacts: None,
        is_session_start: false,
        cancel: Default::default(),
    };
    let end = match clerk.on_message(input).await {
        Ok(()) => RunEnd::Returned,
        Err(_) => RunEnd::Failed,
    };
    let marked = match tools.conclude(end).await {
        Conclusion::MissingReply => client.mark_failed(room, id, MISSING_REPLY_MARK).await,
        Conclusion::Failed => client.mark_failed(room, id, "the turn failed").await,
        _ => client.mark_processed(room, id).await,
    };
    if let Err(error) = marked {
        eprintln!("{error}");
    }
}

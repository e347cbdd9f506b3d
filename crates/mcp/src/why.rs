//! `band_why`: what became of a message, from the delivery ledger.

use std::sync::LazyLock;

use bandstand_agent::client::{Client, ClientError, HumanClient};
use bandstand_agent::registry::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Whom the ledger is asked for.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) agent: Option<Client>,
    pub(crate) human: Option<HumanClient>,
}

/// Says what became of a message for each recipient: every stage with its time and, where nothing happened, one reason
/// with its evidence (nobody connected, stopped, still being worked on, declined, failed, …). Ask it before you send
/// something a second time. As an agent you are told everything about what you sent, and your own part of what you
/// received.
#[derive(Debug, Deserialize, JsonSchema)]
struct Why {
    /// The room of the message.
    chat_id: String,
    /// The message's id.
    message_id: String,
    /// Only about this participant: an id or a handle.
    participant: Option<String>,
}

pub(crate) fn tool() -> &'static Tool<Asker> {
    static TOOL: LazyLock<Tool<Asker>> = LazyLock::new(|| {
        let tool = Tool::new("band_why", |asker: Asker, it: Why| async move {
            asker.ask(&it).await.map_err(|error| ToolError::failed(error.to_string()))
        });
        tool.alias("room_id", "chat_id").group("chat").read_only()
    });
    &TOOL
}

impl Asker {
    /// A person is told more, so a person's key is asked with first.
    async fn ask(&self, it: &Why) -> Result<Value, ClientError> {
        let participant = it.participant.as_deref();
        let mut last = None;
        if let Some(human) = &self.human {
            match human.deliveries(&it.chat_id, &it.message_id, participant).await {
                Err(error) if error.is_not_found() && self.agent.is_some() => last = Some(error),
                answer => return answer,
            }
        }
        match (&self.agent, it.chat_id.parse(), it.message_id.parse()) {
            (Some(agent), Ok(room), Ok(message)) => agent.deliveries(room, message, participant).await,
            _ => Err(last.unwrap_or_else(|| ClientError::Options("chat_id and message_id must be ids".into()))),
        }
    }
}

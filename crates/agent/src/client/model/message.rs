//! Messages, events and what comes back when one is posted.

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::or_default;

/// The words of `message_type` that an agent meets.
pub mod message_type {
    /// A text for people or agents.
    pub const TEXT: &str = "text";
    /// An agent calls a tool.
    pub const TOOL_CALL: &str = "tool_call";
    /// What a tool returned.
    pub const TOOL_RESULT: &str = "tool_result";
    /// An agent's reasoning.
    pub const THOUGHT: &str = "thought";
    /// A failure.
    pub const ERROR: &str = "error";
    /// Progress of work.
    pub const TASK: &str = "task";
    /// An agent wants a person to look.
    pub const ATTENTION: &str = "attention";
}

/// A message or an event of a room's history, from REST or from a push.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ChatMessage {
    /// Which.
    pub id: MessageId,
    /// The text, with mentions as `@[[uuid]]`.
    pub content: String,
    /// See [`message_type`].
    pub message_type: String,
    /// Who posted it.
    pub sender_id: IdentityId,
    /// `User` or `Agent`.
    pub sender_type: String,
    /// Who posted it.
    #[serde(default)]
    pub sender_name: Option<String>,
    /// Where.
    #[serde(default)]
    pub chat_room_id: Option<RoomId>,
    /// Mentions and deliveries of a text; whatever the sender gave, of an event.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// Its files.
    #[serde(default, deserialize_with = "or_default")]
    pub attachments: Vec<Attachment>,
    /// When it was posted.
    #[serde(default)]
    pub inserted_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

impl ChatMessage {
    /// Whom it mentions. An entry that cannot be read is left out.
    pub fn mentions(&self) -> Vec<MentionRow> {
        let mentions = self.metadata.as_ref().and_then(|metadata| metadata.get("mentions"));
        let rows = mentions.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        rows.iter().filter_map(|row| MentionRow::deserialize(row).ok()).collect()
    }

    /// What became of it for one recipient: `delivered`, `processing`, `processed`, `failed`, or nothing yet.
    pub fn delivery_status(&self, recipient: IdentityId) -> Option<&str> {
        self.metadata.as_ref()?.get("delivery_status")?.get(recipient.to_string())?.get("status")?.as_str()
    }

    /// Whether this agent posted it.
    pub fn is_from(&self, agent: IdentityId) -> bool {
        self.sender_id == agent
    }
}

/// Somebody that a text mentions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct MentionRow {
    /// Who.
    pub id: IdentityId,
    /// Its handle then, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
    /// Its name then.
    #[serde(default)]
    pub name: Option<String>,
    /// `reference` for somebody who is named without being delivered to.
    #[serde(default)]
    pub kind: Option<String>,
}

/// A file of a room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Attachment {
    /// Which.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is, as found in its bytes.
    pub content_type: String,
    /// How large it is.
    pub bytes: i64,
    /// Its content's checksum, in hex.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Whether there is a small picture of it.
    #[serde(default)]
    pub has_thumb: Option<bool>,
    /// When it goes away.
    #[serde(default)]
    pub expires_at: Option<String>,
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PostedMessage {
    /// The new message.
    pub id: MessageId,
    /// Whom it is delivered to.
    #[serde(default, deserialize_with = "or_default")]
    pub recipients: Vec<Recipient>,
    /// Whether it was taken.
    #[serde(default)]
    pub success: Option<bool>,
    /// When it was posted.
    #[serde(default)]
    pub inserted_at: Option<String>,
}

/// Somebody that a message is delivered to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Recipient {
    /// Who.
    pub id: IdentityId,
    /// Its handle, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
}

/// The answer to an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PostedEvent {
    /// The new event.
    pub id: MessageId,
    /// What it is.
    #[serde(default)]
    pub message_type: Option<String>,
    /// Whether it was taken.
    #[serde(default)]
    pub success: Option<bool>,
    /// When it was posted.
    #[serde(default)]
    pub inserted_at: Option<String>,
}

/// The answer to a mark.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Marked {
    /// Which message.
    pub id: MessageId,
    /// Whether the mark was taken. Anything but true means that it was not.
    pub success: bool,
    /// `processing`, `processed` or `failed`.
    pub status: String,
    /// Which attempt, from 1.
    pub attempt_number: i64,
}

/// A token to act for somebody else.
#[derive(Clone, Deserialize, Serialize)]
pub struct DelegationToken {
    /// The token. A secret.
    pub access_token: String,
    /// `bearer`.
    pub token_type: String,
    /// When it ends.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// Who acts for whom.
    #[serde(default)]
    pub obo: Option<Value>,
}

impl std::fmt::Debug for DelegationToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DelegationToken").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

//! Messages that were given up for an agent.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::{IdentityId, IdentityKind, MessageId, RoomId};
use crate::time::Timestamp;

/// Somebody that a dead letter is from or for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeadLetterParty")]
pub struct Party {
    /// Who.
    pub id: IdentityId,
    /// A user or an agent.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its name.
    pub name: String,
    /// Its handle, without `@`.
    pub handle: String,
}

/// A message that was given up for one agent. Its text is not here: a list of dead letters may be seen over a shoulder.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeadLetter {
    /// Where.
    pub chat_room_id: RoomId,
    /// Which.
    pub message_id: MessageId,
    /// Who sent it.
    pub sender: Party,
    /// For whom it was.
    pub agent: Party,
    /// Why: `attempts` or `age`.
    pub reason: String,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// When it was given up.
    pub dead_lettered_at: Timestamp,
    /// All attempts, also those that do not count toward the limit.
    pub attempts: i64,
    /// What the newest attempt failed with.
    pub last_error: Option<String>,
}

/// The answer to `redeliver`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Redelivered {
    /// The message.
    pub id: MessageId,
    /// The agent that it is served to again.
    pub agent_id: IdentityId,
    /// Always true.
    pub redelivered: bool,
}

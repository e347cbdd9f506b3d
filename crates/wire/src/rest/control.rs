//! Stopping agents and letting them go on, and what their work is in each room.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::{ExecutionId, IdentityId, IdentityKind, RoomId};
use crate::time::Timestamp;

/// The answer to `stop` and `play`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RoomAgentsState {
    /// Whether the room's agents are stopped now.
    pub stopped: bool,
}

/// The answer to `interrupt`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Interrupted {
    /// The execution that was named.
    pub id: ExecutionId,
}

/// An agent's work in one room.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Execution {
    /// Which.
    pub id: ExecutionId,
    /// Whose.
    pub agent_id: IdentityId,
    /// Where.
    pub chat_room_id: RoomId,
    /// `idle`, `working` or `stopped`.
    #[schemars(with = "crate::rest::words::ExecutionStatus")]
    pub status: &'static str,
    /// When the agent joined the room.
    pub inserted_at: Timestamp,
    /// Since when it is stopped.
    pub stopped_at: Option<Timestamp>,
    /// Who stopped it.
    pub stopped_by: Option<ExecutionActor>,
}

/// Somebody who did something to an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutionActor {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its name.
    pub name: String,
    /// Its handle.
    pub handle: String,
}

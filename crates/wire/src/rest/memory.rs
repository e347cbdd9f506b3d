//! What agents remember.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::ids::{IdentityId, MemoryId, OrganizationId, RoomId};
use crate::rest::message::RawBox;
use crate::time::Timestamp;

/// A memory as agents see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentMemory {
    /// Which.
    pub id: MemoryId,
    /// What is remembered.
    pub content: String,
    /// Why it was stored.
    pub thought: String,
    /// `sensory`, `working` or `long_term`.
    #[schemars(with = "crate::rest::words::MemorySystem")]
    pub system: &'static str,
    /// What kind of memory within its system.
    #[serde(rename = "type")]
    #[schemars(with = "crate::rest::words::MemoryType")]
    pub kind: &'static str,
    /// What it tells about.
    #[schemars(with = "crate::rest::words::MemorySegment")]
    pub segment: &'static str,
    /// For whom it is: `agent`, `subject` or `organization`.
    #[schemars(with = "crate::rest::words::MemoryScope")]
    pub scope: &'static str,
    /// `active`, `superseded` or `archived`.
    #[schemars(with = "crate::rest::words::MemoryStatus")]
    pub status: &'static str,
    /// As the agent supplied it, or null.
    pub metadata: Option<RawBox>,
    /// Whom it is about.
    pub subject_id: Option<Uuid>,
    /// Who stored it; null once that agent is deleted.
    pub source_agent_id: Option<IdentityId>,
    /// Within which organization it is shared; null for the scope `agent`.
    pub organization_id: Option<OrganizationId>,
    /// When it was stored.
    pub inserted_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
}

/// A memory as people see it: with names beside the ids.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UserMemory {
    /// What agents see as well.
    #[serde(flatten)]
    pub memory: AgentMemory,
    /// Null: no memory of this server comes from a room.
    pub chat_room_id: Option<RoomId>,
    /// Null, likewise.
    pub chat_room_title: Option<String>,
    /// Null, likewise.
    #[schemars(with = "Option<crate::rest::words::RoomStatus>")]
    pub chat_room_status: Option<&'static str>,
    /// Null, likewise.
    #[schemars(with = "Option<crate::rest::words::RoomKind>")]
    pub chat_room_type: Option<&'static str>,
    /// Name of the agent that stored it; null once it is deleted.
    pub source_agent_name: Option<String>,
    /// Name of whom it is about; null when deleted, or not visible to the caller.
    pub subject_name: Option<String>,
    /// `user` or `agent`; null whenever the name is.
    #[schemars(with = "Option<crate::rest::words::SubjectType>")]
    pub subject_type: Option<&'static str>,
}

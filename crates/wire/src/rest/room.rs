//! Rooms: `chat` in both APIs.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::ids::{IdentityId, IdentityKind, RoomId};
use crate::rest::message::ChatMessage;
use crate::rest::participant::{ChatParticipant, ChatParticipantDetails};
use crate::rest::task::TaskCounts;
use crate::time::Timestamp;

/// A room as agents see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChatRoom {
    /// Which.
    pub id: RoomId,
    /// Null until it has one.
    pub title: Option<String>,
    /// The creator's own link.
    pub task_id: Option<Uuid>,
    /// When it was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A row of an agent's list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentChatRoomListItem {
    /// The room.
    #[serde(flatten)]
    pub room: ChatRoom,
    /// With `include=participants`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub roster: Option<Roster<ChatParticipant>>,
}

/// The first participants of a room, by id.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Roster<P> {
    /// At most 100.
    pub participants: Vec<P>,
    /// How many there are.
    pub participant_count: i64,
    /// Whether there are more than shown.
    pub participants_truncated: bool,
}

/// A room as people see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeChatRoom {
    /// Which.
    pub id: RoomId,
    /// Null until it has one.
    pub title: Option<String>,
    /// The creator's own link.
    pub task_id: Option<Uuid>,
    /// `active`, `archived` or `closed`.
    #[schemars(with = "crate::rest::words::RoomStatus")]
    pub status: &'static str,
    /// `direct`, `group` or `task`.
    #[serde(rename = "type")]
    #[schemars(with = "crate::rest::words::RoomKind")]
    pub kind: &'static str,
    /// When the newest message or event was posted.
    pub last_message_at: Option<Timestamp>,
    /// When it was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// While tasks are on; left out otherwise.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub overview: Option<RoomOverview>,
}

/// What people see of a room besides, while tasks are on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoomOverview {
    /// What the room is for; null until its first text message.
    pub description: Option<String>,
    /// Its agents, in the order of joining.
    pub agents: Vec<RoomAgent>,
    /// How many active tasks have which status.
    pub task_counts: TaskCounts,
    /// `idle`, `working`, `stopped` or `failed`.
    #[schemars(with = "crate::rest::words::WorkStatus")]
    pub work_status: &'static str,
}

/// An agent of a room.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoomAgent {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// Always `Agent`.
    #[serde(rename = "type")]
    #[schemars(with = "crate::rest::words::AgentKind")]
    pub kind: IdentityKind,
    /// `owner/slug`.
    pub handle: String,
}

/// A row of a person's list; what was not asked for is left out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeChatRoomListItem {
    /// The room.
    #[serde(flatten)]
    pub room: MeChatRoom,
    /// With `include=participants`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub roster: Option<Roster<ChatParticipantDetails>>,
    /// With `include=last_message`; null in an empty room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<Option<ChatMessage>>,
    /// With `include=membership`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub membership: Option<MembershipInfo>,
}

/// How a person takes part in a room.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MembershipInfo {
    /// `participant` or `via_agent`.
    #[schemars(with = "crate::rest::words::Membership")]
    pub membership: &'static str,
    /// Own role; null via an agent.
    #[schemars(with = "Option<crate::rest::words::ParticipantRole>")]
    pub my_role: Option<&'static str>,
    /// Own standing; null via an agent.
    #[schemars(with = "Option<crate::rest::words::ParticipantStatus>")]
    pub my_status: Option<&'static str>,
    /// Own agents in the room.
    pub via_agent_ids: Vec<IdentityId>,
}

/// A single room as people see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeChatRoomDetail {
    /// The room.
    #[serde(flatten)]
    pub room: MeChatRoom,
    /// With `include=message_counts`: rows by type; a type without rows is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_counts: Option<serde_json::Map<String, serde_json::Value>>,
}

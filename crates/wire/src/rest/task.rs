//! The task board of a room: its tasks, their histories, and the room's goal. A push on `room_tasks` holds the same
//! objects.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::{IdentityId, IdentityKind, RoomId, TaskId};
use crate::rest::message::RawBox;
use crate::time::Timestamp;

/// Somebody who did something, as known then.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskActor {
    /// Who.
    pub id: IdentityId,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its name then.
    pub name: String,
    /// Its handle then, without `@`.
    pub handle: String,
}

/// One participant's part in a task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskAssignment {
    /// Who.
    pub assignee: TaskActor,
    /// How far it is.
    #[schemars(with = "crate::rest::words::TaskStatus")]
    pub status: &'static str,
    /// What it is doing right now; may be empty.
    pub active_form: String,
    /// Its own link to the task in its tooling; may be empty.
    pub linked_native_id: String,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Task {
    /// Which.
    pub id: TaskId,
    /// Its number in the room.
    pub number: i64,
    /// Where.
    pub chat_room_id: RoomId,
    /// What needs to be done.
    pub subject: String,
    /// More of it; may be empty.
    pub detail: String,
    /// `active`, `cancelled`, `superseded` or `archived`.
    #[schemars(with = "crate::rest::words::TaskState")]
    pub state: &'static str,
    /// How far it is, rolled up from its assignments.
    #[schemars(with = "crate::rest::words::TaskStatus")]
    pub overall_status: &'static str,
    /// The task that replaces it.
    pub superseded_by_id: Option<TaskId>,
    /// Who created it.
    pub created_by: TaskActor,
    /// Who works on it, in the order of joining.
    pub assignments: Vec<TaskAssignment>,
    /// When work started.
    pub started_at: Option<Timestamp>,
    /// Since when it is completed.
    pub completed_at: Option<Timestamp>,
    /// When it was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// With `include=history`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub history: Option<ShownHistory>,
}

/// The newest rows of a history, shown within the thing itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownHistory {
    /// At most 100, oldest first.
    pub history: Vec<HistoryEvent>,
    /// Whether there are older ones.
    pub history_truncated: bool,
}

/// A row of the history of a task or a goal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HistoryEvent {
    /// What it tells.
    #[schemars(with = "crate::rest::words::HistoryEventKind")]
    pub event: &'static str,
    /// Who did it.
    pub actor: TaskActor,
    /// What changed.
    pub payload: RawBox,
    /// When.
    pub at: Timestamp,
}

/// A room's goal. All but the room is null until one is set.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Board {
    /// Which room.
    pub chat_room_id: RoomId,
    /// The mission in a line.
    pub goal_title: Option<String>,
    /// The mission in a paragraph.
    pub goal_summary: Option<String>,
    /// Who set it first.
    pub created_by: Option<TaskActor>,
    /// Who changed it last.
    pub updated_by: Option<TaskActor>,
    /// When it was first set.
    pub inserted_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Option<Timestamp>,
    /// With `include=history`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub history: Option<ShownHistory>,
}

/// How many active tasks of a room have which status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskCounts {
    /// Nobody has begun.
    pub pending: i64,
    /// Somebody works on it.
    pub in_progress: i64,
    /// Somebody cannot go on.
    pub blocked: i64,
    /// Somebody waits for a review.
    pub in_review: i64,
    /// Somebody could not do it.
    pub failed: i64,
    /// All who took it are done.
    pub completed: i64,
}

//! A room's task board.

use bandstand_wire::ids::RoomId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::or_default;

/// Somebody, as known when it acted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TaskActor {
    /// Who.
    pub id: String,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// Its handle, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
}

/// Somebody's part in a task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TaskAssignment {
    /// Whose.
    pub assignee: TaskActor,
    /// How far it is.
    pub status: String,
    /// What it is doing just now.
    #[serde(default)]
    pub active_form: Option<String>,
    /// Its own link.
    #[serde(default)]
    pub linked_native_id: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

/// Something that happened to a task or a goal.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct TaskEvent {
    /// What.
    pub event: String,
    /// Who did it.
    #[serde(default)]
    pub actor: Option<TaskActor>,
    /// What changed.
    #[serde(default)]
    pub payload: Option<Value>,
    /// When.
    #[serde(default)]
    pub at: Option<String>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Task {
    /// Which.
    pub id: String,
    /// Its number on the board.
    pub number: i64,
    /// Where.
    pub chat_room_id: RoomId,
    /// What is to be done.
    pub subject: String,
    /// More of it; may be empty.
    #[serde(default, deserialize_with = "or_default")]
    pub detail: String,
    /// `active`, `cancelled`, `superseded` or `archived`.
    pub state: String,
    /// How far it is, of all who work on it.
    #[serde(default)]
    pub overall_status: Option<String>,
    /// The task that replaced it.
    #[serde(default)]
    pub superseded_by_id: Option<String>,
    /// Who made it.
    #[serde(default)]
    pub created_by: Option<TaskActor>,
    /// Who works on it.
    #[serde(default, deserialize_with = "or_default")]
    pub assignments: Vec<TaskAssignment>,
    /// What happened to it, when asked for.
    #[serde(default)]
    pub history: Option<Vec<TaskEvent>>,
    /// Whether there is more of its history than that.
    #[serde(default)]
    pub history_truncated: Option<bool>,
    /// When it was made.
    #[serde(default)]
    pub inserted_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

/// A room's goal.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Board {
    /// Where.
    pub chat_room_id: RoomId,
    /// The goal; null until there is one.
    #[serde(default)]
    pub goal_title: Option<String>,
    /// More of it.
    #[serde(default)]
    pub goal_summary: Option<String>,
    /// Who set it first.
    #[serde(default)]
    pub created_by: Option<TaskActor>,
    /// Who changed it last.
    #[serde(default)]
    pub updated_by: Option<TaskActor>,
    /// What happened to it, when asked for.
    #[serde(default)]
    pub history: Option<Vec<TaskEvent>>,
    /// Whether there is more of its history than that.
    #[serde(default)]
    pub history_truncated: Option<bool>,
    /// When it was set.
    #[serde(default)]
    pub inserted_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

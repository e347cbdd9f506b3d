//! The rows of a task's history. Each says what changed from what to what; once written, none is changed or merged.

use bandstand_wire::ids::TaskId;
use bandstand_wire::time::Timestamp;
use serde::Serialize;

use super::{Actor, TaskState, TaskStatus};
use crate::room::words;

words! {
    /// What a row of a task's history tells.
    TaskEventKind {
        /// The task came to be.
        Created = "created",
        /// Subject or detail changed.
        Edited = "edited",
        /// A participant's own status changed, or its link.
        StatusChanged = "status_changed",
        /// A participant left a note.
        Commented = "commented",
        /// A participant no longer works on it.
        Dropped = "dropped",
        /// It was given up.
        Cancelled = "cancelled",
        /// Another task replaces it.
        Superseded = "superseded",
        /// It was tidied away.
        Archived = "archived",
        /// It is back on the board.
        Unarchived = "unarchived",
    }
}

/// A field before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FromTo<T> {
    /// Before.
    pub from: T,
    /// After.
    pub to: T,
}

/// What changed. Written as JSON it is the row's `payload` on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TaskChange {
    /// The initial values.
    Created {
        /// The subject.
        subject: String,
        /// The detail, may be empty.
        detail: String,
        /// The task that this one replaces.
        #[serde(skip_serializing_if = "Option::is_none")]
        supersedes_id: Option<TaskId>,
    },
    /// The fields that changed.
    Edited {
        /// The subject.
        #[serde(skip_serializing_if = "Option::is_none")]
        subject: Option<FromTo<String>>,
        /// The detail.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<FromTo<String>>,
    },
    /// The actor's own status; the same twice where only its link changed.
    StatusChanged {
        /// From null when it joined the task by it.
        status: FromTo<Option<TaskStatus>>,
        /// The link, when it changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        linked_native_id: Option<String>,
    },
    /// A note.
    Commented {
        /// The note.
        text: String,
    },
    /// The actor no longer works on it.
    Dropped {
        /// Why.
        reason: String,
    },
    /// Given up.
    Cancelled {
        /// Its state.
        state: FromTo<TaskState>,
    },
    /// Replaced.
    Superseded {
        /// Its state.
        state: FromTo<TaskState>,
        /// By which task.
        superseded_by_id: TaskId,
    },
    /// Tidied away.
    Archived {
        /// Its state.
        state: FromTo<TaskState>,
    },
    /// Restored.
    Unarchived {
        /// Its state.
        state: FromTo<TaskState>,
    },
}

impl TaskChange {
    /// What kind of row tells it.
    pub fn kind(&self) -> TaskEventKind {
        match self {
            Self::Created { .. } => TaskEventKind::Created,
            Self::Edited { .. } => TaskEventKind::Edited,
            Self::StatusChanged { .. } => TaskEventKind::StatusChanged,
            Self::Commented { .. } => TaskEventKind::Commented,
            Self::Dropped { .. } => TaskEventKind::Dropped,
            Self::Cancelled { .. } => TaskEventKind::Cancelled,
            Self::Superseded { .. } => TaskEventKind::Superseded,
            Self::Archived { .. } => TaskEventKind::Archived,
            Self::Unarchived { .. } => TaskEventKind::Unarchived,
        }
    }
}

/// A row of a task's history that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    /// What changed.
    pub change: TaskChange,
    /// Who did it; of a dropped assignment, whose it was.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
}

/// A row of the history of a task or of a board's goal, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow<K> {
    /// Its place in the history, from 1.
    pub place: i64,
    /// What it tells.
    pub kind: K,
    /// Who did it.
    pub actor: Actor,
    /// What changed, as JSON text.
    pub payload: String,
    /// When.
    pub at: Timestamp,
}

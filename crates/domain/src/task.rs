//! The tasks of a room's board: who works on what, how far they are, and what every save did. A task is shared: several
//! participants may work on it, each with a status of its own; the task's status is rolled up from theirs.

mod event;
#[cfg(test)]
mod tests;
mod update;

use bandstand_wire::ids::{IdentityId, IdentityKind, RoomId, TaskId};
use bandstand_wire::time::Timestamp;
use serde::{Serialize, Serializer};

pub use event::{FromTo, HistoryRow, TaskChange, TaskEvent, TaskEventKind};
pub use update::{TaskRefusal, TaskUpdate, Updated};

use crate::content::is_visible;
use crate::identity::Profile;
use crate::room::words;

/// Longest subject, `active_form`, linked id and goal title, in characters: what is shown on one line of a board.
pub const LINE_MAX_CHARACTERS: usize = 500;

/// Longest detail, comment and goal summary, in characters; the same as for events.
pub const TEXT_MAX_CHARACTERS: usize = crate::content::EVENT_MAX_CHARACTERS;

/// Most participants that work on one task. A push holds the whole task and must stay below the 1,000,000 bytes that
/// clients take: with texts of the longest kind, written as JSON in the longest way, a hundred do.
pub const ASSIGNEES_MAX: usize = 100;

/// Most rows of a history that a task or board shows within itself.
pub const HISTORY_SHOWN: i64 = 100;

words! {
    /// How far somebody is with a task, and how far the task is.
    TaskStatus {
        /// Nobody has begun.
        Pending = "pending",
        /// Somebody works on it.
        InProgress = "in_progress",
        /// Somebody cannot go on.
        Blocked = "blocked",
        /// Somebody waits for a review.
        InReview = "in_review",
        /// Somebody could not do it.
        Failed = "failed",
        /// All who took it are done.
        Completed = "completed",
    }
}

words! {
    /// Where a task is in its life. Only an active task takes work.
    TaskState {
        /// On the board.
        Active = "active",
        /// Given up, for good.
        Cancelled = "cancelled",
        /// Replaced by another one, for good.
        Superseded = "superseded",
        /// Tidied away; can be restored.
        Archived = "archived",
    }
}

impl Serialize for TaskStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for TaskState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Somebody who did something on a board, as known at that moment: a later rename does not change what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// Its name then.
    pub name: String,
    /// Its handle then, without `@`.
    pub handle: String,
}

impl From<&Profile> for Actor {
    fn from(profile: &Profile) -> Self {
        Self { id: profile.id, kind: profile.kind, name: profile.name.clone(), handle: profile.handle.clone() }
    }
}

/// One participant's part in a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Who, as known when it joined the task.
    pub assignee: Actor,
    /// How far it is.
    pub status: TaskStatus,
    /// What it is doing right now, in its own words; may be empty. Not part of the history.
    pub active_form: String,
    /// Its own link to the matching task in its own tooling; may be empty.
    pub linked_native_id: String,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Which.
    pub id: TaskId,
    /// Where.
    pub room: RoomId,
    /// Its number in the room: 1, 2, 3 … without gaps, never used again.
    pub number: i64,
    /// What needs to be done.
    pub subject: String,
    /// More of it; may be empty.
    pub detail: String,
    /// Where it is in its life.
    pub state: TaskState,
    /// The task that replaces it, when it is superseded.
    pub superseded_by: Option<TaskId>,
    /// Who created it; not assigned by that.
    pub created_by: Actor,
    /// Who works on it, in the order of joining.
    pub assignments: Vec<Assignment>,
    /// When work started: the first time its status was not pending.
    pub started_at: Option<Timestamp>,
    /// Since when it is completed; `None` while it is not.
    pub completed_at: Option<Timestamp>,
    /// When it was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What a task starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Its id.
    pub id: TaskId,
    /// Where.
    pub room: RoomId,
    /// The room's next number.
    pub number: i64,
    /// What needs to be done.
    pub subject: String,
    /// More of it; may be empty.
    pub detail: String,
    /// The task that it replaces.
    pub supersedes: Option<TaskId>,
    /// Who creates it.
    pub created_by: Actor,
    /// When.
    pub at: Timestamp,
}

/// Why a text of a task or a goal is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// Nothing to see.
    #[error("can't be blank")]
    Blank,
    /// PostgreSQL cannot store it, and both engines behave alike.
    #[error("must not contain the character NUL")]
    Nul,
    /// Longer than this.
    #[error("should be at most {0} character(s)")]
    TooLong(usize),
}

/// Checks a text of at most `most` characters; it may be empty.
///
/// # Errors
/// [`TextFault`].
pub fn check(text: &str, most: usize) -> Result<(), TextFault> {
    if text.contains('\0') {
        Err(TextFault::Nul)
    } else if text.chars().count() > most {
        Err(TextFault::TooLong(most))
    } else {
        Ok(())
    }
}

/// Trims and checks a subject.
///
/// # Errors
/// [`TextFault`].
pub fn subject(text: &str) -> Result<String, TextFault> {
    let text = text.trim();
    check(text, LINE_MAX_CHARACTERS)?;
    if is_visible(text) { Ok(text.to_owned()) } else { Err(TextFault::Blank) }
}

/// Checks a comment.
///
/// # Errors
/// [`TextFault`].
pub fn comment(text: &str) -> Result<(), TextFault> {
    check(text, TEXT_MAX_CHARACTERS)?;
    if is_visible(text) { Ok(()) } else { Err(TextFault::Blank) }
}

/// Rolls up what all who work on a task say of it: the gravest word counts, and it is completed when all say so.
pub fn roll_up(statuses: impl IntoIterator<Item = TaskStatus>) -> TaskStatus {
    const GRAVEST_FIRST: [TaskStatus; 4] =
        [TaskStatus::Failed, TaskStatus::Blocked, TaskStatus::InProgress, TaskStatus::InReview];
    let (mut said, mut completed) = ([false; GRAVEST_FIRST.len()], None);
    for status in statuses {
        if let Some(place) = GRAVEST_FIRST.iter().position(|grave| *grave == status) {
            said[place] = true;
        }
        completed = Some(completed.unwrap_or(true) && status == TaskStatus::Completed);
    }
    let gravest = said.iter().position(|said| *said).map(|place| GRAVEST_FIRST[place]);
    let otherwise = if completed == Some(true) { TaskStatus::Completed } else { TaskStatus::Pending };
    gravest.unwrap_or(otherwise)
}

impl Task {
    /// A new task and the first row of its history.
    pub fn create(new: NewTask) -> (Self, TaskEvent) {
        let NewTask { id, room, number, subject, detail, supersedes, created_by, at } = new;
        let change =
            TaskChange::Created { subject: subject.clone(), detail: detail.clone(), supersedes_id: supersedes };
        let event = TaskEvent { change, actor: created_by.clone(), at };
        let task = Self {
            id,
            room,
            number,
            subject,
            detail,
            state: TaskState::Active,
            superseded_by: None,
            created_by,
            assignments: Vec::new(),
            started_at: None,
            completed_at: None,
            inserted_at: at,
            updated_at: at,
        };
        (task, event)
    }

    /// How far it is, by all who work on it.
    pub fn overall_status(&self) -> TaskStatus {
        roll_up(self.assignments.iter().map(|assignment| assignment.status))
    }

    /// Under which status the board counts it: only active tasks are counted.
    pub fn counted_as(&self) -> Option<TaskStatus> {
        (self.state == TaskState::Active).then(|| self.overall_status())
    }

    /// Somebody's part in it.
    pub fn assignment(&self, who: IdentityId) -> Option<&Assignment> {
        self.assignments.iter().find(|assignment| assignment.assignee.id == who)
    }
}

/// How a task is named: by its id, or by its number in the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRef {
    /// By its id.
    Id(TaskId),
    /// By its number.
    Number(i64),
}

impl TaskRef {
    /// Reads a UUID or a number, as in `3` or `#3`. `None` when it can name no task.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('#').unwrap_or(text);
        if let Ok(id) = text.parse() {
            return Some(Self::Id(id));
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number > 0).map(Self::Number)
    }
}

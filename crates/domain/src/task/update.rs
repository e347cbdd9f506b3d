//! What a save does to a task. One save may do several things; each leaves a row of its own in the history, and what
//! changes nothing leaves none.

use bandstand_wire::ids::{IdentityId, TaskId};
use bandstand_wire::time::Timestamp;

use super::{ASSIGNEES_MAX, Actor, Assignment, FromTo, Task, TaskChange, TaskEvent, TaskState, TaskStatus};

/// What a participant saves; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskUpdate {
    /// Its own status. The first one joins it to the task.
    pub status: Option<TaskStatus>,
    /// What it is doing right now.
    pub active_form: Option<String>,
    /// Its link to the matching task in its own tooling.
    pub linked_native_id: Option<String>,
    /// A note for the others.
    pub comment: Option<String>,
    /// The task's subject.
    pub subject: Option<String>,
    /// The task's detail.
    pub detail: Option<String>,
    /// Restore, cancel or archive it. Restoring comes before everything else, the other two after it.
    pub state: Option<TaskState>,
}

impl TaskUpdate {
    /// The first field that only an active task takes, by its name on the wire.
    pub(super) fn work_field(&self) -> Option<&'static str> {
        let fields = [
            ("status", self.status.is_some()),
            ("active_form", self.active_form.is_some()),
            ("linked_native_id", self.linked_native_id.is_some()),
            ("comment", self.comment.is_some()),
            ("subject", self.subject.is_some()),
            ("detail", self.detail.is_some()),
        ];
        fields.into_iter().find_map(|(name, given)| given.then_some(name))
    }
}

/// Why a save is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefusal {
    /// Only an active task takes work.
    #[error("needs an active task; this one is {}", .state.as_str())]
    NotActive {
        /// The field that needs it.
        field: &'static str,
        /// What the task is.
        state: TaskState,
    },
    /// There is no way from here to there.
    #[error("cannot become {}; the task is {}", .to.as_str(), .from.as_str())]
    NoWay {
        /// What the task is.
        from: TaskState,
        /// What it should become.
        to: TaskState,
    },
    /// Somebody who does not work on the task says more than its status.
    #[error("needs a status of your own on this task; send status with it to join")]
    NotAssigned {
        /// The field that needs it.
        field: &'static str,
    },
    /// As many work on it as may.
    #[error("cannot join: at most {ASSIGNEES_MAX} participants work on one task")]
    Crowded,
}

impl TaskRefusal {
    /// The field that is at fault, by its name on the wire.
    pub fn field(self) -> &'static str {
        match self {
            Self::NotActive { field, .. } | Self::NotAssigned { field } => field,
            Self::NoWay { .. } => "state",
            Self::Crowded => "status",
        }
    }
}

/// A saved task, and the rows that its history gains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The task as it is now.
    pub task: Task,
    /// What the save did. Empty when nothing changed, or nothing but an `active_form`.
    pub events: Vec<TaskEvent>,
    /// Whether anything changed.
    pub changed: bool,
}

impl Task {
    /// Saves what `by` says of the task. A save that changes nothing leaves everything as it was.
    ///
    /// # Errors
    /// [`TaskRefusal`].
    pub fn update(self, by: &Actor, update: TaskUpdate, at: Timestamp) -> Result<Updated, TaskRefusal> {
        let mut save = Save { task: self, by, at, events: Vec::new(), changed: false };
        if update.state == Some(TaskState::Active) {
            save.restore()?;
        }
        if let Some(field) = update.work_field()
            && save.task.state != TaskState::Active
        {
            return Err(TaskRefusal::NotActive { field, state: save.task.state });
        }
        save.edit(update.subject, update.detail);
        save.report(update.status, update.active_form, update.linked_native_id)?;
        if let Some(text) = update.comment {
            save.note(TaskChange::Commented { text });
        }
        match update.state {
            Some(TaskState::Active) | None => {}
            Some(to) => save.put_away(to)?,
        }
        Ok(save.finish())
    }

    /// Replaces the task by `successor`.
    ///
    /// # Errors
    /// [`TaskRefusal::NoWay`] unless it is active.
    pub fn supersede(self, by: &Actor, successor: TaskId, at: Timestamp) -> Result<Updated, TaskRefusal> {
        let (from, to) = (self.state, TaskState::Superseded);
        if from != TaskState::Active {
            return Err(TaskRefusal::NoWay { from, to });
        }
        let mut save = Save { task: self, by, at, events: Vec::new(), changed: false };
        save.task.state = to;
        save.task.superseded_by = Some(successor);
        save.note(TaskChange::Superseded { state: FromTo { from, to }, superseded_by_id: successor });
        Ok(save.finish())
    }

    /// Takes somebody off the task who left the room before it was done: nobody could ever say more of its part. What
    /// was completed, cancelled or superseded stays as it is. `None` when there is nothing to take off.
    pub fn drop_assignee(self, who: IdentityId, reason: &str, at: Timestamp) -> Option<Updated> {
        let open = matches!(self.state, TaskState::Active | TaskState::Archived);
        let place = self.assignments.iter().position(|assignment| assignment.assignee.id == who)?;
        if !open || self.assignments.get(place)?.status == TaskStatus::Completed {
            return None;
        }
        let mut task = self;
        let actor = task.assignments.remove(place).assignee;
        let mut save = Save { task, by: &actor, at, events: Vec::new(), changed: false };
        save.note(TaskChange::Dropped { reason: reason.to_owned() });
        Some(save.finish())
    }
}

/// A save under way.
struct Save<'a> {
    task: Task,
    by: &'a Actor,
    at: Timestamp,
    events: Vec<TaskEvent>,
    changed: bool,
}

impl Save<'_> {
    fn note(&mut self, change: TaskChange) {
        self.changed = true;
        self.events.push(TaskEvent { change, actor: self.by.clone(), at: self.at });
    }

    fn restore(&mut self) -> Result<(), TaskRefusal> {
        let (from, to) = (self.task.state, TaskState::Active);
        match from {
            TaskState::Active => {}
            TaskState::Archived => {
                self.task.state = to;
                self.note(TaskChange::Unarchived { state: FromTo { from, to } });
            }
            TaskState::Cancelled | TaskState::Superseded => return Err(TaskRefusal::NoWay { from, to }),
        }
        Ok(())
    }

    fn put_away(&mut self, to: TaskState) -> Result<(), TaskRefusal> {
        let from = self.task.state;
        let state = FromTo { from, to };
        let change = match (from, to) {
            (TaskState::Active, TaskState::Cancelled) => TaskChange::Cancelled { state },
            (TaskState::Active, TaskState::Archived) => TaskChange::Archived { state },
            _ if from == to => return Ok(()),
            _ => return Err(TaskRefusal::NoWay { from, to }),
        };
        self.task.state = to;
        self.note(change);
        Ok(())
    }

    fn edit(&mut self, subject: Option<String>, detail: Option<String>) {
        fn put(field: &mut String, value: Option<String>) -> Option<FromTo<String>> {
            let to = value.filter(|to| to != field)?;
            let from = std::mem::replace(field, to.clone());
            Some(FromTo { from, to })
        }
        let subject = put(&mut self.task.subject, subject);
        let detail = put(&mut self.task.detail, detail);
        if subject.is_some() || detail.is_some() {
            self.note(TaskChange::Edited { subject, detail });
        }
    }

    fn report(
        &mut self,
        status: Option<TaskStatus>,
        active_form: Option<String>,
        linked: Option<String>,
    ) -> Result<(), TaskRefusal> {
        let field = match (&status, &active_form, &linked) {
            (None, None, None) => return Ok(()),
            (Some(_), _, _) => "status",
            (None, Some(_), _) => "active_form",
            (None, None, Some(_)) => "linked_native_id",
        };
        let (at, assignments) = (self.at, &mut self.task.assignments);
        let own = assignments.iter().position(|assignment| assignment.assignee.id == self.by.id);
        let (place, from) = match (own, status) {
            (Some(place), _) => (place, assignments.get(place).map(|own| own.status)),
            (None, None) => return Err(TaskRefusal::NotAssigned { field }),
            (None, Some(_)) if assignments.len() >= ASSIGNEES_MAX => return Err(TaskRefusal::Crowded),
            (None, Some(status)) => {
                let (active_form, linked_native_id) = (String::new(), String::new());
                let assignee = self.by.clone();
                assignments.push(Assignment { assignee, status, active_form, linked_native_id, updated_at: at });
                (assignments.len() - 1, None)
            }
        };
        let Some(own) = assignments.get_mut(place) else { return Ok(()) };
        let status = status.unwrap_or(own.status);
        let to = Some(status);
        let linked = linked.filter(|linked| *linked != own.linked_native_id);
        let active_form = active_form.filter(|text| *text != own.active_form);
        let tells = from != to || linked.is_some();
        if !tells && active_form.is_none() {
            return Ok(());
        }
        own.status = status;
        own.updated_at = at;
        if let Some(text) = active_form {
            own.active_form = text;
            self.changed = true;
        }
        if let Some(linked) = &linked {
            own.linked_native_id.clone_from(linked);
        }
        if tells {
            self.note(TaskChange::StatusChanged { status: FromTo { from, to }, linked_native_id: linked });
        }
        Ok(())
    }

    fn finish(self) -> Updated {
        let Self { mut task, at, events, changed, .. } = self;
        if changed {
            task.updated_at = at;
            let overall = task.overall_status();
            if overall != TaskStatus::Pending {
                task.started_at = task.started_at.or(Some(at));
            }
            task.completed_at = task.completed_at.or(Some(at)).filter(|_| overall == TaskStatus::Completed);
        }
        Updated { task, events, changed }
    }
}

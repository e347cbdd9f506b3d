//! The task board: creating, reading and saving tasks. Whoever takes part in a room may read and write all of its board.

use bandstand_domain::event::Event;
use bandstand_domain::room::RoomStatus;
use bandstand_domain::task::{
    Actor, HISTORY_SHOWN, HistoryRow, NewTask, Task, TaskEventKind, TaskRef, TaskRefusal, TaskState, TaskUpdate,
    Updated,
};
use bandstand_store::participants::{self, Access};
use bandstand_store::tasks::{self, StoredTask};
use bandstand_store::walk::Window;
use bandstand_store::{Reader, StoreError, Writer, boards, rooms};
use bandstand_wire::ids::RoomId;

use crate::auth::Caller;
use crate::service::rooms::updated;
use crate::state::Services;

/// A task as the caller wants it.
#[derive(Clone, Debug)]
pub struct CreateTask {
    /// What needs to be done.
    pub subject: String,
    /// More of it; may be empty.
    pub detail: String,
    /// The active task that it replaces.
    pub supersedes: Option<TaskRef>,
}

/// A task with the newest rows of its history, oldest first, where they were asked for.
#[derive(Clone, Debug)]
pub struct ShownTask {
    /// The task.
    pub task: Task,
    /// The rows, and whether there are older ones.
    pub history: Option<(Vec<HistoryRow<TaskEventKind>>, bool)>,
}

/// Why something on a board is refused.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// No such room, or the caller is not in it.
    #[error("room not found")]
    RoomNotFound,
    /// The room has no such task.
    #[error("task not found")]
    TaskNotFound,
    /// The room is archived or closed.
    #[error("the room is {}: it can be read but not written to", .0.as_str())]
    NotActive(RoomStatus),
    /// The task that is to be replaced is no active task of the room.
    #[error("must be the UUID or number of an active task of this room")]
    NothingToSupersede,
    /// A rule of tasks stands against it.
    #[error(transparent)]
    Refused(#[from] TaskRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The caller's own place in a room that it takes part in.
pub(super) async fn place(tx: &mut Reader, caller: Caller, room: RoomId) -> Result<Access, TaskError> {
    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
    access.filter(|access| access.membership.is_some()).ok_or(TaskError::RoomNotFound)
}

/// The caller's own place in a room that it writes to, and the sequence that this takes.
pub(super) async fn writable(tx: &mut Writer, caller: Caller, room: RoomId) -> Result<(Access, i64), TaskError> {
    let advanced = rooms::advance(tx, room).await?.ok_or(TaskError::RoomNotFound)?;
    let access = place(tx, caller, room).await?;
    match access.room.status {
        RoomStatus::Active => Ok((access, advanced.sequence)),
        status @ (RoomStatus::Archived | RoomStatus::Closed) => Err(TaskError::NotActive(status)),
    }
}

/// The newest rows of a history, read newest first: what is shown of them, oldest first, and whether there are more.
pub(super) fn shown<K>(mut rows: Vec<HistoryRow<K>>) -> (Vec<HistoryRow<K>>, bool) {
    let most = usize::try_from(HISTORY_SHOWN).unwrap_or(usize::MAX);
    let truncated = rows.len() > most;
    rows.truncate(most);
    rows.reverse();
    (rows, truncated)
}

/// Who saves, and where.
pub(super) struct Saver {
    pub(super) room_key: i64,
    pub(super) sequence: i64,
    pub(super) member_key: i64,
}

/// Stores a saved task with its history's new rows and announces it; whether the board's counts moved.
pub(super) async fn save(
    tx: &mut Writer,
    saver: &Saver,
    before: &StoredTask,
    saved: &Updated,
) -> Result<bool, StoreError> {
    let Saver { room_key, sequence, member_key } = *saver;
    let (was, now) = (&before.task, &saved.task);
    let events = tasks::record(tx, room_key, now.number, before.events, member_key, &saved.events).await?;
    tasks::save(tx, room_key, now, events).await?;
    for own in &now.assignments {
        if was.assignment(own.assignee.id) != Some(own) {
            tasks::save_assignment(tx, room_key, now.number, member_key, own, sequence).await?;
        }
    }
    if was.assignments.iter().any(|own| now.assignment(own.assignee.id).is_none()) {
        tasks::drop_assignment(tx, room_key, now.number, member_key).await?;
    }
    let moved = boards::count(tx, room_key, was.counted_as(), now.counted_as()).await?;
    tx.emit(Event::TaskUpdated { task: now.clone() });
    Ok(moved)
}

impl Services {
    /// Creates a task under the room's next number; the task that it replaces is superseded by it.
    ///
    /// # Errors
    /// [`TaskError`]; then nothing is stored, and the number is given to the next one.
    pub async fn create_task(&self, caller: Caller, room: RoomId, new: CreateTask) -> Result<Task, TaskError> {
        let (id, at) = (self.ids.task(), self.clock.now());
        self.store
            .write("create_task", move |tx| {
                Box::pin(async move {
                    let (access, sequence) = writable(tx, caller, room).await?;
                    let by = Actor::from(&access.member);
                    let saver = Saver { room_key: access.room_key, sequence, member_key: access.member_key };
                    let earlier = match new.supersedes {
                        Some(earlier) => tasks::one(tx, room, saver.room_key, earlier).await?,
                        None => None,
                    };
                    if new.supersedes.is_some() && earlier.is_none() {
                        return Err(TaskError::NothingToSupersede);
                    }
                    let number = boards::next_number(tx, saver.room_key).await?;
                    let (task, created) = Task::create(NewTask {
                        id,
                        room,
                        number,
                        subject: new.subject,
                        detail: new.detail,
                        supersedes: earlier.as_ref().map(|earlier| earlier.task.id),
                        created_by: by.clone(),
                        at,
                    });
                    tasks::insert(tx, saver.room_key, saver.member_key, &task, 1).await?;
                    tasks::record(tx, saver.room_key, number, 0, saver.member_key, &[created]).await?;
                    let mut moved = boards::count(tx, saver.room_key, None, task.counted_as()).await?;
                    tx.emit(Event::TaskCreated { task: task.clone() });
                    if let Some(earlier) = earlier {
                        let superseded = earlier.task.clone().supersede(&by, id, at);
                        let superseded = superseded.map_err(|_| TaskError::NothingToSupersede)?;
                        moved |= save(tx, &saver, &earlier, &superseded).await?;
                    }
                    if moved {
                        updated::<TaskError>(tx, saver.room_key, access.room).await?;
                    }
                    Ok(task)
                })
            })
            .await
    }

    /// Saves what the caller says of a task.
    ///
    /// # Errors
    /// [`TaskError`]; then nothing is stored.
    pub async fn update_task(
        &self,
        caller: Caller,
        room: RoomId,
        task: TaskRef,
        update: TaskUpdate,
    ) -> Result<Task, TaskError> {
        let at = self.clock.now();
        self.store
            .write("update_task", move |tx| {
                Box::pin(async move {
                    let (access, sequence) = writable(tx, caller, room).await?;
                    let by = Actor::from(&access.member);
                    let saver = Saver { room_key: access.room_key, sequence, member_key: access.member_key };
                    let before = tasks::one(tx, room, saver.room_key, task).await?.ok_or(TaskError::TaskNotFound)?;
                    let saved = before.task.clone().update(&by, update, at)?;
                    if saved.changed && save(tx, &saver, &before, &saved).await? {
                        updated::<TaskError>(tx, saver.room_key, access.room).await?;
                    }
                    Ok(saved.task)
                })
            })
            .await
    }

    /// The tasks of a room in one state or any, by number, after number `after`.
    ///
    /// # Errors
    /// [`TaskError`].
    pub async fn tasks(
        &self,
        caller: Caller,
        room: RoomId,
        state: Option<TaskState>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Task>, TaskError> {
        self.store
            .read("tasks", move |tx| {
                Box::pin(async move {
                    let access = place(tx, caller, room).await?;
                    Ok(tasks::page(tx, room, access.room_key, state, after, limit).await?)
                })
            })
            .await
    }

    /// A task, with the newest rows of its history if they are asked for.
    ///
    /// # Errors
    /// [`TaskError`].
    pub async fn task(
        &self,
        caller: Caller,
        room: RoomId,
        task: TaskRef,
        with_history: bool,
    ) -> Result<ShownTask, TaskError> {
        self.store
            .read("task", move |tx| {
                Box::pin(async move {
                    let access = place(tx, caller, room).await?;
                    let found = tasks::one(tx, room, access.room_key, task).await?.ok_or(TaskError::TaskNotFound)?;
                    let task = found.task;
                    let history = if with_history {
                        let window = Window::newest(HISTORY_SHOWN + 1);
                        Some(shown(tasks::history(tx, access.room_key, task.number, window).await?))
                    } else {
                        None
                    };
                    Ok(ShownTask { task, history })
                })
            })
            .await
    }

    /// A task's number and a part of its history, oldest first, after place `after`.
    ///
    /// # Errors
    /// [`TaskError`].
    pub async fn task_history(
        &self,
        caller: Caller,
        room: RoomId,
        task: TaskRef,
        after: i64,
        limit: i64,
    ) -> Result<(i64, Vec<HistoryRow<TaskEventKind>>), TaskError> {
        self.store
            .read("task_history", move |tx| {
                Box::pin(async move {
                    let access = place(tx, caller, room).await?;
                    let number = tasks::number(tx, access.room_key, task).await?.ok_or(TaskError::TaskNotFound)?;
                    let window = Window { after, ..Window::oldest(limit) };
                    Ok((number, tasks::history(tx, access.room_key, number, window).await?))
                })
            })
            .await
    }
}

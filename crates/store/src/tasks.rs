//! The tasks of a room, who works on them, and their histories. Whatever writes here holds the room's lock
//! ([`rooms::advance`](crate::rooms::advance)), so that what was read stays true.

use std::sync::LazyLock;

use bandstand_domain::task::{
    Actor, Assignment, HistoryRow, Task, TaskEvent, TaskEventKind, TaskRef, TaskState, TaskStatus,
};
use bandstand_wire::ids::{IdentityId, RoomId, TaskId};
use bandstand_wire::time::Timestamp;
use serde::Serialize;

use crate::chunks::{self, CHUNK, sized};
use crate::columns::{identity_kind, unknown};
use crate::walk::Window;
use crate::{Param, Reader, Row, StoreError, Writer, params};

/// A task and how many rows its history has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// The task.
    pub task: Task,
    /// Rows of its history.
    pub events: i64,
}

/// Columns of a task without its assignments under the aliases `t` (the task) and `c` (its creator).
macro_rules! task_from {
    () => {
        "SELECT t.number, t.id, t.state, t.subject, t.detail, t.superseded_by, c.id, c.kind, t.creator_name, \
         t.creator_handle, t.started_at, t.completed_at, t.inserted_at, t.updated_at, t.events \
         FROM tasks t JOIN identities c ON c.key = t.creator_key WHERE t.room_key = ?1 AND "
    };
}

const BY_NUMBER: &str = concat!(task_from!(), "t.number = ?2");
const BY_ID: &str = concat!(task_from!(), "t.id = ?2");
const PAGE: &str = concat!(task_from!(), "t.number > ?2 ORDER BY t.number LIMIT ?3");
const PAGE_OF_STATE: &str = concat!(task_from!(), "t.number > ?2 AND t.state = ?4 ORDER BY t.number LIMIT ?3");

static ASSIGNMENTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        "SELECT a.number, i.id, i.kind, a.member_name, a.member_handle, a.status, a.active_form, a.linked_native_id, \
         a.updated_at, a.joined_sequence FROM task_assignments a JOIN identities i ON i.key = a.member_key \
         WHERE a.room_key = ?1 AND a.number IN ",
        2,
    )
});

/// Columns of a row of a history under the aliases `e` (the row) and `i` (who did it).
macro_rules! history_columns {
    () => {
        "SELECT e.place, e.kind, i.id, i.kind, e.actor_name, e.actor_handle, e.payload, e.at "
    };
}
pub(crate) use history_columns;

const HISTORY: &str = concat!(
    history_columns!(),
    "FROM task_events e JOIN identities i ON i.key = e.actor_key \
     WHERE e.room_key = ?1 AND e.number = ?2 AND e.place > ?3 AND e.place < ?4 ORDER BY e.place LIMIT ?5"
);
const HISTORY_BACK: &str = concat!(
    history_columns!(),
    "FROM task_events e JOIN identities i ON i.key = e.actor_key \
     WHERE e.room_key = ?1 AND e.number = ?2 AND e.place > ?3 AND e.place < ?4 ORDER BY e.place DESC LIMIT ?5"
);

/// The statements that read rows, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> Vec<&'static str> {
    let lists = ASSIGNMENTS.iter().map(String::as_str);
    [BY_NUMBER, BY_ID, PAGE, PAGE_OF_STATE, HISTORY, HISTORY_BACK].into_iter().chain(lists).collect()
}

/// Reads an actor whose id, kind, name and handle start at column `from`.
pub(crate) fn actor(row: &mut Row, from: usize) -> Result<Actor, StoreError> {
    Ok(Actor {
        id: IdentityId(row.id(from)?),
        kind: identity_kind(row.int(from + 1)?)?,
        name: row.take_text(from + 2)?,
        handle: row.take_text(from + 3)?,
    })
}

fn stored(row: &mut Row, room: RoomId) -> Result<StoredTask, StoreError> {
    let state = row.text(2)?;
    let task = Task {
        number: row.int(0)?,
        id: TaskId(row.id(1)?),
        room,
        state: TaskState::parse(state).ok_or_else(|| unknown("task state", state))?,
        subject: row.take_text(3)?,
        detail: row.take_text(4)?,
        superseded_by: row.opt_id(5)?.map(TaskId),
        created_by: actor(row, 6)?,
        assignments: Vec::new(),
        started_at: row.opt_int(10)?.map(Timestamp::from_micros),
        completed_at: row.opt_int(11)?.map(Timestamp::from_micros),
        inserted_at: Timestamp::from_micros(row.int(12)?),
        updated_at: Timestamp::from_micros(row.int(13)?),
    };
    Ok(StoredTask { task, events: row.int(14)? })
}

/// Adds to tasks, which are in the order of their numbers, who works on them.
async fn with_assignments(tx: &mut Reader, room_key: i64, tasks: &mut [StoredTask]) -> Result<(), StoreError> {
    for chunk in tasks.chunks_mut(CHUNK) {
        let numbers: Vec<i64> = chunk.iter().map(|stored| stored.task.number).collect();
        let Some((which, values)) = chunks::parameters(params![room_key], &numbers) else { continue };
        let mut found: Vec<(i64, i64, Assignment)> = Vec::new();
        for mut row in tx.query(&ASSIGNMENTS[which], &values).await? {
            let status = row.text(5)?;
            let status = TaskStatus::parse(status).ok_or_else(|| unknown("task status", status))?;
            let assignment = Assignment {
                assignee: actor(&mut row, 1)?,
                status,
                active_form: row.take_text(6)?,
                linked_native_id: row.take_text(7)?,
                updated_at: Timestamp::from_micros(row.int(8)?),
            };
            found.push((row.int(0)?, row.int(9)?, assignment));
        }
        found.sort_by_key(|(number, joined, _)| (*number, *joined));
        for (number, _, assignment) in found {
            if let Ok(place) = chunk.binary_search_by_key(&number, |stored| stored.task.number) {
                chunk[place].task.assignments.push(assignment);
            }
        }
    }
    Ok(())
}

/// A task of this room, by its id or number.
pub async fn one(
    tx: &mut Reader,
    room: RoomId,
    room_key: i64,
    task: TaskRef,
) -> Result<Option<StoredTask>, StoreError> {
    let found = match task {
        TaskRef::Number(number) => tx.query_opt(BY_NUMBER, params![room_key, number]).await?,
        TaskRef::Id(id) => tx.query_opt(BY_ID, params![room_key, id]).await?,
    };
    let Some(mut row) = found else { return Ok(None) };
    let mut found = [stored(&mut row, room)?];
    with_assignments(tx, room_key, &mut found).await?;
    let [found] = found;
    Ok(Some(found))
}

/// The number of a task of this room, by its id or number.
pub async fn number(tx: &mut Reader, room_key: i64, task: TaskRef) -> Result<Option<i64>, StoreError> {
    const OF_NUMBER: &str = "SELECT number FROM tasks WHERE room_key = ?1 AND number = ?2";
    const OF_ID: &str = "SELECT number FROM tasks WHERE room_key = ?1 AND id = ?2";
    let found = match task {
        TaskRef::Number(number) => tx.query_opt(OF_NUMBER, params![room_key, number]).await?,
        TaskRef::Id(id) => tx.query_opt(OF_ID, params![room_key, id]).await?,
    };
    found.map(|row| row.int(0)).transpose()
}

/// The tasks of a room in one state or any, by number, after number `after`.
pub async fn page(
    tx: &mut Reader,
    room: RoomId,
    room_key: i64,
    state: Option<TaskState>,
    after: i64,
    limit: i64,
) -> Result<Vec<Task>, StoreError> {
    let mut rows = match state {
        None => tx.query(PAGE, params![room_key, after, limit]).await?,
        Some(state) => tx.query(PAGE_OF_STATE, params![room_key, after, limit, state.as_str()]).await?,
    };
    let mut found = rows.iter_mut().map(|row| stored(row, room)).collect::<Result<Vec<_>, _>>()?;
    with_assignments(tx, room_key, &mut found).await?;
    Ok(found.into_iter().map(|stored| stored.task).collect())
}

/// A part of a task's history: the window is of places.
pub async fn history(
    tx: &mut Reader,
    room_key: i64,
    number: i64,
    window: Window,
) -> Result<Vec<HistoryRow<TaskEventKind>>, StoreError> {
    let sql = if window.descending { HISTORY_BACK } else { HISTORY };
    let values = params![room_key, number, window.after, window.before, window.limit];
    tx.query(sql, values).await?.iter_mut().map(|row| history_row(row, TaskEventKind::parse)).collect()
}

/// Reads [`history_columns`].
pub(crate) fn history_row<K>(row: &mut Row, kind: impl Fn(&str) -> Option<K>) -> Result<HistoryRow<K>, StoreError> {
    let word = row.text(1)?;
    Ok(HistoryRow {
        place: row.int(0)?,
        kind: kind(word).ok_or_else(|| unknown("kind of event", word))?,
        actor: actor(row, 2)?,
        payload: row.take_text(6)?,
        at: Timestamp::from_micros(row.int(7)?),
    })
}

/// Stores a new task. Its history's rows are the caller's to [`record`].
pub async fn insert(
    tx: &mut Writer,
    room_key: i64,
    creator_key: i64,
    task: &Task,
    events: i64,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO tasks (room_key, number, id, state, subject, detail, creator_key, creator_name, \
                       creator_handle, events, inserted_at, updated_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let values = params![
        room_key,
        task.number,
        task.id,
        task.state.as_str(),
        &task.subject,
        &task.detail,
        creator_key,
        &task.created_by.name,
        &task.created_by.handle,
        events,
        task.inserted_at.as_micros(),
        task.updated_at.as_micros(),
    ];
    tx.execute(SQL, values).await.map(drop)
}

/// Stores what may change of a task, and how many rows its history has now.
pub async fn save(tx: &mut Writer, room_key: i64, task: &Task, events: i64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE tasks SET state = ?3, subject = ?4, detail = ?5, superseded_by = ?6, started_at = ?7, \
                       completed_at = ?8, updated_at = ?9, events = ?10 WHERE room_key = ?1 AND number = ?2";
    let values = params![
        room_key,
        task.number,
        task.state.as_str(),
        &task.subject,
        &task.detail,
        task.superseded_by,
        task.started_at.map(Timestamp::as_micros),
        task.completed_at.map(Timestamp::as_micros),
        task.updated_at.as_micros(),
        events,
    ];
    tx.execute(SQL, values).await.map(drop)
}

/// Stores somebody's part in a task.
pub async fn save_assignment(
    tx: &mut Writer,
    room_key: i64,
    number: i64,
    member_key: i64,
    assignment: &Assignment,
    sequence: i64,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO task_assignments (room_key, number, member_key, member_name, member_handle, status, \
                       active_form, linked_native_id, joined_sequence, sequence, updated_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10) \
                       ON CONFLICT (room_key, number, member_key) DO UPDATE SET status = excluded.status, \
                       active_form = excluded.active_form, linked_native_id = excluded.linked_native_id, \
                       sequence = excluded.sequence, updated_at = excluded.updated_at";
    let values = params![
        room_key,
        number,
        member_key,
        &assignment.assignee.name,
        &assignment.assignee.handle,
        assignment.status.as_str(),
        &assignment.active_form,
        &assignment.linked_native_id,
        sequence,
        assignment.updated_at.as_micros(),
    ];
    tx.execute(SQL, values).await.map(drop)
}

/// Takes somebody off a task.
pub async fn drop_assignment(tx: &mut Writer, room_key: i64, number: i64, member_key: i64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM task_assignments WHERE room_key = ?1 AND number = ?2 AND member_key = ?3";
    tx.execute(SQL, params![room_key, number, member_key]).await.map(drop)
}

/// Writes rows of a task's history, all of one actor, after the `before` that there are; how many there are then.
pub async fn record(
    tx: &mut Writer,
    room_key: i64,
    number: i64,
    before: i64,
    actor_key: i64,
    events: &[TaskEvent],
) -> Result<i64, StoreError> {
    const SQL: &str = "INSERT INTO task_events (room_key, number, place, kind, actor_key, actor_name, actor_handle, \
                       payload, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut place = before;
    for event in events {
        place += 1;
        let payload = payload(&event.change)?;
        let values = params![
            room_key,
            number,
            place,
            event.change.kind().as_str(),
            actor_key,
            &event.actor.name,
            &event.actor.handle,
            &payload,
            event.at.as_micros(),
        ];
        tx.execute(SQL, values).await?;
    }
    Ok(place)
}

/// What changed, as it is kept and travels.
pub(crate) fn payload(change: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(change).map_err(|why| StoreError::Bug(format!("a history's payload: {why}")))
}

/// Somebody who left a room while it worked on tasks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The room.
    pub room: RoomId,
    /// Its key.
    pub room_key: i64,
    /// Who left.
    pub member: IdentityId,
    /// Its key.
    pub member_key: i64,
    /// The room's sequence when it left.
    pub up_to: i64,
    /// Tasks up to this number are done.
    pub looked_at: i64,
}

/// Remembers that somebody left a room, if it has a part in a task that it did not complete.
pub async fn remember_departure(tx: &mut Writer, room_key: i64, member_key: i64, up_to: i64) -> Result<(), StoreError> {
    const OPEN: &str = "SELECT 1 FROM task_assignments WHERE member_key = ?1 AND room_key = ?2 \
                        AND status <> 'completed' LIMIT 1";
    const SQL: &str = "INSERT INTO task_departures (room_key, member_key, up_to) VALUES (?1, ?2, ?3) \
                       ON CONFLICT (room_key, member_key) DO UPDATE SET up_to = excluded.up_to, looked_at = 0";
    if tx.query_opt(OPEN, params![member_key, room_key]).await?.is_none() {
        return Ok(());
    }
    tx.execute(SQL, params![room_key, member_key, up_to]).await.map(drop)
}

/// A departure that is not done, if there is one.
pub async fn next_departure(tx: &mut Reader) -> Result<Option<Departure>, StoreError> {
    const SQL: &str = "SELECT r.id, d.room_key, i.id, d.member_key, d.up_to, d.looked_at FROM task_departures d \
                       JOIN rooms r ON r.key = d.room_key JOIN identities i ON i.key = d.member_key LIMIT 1";
    let Some(row) = tx.query_opt(SQL, params![]).await? else { return Ok(None) };
    Ok(Some(Departure {
        room: RoomId(row.id(0)?),
        room_key: row.int(1)?,
        member: IdentityId(row.id(2)?),
        member_key: row.int(3)?,
        up_to: row.int(4)?,
        looked_at: row.int(5)?,
    }))
}

/// The numbers of the next tasks that somebody who left did not complete.
pub async fn left_open(tx: &mut Reader, departure: Departure, limit: i64) -> Result<Vec<i64>, StoreError> {
    const SQL: &str = "SELECT number FROM task_assignments WHERE member_key = ?1 AND room_key = ?2 AND number > ?3 \
                       AND status <> 'completed' AND sequence <= ?4 ORDER BY number LIMIT ?5";
    let Departure { room_key, member_key, up_to, looked_at, .. } = departure;
    let values = [member_key, room_key, looked_at, up_to, limit].map(Param::Int);
    tx.query(SQL, &values).await?.iter().map(|row| row.int(0)).collect()
}

/// Notes how far a departure is done; `None` means all of it. One that was noted anew meanwhile stays as it is.
pub async fn departure_done(tx: &mut Writer, departure: Departure, looked_at: Option<i64>) -> Result<(), StoreError> {
    const FORGET: &str = "DELETE FROM task_departures WHERE room_key = ?1 AND member_key = ?2 AND up_to = ?3";
    const NOTE: &str =
        "UPDATE task_departures SET looked_at = ?4 WHERE room_key = ?1 AND member_key = ?2 AND up_to = ?3";
    let keys = [departure.room_key, departure.member_key, departure.up_to].map(Param::Int);
    match looked_at {
        None => tx.execute(FORGET, &keys).await.map(drop),
        Some(number) => tx.execute(NOTE, &[&keys[..], &[Param::Int(number)]].concat()).await.map(drop),
    }
}

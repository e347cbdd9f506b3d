//! A room's board: numbers of its tasks, how many active ones have which status, the goal with its trail, and what people
//! see of a room because of it.

use std::collections::HashMap;
use std::sync::LazyLock;

use bandstand_domain::board::{Board, BoardEvent, BoardEventKind, Goal, Overview, TaskCounts};
use bandstand_domain::task::{HistoryRow, TaskStatus};
use bandstand_wire::ids::RoomId;
use bandstand_wire::time::Timestamp;

use crate::chunks::{self, CHUNK, sized};
use crate::columns::{PROFILE_COLUMNS, profile, profile_columns};
use crate::tasks::{actor, history_columns, history_row, payload};
use crate::{Param, Reader, StoreError, Writer, params};

/// Takes the number of a room's next task. The caller holds the room's lock, and a number that its transaction does not
/// use is given back with it: so there are no gaps.
pub async fn next_number(tx: &mut Writer, room_key: i64) -> Result<i64, StoreError> {
    const SQL: &str = "INSERT INTO boards (room_key, last_number) VALUES (?1, 1) \
                       ON CONFLICT (room_key) DO UPDATE SET last_number = boards.last_number + 1 \
                       RETURNING last_number";
    tx.query_one(SQL, params![room_key]).await?.int(0)
}

/// Moves one task from one count to another; `None` is a task that is not counted. Whether anything moved.
pub async fn count(
    tx: &mut Writer,
    room_key: i64,
    from: Option<TaskStatus>,
    to: Option<TaskStatus>,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE boards SET pending = pending + ?2, in_progress = in_progress + ?3, \
                       blocked = blocked + ?4, in_review = in_review + ?5, failed = failed + ?6, \
                       completed = completed + ?7 WHERE room_key = ?1";
    if from == to {
        return Ok(false);
    }
    let change = |status: &TaskStatus| i64::from(to == Some(*status)) - i64::from(from == Some(*status));
    let changes = TaskStatus::ALL.iter().map(|status| Param::Int(change(status)));
    let values: Vec<Param<'_>> = std::iter::once(Param::Int(room_key)).chain(changes).collect();
    tx.execute(SQL, &values).await?;
    Ok(true)
}

/// A room's board.
pub async fn board(tx: &mut Reader, room: RoomId, room_key: i64) -> Result<Board, StoreError> {
    const SQL: &str = "SELECT b.goal_title, b.goal_summary, b.goal_set_at, b.goal_changed_at, \
                       c.id, c.kind, b.creator_name, b.creator_handle, e.id, e.kind, b.editor_name, b.editor_handle \
                       FROM boards b JOIN identities c ON c.key = b.creator_key \
                       JOIN identities e ON e.key = b.editor_key WHERE b.room_key = ?1";
    let Some(mut row) = tx.query_opt(SQL, params![room_key]).await? else {
        return Ok(Board { room, goal: None });
    };
    let goal = Goal {
        title: row.take_opt_text(0)?,
        summary: row.take_opt_text(1)?,
        created_by: actor(&mut row, 4)?,
        updated_by: actor(&mut row, 8)?,
        inserted_at: Timestamp::from_micros(row.int(2)?),
        updated_at: Timestamp::from_micros(row.int(3)?),
    };
    Ok(Board { room, goal: Some(goal) })
}

/// Stores a room's goal, as `editor_key` saved it, with the row of its trail.
pub async fn save_goal(
    tx: &mut Writer,
    room_key: i64,
    editor_key: i64,
    goal: &Goal,
    event: &BoardEvent,
) -> Result<(), StoreError> {
    const SAVE: &str = "INSERT INTO boards (room_key, goal_title, goal_summary, creator_key, creator_name, \
                        creator_handle, editor_key, editor_name, editor_handle, goal_set_at, goal_changed_at, events) \
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4, ?5, ?6, ?7, ?7, 1) \
                        ON CONFLICT (room_key) DO UPDATE SET goal_title = excluded.goal_title, \
                        goal_summary = excluded.goal_summary, \
                        creator_key = COALESCE(boards.creator_key, excluded.creator_key), \
                        creator_name = COALESCE(boards.creator_name, excluded.creator_name), \
                        creator_handle = COALESCE(boards.creator_handle, excluded.creator_handle), \
                        goal_set_at = COALESCE(boards.goal_set_at, excluded.goal_set_at), \
                        editor_key = excluded.editor_key, editor_name = excluded.editor_name, \
                        editor_handle = excluded.editor_handle, goal_changed_at = excluded.goal_changed_at, \
                        events = boards.events + 1 RETURNING events";
    const RECORD: &str = "INSERT INTO board_events (room_key, place, kind, actor_key, actor_name, actor_handle, \
                          payload, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let values = params![
        room_key,
        goal.title.as_ref(),
        goal.summary.as_ref(),
        editor_key,
        &goal.updated_by.name,
        &goal.updated_by.handle,
        goal.updated_at.as_micros(),
    ];
    let place = tx.query_one(SAVE, values).await?.int(0)?;
    let payload = payload(&event.change)?;
    let values = params![
        room_key,
        place,
        event.kind.as_str(),
        editor_key,
        &event.actor.name,
        &event.actor.handle,
        &payload,
        event.at.as_micros(),
    ];
    tx.execute(RECORD, values).await.map(drop)
}

const TRAIL: &str = concat!(
    history_columns!(),
    "FROM board_events e JOIN identities i ON i.key = e.actor_key WHERE e.room_key = ?1 ORDER BY e.place DESC LIMIT ?2"
);

/// The newest rows of a goal's trail, newest first.
pub async fn trail(tx: &mut Reader, room_key: i64, limit: i64) -> Result<Vec<HistoryRow<BoardEventKind>>, StoreError> {
    let mut rows = tx.query(TRAIL, params![room_key, limit]).await?;
    rows.iter_mut().map(|row| history_row(row, BoardEventKind::parse)).collect()
}

static COUNTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        "SELECT room_key, pending, in_progress, blocked, in_review, failed, completed FROM boards WHERE room_key IN ",
        1,
    )
});
static AGENTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        concat!(
            "SELECT ",
            profile_columns!("i"),
            ", p.room_key, p.joined_sequence, p.failed, p.stopped_sequence FROM participants p JOIN identities i ON i.key = p.member_key \
             WHERE i.kind = 1 AND i.deleted_at IS NULL AND p.left_at IS NULL AND p.room_key IN "
        ),
        1,
    )
});

/// The statements that read rows, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> Vec<&'static str> {
    let lists = [&COUNTS, &AGENTS].into_iter().flat_map(|sizes| sizes.iter().map(String::as_str));
    std::iter::once(TRAIL).chain(lists).collect()
}

/// What people see of each of these rooms because of its board and its agents, by key.
pub async fn overviews(tx: &mut Reader, room_keys: &[i64]) -> Result<HashMap<i64, Overview>, StoreError> {
    let mut found: HashMap<i64, Overview> = room_keys.iter().map(|key| (*key, Overview::default())).collect();
    for chunk in room_keys.chunks(CHUNK) {
        let Some((which, values)) = chunks::parameters(&[], chunk) else { continue };
        for row in tx.query(&COUNTS[which], &values).await? {
            let mut counts = [0; TaskStatus::ALL.len()];
            for (place, count) in counts.iter_mut().enumerate() {
                *count = row.int(place + 1)?;
            }
            if let Some(overview) = found.get_mut(&row.int(0)?) {
                overview.task_counts = TaskCounts::new(counts);
            }
        }
        let mut agents = Vec::new();
        for mut row in tx.query(&AGENTS[which], &values).await? {
            let (room, joined) = (row.int(PROFILE_COLUMNS)?, row.int(PROFILE_COLUMNS + 1)?);
            if let Some(overview) = found.get_mut(&room) {
                overview.failed |= row.int(PROFILE_COLUMNS + 2)? > 0;
                overview.stopped |= row.opt_int(PROFILE_COLUMNS + 3)?.is_some();
                agents.push((joined, room, profile(&mut row, 0)?));
            }
        }
        agents.sort_by_key(|(joined, _, profile)| (*joined, profile.id));
        for (_, room, profile) in agents {
            found.entry(room).or_default().agents.push(profile);
        }
    }
    Ok(found)
}

/// The same for one room.
pub async fn overview(tx: &mut Reader, room_key: i64) -> Result<Overview, StoreError> {
    Ok(overviews(tx, &[room_key]).await?.remove(&room_key).unwrap_or_default())
}

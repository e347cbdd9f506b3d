//! Rooms. Every change of a room starts with [`advance`], which takes the room's next sequence and thereby its lock.

use std::sync::LazyLock;

use bandstand_domain::membership::{ParticipantStatus, Role};
use bandstand_domain::message::MessageKind;
use bandstand_domain::room::{Room, RoomKind, RoomStatus};
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::columns::unknown;
use crate::{Param, Reader, Row, StoreError, Writer, params};

/// Columns of a [`Room`] under the aliases `r` (the room) and `c` (its creator).
macro_rules! room_columns {
    () => {
        "r.id, r.title, r.task_id, r.status, r.kind, c.id, r.last_message_at, r.inserted_at, r.updated_at, r.description"
    };
}
pub(crate) use room_columns;

/// How many columns [`room_columns`] names.
pub(crate) const ROOM_COLUMNS: usize = 10;

/// Reads [`room_columns`] that start at column `from`.
pub(crate) fn read_room(row: &mut Row, from: usize) -> Result<Room, StoreError> {
    let (status, kind) = (row.text(from + 3)?, row.text(from + 4)?);
    Ok(Room {
        id: RoomId(row.id(from)?),
        task_id: row.opt_id(from + 2)?,
        status: RoomStatus::parse(status).ok_or_else(|| unknown("room status", status))?,
        kind: RoomKind::parse(kind).ok_or_else(|| unknown("room kind", kind))?,
        creator: IdentityId(row.id(from + 5)?),
        last_message_at: row.opt_int(from + 6)?.map(Timestamp::from_micros),
        inserted_at: Timestamp::from_micros(row.int(from + 7)?),
        updated_at: Timestamp::from_micros(row.int(from + 8)?),
        title: row.take_opt_text(from + 1)?,
        description: row.take_opt_text(from + 9)?,
    })
}

/// A room whose next sequence this transaction has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The room's key.
    pub key: i64,
    /// The sequence of this change.
    pub sequence: i64,
}

/// Takes the room's next sequence, which also locks it until the transaction ends; what is emitted from here on belongs
/// to it. `None` when there is no such room.
pub async fn advance(tx: &mut Writer, id: RoomId) -> Result<Option<Advanced>, StoreError> {
    const SQL: &str = "UPDATE rooms SET sequence = sequence + 1 WHERE id = ?1 AND deleted_at IS NULL \
                       RETURNING key, sequence";
    let Some(row) = tx.query_opt(SQL, params![id]).await? else { return Ok(None) };
    let advanced = Advanced { key: row.int(0)?, sequence: row.int(1)? };
    tx.enter_room(id, advanced.sequence);
    Ok(Some(advanced))
}

/// Stores a new room with its first sequence; the creator's own row is the caller's to add.
pub async fn insert(tx: &mut Writer, room: &Room) -> Result<Advanced, StoreError> {
    const SQL: &str = "INSERT INTO rooms (id, title, task_id, status, kind, creator_key, sequence, participants, \
                       inserted_at, updated_at) \
                       SELECT ?1, ?2, ?3, ?4, ?5, key, 1, 0, ?7, ?7 FROM identities WHERE id = ?6 \
                       RETURNING key, sequence";
    let values = params![
        room.id,
        room.title.as_ref(),
        room.task_id,
        room.status.as_str(),
        room.kind.as_str(),
        room.creator,
        room.inserted_at.as_micros(),
    ];
    let row = tx.query_one(SQL, values).await?;
    let advanced = Advanced { key: row.int(0)?, sequence: row.int(1)? };
    tx.enter_room(room.id, advanced.sequence);
    Ok(advanced)
}

/// The key of a room that is not deleted.
pub async fn key(tx: &mut Reader, id: RoomId) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT key FROM rooms WHERE id = ?1 AND deleted_at IS NULL";
    tx.query_opt(SQL, params![id]).await?.map(|row| row.int(0)).transpose()
}

/// A room that is not deleted.
pub async fn by_key(tx: &mut Reader, key: i64) -> Result<Option<Room>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        room_columns!(),
        " FROM rooms r JOIN identities c ON c.key = r.creator_key WHERE r.key = ?1 AND r.deleted_at IS NULL"
    );
    tx.query_opt(SQL, params![key]).await?.map(|mut row| read_room(&mut row, 0)).transpose()
}

/// Sets the title, as a person or agent gave it.
pub async fn set_title(tx: &mut Writer, key: i64, title: &str, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE rooms SET title = ?2, updated_at = ?3 WHERE key = ?1";
    tx.execute(SQL, params![key, title, at.as_micros()]).await.map(drop)
}

/// Sets the status.
pub async fn set_status(tx: &mut Writer, key: i64, status: RoomStatus, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE rooms SET status = ?2, updated_at = ?3 WHERE key = ?1";
    tx.execute(SQL, params![key, status.as_str(), at.as_micros()]).await.map(drop)
}

/// Sets the kind.
pub async fn set_kind(tx: &mut Writer, key: i64, kind: RoomKind) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE rooms SET kind = ?2 WHERE key = ?1";
    tx.execute(SQL, params![key, kind.as_str()]).await.map(drop)
}

/// Notes that membership changed: the number of participants by `change`, and the moment.
pub async fn membership_changed(tx: &mut Writer, key: i64, change: i64, at: Timestamp) -> Result<i64, StoreError> {
    const SQL: &str =
        "UPDATE rooms SET participants = participants + ?2, updated_at = ?3 WHERE key = ?1 RETURNING participants";
    tx.query_one(SQL, params![key, change, at.as_micros()]).await?.int(0)
}

/// Marks a room as deleted: nothing finds it any more.
pub async fn delete(tx: &mut Writer, key: i64, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE rooms SET deleted_at = ?2, updated_at = ?2 WHERE key = ?1";
    tx.execute(SQL, params![key, at.as_micros()]).await.map(drop)
}

/// For the test of its plan, too.
pub const NEXT_DELETED: &str =
    "SELECT key FROM rooms WHERE deleted_at IS NOT NULL AND participants > 0 ORDER BY key LIMIT 1";

/// A deleted room that somebody is still in, by its key: they are taken out in the background.
pub async fn next_deleted(tx: &mut Reader) -> Result<Option<i64>, StoreError> {
    tx.query_opt(NEXT_DELETED, params![]).await?.map(|row| row.int(0)).transpose()
}

/// Counts those who were taken out of a deleted room.
pub async fn departed(tx: &mut Writer, key: i64, count: i64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE rooms SET participants = participants - ?2 WHERE key = ?1";
    tx.execute(SQL, params![key, count]).await.map(drop)
}

/// Counts a new message or event and gives its moment: now, or just after the newest one if the clock went back.
pub async fn message_posted(
    tx: &mut Writer,
    key: i64,
    kind: MessageKind,
    now: Timestamp,
) -> Result<Timestamp, StoreError> {
    const SQL: &str = "UPDATE rooms SET \
        last_message_at = CASE WHEN last_message_at >= ?2 THEN last_message_at + 1 ELSE ?2 END, \
        texts = texts + ?3, tool_calls = tool_calls + ?4, tool_results = tool_results + ?5, \
        thoughts = thoughts + ?6, errors = errors + ?7, tasks = tasks + ?8, attentions = attentions + ?9 \
        WHERE key = ?1 RETURNING last_message_at";
    let one = |of: MessageKind| Param::Int(i64::from(of == kind));
    let mut values = params![key, now.as_micros()].to_vec();
    values.extend(COUNTED.map(one));
    Ok(Timestamp::from_micros(tx.query_one(SQL, &values).await?.int(0)?))
}

/// The kinds in the order of the count columns.
const COUNTED: [MessageKind; 7] = [
    MessageKind::Text,
    MessageKind::ToolCall,
    MessageKind::ToolResult,
    MessageKind::Thought,
    MessageKind::Error,
    MessageKind::Task,
    MessageKind::Attention,
];

/// How many rows of each kind a room's history has.
pub async fn message_counts(tx: &mut Reader, key: i64) -> Result<Vec<(MessageKind, i64)>, StoreError> {
    const SQL: &str = "SELECT texts, tool_calls, tool_results, thoughts, errors, tasks, attentions \
                       FROM rooms WHERE key = ?1";
    let row = tx.query_one(SQL, params![key]).await?;
    COUNTED.iter().enumerate().map(|(column, kind)| Ok((*kind, row.int(column)?))).collect()
}

/// Describes a room by its first text message, and gives it that message's title if it has none; the title that it has
/// then. `None` when it was described before.
pub async fn describe(tx: &mut Writer, key: i64, title: &str, description: &str) -> Result<Option<String>, StoreError> {
    const SQL: &str = "UPDATE rooms SET title = COALESCE(title, ?2), description = ?3 \
                       WHERE key = ?1 AND description IS NULL RETURNING title";
    tx.query_opt(SQL, params![key, title, description]).await?.map(|mut row| row.take_text(0)).transpose()
}

/// The rooms of a member, oldest first, each with its key.
pub async fn of_member(
    tx: &mut Reader,
    member: IdentityId,
    limit: i64,
    offset: i64,
) -> Result<Vec<(Room, i64)>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        room_columns!(),
        ", r.key FROM participants p JOIN rooms r ON r.key = p.room_key JOIN identities c ON c.key = r.creator_key \
         WHERE p.member_key = (SELECT key FROM identities WHERE id = ?1) AND p.left_at IS NULL AND p.status <> 'blocked' \
         AND r.deleted_at IS NULL ORDER BY p.room_key LIMIT ?2 OFFSET ?3"
    );
    let rows = tx.query(SQL, params![member, limit, offset]).await?;
    rows.into_iter().map(|mut row| Ok((read_room(&mut row, 0)?, row.int(ROOM_COLUMNS)?))).collect()
}

/// How many rooms [`of_member`] lists in all.
pub async fn count_of_member(tx: &mut Reader, member: IdentityId) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT count(*) FROM participants p JOIN rooms r ON r.key = p.room_key \
                       WHERE p.member_key = (SELECT key FROM identities WHERE id = ?1) AND p.left_at IS NULL \
                       AND p.status <> 'blocked' AND r.deleted_at IS NULL";
    tx.query_one(SQL, params![member]).await?.int(0)
}

/// The live rooms where somebody takes part, by key, after `after`: for work that goes room by room.
pub async fn keys_of_member(
    tx: &mut Reader,
    member: IdentityId,
    after: i64,
    limit: i64,
) -> Result<Vec<(RoomId, i64)>, StoreError> {
    const SQL: &str = "SELECT r.id, r.key FROM participants p JOIN rooms r ON r.key = p.room_key \
                       WHERE p.member_key = (SELECT key FROM identities WHERE id = ?1) AND p.left_at IS NULL \
                       AND r.deleted_at IS NULL AND p.room_key > ?2 ORDER BY p.room_key LIMIT ?3";
    let rows = tx.query(SQL, params![member, after, limit]).await?;
    rows.into_iter().map(|row| Ok((RoomId(row.id(0)?), row.int(1)?))).collect()
}

/// Which rooms of a user to list, in which order.
#[derive(Clone, Debug)]
pub struct RoomQuery {
    /// Who asks.
    pub user: IdentityId,
    /// Also rooms where only an agent of the user takes part.
    pub agent_rooms: bool,
    /// Of this status; `None` means any.
    pub status: Option<RoomStatus>,
    /// Of this kind; `None` means any.
    pub kind: Option<RoomKind>,
    /// Sort by the last change rather than by creation.
    pub by_updated: bool,
    /// Newest first.
    pub descending: bool,
    /// After this row: its sort value and key.
    pub after: Option<(i64, i64)>,
    /// Rows to skip.
    pub offset: i64,
    /// Most rows.
    pub limit: i64,
}

/// A row of a user's list of rooms.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRoom {
    /// The room.
    pub room: Room,
    /// Its key.
    pub key: i64,
    /// The user's own role and standing; `None` when only an agent of the user takes part.
    pub own: Option<(Role, ParticipantStatus)>,
}

const OWN_ROOMS: &str = "SELECT p.room_key FROM participants p WHERE p.member_key = u.key AND p.left_at IS NULL \
                         AND p.status = 'active'";
const AGENT_ROOMS: &str = "SELECT p.room_key FROM participants p JOIN identities a ON a.key = p.member_key \
                           WHERE a.owner_key = u.key AND a.deleted_at IS NULL AND p.left_at IS NULL";

fn listed_from(agent_rooms: bool) -> String {
    let rooms = if agent_rooms { format!("{OWN_ROOMS} UNION {AGENT_ROOMS}") } else { OWN_ROOMS.to_owned() };
    format!(
        "FROM rooms r JOIN identities u ON u.id = ?1 JOIN identities c ON c.key = r.creator_key \
         LEFT JOIN participants own ON own.room_key = r.key AND own.member_key = u.key AND own.left_at IS NULL \
         WHERE r.deleted_at IS NULL AND r.key IN ({rooms}) AND (?2 = '' OR r.status = ?2) AND (?3 = '' OR r.kind = ?3)"
    )
}

static LISTED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for agent_rooms in [false, true] {
        for column in ["r.inserted_at", "r.updated_at"] {
            for (order, comparison) in [("ASC", ">"), ("DESC", "<")] {
                all.push(format!(
                    "SELECT {}, r.key, own.role, own.status {} AND ({column}, r.key) {comparison} (?4, ?5) \
                     ORDER BY {column} {order}, r.key {order} LIMIT ?6 OFFSET ?7",
                    room_columns!(),
                    listed_from(agent_rooms)
                ));
            }
        }
    }
    all
});

static COUNTED_LIST: LazyLock<[String; 2]> =
    LazyLock::new(|| [false, true].map(|agent_rooms| format!("SELECT count(*) {}", listed_from(agent_rooms))));

/// A user's rooms.
pub async fn listed(tx: &mut Reader, query: &RoomQuery) -> Result<Vec<ListedRoom>, StoreError> {
    let index = usize::from(query.agent_rooms) * 4 + usize::from(query.by_updated) * 2 + usize::from(query.descending);
    let sql: &'static str = &LISTED[index];
    let edge = if query.descending { i64::MAX } else { i64::MIN };
    let (value, key) = query.after.unwrap_or((edge, edge));
    let values = params![
        query.user,
        query.status.map_or("", RoomStatus::as_str),
        query.kind.map_or("", RoomKind::as_str),
        value,
        key,
        query.limit,
        query.offset,
    ];
    let rows = tx.query(sql, values).await?;
    rows.into_iter()
        .map(|mut row| {
            let own = match (row.opt_text(ROOM_COLUMNS + 1)?, row.opt_text(ROOM_COLUMNS + 2)?) {
                (Some(role), Some(status)) => Some((
                    Role::parse(role).ok_or_else(|| unknown("role", role))?,
                    ParticipantStatus::parse(status).ok_or_else(|| unknown("participant status", status))?,
                )),
                _ => None,
            };
            Ok(ListedRoom { room: read_room(&mut row, 0)?, key: row.int(ROOM_COLUMNS)?, own })
        })
        .collect()
}

/// How many rooms [`listed`] lists in all.
pub async fn count_listed(tx: &mut Reader, query: &RoomQuery) -> Result<i64, StoreError> {
    let sql: &'static str = &COUNTED_LIST[usize::from(query.agent_rooms)];
    let values =
        params![query.user, query.status.map_or("", RoomStatus::as_str), query.kind.map_or("", RoomKind::as_str)];
    tx.query_one(sql, values).await?.int(0)
}

//! Messages and events, and what became of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use bandstand_domain::delivery::{Attempt, AttemptState, Delivery, DeliveryState};
use bandstand_domain::file::Attachment;
use bandstand_domain::message::{Mention, Message, MessageKind};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chunks::{self, CHUNK, sized};
use crate::columns::{profile, profile_columns, unknown};
use crate::{Reader, StoreError, Writer, params};

/// A row to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// The room's key.
    pub room_key: i64,
    /// The sequence that the operation took.
    pub sequence: i64,
    /// Its id.
    pub id: MessageId,
    /// What it is.
    pub kind: MessageKind,
    /// The sender's key.
    pub sender_key: i64,
    /// The text, normalized.
    pub content: &'a str,
    /// Whom it mentions.
    pub mentions: &'a [Mention],
    /// Files that it carries.
    pub attachments: &'a [Attachment],
    /// An event's metadata as JSON text.
    pub metadata: Option<&'a str>,
    /// When.
    pub at: Timestamp,
}

/// Stores a row.
pub async fn insert(tx: &mut Writer, new: &NewMessage<'_>) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO messages (room_key, sequence, id, kind, sender_key, content, mentions, metadata, \
                       inserted_at, updated_at, attachments) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)";
    let (mentions, attachments) = (list_text(new.mentions)?, list_text(new.attachments)?);
    let values = params![
        new.room_key,
        new.sequence,
        new.id,
        new.kind.code(),
        new.sender_key,
        new.content,
        mentions.as_ref(),
        new.metadata,
        new.at.as_micros(),
        attachments.as_ref(),
    ];
    tx.execute(SQL, values).await.map(drop)
}

/// A list as it is kept with its message.
fn list_text<T: Serialize>(list: &[T]) -> Result<Cow<'static, str>, StoreError> {
    if list.is_empty() {
        return Ok("[]".into());
    }
    let text = serde_json::to_string(list).map_err(|why| StoreError::Bug(format!("a message's list: {why}")))?;
    Ok(text.into())
}

/// Reads a list that is kept with its message.
pub(crate) fn read_list<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, StoreError> {
    if text == "[]" {
        return Ok(Vec::new());
    }
    serde_json::from_str(text).map_err(|why| StoreError::Decode(format!("a message's list: {why}")))
}

/// Where a message of this room stands; `None` when the room has none of this id.
pub async fn locate(tx: &mut Reader, room_key: i64, id: MessageId) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT room_key, sequence FROM messages WHERE id = ?1";
    let Some(row) = tx.query_opt(SQL, params![id]).await? else { return Ok(None) };
    Ok((row.int(0)? == room_key).then_some(row.int(1)?))
}

/// The id of the row at a sequence; `None` when there is none.
pub async fn id_at(tx: &mut Reader, room_key: i64, sequence: i64) -> Result<Option<MessageId>, StoreError> {
    const SQL: &str = "SELECT id FROM messages WHERE room_key = ?1 AND sequence = ?2";
    Ok(tx.query_opt(SQL, params![room_key, sequence]).await?.map(|row| row.id(0)).transpose()?.map(MessageId))
}

/// The kind of a row of this room; `None` when the room has none of this id.
pub async fn kind_of(tx: &mut Reader, room_key: i64, id: MessageId) -> Result<Option<MessageKind>, StoreError> {
    const SQL: &str = "SELECT kind FROM messages WHERE id = ?1 AND room_key = ?2";
    let Some(row) = tx.query_opt(SQL, params![id, room_key]).await? else { return Ok(None) };
    let code = row.int(0)?;
    MessageKind::from_code(code).map(Some).ok_or_else(|| unknown("message kind", code))
}

static MESSAGES: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        concat!(
            "SELECT m.sequence, m.id, m.kind, m.content, m.mentions, m.metadata, m.inserted_at, m.updated_at, \
             m.attachments, ",
            profile_columns!("i"),
            " FROM messages m JOIN identities i ON i.key = m.sender_key WHERE m.room_key = ?1 AND m.sequence IN "
        ),
        2,
    )
});
static DELIVERIES: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        "SELECT d.sequence, i.id, d.member_key, d.state, d.pushed_at, d.served_at, d.finished_at, d.attempts \
         FROM deliveries d JOIN identities i ON i.key = d.member_key WHERE d.room_key = ?1 AND d.sequence IN ",
        2,
    )
});
static ATTEMPTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        "SELECT t.sequence, t.member_key, t.number, t.state, t.started_at, t.completed_at, t.error \
         FROM attempts t WHERE t.room_key = ?1 AND t.sequence IN ",
        2,
    )
});

/// The statements that read rows, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> Vec<&'static str> {
    [&MESSAGES, &DELIVERIES, &ATTEMPTS].into_iter().flat_map(|sizes| sizes.iter().map(String::as_str)).collect()
}

/// Reads these rows of a room with their deliveries, in the order asked for. A sequence that is no row is left out.
pub async fn at(tx: &mut Reader, room: RoomId, room_key: i64, sequences: &[i64]) -> Result<Vec<Message>, StoreError> {
    let mut found: HashMap<i64, Message> = HashMap::with_capacity(sequences.len());
    for chunk in sequences.chunks(CHUNK) {
        read_chunk(tx, room, room_key, chunk, &mut found).await?;
    }
    Ok(sequences.iter().filter_map(|sequence| found.remove(sequence)).collect())
}

/// Reads one row of a room with its deliveries.
pub async fn one(tx: &mut Reader, room: RoomId, room_key: i64, sequence: i64) -> Result<Option<Message>, StoreError> {
    Ok(at(tx, room, room_key, &[sequence]).await?.pop())
}

async fn read_chunk(
    tx: &mut Reader,
    room: RoomId,
    room_key: i64,
    chunk: &[i64],
    found: &mut HashMap<i64, Message>,
) -> Result<(), StoreError> {
    let Some((size, values)) = chunks::parameters(params![room_key], chunk) else { return Ok(()) };
    for mut row in tx.query(&MESSAGES[size], &values).await? {
        let (sequence, kind) = (row.int(0)?, row.int(2)?);
        let message = Message {
            id: MessageId(row.id(1)?),
            room,
            sequence,
            kind: MessageKind::from_code(kind).ok_or_else(|| unknown("message kind", kind))?,
            sender: profile(&mut row, 9)?,
            attachments: read_list(row.text(8)?)?,
            mentions: read_list(row.text(4)?)?,
            content: row.take_text(3)?,
            metadata: row.take_opt_text(5)?,
            deliveries: Vec::new(),
            inserted_at: Timestamp::from_micros(row.int(6)?),
            updated_at: Timestamp::from_micros(row.int(7)?),
        };
        found.insert(sequence, message);
    }
    let mut tried = false;
    let mut places: HashMap<(i64, i64), usize> = HashMap::new();
    for row in tx.query(&DELIVERIES[size], &values).await? {
        let (sequence, member, state) = (row.int(0)?, row.int(2)?, row.int(3)?);
        let Some(message) = found.get_mut(&sequence) else { continue };
        tried |= row.int(7)? > 0;
        places.insert((sequence, member), message.deliveries.len());
        let state = DeliveryState::from_code(state).ok_or_else(|| unknown("delivery state", state))?;
        let (pushed, served) = (row.opt_int(4)?, row.opt_int(5)?);
        let reached = match (pushed, served) {
            (Some(pushed), Some(served)) => Some(pushed.min(served)),
            (one, other) => one.or(other),
        };
        message.deliveries.push(Delivery {
            recipient: IdentityId(row.id(1)?),
            state,
            delivered_at: reached.map(Timestamp::from_micros),
            processed_at: row.opt_int(6)?.filter(|_| state == DeliveryState::Processed).map(Timestamp::from_micros),
            attempts: Vec::new(),
        });
    }
    if !tried {
        return Ok(());
    }
    for mut row in tx.query(&ATTEMPTS[size], &values).await? {
        let (sequence, member, state) = (row.int(0)?, row.int(1)?, row.int(3)?);
        let delivery = places
            .get(&(sequence, member))
            .and_then(|place| found.get_mut(&sequence).and_then(|message| message.deliveries.get_mut(*place)));
        let Some(delivery) = delivery else { continue };
        delivery.attempts.push(Attempt {
            number: row.int(2)?,
            state: AttemptState::from_code(state).ok_or_else(|| unknown("attempt state", state))?,
            started_at: Timestamp::from_micros(row.int(4)?),
            completed_at: row.opt_int(5)?.map(Timestamp::from_micros),
            error: row.take_opt_text(6)?,
        });
    }
    for message in found.values_mut() {
        for delivery in &mut message.deliveries {
            delivery.attempts.sort_by_key(|attempt| attempt.number);
        }
    }
    Ok(())
}

/// The sequence of the newest row of a room.
pub async fn newest(tx: &mut Reader, room_key: i64) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT sequence FROM messages WHERE room_key = ?1 ORDER BY sequence DESC LIMIT 1";
    tx.query_opt(SQL, params![room_key]).await?.map(|row| row.int(0)).transpose()
}

//! Files of rooms: what is known of them. Their bytes are in the object store.

use bandstand_domain::file::{Attachment, hex};
use bandstand_wire::ids::{FileId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::{Reader, Row, StoreError, Writer, params};

const COLUMNS: usize = 6;

/// Columns of an [`Attachment`] from the files table under the alias `f`.
macro_rules! file_columns {
    () => {
        "f.id, f.name, f.content_type, f.bytes, f.sha256, f.expires_at"
    };
}

fn read(row: &mut Row) -> Result<Attachment, StoreError> {
    Ok(Attachment {
        id: FileId(row.id(0)?),
        bytes: row.int(3)?,
        sha256: hex(row.bytes(4)?),
        expires_at: row.opt_int(5)?.map(Timestamp::from_micros),
        name: row.take_text(1)?,
        content_type: row.take_text(2)?,
    })
}

/// Stores a new file; false when the room has one of the same bytes.
pub async fn insert(
    tx: &mut Writer,
    room_key: i64,
    uploader_key: i64,
    file: &Attachment,
    hash: [u8; 32],
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO files (id, room_key, uploader_key, name, content_type, bytes, sha256, inserted_at, \
                       expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";
    let values = params![
        file.id,
        room_key,
        uploader_key,
        &file.name,
        &file.content_type,
        file.bytes,
        &hash,
        at.as_micros(),
        file.expires_at.map(Timestamp::as_micros),
    ];
    Ok(tx.execute(SQL, values).await? == 1)
}

/// A file of a room that has not expired.
pub async fn one(tx: &mut Reader, room_key: i64, id: FileId, now: Timestamp) -> Result<Option<Attachment>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        file_columns!(),
        " FROM files f WHERE f.id = ?1 AND f.room_key = ?2 AND (f.expires_at IS NULL OR f.expires_at > ?3)"
    );
    tx.query_opt(SQL, params![id, room_key, now.as_micros()]).await?.map(|mut row| read(&mut row)).transpose()
}

/// The file of these bytes in a room, expired or not.
pub async fn by_content(tx: &mut Reader, room_key: i64, hash: [u8; 32]) -> Result<Option<Attachment>, StoreError> {
    const SQL: &str = concat!("SELECT ", file_columns!(), " FROM files f WHERE f.room_key = ?1 AND f.sha256 = ?2");
    tx.query_opt(SQL, params![room_key, &hash]).await?.map(|mut row| read(&mut row)).transpose()
}

/// Lets a file live longer: it was uploaded again.
pub async fn prolong(tx: &mut Writer, id: FileId, expires_at: Option<Timestamp>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE files SET expires_at = ?2 WHERE id = ?1";
    tx.execute(SQL, params![id, expires_at.map(Timestamp::as_micros)]).await.map(drop)
}

/// A file that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// The file.
    pub file: Attachment,
    /// Its room.
    pub room: RoomId,
    /// Its key.
    pub key: i64,
}

/// Files that have expired, or whose room is deleted: up to `limit` of each.
pub async fn doomed(tx: &mut Reader, now: Timestamp, limit: i64) -> Result<Vec<Doomed>, StoreError> {
    const EXPIRED: &str = concat!(
        "SELECT ",
        file_columns!(),
        ", r.id, f.key FROM files f JOIN rooms r ON r.key = f.room_key \
         WHERE f.expires_at <= ?1 ORDER BY f.expires_at LIMIT ?2"
    );
    const ROOMLESS: &str = concat!(
        "SELECT ",
        file_columns!(),
        ", r.id, f.key FROM rooms r JOIN files f ON f.room_key = r.key WHERE r.deleted_at IS NOT NULL LIMIT ?1"
    );
    let mut rows = tx.query(EXPIRED, params![now.as_micros(), limit]).await?;
    rows.extend(tx.query(ROOMLESS, params![limit]).await?);
    let mut doomed: Vec<Doomed> = Vec::with_capacity(rows.len());
    for mut row in rows {
        let (room, key) = (RoomId(row.id(COLUMNS)?), row.int(COLUMNS + 1)?);
        if doomed.iter().all(|known| known.key != key) {
            doomed.push(Doomed { file: read(&mut row)?, room, key });
        }
    }
    Ok(doomed)
}

/// Forgets a file that is to go, unless it was uploaded again meanwhile: its expiry must be what it was.
pub async fn forget(tx: &mut Writer, doomed: &Doomed) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM files WHERE key = ?1 AND COALESCE(expires_at, 0) = ?2";
    let expiry = doomed.file.expires_at.map_or(0, Timestamp::as_micros);
    Ok(tx.execute(SQL, params![doomed.key, expiry]).await? == 1)
}

//! The audit log. Its entries are only ever added, which triggers enforce; each is chained to the one before.

use bandstand_domain::audit::{Act, Broken, Door, Entry, Hash, Head, Verifier, canonical};
use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;

use crate::columns::unknown;
use crate::{Reader, Row, StoreError, Writer, params};

/// Entries that are read at once when the whole log is checked.
const PAGE: i64 = 500;

/// Takes the lock under which acts of administration follow one another; what it answers is the log's head. An act that
/// looks before it changes something takes it first, ahead of any other lock.
pub async fn lock(tx: &mut Writer) -> Result<Head, StoreError> {
    const SQL: &str = "INSERT INTO audit_head (one, sequence, hash) VALUES (1, 0, ?1) \
                       ON CONFLICT (one) DO UPDATE SET sequence = audit_head.sequence RETURNING sequence, hash";
    read_head(&tx.query_one(SQL, params![&Hash::START.0]).await?)
}

/// Adds an entry, in the transaction of the act itself.
pub async fn append(tx: &mut Writer, act: Act) -> Result<Entry, StoreError> {
    const ENTRY: &str = "INSERT INTO audit_entries (sequence, at, actor_id, actor, door, act, target, details, \
                         previous_hash, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    const HEAD: &str = "UPDATE audit_head SET sequence = ?1, hash = ?2 WHERE one = 1";
    let head = lock(tx).await?;
    let entry = Entry::after(head.sequence, head.hash, act);
    let details = canonical(&entry.details);
    let values = params![
        entry.sequence,
        entry.at.as_micros(),
        entry.actor_id,
        &entry.actor,
        entry.door.as_str(),
        &entry.act,
        &entry.target,
        &details,
        &entry.previous_hash.0,
        &entry.hash.0,
    ];
    tx.execute(ENTRY, values).await?;
    tx.execute(HEAD, params![entry.sequence, &entry.hash.0]).await?;
    Ok(entry)
}

/// How far the log reaches.
pub async fn head(tx: &mut Reader) -> Result<Head, StoreError> {
    const SQL: &str = "SELECT sequence, hash FROM audit_head WHERE one = 1";
    tx.query_opt(SQL, params![]).await?.map_or(Ok(Head::EMPTY), |row| read_head(&row))
}

/// The entries after a sequence, oldest first.
pub async fn after(tx: &mut Reader, sequence: i64, limit: i64) -> Result<Vec<Entry>, StoreError> {
    const SQL: &str = "SELECT sequence, at, actor_id, actor, door, act, target, details, previous_hash, hash \
                       FROM audit_entries WHERE sequence > ?1 ORDER BY sequence LIMIT ?2";
    tx.query(SQL, params![sequence, limit]).await?.iter_mut().map(read).collect()
}

/// Checks the whole log.
pub async fn verify(tx: &mut Reader) -> Result<Result<Head, Broken>, StoreError> {
    let written = head(tx).await?;
    let mut verifier = Verifier::new(None);
    let mut last = 0;
    loop {
        let entries = after(tx, last, PAGE).await?;
        for entry in &entries {
            if let Err(broken) = verifier.take(entry) {
                return Ok(Err(broken));
            }
        }
        match entries.last() {
            Some(entry) => last = entry.sequence,
            None => return Ok(verifier.finish(Some(written))),
        }
    }
}

fn read_head(row: &Row) -> Result<Head, StoreError> {
    Ok(Head { sequence: row.int(0)?, hash: read_hash(row, 1)? })
}

fn read_hash(row: &Row, column: usize) -> Result<Hash, StoreError> {
    let bytes = row.bytes(column)?;
    bytes.try_into().map(Hash).map_err(|_| StoreError::Decode(format!("a hash of {} bytes", bytes.len())))
}

fn read(row: &mut Row) -> Result<Entry, StoreError> {
    let door = row.text(4)?;
    let details = row.text(7)?;
    Ok(Entry {
        sequence: row.int(0)?,
        at: Timestamp::from_micros(row.int(1)?),
        actor_id: row.opt_id(2)?.map(IdentityId),
        door: Door::parse(door).ok_or_else(|| unknown("door", door))?,
        details: serde_json::from_str(details)
            .map_err(|why| StoreError::Decode(format!("details of an entry: {why}")))?,
        previous_hash: read_hash(row, 8)?,
        hash: read_hash(row, 9)?,
        actor: row.take_text(3)?,
        act: row.take_text(5)?,
        target: row.take_text(6)?,
    })
}

//! Executions: an agent's work in one room, and whether it is stopped. They are part of the participants' rows.

use bandstand_domain::execution::{Addressee, Execution, Stopped};
use bandstand_wire::ids::{ExecutionId, IdentityId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::columns::{profile, profile_columns};
use crate::{Reader, StoreError, Writer, params};

/// Most agents that one operation signals, and about as many messages that it reads for them.
pub const BATCH: i64 = 500;

/// An agent in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomAgent {
    /// Its key.
    pub member_key: i64,
    /// As a signal names it.
    pub addressee: Addressee,
    /// The room's sequence when it was stopped, while it is.
    pub stopped_sequence: Option<i64>,
}

/// The agents of a room, by key, after `after`: for work that goes batch by batch.
pub async fn of_room(tx: &mut Reader, room_key: i64, after: i64, limit: i64) -> Result<Vec<RoomAgent>, StoreError> {
    const SQL: &str = "SELECT p.member_key, i.id, p.execution_id, p.stopped_sequence \
                       FROM participants p JOIN identities i ON i.key = p.member_key \
                       WHERE p.room_key = ?1 AND p.member_key > ?2 AND p.left_at IS NULL AND i.kind = 1 \
                       AND i.deleted_at IS NULL ORDER BY p.member_key LIMIT ?3";
    let rows = tx.query(SQL, params![room_key, after, limit]).await?;
    rows.iter()
        .map(|row| {
            Ok(RoomAgent {
                member_key: row.int(0)?,
                addressee: Addressee { agent: IdentityId(row.id(1)?), execution: row.opt_id(2)?.map(ExecutionId) },
                stopped_sequence: row.opt_int(3)?,
            })
        })
        .collect()
}

/// Who stops agents, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The room's sequence.
    pub sequence: i64,
    /// The key of who stops them.
    pub by_key: i64,
    /// When.
    pub at: Timestamp,
}

/// Stops the agents of a room with keys in `after < key <= last` that are not stopped yet; how many.
pub async fn stop(tx: &mut Writer, room_key: i64, after: i64, last: i64, stop: Stop) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE participants SET stopped_sequence = ?4, stopped_by = ?5, stopped_at = ?6 \
                       WHERE room_key = ?1 AND member_key > ?2 AND member_key <= ?3 AND left_at IS NULL \
                       AND stopped_sequence IS NULL AND EXISTS (\
                       SELECT 1 FROM identities i WHERE i.key = participants.member_key AND i.kind = 1)";
    let values = params![room_key, after, last, stop.sequence, stop.by_key, stop.at.as_micros()];
    tx.execute(SQL, values).await
}

/// Lets the agents of a room with keys in `after < key <= last` go on; how many were stopped.
pub async fn resume(tx: &mut Writer, room_key: i64, after: i64, last: i64) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE participants SET stopped_sequence = NULL, stopped_by = NULL, stopped_at = NULL \
                       WHERE room_key = ?1 AND member_key > ?2 AND member_key <= ?3 AND stopped_sequence IS NOT NULL";
    tx.execute(SQL, params![room_key, after, last]).await
}

const MISSED: &str = "SELECT sequence FROM deliveries WHERE member_key = ?1 AND room_key = ?2 AND recipient = 1 \
                      AND state = 0 AND sequence > ?3 ORDER BY sequence LIMIT ?4";

/// The oldest messages after `after` that never reached a member.
pub async fn missed(
    tx: &mut Reader,
    room_key: i64,
    member_key: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    let rows = tx.query(MISSED, params![member_key, room_key, after, limit]).await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// SQLite keeps the order of a CROSS JOIN: else it might walk all rooms, backwards, rather than the agent's.
const OF_AGENT: &str = concat!(
    "SELECT p.execution_id, r.id, p.joined_at, p.stopped_at, p.room_key, ",
    profile_columns!("s"),
    " FROM participants p CROSS JOIN rooms r LEFT JOIN identities s ON s.key = p.stopped_by \
     WHERE r.key = p.room_key AND p.member_key = (SELECT key FROM identities WHERE id = ?1) AND p.left_at IS NULL \
     AND p.execution_id IS NOT NULL AND r.deleted_at IS NULL AND p.room_key < ?2 ORDER BY p.room_key DESC LIMIT ?3"
);

/// An agent's executions, in the newest rooms first, each with the key of its room; before room `before`.
pub async fn of_agent(
    tx: &mut Reader,
    agent: IdentityId,
    before: i64,
    limit: i64,
) -> Result<Vec<(Execution, i64)>, StoreError> {
    let rows = tx.query(OF_AGENT, params![agent, before, limit]).await?;
    rows.into_iter()
        .map(|mut row| {
            let stopped = match row.opt_int(3)? {
                Some(at) => Some(Stopped { at: Timestamp::from_micros(at), by: profile(&mut row, 5)? }),
                None => None,
            };
            let execution = Execution {
                id: ExecutionId(row.id(0)?),
                agent,
                room: RoomId(row.id(1)?),
                since: Timestamp::from_micros(row.int(2)?),
                stopped,
            };
            Ok((execution, row.int(4)?))
        })
        .collect()
}

const EXISTS: &str = "SELECT 1 FROM participants p JOIN identities a ON a.key = p.member_key \
                      JOIN rooms r ON r.key = p.room_key WHERE p.execution_id = ?2 AND a.id = ?1 \
                      AND p.left_at IS NULL AND r.deleted_at IS NULL";

/// Whether an agent has this execution.
pub async fn exists(tx: &mut Reader, agent: IdentityId, execution: ExecutionId) -> Result<bool, StoreError> {
    Ok(tx.query_opt(EXISTS, params![agent, execution]).await?.is_some())
}

const WORKED_IN: &str = "SELECT count(*) FROM participants p \
                         WHERE p.member_key = (SELECT key FROM identities WHERE id = ?1) AND p.worked = 1";

/// In how many rooms an agent ever worked: tried a message, or sent one. The rooms that it left count.
pub async fn worked_in(tx: &mut Reader, who: IdentityId) -> Result<i64, StoreError> {
    tx.query_one(WORKED_IN, params![who]).await?.int(0)
}

/// The statements that must not cost more than they show, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> [&'static str; 4] {
    [MISSED, OF_AGENT, EXISTS, WORKED_IN]
}

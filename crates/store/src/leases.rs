//! Attempts that run: which are to be looked at, and which have lapsed.
//!
//! `seen_at` says when an attempt's agent was last known to be at work. It is only a schedule: whether an attempt has
//! lapsed is decided on a clock that never jumps. Its index holds nothing but attempts that run, and the walk begins
//! with those that were not looked at for longest, so that the cost follows what is due.

use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::deliveries::Place;
use crate::{Param, Reader, StoreError, Writer, params};

/// Most attempts that one look takes.
pub const BATCH: i64 = 200;

/// An attempt that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The room.
    pub room: RoomId,
    /// Whose attempt.
    pub agent: IdentityId,
    /// Of which delivery.
    pub place: Place,
    /// Its number.
    pub number: i64,
}

macro_rules! running {
    ($condition:literal) => {
        concat!(
            "SELECT r.id, i.id, t.room_key, t.sequence, t.member_key, t.number FROM attempts t ",
            "JOIN rooms r ON r.key = t.room_key JOIN identities i ON i.key = t.member_key ",
            "WHERE t.state = 0 AND t.lapsed_at IS NULL AND ",
            $condition,
            " ORDER BY t.seen_at LIMIT ?2"
        )
    };
}

const UNSEEN_SINCE: &str = running!("t.seen_at <= ?1");
const SEEN_AFTER: &str = running!("t.seen_at > ?1");

/// Attempts whose agents were last known to be at work at `moment` or before.
pub async fn unseen_since(tx: &mut Reader, moment: Timestamp) -> Result<Vec<Running>, StoreError> {
    read(tx, UNSEEN_SINCE, moment).await
}

/// Attempts whose agents were last known to be at work after `moment`: where that is in the future, the clock went back.
pub async fn seen_after(tx: &mut Reader, moment: Timestamp) -> Result<Vec<Running>, StoreError> {
    read(tx, SEEN_AFTER, moment).await
}

async fn read(tx: &mut Reader, sql: &'static str, moment: Timestamp) -> Result<Vec<Running>, StoreError> {
    let rows = tx.query(sql, params![moment.as_micros(), BATCH]).await?;
    rows.iter()
        .map(|row| {
            Ok(Running {
                room: RoomId(row.id(0)?),
                agent: IdentityId(row.id(1)?),
                place: Place { room_key: row.int(2)?, sequence: row.int(3)?, member_key: row.int(4)? },
                number: row.int(5)?,
            })
        })
        .collect()
}

/// Notes when the agents of attempts were last known to be at work. In the order of the table's key, as whoever ends
/// many attempts goes, so that the two never wait for each other.
pub async fn note_seen(tx: &mut Writer, mut seen: Vec<(Running, Timestamp)>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE attempts SET seen_at = ?5 \
                       WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND number = ?4 AND state = 0";
    seen.sort_unstable_by_key(|(one, _)| (one.place.room_key, one.place.sequence, one.place.member_key, one.number));
    let rows: Vec<Vec<Param<'_>>> = seen
        .iter()
        .map(|(Running { place, number, .. }, at)| {
            params![place.room_key, place.sequence, place.member_key, *number, at.as_micros()].to_vec()
        })
        .collect();
    tx.execute_many(SQL, &rows).await.map(drop)
}

/// Notes that an attempt has lapsed; false when it no longer runs, or had lapsed before. It is written once.
pub async fn lapse(tx: &mut Writer, place: Place, number: i64, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE attempts SET lapsed_at = ?5 WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 \
                       AND number = ?4 AND state = 0 AND lapsed_at IS NULL";
    let values = params![place.room_key, place.sequence, place.member_key, number, at.as_micros()];
    Ok(tx.execute(SQL, values).await? == 1)
}

/// The statements that must not cost more than they show, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> [&'static str; 2] {
    [UNSEEN_SINCE, SEEN_AFTER]
}

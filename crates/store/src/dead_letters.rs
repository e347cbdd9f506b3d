//! Dead letters: what waits for too long, what was given up, and delivering it again.

use bandstand_domain::dead_letter::DeadLetter;
use bandstand_domain::delivery::DeliveryState;
use bandstand_domain::identity::Profile;
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::columns::{PROFILE_COLUMNS, profile, profile_columns};
use crate::deliveries::Place;
use crate::{Reader, StoreError, Writer, params, participants};

/// Most deliveries that one look for those that waited too long takes.
pub const BATCH: i64 = 100;

/// Open deliveries that have waited since `?1` or longer. One that is being worked on is left alone, unless its attempt
/// has lapsed or is as old itself; and so is one that ends anyway because its recipient left or its room is gone.
macro_rules! overdue {
    ($($more:literal),*) => {
        concat!(
            "SELECT r.id, d.room_key, d.sequence, d.member_key FROM deliveries d ",
            "JOIN rooms r ON r.key = d.room_key ",
            "JOIN participants p ON p.room_key = d.room_key AND p.member_key = d.member_key ",
            "LEFT JOIN attempts t ON t.room_key = d.room_key AND t.sequence = d.sequence ",
            "AND t.member_key = d.member_key AND t.number = d.attempts ",
            "WHERE d.recipient = 1 AND d.state IN (0, 1, 2, 3) AND d.waits_since <= ?1 ",
            "AND r.deleted_at IS NULL AND p.left_at IS NULL AND p.joined_sequence < d.sequence ",
            "AND (d.state <> 2 OR t.lapsed_at IS NOT NULL OR t.started_at <= ?1) "
            $(, $more)*
        )
    };
}

const OVERDUE: &str = overdue!("ORDER BY d.waits_since LIMIT ?2");
const IS_OVERDUE: &str = overdue!("AND d.room_key = ?2 AND d.sequence = ?3 AND d.member_key = ?4");

/// The deliveries that have waited longest, since `moment` or longer: an index walk over nothing but open ones.
pub async fn overdue(tx: &mut Reader, moment: Timestamp) -> Result<Vec<(RoomId, Place)>, StoreError> {
    let rows = tx.query(OVERDUE, params![moment.as_micros(), BATCH]).await?;
    rows.iter()
        .map(|row| {
            let place = Place { room_key: row.int(1)?, sequence: row.int(2)?, member_key: row.int(3)? };
            Ok((RoomId(row.id(0)?), place))
        })
        .collect()
}

/// Whether [`overdue()`] still holds for this one.
pub async fn is_overdue(tx: &mut Reader, place: Place, moment: Timestamp) -> Result<bool, StoreError> {
    let values = params![moment.as_micros(), place.room_key, place.sequence, place.member_key];
    Ok(tx.query_opt(IS_OVERDUE, values).await?.is_some())
}

/// Has a dead letter delivered again; false when it is none. Its attempts stay, and none of them counts any more.
pub async fn redeliver(tx: &mut Writer, place: Place, by_key: i64, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE deliveries SET state = 0, pushed_at = NULL, served_at = NULL, picked_up_at = NULL, \
                       finished_at = NULL, reason = NULL, counted_attempts = 0, waits_since = ?4, redelivered_by = ?5 \
                       WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND recipient = 1 AND state = 6";
    let Place { room_key, sequence, member_key } = place;
    if tx.execute(SQL, params![room_key, sequence, member_key, at.as_micros(), by_key]).await? != 1 {
        return Ok(false);
    }
    let from = Some(DeliveryState::DeadLettered);
    participants::tally(tx, room_key, member_key, from, DeliveryState::Stored).await?;
    Ok(true)
}

/// Which dead letters to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterQuery {
    /// Who asks: it sees those of the rooms that it is in, and of its own agents.
    pub user: IdentityId,
    /// Of this agent only.
    pub agent: Option<IdentityId>,
    /// Of this room only.
    pub room: Option<RoomId>,
    /// After this one: room, member, sequence.
    pub after: Option<(i64, i64, i64)>,
    /// Most rows.
    pub limit: i64,
}

/// Members with dead letters in rooms that a user is in, or who are its agents: the newest rooms first.
const PLACES: &str = "SELECT room_key, member_key FROM (\
    SELECT p.room_key AS room_key, p.member_key AS member_key \
    FROM participants u CROSS JOIN participants p CROSS JOIN rooms r \
    WHERE u.member_key = ?1 AND u.left_at IS NULL AND u.status = 'active' \
    AND p.room_key = u.room_key AND p.dead_lettered > 0 AND p.left_at IS NULL \
    AND r.key = p.room_key AND r.deleted_at IS NULL \
    UNION \
    SELECT p.room_key AS room_key, p.member_key AS member_key \
    FROM identities a CROSS JOIN participants p CROSS JOIN rooms r \
    WHERE a.owner_key = ?1 AND a.kind = 1 AND a.deleted_at IS NULL \
    AND p.member_key = a.key AND p.dead_lettered > 0 AND p.left_at IS NULL \
    AND r.key = p.room_key AND r.deleted_at IS NULL) AS places \
    WHERE (room_key < ?2 OR (room_key = ?2 AND member_key >= ?3)) \
    AND (room_key = ?4 OR ?4 < 0) AND (member_key = ?5 OR ?5 < 0) \
    ORDER BY room_key DESC, member_key LIMIT ?6";

/// SQLite keeps the order of a CROSS JOIN: else it might begin with a small table, and sort.
const OF_MEMBER: &str = concat!(
    "SELECT d.sequence, m.id, d.stored_at, d.finished_at, d.reason, d.attempts, t.error, r.id, ",
    profile_columns!("s"),
    ", ",
    profile_columns!("a"),
    " FROM deliveries d CROSS JOIN messages m CROSS JOIN rooms r CROSS JOIN identities s CROSS JOIN identities a \
     LEFT JOIN attempts t ON t.room_key = d.room_key AND t.sequence = d.sequence \
     AND t.member_key = d.member_key AND t.number = d.attempts \
     WHERE d.member_key = ?1 AND d.room_key = ?2 AND d.recipient = 1 AND d.state = 6 AND d.sequence > ?3 \
     AND m.room_key = d.room_key AND m.sequence = d.sequence AND r.key = d.room_key \
     AND s.key = m.sender_key AND a.key = d.member_key ORDER BY d.sequence LIMIT ?4"
);

/// A page of dead letters, each with its position: those of the newest rooms first, in a room by agent and then oldest
/// first. It costs the user's rooms and the page.
pub async fn list(tx: &mut Reader, query: DeadLetterQuery) -> Result<Vec<(DeadLetter, (i64, i64, i64))>, StoreError> {
    const ROOM: &str = "SELECT key FROM rooms WHERE id = ?1";
    let Some(user) = participants::member_key(tx, query.user).await? else { return Ok(Vec::new()) };
    let agent = match query.agent {
        None => -1,
        Some(agent) => match participants::member_key(tx, agent).await? {
            Some(key) => key,
            None => return Ok(Vec::new()),
        },
    };
    let only = match query.room {
        None => -1,
        Some(room) => match tx.query_opt(ROOM, params![room]).await? {
            Some(row) => row.int(0)?,
            None => return Ok(Vec::new()),
        },
    };
    let (room, member, sequence) = query.after.unwrap_or((i64::MAX, 0, 0));
    let places = tx.query(PLACES, params![user, room, member, only, agent, query.limit]).await?;
    let mut found = Vec::new();
    for place in places {
        let (room_key, member_key) = (place.int(0)?, place.int(1)?);
        let after = if (room_key, member_key) == (room, member) { sequence } else { 0 };
        let left = query.limit - i64::try_from(found.len()).unwrap_or(i64::MAX);
        if left <= 0 {
            break;
        }
        for mut row in tx.query(OF_MEMBER, params![member_key, room_key, after, left]).await? {
            let (sender, agent): (Profile, Profile) = (profile(&mut row, 8)?, profile(&mut row, 8 + PROFILE_COLUMNS)?);
            let stored_at = row.int(2)?;
            let position = (room_key, member_key, row.int(0)?);
            let letter = DeadLetter {
                room: RoomId(row.id(7)?),
                message: MessageId(row.id(1)?),
                sender,
                agent,
                stored_at: Timestamp::from_micros(stored_at),
                dead_at: Timestamp::from_micros(row.opt_int(3)?.unwrap_or(stored_at)),
                attempts: row.int(5)?,
                reason: row.take_opt_text(4)?.unwrap_or_default(),
                last_error: row.take_opt_text(6)?,
            };
            found.push((letter, position));
        }
    }
    Ok(found)
}

/// The statements that must not cost more than they show, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> [&'static str; 3] {
    [OVERDUE, IS_OVERDUE, OF_MEMBER]
}

//! Deliveries: what became of a message for one agent, and its attempts.

use bandstand_domain::dead_letter::{self, DeadLetterReason, Ended, GIVEN_UP};
use bandstand_domain::delivery::{AttemptState, DeliveryState, SUPERSEDED, StatusFilter};
use std::sync::LazyLock;

use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::chunks::{self, CHUNK, sized};
use crate::walk::{self, Window};
use crate::{Param, Reader, StoreError, Writer, columns::unknown, params, participants};

/// Most deliveries that one operation ends: it must not hold up its neighbours.
pub const BATCH: i64 = 500;

/// Which delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The room's key.
    pub room_key: i64,
    /// The message.
    pub sequence: i64,
    /// The member's key.
    pub member_key: i64,
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether the message mentions the agent; else the agent merely marked it.
    pub recipient: bool,
    /// The state.
    pub state: DeliveryState,
    /// The newest attempt: its number, and how it stands.
    pub last_attempt: Option<(i64, AttemptState)>,
    /// The newest attempt has lapsed.
    pub lapsed: bool,
    /// Attempts that count toward the limit.
    pub counted: i64,
}

impl Standing {
    /// The counted attempts once a new one has begun.
    pub fn counted_after_claim(&self) -> i64 {
        let supersedes = self.last_attempt.is_some_and(|(_, state)| state == AttemptState::Processing);
        let one_more = supersedes && dead_letter::counts(Ended::Superseded { lapsed: self.lapsed });
        self.counted + i64::from(one_more)
    }
}

/// Stores that a message is to be delivered to a member.
pub async fn insert(tx: &mut Writer, place: Place, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at, waits_since) \
                       VALUES (?1, ?2, ?3, 1, 0, ?4, ?4)";
    tx.execute(SQL, params![place.room_key, place.sequence, place.member_key, at.as_micros()]).await?;
    participants::tally(tx, place.room_key, place.member_key, None, DeliveryState::Stored).await
}

static INSERT_ALL: LazyLock<[String; 2]> = LazyLock::new(|| {
    sized(
        "INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at, waits_since) \
         SELECT ?1, ?2, i.key, 1, 0, ?3, ?3 FROM identities i WHERE i.key IN ",
        4,
    )
});
static TALLY_ALL: LazyLock<[String; 2]> =
    LazyLock::new(|| sized("UPDATE participants SET stored = stored + 1 WHERE room_key = ?1 AND member_key IN ", 2));

/// Stores that a message is to be delivered to each of these members, who are different ones.
pub async fn insert_all(
    tx: &mut Writer,
    room_key: i64,
    sequence: i64,
    members: &[i64],
    at: Timestamp,
) -> Result<(), StoreError> {
    for chunk in members.chunks(CHUNK) {
        if let Some((size, values)) = chunks::parameters(params![room_key, sequence, at.as_micros()], chunk) {
            tx.execute(&INSERT_ALL[size], &values).await?;
        }
        if let Some((size, values)) = chunks::parameters(params![room_key], chunk) {
            tx.execute(&TALLY_ALL[size], &values).await?;
        }
    }
    Ok(())
}

/// How a delivery stands; `None` when the message was never delivered to the member nor marked by it.
pub async fn standing(tx: &mut Reader, place: Place) -> Result<Option<Standing>, StoreError> {
    const SQL: &str = "SELECT d.recipient, d.state, d.attempts, t.state, t.lapsed_at, d.counted_attempts \
                       FROM deliveries d \
                       LEFT JOIN attempts t ON t.room_key = d.room_key AND t.sequence = d.sequence \
                       AND t.member_key = d.member_key AND t.number = d.attempts \
                       WHERE d.room_key = ?1 AND d.sequence = ?2 AND d.member_key = ?3";
    let Some(row) = tx.query_opt(SQL, params![place.room_key, place.sequence, place.member_key]).await? else {
        return Ok(None);
    };
    let state = row.int(1)?;
    let last_attempt = match row.opt_int(3)? {
        None => None,
        Some(code) => Some((row.int(2)?, AttemptState::from_code(code).ok_or_else(|| unknown("attempt state", code))?)),
    };
    Ok(Some(Standing {
        recipient: row.bool(0)?,
        state: DeliveryState::from_code(state).ok_or_else(|| unknown("delivery state", state))?,
        last_attempt,
        lapsed: row.opt_int(4)?.is_some(),
        counted: row.int(5)?,
    }))
}

/// Opens attempt `number` at the room's sequence `now`, ending the one in `supersedes`. `before` is how the delivery
/// stood; a member that is no recipient gets its row here.
pub async fn begin(
    tx: &mut Writer,
    place: Place,
    before: Option<Standing>,
    number: i64,
    supersedes: Option<i64>,
    now: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    const CREATE: &str = "INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at, \
                          picked_up_at, attempts, waits_since) VALUES (?1, ?2, ?3, 0, 2, ?4, ?4, 1, ?4)";
    // What had ended starts anew when it is taken up again.
    const UPDATE: &str = "UPDATE deliveries SET state = 2, attempts = ?5, finished_at = NULL, reason = NULL, \
                          picked_up_at = COALESCE(picked_up_at, ?4), \
                          counted_attempts = CASE WHEN state IN (0, 1, 2, 3) THEN ?6 ELSE 0 END, \
                          waits_since = CASE WHEN state IN (0, 1, 2, 3) THEN waits_since ELSE ?4 END \
                          WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3";
    const ATTEMPT: &str = "INSERT INTO attempts \
                           (room_key, sequence, member_key, number, state, started_at, began_sequence, seen_at) \
                           VALUES (?1, ?2, ?3, ?5, 0, ?4, ?6, ?4)";
    let Place { room_key, sequence, member_key } = place;
    if let Some(old) = supersedes {
        close(tx, place, old, AttemptState::Failed, Some(SUPERSEDED), at).await?;
    }
    match before {
        None => {
            participants::note_work(tx, room_key, member_key).await?;
            tx.execute(CREATE, params![room_key, sequence, member_key, at.as_micros()]).await?
        }
        Some(before) => {
            let counted = before.counted_after_claim();
            tx.execute(UPDATE, params![room_key, sequence, member_key, at.as_micros(), number, counted]).await?
        }
    };
    tx.execute(ATTEMPT, params![room_key, sequence, member_key, at.as_micros(), number, now]).await?;
    if let Some(before) = before.filter(|before| before.recipient) {
        participants::tally(tx, room_key, member_key, Some(before.state), DeliveryState::Processing).await?;
    }
    Ok(())
}

/// How a running attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The work is done.
    Processed,
    /// It failed, with this error, and is served again.
    Failed(&'a str),
    /// It failed, with this error, and once too often.
    Exhausted(&'a str),
}

/// Ends the running attempt `number`.
pub async fn end(
    tx: &mut Writer,
    place: Place,
    before: Standing,
    number: i64,
    outcome: Outcome<'_>,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE deliveries SET state = ?4, finished_at = ?5, reason = ?6, \
                       counted_attempts = counted_attempts + ?7 \
                       WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3";
    let (attempt, error, state, reason) = match outcome {
        Outcome::Processed => (AttemptState::Success, None, DeliveryState::Processed, None),
        Outcome::Failed(error) => (AttemptState::Failed, Some(error), DeliveryState::Failed, Some(error)),
        Outcome::Exhausted(error) => {
            let reason = DeadLetterReason::Attempts.as_str();
            (AttemptState::Failed, Some(error), DeliveryState::DeadLettered, Some(reason))
        }
    };
    close(tx, place, number, attempt, error, at).await?;
    let Place { room_key, sequence, member_key } = place;
    let counted = i64::from(error.is_some() && dead_letter::counts(Ended::Failed));
    let values = params![room_key, sequence, member_key, state.code(), at.as_micros(), reason, counted];
    tx.execute(SQL, values).await?;
    if before.recipient {
        participants::tally(tx, room_key, member_key, Some(before.state), state).await?;
    }
    Ok(())
}

/// Gives an open delivery up, and with it the attempt that runs, if one does.
pub async fn give_up(
    tx: &mut Writer,
    place: Place,
    before: Standing,
    reason: DeadLetterReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE deliveries SET state = 6, finished_at = ?4, reason = ?5, counted_attempts = ?6 \
                       WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3";
    let Place { room_key, sequence, member_key } = place;
    if let Some((number, AttemptState::Processing)) = before.last_attempt {
        close(tx, place, number, AttemptState::Failed, Some(GIVEN_UP), at).await?;
    }
    let counted = match reason {
        DeadLetterReason::Attempts => before.counted_after_claim(),
        DeadLetterReason::Age => before.counted,
    };
    tx.execute(SQL, params![room_key, sequence, member_key, at.as_micros(), reason.as_str(), counted]).await?;
    participants::tally(tx, room_key, member_key, Some(before.state), DeliveryState::DeadLettered).await
}

/// Ends an attempt, and notes whether its agent posted a text meanwhile.
async fn close(
    tx: &mut Writer,
    place: Place,
    number: i64,
    state: AttemptState,
    error: Option<&str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE attempts SET state = ?5, completed_at = ?6, error = ?7, \
                       replied = CASE WHEN began_sequence IS NULL THEN NULL \
                       WHEN EXISTS (SELECT 1 FROM participants p WHERE p.room_key = ?1 AND p.member_key = ?3 \
                       AND p.said_sequence > attempts.began_sequence) THEN 1 ELSE 0 END \
                       WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND number = ?4";
    let values =
        params![place.room_key, place.sequence, place.member_key, number, state.code(), at.as_micros(), error,];
    tx.execute(SQL, values).await.map(drop)
}

/// Notes that the agent of attempt `number` said that the message is not for it, and perhaps why.
pub async fn declined(tx: &mut Writer, place: Place, number: i64, reason: Option<&str>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE attempts SET declined = 1, decline_reason = ?5 \
                       WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND number = ?4";
    tx.execute(SQL, params![place.room_key, place.sequence, place.member_key, number, reason]).await.map(drop)
}

/// How a message reached an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reached {
    /// Pushed over its socket.
    Pushed,
    /// Returned by `/messages/next`.
    Served,
}

/// What noting that a message reached its recipient changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// Something was written.
    pub wrote: bool,
    /// The delivery became `delivered`.
    pub became_delivered: bool,
}

/// Notes that a message reached its recipient, the first time in this way.
pub async fn reached(
    tx: &mut Writer,
    room_key: i64,
    sequence: i64,
    recipient: IdentityId,
    how: Reached,
    at: Timestamp,
) -> Result<Noted, StoreError> {
    const PUSHED: &str = "UPDATE deliveries SET pushed_at = ?4, \
                          state = CASE WHEN state = 0 THEN 1 ELSE state END \
                          WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND recipient = 1 \
                          AND pushed_at IS NULL";
    const SERVED: &str = "UPDATE deliveries SET served_at = ?4, \
                          state = CASE WHEN state = 0 THEN 1 ELSE state END \
                          WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND recipient = 1 \
                          AND served_at IS NULL";
    // What was open for somebody who left ended then, even where that is not yet written.
    let Some(member_key) = participants::still_there(tx, room_key, recipient, sequence).await? else {
        return Ok(Noted::default());
    };
    let place = Place { room_key, sequence, member_key };
    let Some(before) = standing(tx, place).await? else { return Ok(Noted::default()) };
    let sql = match how {
        Reached::Pushed => PUSHED,
        Reached::Served => SERVED,
    };
    let wrote = tx.execute(sql, params![room_key, sequence, member_key, at.as_micros()]).await? == 1;
    let became_delivered = wrote && before.state == DeliveryState::Stored;
    if became_delivered {
        participants::tally(tx, room_key, member_key, Some(DeliveryState::Stored), DeliveryState::Delivered).await?;
    }
    Ok(Noted { wrote, became_delivered })
}

/// Ends up to [`BATCH`] open deliveries of a member up to sequence `up_to` as cancelled; the sequences of their messages.
/// The tallies are moved by [`participants::leave`].
pub async fn cancel_open(
    tx: &mut Writer,
    room_key: i64,
    member_key: i64,
    up_to: i64,
    reason: &str,
    at: Timestamp,
) -> Result<Vec<i64>, StoreError> {
    const DELIVERY: &str = "UPDATE deliveries SET state = 5, finished_at = ?4, reason = ?5 \
                            WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3";
    const ATTEMPT: &str = "UPDATE attempts SET state = 2, completed_at = ?4, error = ?5 \
                           WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 AND state = 0";
    let window = Window { before: up_to.saturating_add(1), ..Window::oldest(BATCH) };
    let open = walk::deliveries(tx, room_key, member_key, StatusFilter::Unprocessed, window).await?;
    let rows: Vec<Vec<Param<'_>>> =
        open.iter().map(|sequence| params![room_key, *sequence, member_key, at.as_micros(), reason].to_vec()).collect();
    tx.execute_many(DELIVERY, &rows).await?;
    tx.execute_many(ATTEMPT, &rows).await?;
    Ok(open)
}

/// Whether an operation that ended so many deliveries may have left others.
pub fn is_full(ended: &[i64]) -> bool {
    i64::try_from(ended.len()).is_ok_and(|ended| ended >= BATCH)
}

/// A removal whose open deliveries are not all ended yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The room.
    pub room: RoomId,
    /// Its key.
    pub room_key: i64,
    /// Who was removed.
    pub member_key: i64,
    /// Deliveries up to here end.
    pub up_to: i64,
    /// Why.
    pub reason: String,
}

/// Remembers that a removal has deliveries left to end.
pub async fn remember_removal(
    tx: &mut Writer,
    room_key: i64,
    member_key: i64,
    up_to: i64,
    reason: &str,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO removals (room_key, member_key, up_to, reason) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT (room_key, member_key) DO UPDATE SET up_to = excluded.up_to, reason = excluded.reason";
    tx.execute(SQL, params![room_key, member_key, up_to, reason]).await.map(drop)
}

/// A removal with deliveries left to end, if there is one.
pub async fn next_removal(tx: &mut Reader) -> Result<Option<Removal>, StoreError> {
    const SQL: &str = "SELECT r.id, v.room_key, v.member_key, v.up_to, v.reason FROM removals v \
                       JOIN rooms r ON r.key = v.room_key ORDER BY v.room_key, v.member_key LIMIT 1";
    let Some(mut row) = tx.query_opt(SQL, params![]).await? else { return Ok(None) };
    Ok(Some(Removal {
        room: RoomId(row.id(0)?),
        room_key: row.int(1)?,
        member_key: row.int(2)?,
        up_to: row.int(3)?,
        reason: row.take_text(4)?,
    }))
}

/// Forgets a removal whose deliveries are all ended.
pub async fn forget_removal(tx: &mut Writer, room_key: i64, member_key: i64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM removals WHERE room_key = ?1 AND member_key = ?2";
    tx.execute(SQL, params![room_key, member_key]).await.map(drop)
}

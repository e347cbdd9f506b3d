//! What is recorded about a message's deliveries, as the rule in `domain::ledger` takes it.

use bandstand_domain::delivery::{AttemptState, DeliveryState};
use bandstand_domain::execution::Stopped;
use bandstand_domain::identity::Profile;
use bandstand_domain::ledger::{AttemptFacts, DeliveryFacts, Known, Limited, Outcome, Run, Stay};
use bandstand_domain::message::Mention;
use bandstand_wire::ids::{IdentityId, MessageId};
use bandstand_wire::time::Timestamp;

use crate::columns::{PROFILE_COLUMNS, profile, profile_columns, unknown};
use crate::messages::read_list;
use crate::{Param, Reader, Row, StoreError, params};

/// Of many attempts at one message, the newest are told.
const ATTEMPTS: i64 = 20;

/// The reasons of deliveries that are ended in the background, for those whose rows do not say it yet.
#[derive(Clone, Copy, Debug)]
pub struct Endings {
    /// The recipient was removed.
    pub removed: &'static str,
    /// The recipient was deleted.
    pub deleted: &'static str,
    /// It was given up for its age: what the reason of such a delivery is.
    pub expired: &'static str,
}

/// What is recorded of one member and one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who.
    pub member: Profile,
    /// Its key; the order of [`of_message`].
    pub member_key: i64,
    /// Whether it was in the room when the message was posted.
    pub stay: Stay,
    /// Its delivery.
    pub delivery: Option<DeliveryFacts>,
    /// Its connections, as they were written down.
    pub known: Known,
    /// When a newer connection replaced an older one.
    pub superseded_at: Option<Timestamp>,
    /// When its requests were refused for being too many.
    pub limited: Option<Limited>,
    /// A stop that holds for it in this room.
    pub stopped: Option<Stopped>,
    /// Its last sign of life in the room that was written down.
    pub active_at: Option<Timestamp>,
    /// Another message of the room that it works on.
    pub busy_with: Option<MessageId>,
}

/// A message, and since when connections are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The room's key.
    pub room_key: i64,
    /// The message.
    pub sequence: i64,
    /// When the message was posted.
    pub posted_at: Timestamp,
    /// What the reasons are called.
    pub endings: &'a Endings,
}

/// The columns of a [`Record`] under the aliases `i` (who), `d` (its delivery), `p` (its row in the room), `s` (who
/// stopped it), `g` (what was seen of it) and `u` (the run that saw it).
macro_rules! record_columns {
    () => {
        concat!(
            profile_columns!("i"),
            ", i.key, i.inserted_at, i.deleted_at, p.joined_sequence, p.joined_at, p.left_at, p.stopped_at, p.active_at, \
             p.processing, g.connected_at, g.gone_at, g.superseded_at, g.limited_first_at, g.limited_last_at, \
             g.limited_until, u.alive_at, u.ended_at, u.found_at, d.recipient, d.state, d.stored_at, d.pushed_at, \
             d.served_at, d.finished_at, d.reason, d.attempts, \
             (SELECT applied_at FROM schema_migrations WHERE number = 7), ",
            profile_columns!("s")
        )
    };
}

/// What stands beside a member and its delivery.
macro_rules! record_joins {
    () => {
        " LEFT JOIN identities s ON s.key = p.stopped_by LEFT JOIN sightings g ON g.agent_key = i.key \
         LEFT JOIN runs u ON u.key = g.run_key "
    };
}

const OF_MESSAGE: &str = concat!(
    "SELECT ",
    record_columns!(),
    " FROM deliveries d JOIN identities i ON i.key = d.member_key \
     LEFT JOIN participants p ON p.room_key = d.room_key AND p.member_key = d.member_key",
    record_joins!(),
    "WHERE d.room_key = ?1 AND d.sequence = ?2 AND d.member_key > ?3 ORDER BY d.member_key LIMIT ?4"
);

macro_rules! of_member {
    ($which:literal) => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM identities i LEFT JOIN participants p ON p.room_key = ?1 AND p.member_key = i.key \
             LEFT JOIN deliveries d ON d.room_key = ?1 AND d.sequence = ?2 AND d.member_key = i.key",
            record_joins!(),
            "WHERE ",
            $which,
            // Of somebody who never was in the room nothing is told, not even that there is such a one.
            " AND p.member_key IS NOT NULL"
        )
    };
}

const BY_ID: &str = of_member!("i.id = ?3");
const BY_HANDLE: &str = of_member!("i.handle = ?3 AND i.deleted_at IS NULL");

const NEWEST_ATTEMPTS: &str = "SELECT number, state, started_at, completed_at, lapsed_at, error, declined, decline_reason, replied, began_sequence \
                        FROM attempts WHERE room_key = ?1 AND sequence = ?2 AND member_key = ?3 \
                        ORDER BY number DESC LIMIT ?4";

const BUSY_WITH: &str = "SELECT m.id FROM deliveries d \
                         JOIN messages m ON m.room_key = d.room_key AND m.sequence = d.sequence \
                         WHERE d.member_key = ?1 AND d.room_key = ?2 AND d.recipient = 1 AND d.state = 2 \
                         ORDER BY d.sequence LIMIT 1";

const STAY: &str = "SELECT left_sequence, left_at FROM stays \
                    WHERE room_key = ?1 AND member_key = ?2 AND joined_sequence < ?3 \
                    ORDER BY joined_sequence DESC LIMIT 1";

/// The statements, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> [&'static str; 6] {
    [OF_MESSAGE, BY_ID, BY_HANDLE, NEWEST_ATTEMPTS, BUSY_WITH, STAY]
}

/// What is recorded of those that a message was delivered to, or who marked it; by key, after `after`.
pub async fn of_message(
    tx: &mut Reader,
    subject: Subject<'_>,
    after: i64,
    limit: i64,
) -> Result<Vec<Record>, StoreError> {
    let rows = tx.query(OF_MESSAGE, params![subject.room_key, subject.sequence, after, limit]).await?;
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        records.push(record(tx, subject, row).await?);
    }
    Ok(records)
}

/// Which participant is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// By its id.
    Id(IdentityId),
    /// By its folded handle.
    Handle(String),
}

/// What is recorded of one who is in the message's room, or ever was.
pub async fn of_member(tx: &mut Reader, subject: Subject<'_>, asked: &Asked) -> Result<Option<Record>, StoreError> {
    let (sql, who) = match asked {
        Asked::Id(id) => (BY_ID, Param::from(*id)),
        Asked::Handle(handle) => (BY_HANDLE, Param::from(handle)),
    };
    match tx.query_opt(sql, &[subject.room_key.into(), subject.sequence.into(), who]).await? {
        Some(row) => Ok(Some(record(tx, subject, row).await?)),
        None => Ok(None),
    }
}

/// What the ledger needs of a message itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The sender's key.
    pub sender_key: i64,
    /// When it was posted.
    pub posted_at: Timestamp,
    /// Whom it names.
    pub mentions: Vec<Mention>,
}

/// A message's head.
pub async fn head(tx: &mut Reader, room_key: i64, sequence: i64) -> Result<Option<Head>, StoreError> {
    const SQL: &str = "SELECT sender_key, inserted_at, mentions FROM messages WHERE room_key = ?1 AND sequence = ?2";
    let Some(row) = tx.query_opt(SQL, params![room_key, sequence]).await? else { return Ok(None) };
    let posted_at = Timestamp::from_micros(row.int(1)?);
    Ok(Some(Head { sender_key: row.int(0)?, posted_at, mentions: read_list(row.text(2)?)? }))
}

fn moment(row: &Row, column: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(row.opt_int(column)?.map(Timestamp::from_micros))
}

/// The first column of `record_columns` after the profile.
const FIRST: usize = PROFILE_COLUMNS;
/// Where the delivery begins in `record_columns`.
const DELIVERY: usize = FIRST + 18;

async fn record(tx: &mut Reader, subject: Subject<'_>, mut row: Row) -> Result<Record, StoreError> {
    let member_key = row.int(FIRST)?;
    let registered_at = Timestamp::from_micros(row.int(FIRST + 1)?);
    let deleted_at = moment(&row, FIRST + 2)?;
    let joined = row.opt_int(FIRST + 3)?.zip(moment(&row, FIRST + 4)?);
    let left_at = moment(&row, FIRST + 5)?;
    let standing = Standing { joined, left_at, deleted_at };
    let delivery = delivery(tx, subject, member_key, &mut row, standing).await?;
    let may_wait = delivery.as_ref().is_some_and(|one| {
        matches!(one.state, DeliveryState::Stored | DeliveryState::Delivered) && one.ending.is_none()
    });
    let busy_with = match may_wait && row.opt_int(FIRST + 8)?.unwrap_or(0) > 0 {
        true => tx.query_opt(BUSY_WITH, params![member_key, subject.room_key]).await?,
        false => None,
    };
    let run = match moment(&row, FIRST + 15)? {
        Some(alive_at) => {
            Some(Run { alive_at, ended_at: moment(&row, FIRST + 16)?, found_at: moment(&row, FIRST + 17)? })
        }
        None => None,
    };
    let limited = match (moment(&row, FIRST + 12)?, moment(&row, FIRST + 13)?, moment(&row, FIRST + 14)?) {
        (Some(first_at), Some(last_at), Some(until)) => Some(Limited { first_at, last_at, until }),
        _ => None,
    };
    let gone_at = moment(&row, FIRST + 10)?;
    let stopped = match moment(&row, FIRST + 6)? {
        Some(at) => Some(Stopped { at, by: profile(&mut row, DELIVERY + 9)? }),
        None => None,
    };
    Ok(Record {
        member_key,
        stay: stay(tx, subject, member_key, joined, left_at).await?,
        delivery,
        known: Known {
            registered_at,
            recorded_since: Timestamp::from_micros(row.int(DELIVERY + 8)?),
            newest: moment(&row, FIRST + 9)?.map(|begun| (begun, gone_at)),
            run,
        },
        superseded_at: moment(&row, FIRST + 11)?,
        limited,
        stopped,
        active_at: moment(&row, FIRST + 7)?,
        busy_with: busy_with.map(|found| found.id(0)).transpose()?.map(MessageId),
        member: profile(&mut row, 0)?,
    })
}

/// How a member stands to the room.
#[derive(Clone, Copy)]
struct Standing {
    joined: Option<(i64, Timestamp)>,
    left_at: Option<Timestamp>,
    deleted_at: Option<Timestamp>,
}

impl Standing {
    /// Deliveries that were open when the recipient left, or was deleted, ended then, even where a background job is
    /// yet to write it. When it is back already, the moment of its return stands for the unknown one. What it took up
    /// since its return it has.
    fn ending(self, subject: Subject<'_>, recipient: bool, began: Option<i64>) -> Option<(Timestamp, &'static str)> {
        let Endings { removed, deleted, .. } = *subject.endings;
        match (self.deleted_at, self.left_at, self.joined) {
            (Some(at), _, _) => Some((at, deleted)),
            (None, Some(at), _) => Some((at, removed)),
            (None, None, Some((sequence, at))) => {
                let is_older = recipient && subject.sequence <= sequence;
                (is_older && began.is_none_or(|began| began < sequence)).then_some((at, removed))
            }
            (None, None, None) => None,
        }
    }
}

/// Whether a member was in the room when the message was posted.
async fn stay(
    tx: &mut Reader,
    subject: Subject<'_>,
    member_key: i64,
    joined: Option<(i64, Timestamp)>,
    left_at: Option<Timestamp>,
) -> Result<Stay, StoreError> {
    let later = match joined {
        Some((sequence, _)) if sequence < subject.sequence && left_at.is_none() => return Ok(Stay::Then),
        Some((sequence, at)) if sequence >= subject.sequence => Some(at),
        _ => None,
    };
    let earlier = tx.query_opt(STAY, params![subject.room_key, member_key, subject.sequence]).await?;
    Ok(match earlier {
        Some(row) if row.int(0)? >= subject.sequence => Stay::Then,
        Some(row) => Stay::Not { joined_at: later, left_at: moment(&row, 1)? },
        // It left before stays were written down: its own row tells of that one.
        None if later.is_none() && left_at.is_some_and(|at| at >= subject.posted_at) => Stay::Then,
        None => Stay::Not { joined_at: later, left_at: left_at.filter(|_| later.is_none()) },
    })
}

async fn delivery(
    tx: &mut Reader,
    subject: Subject<'_>,
    member_key: i64,
    row: &mut Row,
    standing: Standing,
) -> Result<Option<DeliveryFacts>, StoreError> {
    let Some(code) = row.opt_int(DELIVERY + 1)? else { return Ok(None) };
    let state = DeliveryState::from_code(code).ok_or_else(|| unknown("delivery state", code))?;
    let attempts = row.int(DELIVERY + 7)?;
    let mut newest = Vec::new();
    let mut began = None;
    if attempts > 0 {
        let values = params![subject.room_key, subject.sequence, member_key, ATTEMPTS];
        for row in tx.query(NEWEST_ATTEMPTS, values).await? {
            began = began.max(row.opt_int(9)?);
            newest.push(attempt(row)?);
        }
        newest.reverse();
    }
    let reason = row.take_opt_text(DELIVERY + 6)?;
    let recipient = row.bool(DELIVERY)?;
    Ok(Some(DeliveryFacts {
        recipient,
        state,
        stored_at: Timestamp::from_micros(row.int(DELIVERY + 2)?),
        pushed_at: moment(row, DELIVERY + 3)?,
        served_at: moment(row, DELIVERY + 4)?,
        finished_at: moment(row, DELIVERY + 5)?,
        expired: reason.as_deref() == Some(subject.endings.expired),
        reason,
        attempts,
        newest,
        ending: standing.ending(subject, recipient, began),
    }))
}

fn attempt(mut row: Row) -> Result<AttemptFacts, StoreError> {
    let state = row.int(1)?;
    Ok(AttemptFacts {
        number: row.int(0)?,
        state: AttemptState::from_code(state).ok_or_else(|| unknown("attempt state", state))?,
        started_at: Timestamp::from_micros(row.int(2)?),
        completed_at: moment(&row, 3)?,
        lapsed_at: moment(&row, 4)?,
        outcome: Outcome {
            declined: row.bool(6)?,
            replied: row.opt_int(8)?.map(|replied| replied != 0),
            reason: row.take_opt_text(7)?,
        },
        error: row.take_opt_text(5)?,
    })
}

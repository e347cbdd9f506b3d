//! Who is in a room, and what each member's tallies say.

use std::collections::HashSet;
use std::sync::LazyLock;

use bandstand_domain::delivery::{DeliveryState, StatusFilter};
use bandstand_domain::identity::Profile;
use bandstand_domain::membership::{Participant, ParticipantStatus, Role};
use bandstand_domain::room::Room;
use bandstand_wire::ids::{ExecutionId, IdentityId, IdentityKind, RoomId};
use bandstand_wire::time::Timestamp;

use crate::chunks::{self, CHUNK, sized};
use crate::columns::{PROFILE_COLUMNS, kind_code, profile, profile_columns, unknown};
use crate::rooms::{ROOM_COLUMNS, read_room, room_columns};
use crate::{Param, Reader, Row, StoreError, Writer, params};

/// What somebody may do in a room, and the keys that queries about it need.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The room.
    pub room: Room,
    /// Its key.
    pub room_key: i64,
    /// Its sequence when this was read.
    pub sequence: i64,
    /// Who asks.
    pub member: Profile,
    /// Its key.
    pub member_key: i64,
    /// Its own row; `None` for a user who reads because an agent of its takes part.
    pub membership: Option<Membership>,
}

impl Access {
    /// Whether this is an agent that is stopped in the room.
    pub fn is_stopped(&self) -> bool {
        self.membership.is_some_and(|own| own.stopped)
    }
}

/// Somebody's own row in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// What it may do.
    pub role: Role,
    /// Its standing.
    pub status: ParticipantStatus,
    /// The room's sequence when it joined: open deliveries up to here ended when it left before.
    pub joined_sequence: i64,
    /// Its deliveries by state.
    pub tallies: Tallies,
    /// Whether it is stopped here: an agent that may neither take up work nor post.
    pub stopped: bool,
}

/// How many deliveries of a member are in each state, and how many rows it sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    by_state: [i64; DeliveryState::ALL.len()],
    sent: i64,
}

impl Tallies {
    /// How many messages a list of this filter has in all.
    pub fn of(&self, filter: StatusFilter) -> i64 {
        filter.states().iter().map(|state| self.state(*state)).sum()
    }

    /// How many rows the member's context has in all.
    pub fn context(&self) -> i64 {
        self.of(StatusFilter::All) + self.sent
    }

    fn state(&self, state: DeliveryState) -> i64 {
        usize::try_from(state.code()).ok().and_then(|code| self.by_state.get(code)).copied().unwrap_or(0)
    }
}

/// Columns of a [`Membership`] under the alias `p`: all NULL where there is no row.
macro_rules! membership_columns {
    () => {
        "p.role, p.status, p.joined_sequence, p.stored, p.delivered, p.processing, p.failed, p.processed, p.cancelled, \
         p.dead_lettered, p.sent, p.stopped_sequence"
    };
}

fn role(text: &str) -> Result<Role, StoreError> {
    Role::parse(text).ok_or_else(|| unknown("role", text))
}

fn status(text: &str) -> Result<ParticipantStatus, StoreError> {
    ParticipantStatus::parse(text).ok_or_else(|| unknown("participant status", text))
}

fn membership(row: &Row, from: usize) -> Result<Option<Membership>, StoreError> {
    let Some(role_word) = row.opt_text(from)? else { return Ok(None) };
    let mut tallies = Tallies::default();
    for (state, count) in tallies.by_state.iter_mut().enumerate() {
        *count = row.int(from + 3 + state)?;
    }
    tallies.sent = row.int(from + 3 + DeliveryState::ALL.len())?;
    Ok(Some(Membership {
        role: role(role_word)?,
        status: status(row.text(from + 1)?)?,
        joined_sequence: row.int(from + 2)?,
        tallies,
        stopped: row.opt_int(from + 4 + DeliveryState::ALL.len())?.is_some(),
    }))
}

/// What `who` may do in `room`: a participant that is not blocked takes part; a user reads also where an agent of its
/// takes part. `None` when it may not even know that the room exists.
pub async fn access(
    tx: &mut Reader,
    who: IdentityId,
    kind: IdentityKind,
    room: RoomId,
) -> Result<Option<Access>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        room_columns!(),
        ", r.key, r.sequence, ",
        profile_columns!("i"),
        ", i.key, ",
        membership_columns!(),
        " FROM rooms r JOIN identities c ON c.key = r.creator_key JOIN identities i ON i.id = ?1 \
         LEFT JOIN participants p ON p.room_key = r.key AND p.member_key = i.key AND p.left_at IS NULL \
         WHERE r.id = ?2 AND r.deleted_at IS NULL AND i.deleted_at IS NULL AND i.kind = ?3"
    );
    let Some(mut row) = tx.query_opt(SQL, params![who, room, kind_code(kind)]).await? else { return Ok(None) };
    let after_profile = ROOM_COLUMNS + 2 + PROFILE_COLUMNS;
    let access = Access {
        room_key: row.int(ROOM_COLUMNS)?,
        sequence: row.int(ROOM_COLUMNS + 1)?,
        member_key: row.int(after_profile)?,
        membership: membership(&row, after_profile + 1)?.filter(|own| takes_part(kind, own.status)),
        room: read_room(&mut row, 0)?,
        member: profile(&mut row, ROOM_COLUMNS + 2)?,
    };
    let readable = access.membership.is_some()
        || (kind == IdentityKind::User && has_agent_in(tx, access.member_key, access.room_key).await?);
    Ok(readable.then_some(access))
}

fn takes_part(kind: IdentityKind, status: ParticipantStatus) -> bool {
    match kind {
        IdentityKind::Agent => status != ParticipantStatus::Blocked,
        IdentityKind::User => status == ParticipantStatus::Active,
    }
}

/// Whether a user owns an agent that is in the room.
async fn has_agent_in(tx: &mut Reader, user_key: i64, room_key: i64) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM identities a JOIN participants p ON p.member_key = a.key AND p.room_key = ?2 \
                       WHERE a.owner_key = ?1 AND a.kind = 1 AND a.deleted_at IS NULL AND p.left_at IS NULL LIMIT 1";
    Ok(tx.query_opt(SQL, params![user_key, room_key]).await?.is_some())
}

/// Which of a user's agents are in a room.
pub async fn agents_in(tx: &mut Reader, user: IdentityId, room_key: i64) -> Result<Vec<IdentityId>, StoreError> {
    const SQL: &str = "SELECT a.id FROM identities a JOIN participants p ON p.member_key = a.key AND p.room_key = ?2 \
                       WHERE a.owner_key = (SELECT key FROM identities WHERE id = ?1) AND a.kind = 1 \
                       AND a.deleted_at IS NULL AND p.left_at IS NULL ORDER BY a.id";
    let rows = tx.query(SQL, params![user, room_key]).await?;
    rows.iter().map(|row| Ok(IdentityId(row.id(0)?))).collect()
}

/// Columns of a [`Participant`] under the aliases `i` (who), `o` (its owner) and `p` (its row).
macro_rules! participant_columns {
    () => {
        concat!(profile_columns!("i"), ", o.id, p.role, p.status, p.joined_at, p.stopped_sequence")
    };
}

fn participant(row: &mut Row) -> Result<Participant, StoreError> {
    Ok(Participant {
        profile: profile(row, 0)?,
        owner: row.opt_id(PROFILE_COLUMNS)?.map(IdentityId),
        role: role(row.text(PROFILE_COLUMNS + 1)?)?,
        status: status(row.text(PROFILE_COLUMNS + 2)?)?,
        joined_at: Timestamp::from_micros(row.int(PROFILE_COLUMNS + 3)?),
        stopped: row.opt_int(PROFILE_COLUMNS + 4)?.is_some(),
    })
}

/// Where participants are read from.
macro_rules! participant_from {
    () => {
        " FROM participants p JOIN identities i ON i.key = p.member_key LEFT JOIN identities o ON o.key = i.owner_key \
         WHERE p.left_at IS NULL AND i.deleted_at IS NULL "
    };
}

/// Everybody in a room, in id order; empty when there is no such room.
pub async fn of_room(tx: &mut Reader, room: RoomId) -> Result<Vec<Participant>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        participant_columns!(),
        participant_from!(),
        "AND p.room_key = (SELECT key FROM rooms WHERE id = ?1 AND deleted_at IS NULL) ORDER BY i.id"
    );
    tx.query(SQL, params![room]).await?.iter_mut().map(participant).collect()
}

/// A page of a room's participants of one kind or any, in id order after `after`.
pub async fn page(
    tx: &mut Reader,
    room_key: i64,
    kind: Option<IdentityKind>,
    after: Option<IdentityId>,
    limit: i64,
    offset: i64,
) -> Result<Vec<Participant>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        participant_columns!(),
        participant_from!(),
        "AND p.room_key = ?1 AND (?2 < 0 OR i.kind = ?2) AND i.id > ?3 ORDER BY i.id LIMIT ?4 OFFSET ?5"
    );
    let after = after.map_or(uuid::Uuid::nil(), |id| id.0);
    let values = params![room_key, kind.map_or(-1, kind_code), after, limit, offset];
    tx.query(SQL, values).await?.iter_mut().map(participant).collect()
}

/// How many participants of one kind or any a room has.
pub async fn count(tx: &mut Reader, room_key: i64, kind: Option<IdentityKind>) -> Result<i64, StoreError> {
    const SQL: &str =
        concat!("SELECT count(*)", participant_from!(), "AND p.room_key = ?1 AND (?2 < 0 OR i.kind = ?2)");
    tx.query_one(SQL, params![room_key, kind.map_or(-1, kind_code)]).await?.int(0)
}

/// One participant of a room, with its key.
pub async fn one(tx: &mut Reader, room_key: i64, who: IdentityId) -> Result<Option<(Participant, i64)>, StoreError> {
    const SQL: &str =
        concat!("SELECT ", participant_columns!(), ", i.key", participant_from!(), "AND p.room_key = ?1 AND i.id = ?2");
    tx.query_opt(SQL, params![room_key, who]).await?.map(with_key).transpose()
}

static NAMED_BY_ID: LazyLock<[String; 2]> = LazyLock::new(|| named_by("i.id"));
static NAMED_BY_HANDLE: LazyLock<[String; 2]> = LazyLock::new(|| named_by("i.handle"));

fn named_by(column: &str) -> [String; 2] {
    let columns = participant_columns!();
    sized(&format!("SELECT {columns}, i.key{} AND p.room_key = ?1 AND {column} IN ", participant_from!().trim_end()), 2)
}

/// The participants of a room that have these ids or folded handles, each once and with its key: one statement for all
/// ids and one for all handles, however many there are up to a hundred each.
pub async fn named(
    tx: &mut Reader,
    room_key: i64,
    ids: &[IdentityId],
    handles: &[String],
) -> Result<Vec<(Participant, i64)>, StoreError> {
    let mut found: Vec<(Participant, i64)> = Vec::with_capacity(ids.len() + handles.len());
    let mut known = HashSet::with_capacity(ids.len() + handles.len());
    let ids: Vec<Param<'_>> = ids.iter().map(|id| Param::from(*id)).collect();
    let handles: Vec<Param<'_>> = handles.iter().map(|handle| Param::from(handle.as_str())).collect();
    for (sql, wanted) in [(&NAMED_BY_ID, &ids), (&NAMED_BY_HANDLE, &handles)] {
        for chunk in wanted.chunks(CHUNK) {
            let Some((size, values)) = chunks::parameters_of(params![room_key], chunk) else { continue };
            for row in tx.query(&sql[size], &values).await? {
                let one = with_key(row)?;
                if known.insert(one.1) {
                    found.push(one);
                }
            }
        }
    }
    Ok(found)
}

/// The statements that look up who is named, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> Vec<&'static str> {
    [&NAMED_BY_ID, &NAMED_BY_HANDLE].into_iter().flat_map(|sizes| sizes.iter().map(String::as_str)).collect()
}

fn with_key(mut row: Row) -> Result<(Participant, i64), StoreError> {
    Ok((participant(&mut row)?, row.int(PROFILE_COLUMNS + 5)?))
}

/// How many owners a room has.
pub async fn owners(tx: &mut Reader, room_key: i64) -> Result<usize, StoreError> {
    const SQL: &str = concat!("SELECT count(*)", participant_from!(), "AND p.room_key = ?1 AND p.role = 'owner'");
    let count = tx.query_one(SQL, params![room_key]).await?.int(0)?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The users who may read a room: its own and the owners of its agents.
pub async fn readers(tx: &mut Reader, room_key: i64) -> Result<Vec<IdentityId>, StoreError> {
    const SQL: &str = "SELECT u.id FROM identities u WHERE u.deleted_at IS NULL AND u.key IN (\
                       SELECT CASE WHEN i.kind = 0 THEN i.key ELSE i.owner_key END \
                       FROM participants p JOIN identities i ON i.key = p.member_key \
                       WHERE p.room_key = ?1 AND p.left_at IS NULL AND p.status <> 'blocked')";
    let rows = tx.query(SQL, params![room_key]).await?;
    rows.iter().map(|row| Ok(IdentityId(row.id(0)?))).collect()
}

/// The live rooms that somebody takes part in.
pub async fn rooms_of(tx: &mut Reader, who: IdentityId) -> Result<Vec<RoomId>, StoreError> {
    const SQL: &str = "SELECT r.id FROM participants p JOIN rooms r ON r.key = p.room_key \
                       WHERE p.member_key = (SELECT key FROM identities WHERE id = ?1) AND p.left_at IS NULL \
                       AND r.deleted_at IS NULL";
    let rows = tx.query(SQL, params![who]).await?;
    rows.iter().map(|row| Ok(RoomId(row.id(0)?))).collect()
}

/// Somebody who joins a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewParticipant {
    /// The room's key.
    pub room_key: i64,
    /// Who.
    pub who: IdentityId,
    /// What it may do.
    pub role: Role,
    /// Its standing.
    pub status: ParticipantStatus,
    /// The room's sequence.
    pub joined_sequence: i64,
    /// Its execution, if it is an agent.
    pub execution: Option<ExecutionId>,
    /// When.
    pub at: Timestamp,
}

/// Makes somebody a participant; false when it is one already. Who left before comes back with its tallies, and an
/// agent with a new execution that is not stopped.
pub async fn insert(tx: &mut Writer, new: NewParticipant) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO participants \
                       (room_key, member_key, role, status, joined_sequence, joined_at, execution_id) \
                       SELECT ?1, key, ?3, ?4, ?5, ?6, ?7 FROM identities WHERE id = ?2 AND deleted_at IS NULL \
                       ON CONFLICT (room_key, member_key) DO UPDATE SET role = excluded.role, status = excluded.status, \
                       joined_sequence = excluded.joined_sequence, joined_at = excluded.joined_at, left_at = NULL, \
                       execution_id = excluded.execution_id, stopped_sequence = NULL, stopped_at = NULL, \
                       stopped_by = NULL \
                       WHERE participants.left_at IS NOT NULL";
    let NewParticipant { room_key, who, role, status, joined_sequence, execution, at } = new;
    let values = params![room_key, who, role.as_str(), status.as_str(), joined_sequence, at.as_micros(), execution];
    Ok(tx.execute(SQL, values).await? == 1)
}

/// Makes a participant an owner.
pub async fn make_owner(tx: &mut Writer, room_key: i64, member_key: i64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE participants SET role = 'owner' WHERE room_key = ?1 AND member_key = ?2";
    tx.execute(SQL, params![room_key, member_key]).await.map(drop)
}

/// Who takes over a room whose only owner is gone: that owner's own user, else the person who joined first, else the
/// agent who did. `None` when nobody is left.
pub async fn heir(tx: &mut Reader, room_key: i64, gone_key: i64) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT p.member_key FROM participants p JOIN identities i ON i.key = p.member_key \
                       JOIN identities g ON g.key = ?2 \
                       WHERE p.room_key = ?1 AND p.left_at IS NULL AND p.status <> 'blocked' AND i.deleted_at IS NULL \
                       ORDER BY CASE WHEN i.key = g.owner_key THEN 0 ELSE 1 END, i.kind, p.joined_sequence, i.key LIMIT 1";
    tx.query_opt(SQL, params![room_key, gone_key]).await?.map(|row| row.int(0)).transpose()
}

/// Whether a room belongs to a user: it owns the room, or an agent of its does.
pub async fn belongs_to(tx: &mut Reader, room_key: i64, user_key: i64) -> Result<bool, StoreError> {
    const OWN: &str = "SELECT 1 FROM participants WHERE room_key = ?1 AND member_key = ?2 AND left_at IS NULL \
                       AND role = 'owner'";
    const AGENTS: &str = "SELECT 1 FROM identities a JOIN participants p ON p.member_key = a.key AND p.room_key = ?1 \
                          WHERE a.owner_key = ?2 AND a.kind = 1 AND a.deleted_at IS NULL AND p.left_at IS NULL \
                          AND p.role = 'owner' LIMIT 1";
    Ok(tx.query_opt(OWN, params![room_key, user_key]).await?.is_some()
        || tx.query_opt(AGENTS, params![room_key, user_key]).await?.is_some())
}

/// Ends somebody's participation: the row stays, with its open tallies moved to cancelled, and the stay is remembered
/// for when it comes back.
pub async fn leave(tx: &mut Writer, room_key: i64, member_key: i64, at: Timestamp) -> Result<(), StoreError> {
    const STAY: &str = "INSERT INTO stays (room_key, member_key, joined_sequence, left_sequence, left_at) \
                        SELECT p.room_key, p.member_key, p.joined_sequence, r.sequence, ?3 \
                        FROM participants p JOIN rooms r ON r.key = p.room_key \
                        WHERE p.room_key = ?1 AND p.member_key = ?2 AND p.left_at IS NULL \
                        ON CONFLICT (room_key, member_key, joined_sequence) DO NOTHING";
    const SQL: &str = "UPDATE participants SET left_at = ?3, \
                       stopped_sequence = NULL, stopped_at = NULL, stopped_by = NULL, \
                       cancelled = cancelled + stored + delivered + processing + failed, \
                       stored = 0, delivered = 0, processing = 0, failed = 0 \
                       WHERE room_key = ?1 AND member_key = ?2 AND left_at IS NULL";
    tx.execute(STAY, params![room_key, member_key, at.as_micros()]).await?;
    tx.execute(SQL, params![room_key, member_key, at.as_micros()]).await.map(drop)
}

/// Moves one delivery of a member from one tally to another; `from` is `None` for a new one.
pub async fn tally(
    tx: &mut Writer,
    room_key: i64,
    member_key: i64,
    from: Option<DeliveryState>,
    to: DeliveryState,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE participants SET stored = stored + ?3, delivered = delivered + ?4, \
                       processing = processing + ?5, failed = failed + ?6, processed = processed + ?7, \
                       cancelled = cancelled + ?8, dead_lettered = dead_lettered + ?9, \
                       worked = CASE WHEN processing + ?5 > processing THEN 1 ELSE worked END \
                       WHERE room_key = ?1 AND member_key = ?2";
    if from == Some(to) {
        return Ok(());
    }
    let mut values = params![room_key, member_key].to_vec();
    values.extend(DeliveryState::ALL.map(|state| Param::Int(i64::from(state == to) - i64::from(Some(state) == from))));
    tx.execute(SQL, &values).await.map(drop)
}

/// Counts a row that a member sent, which is a sign of life. `text` is its sequence if it is a text.
pub async fn tally_sent(
    tx: &mut Writer,
    room_key: i64,
    member_key: i64,
    text: Option<i64>,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE participants SET sent = sent + 1, worked = 1, active_at = ?4, \
                       said_sequence = COALESCE(?3, said_sequence) WHERE room_key = ?1 AND member_key = ?2";
    tx.execute(SQL, params![room_key, member_key, text, at.as_micros()]).await.map(drop)
}

/// Notes that a member tried a message that was not sent to it, which no tally counts.
pub async fn note_work(tx: &mut Writer, room_key: i64, member_key: i64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE participants SET worked = 1 WHERE room_key = ?1 AND member_key = ?2";
    tx.execute(SQL, params![room_key, member_key]).await.map(drop)
}

/// The key of a member that has been in the room, without leaving it, since before `sequence`.
pub async fn still_there(
    tx: &mut Reader,
    room_key: i64,
    who: IdentityId,
    sequence: i64,
) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT p.member_key FROM identities i JOIN participants p ON p.member_key = i.key \
                       WHERE i.id = ?2 AND p.room_key = ?1 AND p.left_at IS NULL AND p.joined_sequence < ?3";
    tx.query_opt(SQL, params![room_key, who, sequence]).await?.map(|row| row.int(0)).transpose()
}

/// The key of an identity, deleted or not.
pub async fn member_key(tx: &mut Reader, who: IdentityId) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT key FROM identities WHERE id = ?1";
    tx.query_opt(SQL, params![who]).await?.map(|row| row.int(0)).transpose()
}

/// Some of those who are in a room, by their keys.
pub async fn keys_in(tx: &mut Reader, room_key: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    const SQL: &str = "SELECT member_key FROM participants WHERE room_key = ?1 AND left_at IS NULL \
                       ORDER BY member_key LIMIT ?2";
    let rows = tx.query(SQL, params![room_key, limit]).await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// A deleted agent that is still in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The room.
    pub room: RoomId,
    /// Its key.
    pub room_key: i64,
    /// The agent.
    pub member: IdentityId,
}

/// A deleted agent that is still in a room, if there is one.
pub async fn of_deleted(tx: &mut Reader) -> Result<Option<Leftover>, StoreError> {
    const SQL: &str = "SELECT r.id, r.key, i.id FROM identities i \
                       JOIN participants p ON p.member_key = i.key AND p.left_at IS NULL \
                       JOIN rooms r ON r.key = p.room_key AND r.deleted_at IS NULL \
                       WHERE i.deleted_at IS NOT NULL LIMIT 1";
    let Some(row) = tx.query_opt(SQL, params![]).await? else { return Ok(None) };
    Ok(Some(Leftover { room: RoomId(row.id(0)?), room_key: row.int(1)?, member: IdentityId(row.id(2)?) }))
}

/// A deleted agent's row in a room that it is still in.
pub async fn deleted_member(
    tx: &mut Reader,
    room_key: i64,
    who: IdentityId,
) -> Result<Option<(Participant, i64)>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        participant_columns!(),
        ", i.key FROM participants p JOIN identities i ON i.key = p.member_key \
         LEFT JOIN identities o ON o.key = i.owner_key WHERE p.left_at IS NULL AND p.room_key = ?1 AND i.id = ?2"
    );
    tx.query_opt(SQL, params![room_key, who]).await?.map(with_key).transpose()
}

/// Whether two are in a room together.
pub async fn share_room(tx: &mut Reader, one: IdentityId, other: IdentityId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM participants p JOIN participants q ON q.room_key = p.room_key \
                       JOIN rooms r ON r.key = p.room_key \
                       WHERE p.member_key = (SELECT key FROM identities WHERE id = ?1) \
                       AND q.member_key = (SELECT key FROM identities WHERE id = ?2) \
                       AND p.left_at IS NULL AND q.left_at IS NULL AND p.status <> 'blocked' AND r.deleted_at IS NULL \
                       LIMIT 1";
    Ok(tx.query_opt(SQL, params![one, other]).await?.is_some())
}

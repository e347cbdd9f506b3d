//! How much somebody may have of something. The settings say it for all; a row of `quotas` says it for one identity.

use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;

use crate::{Reader, StoreError, Writer, params};

/// What there is a quota of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Agents of a user.
    Agents,
    /// Rooms that an identity created and that are not deleted.
    Rooms,
    /// Participants of each room that an identity created.
    Participants,
    /// Text messages that an identity posts in a day (UTC).
    Messages,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Agents, Self::Rooms, Self::Participants, Self::Messages];

    /// As the wire says it, in the details of `limit_reached`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Rooms => "chats",
            Self::Participants => "participants",
            Self::Messages => "messages",
        }
    }

    /// Reads [`as_str`](Self::as_str).
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.as_str() == word)
    }

    fn code(self) -> i64 {
        match self {
            Self::Agents => 0,
            Self::Rooms => 1,
            Self::Participants => 2,
            Self::Messages => 3,
        }
    }
}

/// A quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// So many and no more.
    Most(i64),
    /// Without end.
    Unlimited,
}

impl Quota {
    /// The number, if there is one.
    pub fn most(self) -> Option<i64> {
        match self {
            Self::Most(most) => Some(most),
            Self::Unlimited => None,
        }
    }
}

/// A quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit of {limit} {} is reached", .resource.as_str())]
pub struct LimitReached {
    /// Of what.
    pub resource: Resource,
    /// How many there may be.
    pub limit: i64,
    /// How many there are.
    pub current: i64,
}

/// Sets an identity's own quota, or with `None` takes it away, so that the settings count again; false when there is no
/// such identity.
pub async fn set(
    tx: &mut Writer,
    who: IdentityId,
    resource: Resource,
    quota: Option<Quota>,
) -> Result<bool, StoreError> {
    const SET: &str = "INSERT INTO quotas (identity_key, resource, most) \
                       SELECT key, ?2, ?3 FROM identities WHERE id = ?1 AND deleted_at IS NULL \
                       ON CONFLICT (identity_key, resource) DO UPDATE SET most = excluded.most";
    const UNSET: &str = "DELETE FROM quotas WHERE identity_key = ?1 AND resource = ?2";
    const KEY: &str = "SELECT key FROM identities WHERE id = ?1 AND deleted_at IS NULL";
    match quota {
        Some(quota) => Ok(tx.execute(SET, params![who, resource.code(), quota.most()]).await? == 1),
        None => {
            let Some(row) = tx.query_opt(KEY, params![who]).await? else { return Ok(false) };
            tx.execute(UNSET, params![row.int(0)?, resource.code()]).await?;
            Ok(true)
        }
    }
}

/// An identity's own quota; `None` when the settings count.
pub async fn get(tx: &mut Reader, who: IdentityId, resource: Resource) -> Result<Option<Quota>, StoreError> {
    const SQL: &str = "SELECT q.most FROM quotas q JOIN identities i ON i.key = q.identity_key \
                       WHERE i.id = ?1 AND q.resource = ?2";
    let row = tx.query_opt(SQL, params![who, resource.code()]).await?;
    row.map(|row| Ok(row.opt_int(0)?.map_or(Quota::Unlimited, Quota::Most))).transpose()
}

/// What counts for an identity: its own quota, else the settings' `general` one; `None` when it is without end.
pub async fn effective(
    tx: &mut Reader,
    who: IdentityId,
    resource: Resource,
    general: Option<i64>,
) -> Result<Option<i64>, StoreError> {
    Ok(get(tx, who, resource).await?.map_or(general, Quota::most))
}

/// Whether anybody has a quota of its own.
pub async fn any(tx: &mut Reader) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM quotas LIMIT 1";
    Ok(tx.query_opt(SQL, params![]).await?.is_some())
}

const AGENTS: &str = "SELECT count(*) FROM (SELECT 1 FROM identities \
                      WHERE owner_key = ?1 AND deleted_at IS NULL AND kind = 1 LIMIT ?2) few";
const ROOMS: &str = "SELECT count(*) FROM (SELECT 1 FROM rooms \
                     WHERE creator_key = ?1 AND deleted_at IS NULL LIMIT ?2) few";

/// What counts, for tests of the plans.
#[cfg(feature = "testing")]
pub fn statements() -> [&'static str; 2] {
    [AGENTS, ROOMS]
}

/// Makes sure that an identity may have one more of what it has for good, agents or rooms. Of several at once, each sees
/// those before it. The cost is that of walking an index over no more than the quota.
///
/// # Errors
/// The inner one, when the quota is used up.
pub async fn claim(
    tx: &mut Writer,
    who: IdentityId,
    resource: Resource,
    general: Option<i64>,
) -> Result<Result<(), LimitReached>, StoreError> {
    const LOCK: &str = "INSERT INTO quota_uses (identity_key, resource, day, used) \
                        SELECT key, ?2, 0, 0 FROM identities WHERE id = ?1 \
                        ON CONFLICT (identity_key, resource) DO UPDATE SET used = 0 RETURNING identity_key";
    let count = match resource {
        Resource::Agents => AGENTS,
        Resource::Rooms => ROOMS,
        Resource::Participants | Resource::Messages => {
            return Err(StoreError::Bug(format!("{} are counted elsewhere", resource.as_str())));
        }
    };
    let Some(limit) = effective(tx, who, resource, general).await? else { return Ok(Ok(())) };
    let Some(row) = tx.query_opt(LOCK, params![who, resource.code()]).await? else { return Ok(Ok(())) };
    let current = tx.query_one(count, params![row.int(0)?, limit]).await?.int(0)?;
    Ok(if current < limit { Ok(()) } else { Err(LimitReached { resource, limit, current }) })
}

/// Counts one more message of an identity today.
///
/// # Errors
/// The inner one, when today's are used up; then the caller's transaction must be undone.
pub async fn count_message(
    tx: &mut Writer,
    who: IdentityId,
    general: Option<i64>,
    now: Timestamp,
) -> Result<Result<(), LimitReached>, StoreError> {
    const COUNT: &str = "INSERT INTO quota_uses (identity_key, resource, day, used) \
                         SELECT key, ?2, ?3, 1 FROM identities WHERE id = ?1 \
                         ON CONFLICT (identity_key, resource) DO UPDATE SET \
                         used = CASE WHEN quota_uses.day = excluded.day THEN quota_uses.used + 1 ELSE 1 END, \
                         day = excluded.day RETURNING used";
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    let resource = Resource::Messages;
    let Some(limit) = effective(tx, who, resource, general).await? else { return Ok(Ok(())) };
    let day = now.as_micros().div_euclid(DAY);
    let Some(row) = tx.query_opt(COUNT, params![who, resource.code(), day]).await? else { return Ok(Ok(())) };
    let used = row.int(0)?;
    Ok(if used <= limit { Ok(()) } else { Err(LimitReached { resource, limit, current: used - 1 }) })
}

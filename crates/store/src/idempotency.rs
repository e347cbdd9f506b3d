//! Requests that must happen once however often they are sent: the reply to one is stored in the transaction of what it
//! did, and the primary key decides which of many wins.
//!
//! A [`Ticket`] rides on a [`Store`](crate::Store) handle ([`Store::with_ticket`](crate::Store::with_ticket)) and is
//! stamped by the operation that does the request's work, so neither services nor queries know of it.

use std::any::Any;
use std::fmt;

use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;

use crate::{Reader, StoreError, Writer, params};

/// How many old rows one operation removes at most.
pub const BATCH: i64 = 500;

/// Which request it is. Neither key nor body is stored, only their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestName {
    /// Who calls.
    pub caller: IdentityId,
    /// Hash of method, path and key.
    pub scope: [u8; 32],
    /// Hash of the body.
    pub fingerprint: [u8; 32],
}

/// What was answered.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredReply {
    /// The HTTP status.
    pub status: u16,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body; JSON, or empty.
    pub body: Vec<u8>,
}

/// Without the body, which nobody is to find in a log.
impl fmt::Debug for StoredReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredReply")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// The same request was answered with this.
    Same(StoredReply),
    /// The key came with another body.
    Other,
}

/// Makes the reply of what the operation returns: `Some(None)` when there is nothing to remember, because it wrote and
/// refused all the same; `None` when that is not what it expects.
pub type MakeReply = dyn Fn(&dyn Any) -> Option<Option<StoredReply>> + Send + Sync;

/// A request that is to happen once.
pub struct Ticket {
    /// Which.
    pub request: RequestName,
    /// When it came.
    pub at: Timestamp,
    /// Replies from then or before are forgotten, also while they are still stored.
    pub forgotten: Timestamp,
    /// Makes the reply, within the transaction.
    pub reply: Box<MakeReply>,
}

impl Ticket {
    /// What is answered to an operation's result.
    pub(crate) fn reply_to(&self, name: &'static str, value: &dyn Any) -> Result<Option<StoredReply>, StoreError> {
        (self.reply)(value).ok_or_else(|| StoreError::Bug(format!("{name} is not what its request waits for")))
    }

    /// Stores the reply.
    ///
    /// # Errors
    /// [`StoreError::Repeated`] when the key is taken; the caller's transaction must then be undone.
    pub(crate) async fn stamp(&self, tx: &mut Writer, reply: &StoredReply) -> Result<(), StoreError> {
        if insert(tx, &self.request, reply, self.at, self.forgotten).await? {
            Ok(())
        } else {
            Err(StoreError::Repeated)
        }
    }
}

/// Stores a reply; false when the key is taken. One that is being stored by another transaction is waited for.
async fn insert(
    tx: &mut Writer,
    request: &RequestName,
    reply: &StoredReply,
    at: Timestamp,
    forgotten: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO idempotent_requests \
                       (caller_id, scope, fingerprint, status, location, body, inserted_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
                       ON CONFLICT (caller_id, scope) DO UPDATE SET fingerprint = excluded.fingerprint, \
                       status = excluded.status, location = excluded.location, body = excluded.body, \
                       inserted_at = excluded.inserted_at WHERE idempotent_requests.inserted_at <= ?8";
    let values = params![
        request.caller,
        &request.scope,
        &request.fingerprint,
        i64::from(reply.status),
        reply.location.as_ref(),
        &reply.body,
        at.as_micros(),
        forgotten.as_micros(),
    ];
    Ok(tx.execute(SQL, values).await? == 1)
}

/// Finds a key. Public for tests of the plan.
pub const FIND: &str = "SELECT fingerprint, status, location, body FROM idempotent_requests \
                        WHERE caller_id = ?1 AND scope = ?2 AND inserted_at > ?3";

/// Removes the oldest. Public for tests of the plan.
pub const PRUNE: &str = "DELETE FROM idempotent_requests WHERE (caller_id, scope) IN \
                         (SELECT caller_id, scope FROM idempotent_requests WHERE inserted_at <= ?1 \
                         ORDER BY inserted_at LIMIT ?2) AND inserted_at <= ?1";

/// What is known of a request's key; `None` when it is new, or was last used at `forgotten` or before.
pub async fn find(tx: &mut Reader, request: &RequestName, forgotten: Timestamp) -> Result<Option<Earlier>, StoreError> {
    let row = tx.query_opt(FIND, params![request.caller, &request.scope, forgotten.as_micros()]).await?;
    let Some(mut row) = row else { return Ok(None) };
    if row.bytes(0)? != request.fingerprint {
        return Ok(Some(Earlier::Other));
    }
    let status = row.int(1)?;
    let status = u16::try_from(status).map_err(|_| StoreError::Decode(format!("{status} is no HTTP status")))?;
    let body = row.bytes(3)?.to_vec();
    Ok(Some(Earlier::Same(StoredReply { status, location: row.take_opt_text(2)?, body })))
}

/// Removes up to [`BATCH`] replies from `forgotten` or before; how many.
pub async fn prune(tx: &mut Writer, forgotten: Timestamp) -> Result<u64, StoreError> {
    tx.execute(PRUNE, params![forgotten.as_micros(), BATCH]).await
}

//! Requests to delete many rooms or agents, and how far each is.

use bandstand_domain::bulk_deletion::{BulkDeletion, ITEMS_MAX, Item, JobStatus, Outcome, Refusal, Resource};
use bandstand_wire::ids::{BulkDeletionId, IdentityId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::columns::unknown;
use crate::{Param, Reader, Row, StoreError, Writer, params};

/// A request that is accepted.
#[derive(Clone, Debug)]
pub struct NewBulkDeletion {
    /// Its id.
    pub id: BulkDeletionId,
    /// Whose.
    pub user: IdentityId,
    /// What it deletes.
    pub resource: Resource,
    /// Whether agents are deleted even if they worked.
    pub force: bool,
    /// In the order of the request.
    pub items: Vec<NewItem>,
    /// When.
    pub at: Timestamp,
}

/// One id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// As it was given.
    pub given: String,
    /// What it names, or why the user may not delete it.
    pub verdict: Result<Uuid, Refusal>,
}

/// How many that are over one operation removes at most: with all of their items, these are no more than 500 rows.
pub const BATCH: i64 = 4;
const _: () = assert!(BATCH as usize * (ITEMS_MAX + 1) <= 500);

const PENDING: i64 = 0;
const SUCCEEDED: i64 = 1;
const FAILED: i64 = 2;

/// Stores a request with its items.
pub async fn insert(tx: &mut Writer, new: &NewBulkDeletion) -> Result<(), StoreError> {
    const JOB: &str = "INSERT INTO bulk_deletions (id, user_key, resource, force, status, inserted_at) \
                       SELECT ?1, key, ?3, ?4, ?5, ?6 FROM identities WHERE id = ?2 RETURNING key";
    const ITEM: &str = "INSERT INTO bulk_deletion_items (job_key, number, given, target, refusal, state) \
                        VALUES (?1, ?2, ?3, ?4, ?5, 0)";
    let status = JobStatus::Queued.code();
    let values = params![new.id, new.user, new.resource.code(), new.force, status, new.at.as_micros()];
    let key = tx.query_one(JOB, values).await?.int(0)?;
    let rows: Vec<Vec<Param<'_>>> = (0_i64..)
        .zip(&new.items)
        .map(|(number, item)| {
            let refusal = item.verdict.err().map(Refusal::code);
            params![key, number, &item.given, item.verdict.ok(), refusal].to_vec()
        })
        .collect();
    tx.execute_many(ITEM, &rows).await.map(drop)
}

fn resource(code: i64) -> Result<Resource, StoreError> {
    Resource::from_code(code).ok_or_else(|| unknown("resource of a bulk deletion", code))
}

fn status(code: i64) -> Result<JobStatus, StoreError> {
    JobStatus::from_code(code).ok_or_else(|| unknown("status of a bulk deletion", code))
}

fn refusal(row: &Row, column: usize) -> Result<Option<Refusal>, StoreError> {
    let read = |code| Refusal::from_code(code).ok_or_else(|| unknown("refusal of a bulk deletion", code));
    row.opt_int(column)?.map(read).transpose()
}

fn outcome(row: &Row, state: usize, refused: usize) -> Result<Outcome, StoreError> {
    match (row.int(state)?, refusal(row, refused)?) {
        (PENDING, _) => Ok(Outcome::Pending),
        (SUCCEEDED, _) => Ok(Outcome::Succeeded),
        (FAILED, Some(refusal)) => Ok(Outcome::Failed(refusal)),
        (other, _) => Err(unknown("state of an item of a bulk deletion", other)),
    }
}

/// A request of a user; `None` when there is none of this id, or it is somebody else's.
pub async fn one(tx: &mut Reader, user: IdentityId, id: BulkDeletionId) -> Result<Option<BulkDeletion>, StoreError> {
    const JOB: &str = "SELECT b.key, b.resource, b.force, b.status, b.inserted_at, b.started_at, b.completed_at \
                       FROM bulk_deletions b JOIN identities u ON u.key = b.user_key WHERE b.id = ?1 AND u.id = ?2";
    const ITEMS: &str = "SELECT given, state, refusal FROM bulk_deletion_items WHERE job_key = ?1 ORDER BY number";
    let Some(row) = tx.query_opt(JOB, params![id, user]).await? else { return Ok(None) };
    let items = tx.query(ITEMS, params![row.int(0)?]).await?;
    let items = items
        .into_iter()
        .map(|mut item| Ok(Item { outcome: outcome(&item, 1, 2)?, given: item.take_text(0)? }))
        .collect::<Result<_, StoreError>>()?;
    Ok(Some(BulkDeletion {
        id,
        resource: resource(row.int(1)?)?,
        force: row.bool(2)?,
        status: status(row.int(3)?)?,
        items,
        inserted_at: Timestamp::from_micros(row.int(4)?),
        started_at: row.opt_int(5)?.map(Timestamp::from_micros),
        completed_at: row.opt_int(6)?.map(Timestamp::from_micros),
    }))
}

/// A request that is not carried out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenJob {
    /// Its key.
    pub key: i64,
    /// What it deletes.
    pub resource: Resource,
    /// Whether agents are deleted even if they worked.
    pub force: bool,
}

/// For the test of its plan, too.
pub const NEXT_OPEN: &str =
    "SELECT key, resource, force FROM bulk_deletions WHERE completed_at IS NULL ORDER BY key LIMIT 1";

/// The oldest request that is not carried out yet, if there is one.
pub async fn next_open(tx: &mut Reader) -> Result<Option<OpenJob>, StoreError> {
    let Some(row) = tx.query_opt(NEXT_OPEN, params![]).await? else { return Ok(None) };
    Ok(Some(OpenJob { key: row.int(0)?, resource: resource(row.int(1)?)?, force: row.bool(2)? }))
}

/// An item whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingItem {
    /// Its place in the request.
    pub number: i64,
    /// What to delete, or why the user may not.
    pub verdict: Result<Uuid, Refusal>,
}

/// The first item of a request that has no result yet.
pub async fn next_item(tx: &mut Reader, job_key: i64) -> Result<Option<PendingItem>, StoreError> {
    const SQL: &str = "SELECT number, target, refusal FROM bulk_deletion_items \
                       WHERE job_key = ?1 AND state = 0 ORDER BY number LIMIT 1";
    let Some(row) = tx.query_opt(SQL, params![job_key]).await? else { return Ok(None) };
    let verdict = match (row.opt_id(1)?, refusal(&row, 2)?) {
        (Some(target), None) => Ok(target),
        (_, Some(refusal)) => Err(refusal),
        (None, None) => Err(Refusal::NotFound),
    };
    Ok(Some(PendingItem { number: row.int(0)?, verdict }))
}

/// Notes that the first item of a request is taken up.
pub async fn begin(tx: &mut Writer, job_key: i64, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulk_deletions SET status = ?2, started_at = ?3 WHERE key = ?1 AND started_at IS NULL";
    tx.execute(SQL, params![job_key, JobStatus::Processing.code(), at.as_micros()]).await.map(drop)
}

/// Notes an item's result.
pub async fn settle(tx: &mut Writer, job_key: i64, number: i64, result: Result<(), Refusal>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulk_deletion_items SET state = ?3, refusal = ?4 WHERE job_key = ?1 AND number = ?2";
    let (state, refusal) = match result {
        Ok(()) => (SUCCEEDED, None),
        Err(refusal) => (FAILED, Some(refusal.code())),
    };
    tx.execute(SQL, params![job_key, number, state, refusal]).await.map(drop)
}

/// Notes that a request is over.
pub async fn finish(tx: &mut Writer, job_key: i64, status: JobStatus, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulk_deletions SET status = ?2, started_at = COALESCE(started_at, ?3), completed_at = ?3 \
                       WHERE key = ?1";
    tx.execute(SQL, params![job_key, status.code(), at.as_micros()]).await.map(drop)
}

/// Gives all items after `number` that have no result yet the same refusal.
pub async fn refuse_rest(tx: &mut Writer, job_key: i64, number: i64, refusal: Refusal) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulk_deletion_items SET state = 2, refusal = ?3 \
                       WHERE job_key = ?1 AND number > ?2 AND state = 0";
    tx.execute(SQL, params![job_key, number, refusal.code()]).await.map(drop)
}

/// Finds the oldest that are over. For the test of its plan, too.
pub const OVER: &str = "SELECT key FROM bulk_deletions WHERE completed_at <= ?1 ORDER BY completed_at, key LIMIT ?2";

/// Removes up to [`BATCH`] requests that were over at `over` or before, with their items; how many.
pub async fn prune(tx: &mut Writer, over: Timestamp) -> Result<u64, StoreError> {
    const ITEMS: &str = "DELETE FROM bulk_deletion_items WHERE job_key = ?1";
    const JOB: &str = "DELETE FROM bulk_deletions WHERE key = ?1";
    let found = tx.query(OVER, params![over.as_micros(), BATCH]).await?;
    let keys = found.iter().map(|row| Ok(params![row.int(0)?].to_vec())).collect::<Result<Vec<_>, StoreError>>()?;
    // Another node may be at the same ones: it waits at the first, and then finds nothing.
    tx.execute_many(ITEMS, &keys).await?;
    tx.execute_many(JOB, &keys).await
}

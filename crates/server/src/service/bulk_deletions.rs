//! Deleting many rooms or agents by one request: accepted at once, carried out in the background, one transaction for
//! each. A deletion and its result are one transaction, so a restart goes on exactly where the last run was.

use std::sync::Arc;
use std::time::Duration;

use bandstand_domain::bulk_deletion::{BulkDeletion, JobStatus, Refusal, Resource};
use bandstand_store::bulk_deletions::{self, NewBulkDeletion, NewItem, OpenJob};
use bandstand_store::{Reader, StoreError, Writer, identities, participants, rooms};
use bandstand_wire::ids::{BulkDeletionId, IdentityId, RoomId};
use bandstand_wire::time::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::auth::Caller;
use crate::service::agents::{self, DeleteAgentError};
use crate::service::rooms::delete_in;
use crate::state::Services;

/// After a failure of the store it is tried again so much later.
const PAUSE: Duration = Duration::from_secs(5);

/// Wakes the background job.
#[derive(Clone, Default)]
pub struct BulkDeletionsWaker(Arc<Notify>);

/// How often the job looks for requests that ended so long ago that they are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Starts the job; it looks at once for what an earlier run left, then whenever a request is accepted. Now and then it
/// forgets what ended long ago.
pub fn start(services: Services, stop: CancellationToken) -> JoinHandle<()> {
    let mut forget = tokio::time::interval(FORGET_EVERY);
    forget.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::spawn(async move {
        loop {
            let pause = match delete_all(&services, &stop).await {
                Ok(()) => None,
                Err(why) => {
                    tracing::warn!(error = %why, "a bulk deletion does not get on; trying again later");
                    Some(PAUSE)
                }
            };
            let again = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => services.bulk_deletions.0.notified().await,
                }
            };
            tokio::select! {
                () = again => {}
                _ = forget.tick() => {
                    if let Err(why) = forget_all(&services, &stop).await {
                        tracing::warn!(error = %why, "old bulk deletions were not forgotten; trying again later");
                    }
                }
                () = stop.cancelled() => return,
            }
        }
    })
}

async fn forget_all(services: &Services, stop: &CancellationToken) -> Result<(), StoreError> {
    while !stop.is_cancelled() && services.forget_bulk_deletions().await? >= bulk_deletions::BATCH.unsigned_abs() {}
    Ok(())
}

async fn delete_all(services: &Services, stop: &CancellationToken) -> Result<(), StoreError> {
    while !stop.is_cancelled() && services.delete_next_of_bulk().await? {}
    Ok(())
}

/// What the caller wants deleted, as the request gave it.
#[derive(Clone, Debug)]
pub struct BulkRequest {
    /// Who asks.
    pub caller: Caller,
    /// Rooms or agents.
    pub resource: Resource,
    /// Whether agents are deleted even if they worked.
    pub force: bool,
    /// Their ids, each once.
    pub ids: Vec<String>,
}

impl Services {
    /// Accepts a request. What the caller may delete is decided now, and nothing that changes later takes it back.
    ///
    /// # Errors
    /// When the store fails; then nothing was accepted.
    pub async fn accept_bulk_deletion(&self, request: BulkRequest) -> Result<BulkDeletion, StoreError> {
        let BulkRequest { caller, resource, force, ids } = request;
        let (id, now) = (self.ids.bulk_deletion(), self.clock.now());
        let items: Vec<NewItem> = self
            .store
            .read("judge_bulk_deletion", move |tx| {
                Box::pin(async move {
                    let mut items = Vec::with_capacity(ids.len());
                    for given in ids {
                        let verdict = verdict(tx, caller, resource, &given).await?;
                        items.push(NewItem { given, verdict });
                    }
                    Ok::<_, StoreError>(items)
                })
            })
            .await?;
        let new = NewBulkDeletion { id, user: caller.identity, resource, force, items, at: now };
        let accepted = self
            .store
            .write("accept_bulk_deletion", move |tx| {
                Box::pin(async move {
                    bulk_deletions::insert(tx, &new).await?;
                    let accepted = bulk_deletions::one(tx, new.user, new.id).await?;
                    let gone = "a bulk deletion is gone as soon as it was accepted";
                    accepted.ok_or_else(|| StoreError::Bug(gone.to_owned()))
                })
            })
            .await?;
        self.bulk_deletions.0.notify_one();
        Ok(accepted)
    }

    /// How far a request of a user is; `None` when it made none of this id.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn bulk_deletion(
        &self,
        user: IdentityId,
        id: BulkDeletionId,
    ) -> Result<Option<BulkDeletion>, StoreError> {
        self.store.read("bulk_deletion", move |tx| Box::pin(bulk_deletions::one(tx, user, id))).await
    }

    /// Forgets requests that ended longer ago than they are remembered for, up to one operation's worth; how many. The
    /// background job calls it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_bulk_deletions(&self) -> Result<u64, StoreError> {
        let kept = i64::try_from(self.limits.bulk_deletion_retention.as_micros()).unwrap_or(i64::MAX);
        let over = self.clock.now().plus_micros(kept.saturating_neg());
        self.store.write("forget_bulk_deletions", move |tx| Box::pin(bulk_deletions::prune(tx, over))).await
    }

    /// Deletes what is next of the oldest request that is not carried out yet; false when there is none.
    ///
    /// # Errors
    /// When the store is unavailable; any other failure ends the request, and is in its results.
    pub async fn delete_next_of_bulk(&self) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let job: Option<OpenJob> =
            self.store.read("next_bulk_deletion", |tx| Box::pin(bulk_deletions::next_open(tx))).await?;
        let Some(job) = job else { return Ok(false) };
        let deleted: Result<Option<Uuid>, StoreError> =
            self.store.write("delete_one_of_bulk", move |tx| Box::pin(delete_one(tx, job, now))).await;
        match deleted {
            Ok(None) => {}
            Ok(Some(target)) => match job.resource {
                Resource::Room => self.removals.wake(),
                Resource::Agent => self.finish_deletion(IdentityId(target)).await,
            },
            Err(why) if why.is_unavailable() => return Err(why),
            Err(why) => {
                tracing::error!(error = %why, "a bulk deletion failed");
                self.store.write("fail_bulk_deletion", move |tx| Box::pin(fail(tx, job, now))).await?;
            }
        }
        Ok(true)
    }
}

/// What an id names, or why the caller may not delete it.
async fn verdict(
    tx: &mut Reader,
    caller: Caller,
    resource: Resource,
    given: &str,
) -> Result<Result<Uuid, Refusal>, StoreError> {
    let Ok(id) = given.parse::<Uuid>() else { return Ok(Err(Refusal::NotFound)) };
    Ok(match resource {
        Resource::Room => match participants::access(tx, caller.identity, caller.kind, RoomId(id)).await? {
            None => Err(Refusal::NotFound),
            Some(access) if participants::belongs_to(tx, access.room_key, access.member_key).await? => Ok(id),
            Some(_) => Err(Refusal::Forbidden),
        },
        Resource::Agent => match identities::agent(tx, IdentityId(id)).await? {
            Some(agent) if agent.owner == caller.identity => Ok(id),
            Some(_) | None => Err(Refusal::NotFound),
        },
    })
}

/// Deletes the next item of a request and notes its result, and the end of the request with its last one. What was
/// deleted, if anything was.
async fn delete_one(tx: &mut Writer, job: OpenJob, now: Timestamp) -> Result<Option<Uuid>, StoreError> {
    let mut deleted = None;
    if let Some(item) = bulk_deletions::next_item(tx, job.key).await? {
        bulk_deletions::begin(tx, job.key, now).await?;
        let result = match (item.verdict, job.resource) {
            (Err(refusal), _) => Err(refusal),
            (Ok(id), Resource::Room) => delete_room(tx, RoomId(id), now).await?.map(|()| id),
            (Ok(id), Resource::Agent) => match agents::delete_in(tx, None, IdentityId(id), job.force, now).await {
                Ok(_) => Ok(id),
                Err(DeleteAgentError::NotFound) => Err(Refusal::NotFound),
                Err(DeleteAgentError::HasHistory) => Err(Refusal::HistoryExists),
                Err(DeleteAgentError::Store(why)) => return Err(why),
            },
        };
        deleted = result.ok();
        bulk_deletions::settle(tx, job.key, item.number, result.map(drop)).await?;
    }
    if bulk_deletions::next_item(tx, job.key).await?.is_none() {
        bulk_deletions::finish(tx, job.key, JobStatus::Completed, now).await?;
    }
    Ok(deleted)
}

async fn delete_room(tx: &mut Writer, id: RoomId, now: Timestamp) -> Result<Result<(), Refusal>, StoreError> {
    let Some(advanced) = rooms::advance(tx, id).await? else { return Ok(Err(Refusal::NotFound)) };
    let Some(room) = rooms::by_key(tx, advanced.key).await? else { return Ok(Err(Refusal::NotFound)) };
    delete_in(tx, advanced.key, room, now).await?;
    Ok(Ok(()))
}

/// Ends a request at an item that could not be deleted.
async fn fail(tx: &mut Writer, job: OpenJob, now: Timestamp) -> Result<(), StoreError> {
    if let Some(item) = bulk_deletions::next_item(tx, job.key).await? {
        bulk_deletions::settle(tx, job.key, item.number, Err(Refusal::DeleteFailed)).await?;
        bulk_deletions::refuse_rest(tx, job.key, item.number, Refusal::NotAttempted).await?;
    }
    bulk_deletions::finish(tx, job.key, JobStatus::Failed, now).await
}

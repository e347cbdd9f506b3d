//! Ends, in the background and in batches, the open deliveries of those who were removed with more of them than one
//! operation may touch or whose room was deleted, and the contacts of those who were deleted. What is left to do is in the database, so a restart
//! goes on with it.

use std::sync::Arc;

use bandstand_domain::event::Event;
use bandstand_store::deliveries::{self, Removal};
use bandstand_store::tasks::Departure;
use bandstand_store::{StoreError, contacts, participants, rooms, tasks};
use bandstand_wire::ids::IdentityId;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::state::Services;

/// The reason of a delivery whose recipient was removed from the room.
pub const REMOVED: &str = "recipient removed";
/// The reason of a delivery whose room was deleted.
pub const ROOM_DELETED: &str = "room deleted";
/// The reason of a delivery whose recipient was deleted.
pub const AGENT_DELETED: &str = "agent deleted";

/// Wakes the background job.
#[derive(Clone, Default)]
pub struct RemovalsWaker(Arc<Notify>);

impl RemovalsWaker {
    /// Something may be left to do.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// Starts the job; it looks at once for what an earlier run left, then whenever it is woken.
pub fn start(services: Services, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            if let Err(why) = finish_all(&services, &stop).await {
                tracing::warn!(error = %why, "open deliveries of removed participants were not ended; trying again later");
            }
            tokio::select! {
                () = services.removals.0.notified() => {}
                // A store that was unavailable wakes nobody when it is back.
                () = tokio::time::sleep(std::time::Duration::from_secs(60)) => {}
                () = stop.cancelled() => return,
            }
        }
    })
}

async fn finish_all(services: &Services, stop: &CancellationToken) -> Result<(), StoreError> {
    while !stop.is_cancelled() {
        let left: Option<i64> =
            services.store.read("next_deleted_room", |tx| Box::pin(rooms::next_deleted(tx))).await?;
        if let Some(room_key) = left {
            empty_deleted(services, room_key).await?;
            continue;
        }
        let left: Option<Removal> =
            services.store.read("next_removal", |tx| Box::pin(deliveries::next_removal(tx))).await?;
        if let Some(removal) = left {
            cancel_batch(services, removal).await?;
            continue;
        }
        let left: Option<Departure> =
            services.store.read("next_departure", |tx| Box::pin(tasks::next_departure(tx))).await?;
        if let Some(departure) = left {
            services.drop_batch(departure).await?;
            continue;
        }
        let left: Option<participants::Leftover> =
            services.store.read("next_leftover", |tx| Box::pin(participants::of_deleted(tx))).await?;
        if let Some(leftover) = left {
            services.take_out_deleted(leftover).await?;
            continue;
        }
        let left: Option<IdentityId> =
            services.store.read("next_deleted_contact", |tx| Box::pin(contacts::of_deleted(tx))).await?;
        match left {
            Some(deleted) => services.drop_contacts_of(deleted).await?,
            None if services.forget_deleted().await? => {}
            None => return Ok(()),
        }
    }
    Ok(())
}

async fn cancel_batch(services: &Services, removal: Removal) -> Result<(), StoreError> {
    let now = services.clock.now();
    services
        .store
        .write("cancel_deliveries", move |tx| {
            Box::pin(async move {
                let Removal { room, room_key, member_key, up_to, reason } = removal;
                let ended = deliveries::cancel_open(tx, room_key, member_key, up_to, &reason, now).await?;
                if !deliveries::is_full(&ended) {
                    deliveries::forget_removal(tx, room_key, member_key).await?;
                }
                if !ended.is_empty() {
                    tx.emit(Event::DeliveriesEnded { room, sequences: ended });
                }
                Ok(())
            })
        })
        .await
}

/// Takes some of those who are in a deleted room out of it, ending what is open for them: many who have nothing open,
/// or one who has.
async fn empty_deleted(services: &Services, room_key: i64) -> Result<(), StoreError> {
    const AT_ONCE: i64 = 100;
    let now = services.clock.now();
    services
        .store
        .write("empty_deleted_room", move |tx| {
            Box::pin(async move {
                let mut departed = 0;
                for member_key in participants::keys_in(tx, room_key, AT_ONCE).await? {
                    let ended =
                        deliveries::cancel_open(tx, room_key, member_key, i64::MAX - 1, ROOM_DELETED, now).await?;
                    if deliveries::is_full(&ended) {
                        break;
                    }
                    participants::leave(tx, room_key, member_key, now).await?;
                    departed += 1;
                    if !ended.is_empty() {
                        break;
                    }
                }
                rooms::departed(tx, room_key, departed).await
            })
        })
        .await
}

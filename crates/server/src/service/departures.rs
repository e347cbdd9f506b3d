//! Takes those who left a room off the tasks that they had not completed, in the background and in batches: nobody could
//! ever say more of their part. What is left to do is in the database; [`removals`](crate::service::removals) runs it.

use bandstand_domain::task::TaskRef;
use bandstand_store::tasks::{self, Departure};
use bandstand_store::{StoreError, rooms};

use crate::service::rooms::updated;
use crate::service::tasks::{Saver, save};
use crate::state::Services;

/// What the history says of it.
pub const REASON: &str = "no longer in the room";

/// Most tasks that one operation changes.
const BATCH: i64 = 50;

impl Services {
    /// Goes on with a departure by one batch.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn drop_batch(&self, departure: Departure) -> Result<(), StoreError> {
        let at = self.clock.now();
        self.store
            .write("drop_assignments", move |tx| {
                Box::pin(async move {
                    let Departure { room, room_key, member, member_key, .. } = departure;
                    let Some(advanced) = rooms::advance(tx, room).await? else {
                        // The room was deleted, and nobody reads its tasks.
                        return tasks::departure_done(tx, departure, None).await;
                    };
                    let saver = Saver { room_key, sequence: advanced.sequence, member_key };
                    let numbers = tasks::left_open(tx, departure, BATCH).await?;
                    let mut moved = false;
                    for number in &numbers {
                        let Some(before) = tasks::one(tx, room, room_key, TaskRef::Number(*number)).await? else {
                            continue;
                        };
                        if let Some(saved) = before.task.clone().drop_assignee(member, REASON, at) {
                            moved |= save(tx, &saver, &before, &saved).await?;
                        }
                    }
                    let is_full = i64::try_from(numbers.len()).is_ok_and(|found| found >= BATCH);
                    let looked_at = numbers.last().copied().filter(|_| is_full);
                    tasks::departure_done(tx, departure, looked_at).await?;
                    if moved && let Some(room) = rooms::by_key(tx, room_key).await? {
                        updated::<StoreError>(tx, room_key, room).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}

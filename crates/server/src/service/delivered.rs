//! The `delivered` marks of pushed and served messages, written in batches.
//!
//! A mark may be lost in a crash without harm: the message is then simply served as not yet delivered. So nobody waits
//! for one, and many go into one transaction.

use bandstand_domain::event::Event;
use bandstand_store::deliveries::{self, Reached};
use bandstand_store::{StoreError, messages, rooms};
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::state::Services;

/// Takes `delivered` marks; cheap to clone.
#[derive(Clone)]
pub struct DeliveredMarks {
    queue: mpsc::Sender<(Delivered, Timestamp)>,
    clock: std::sync::Arc<dyn bandstand_domain::clock::Clock>,
}

/// One message that reached one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delivered {
    /// Where.
    pub room: RoomId,
    /// Which message of the room.
    pub sequence: i64,
    /// Whom it reached.
    pub recipient: IdentityId,
    /// How.
    pub how: Reached,
}

/// Most marks in one transaction.
const BATCH: usize = 500;

/// Marks that may wait. When the store cannot keep up the rest is not noted, which harms nothing.
const QUEUE: usize = 50_000;

impl DeliveredMarks {
    /// Starts the task that writes the marks. It ends, with all that was noted written, once `stop` is cancelled.
    pub fn start(services: Services, stop: CancellationToken) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let clock = services.clock.clone();
        (Self { queue, clock }, tokio::spawn(write_batches(services, waiting, stop)))
    }

    /// Notes that a message was pushed to an agent. Never waits.
    pub fn push(&self, room: RoomId, sequence: i64, recipient: IdentityId) {
        self.note(Delivered { room, sequence, recipient, how: Reached::Pushed });
    }

    /// Notes that a message reached an agent. Never waits.
    pub fn note(&self, delivered: Delivered) {
        if self.queue.try_send((delivered, self.clock.now())).is_err() {
            metrics::counter!("delivered_marks_skipped_total").increment(1);
        }
    }
}

async fn write_batches(
    services: Services,
    mut waiting: mpsc::Receiver<(Delivered, Timestamp)>,
    stop: CancellationToken,
) {
    let mut batch: Vec<(Delivered, Timestamp)> = Vec::new();
    loop {
        tokio::select! {
            biased;
            taken = waiting.recv_many(&mut batch, BATCH) => if taken == 0 { return },
            () = stop.cancelled() => return,
        }
        // More marks of the same messages are likely to follow at once: one update for all of them.
        let more = async {
            while batch.len() < BATCH {
                match waiting.recv().await {
                    Some(one) => batch.push(one),
                    None => return,
                }
            }
        };
        tokio::select! {
            () = more => {}
            () = tokio::time::sleep(services.limits.delivered_every) => {}
            () = stop.cancelled() => {}
        }
        batch.sort_unstable();
        batch.dedup_by_key(|(delivered, _)| *delivered);
        for marks in batch.chunk_by(|(one, _), (other, _)| one.room == other.room) {
            if let Err(why) = write(&services, marks.to_vec()).await
                && !matches!(why, Unwritten::Nothing)
            {
                tracing::warn!(error = %why, marks = marks.len(), "delivered marks were not written");
            }
        }
        batch.clear();
    }
}

#[derive(Debug, thiserror::Error)]
enum Unwritten {
    /// Nothing changed, so the room's sequence must not move either: the transaction is rolled back.
    #[error("nothing changed")]
    Nothing,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes the marks of one room and announces one update per message that became `delivered`.
async fn write(services: &Services, marks: Vec<(Delivered, Timestamp)>) -> Result<(), Unwritten> {
    let Some(room) = marks.first().map(|(mark, _)| mark.room) else { return Ok(()) };
    services
        .store
        .write("mark_delivered", move |tx| {
            Box::pin(async move {
                let advanced = rooms::advance(tx, room).await?.ok_or(Unwritten::Nothing)?;
                let mut changed = Vec::new();
                let mut wrote = false;
                for (mark, at) in marks {
                    let noted =
                        deliveries::reached(tx, advanced.key, mark.sequence, mark.recipient, mark.how, at).await?;
                    wrote |= noted.wrote;
                    if noted.became_delivered && changed.last() != Some(&mark.sequence) {
                        changed.push(mark.sequence);
                    }
                }
                if !wrote {
                    return Err(Unwritten::Nothing);
                }
                for message in messages::at(tx, room, advanced.key, &changed).await? {
                    tx.emit(Event::MessageUpdated { message });
                }
                Ok(())
            })
        })
        .await
}

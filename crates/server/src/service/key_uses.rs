//! When keys were last used: noted to the minute, many at a time, in the background. A note may be lost in a crash.

use std::collections::HashMap;

use bandstand_store::keys;
use bandstand_wire::ids::KeyId;
use bandstand_wire::time::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::state::Services;

/// A key's last use is known to within so long, in microseconds: one write a minute for each key at most.
pub const PRECISION_MICROS: i64 = 60_000_000;

/// Most keys in one transaction.
const BATCH: usize = 200;

/// Notes that may wait; more are dropped, and the keys' next uses noted instead.
const QUEUE: usize = 10_000;

/// Takes notes; cheap to clone.
#[derive(Clone)]
pub struct KeyUses {
    queue: mpsc::Sender<(KeyId, Timestamp)>,
}

impl KeyUses {
    /// Starts the task that writes them. It ends, with all that was noted written, once `stop` is cancelled.
    pub fn start(services: Services, stop: CancellationToken) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        (Self { queue }, tokio::spawn(write_all(services, waiting, stop)))
    }

    /// Notes a use. Never waits.
    pub(crate) fn note(&self, key: KeyId, at: Timestamp) {
        let _ = self.queue.try_send((key, at));
    }
}

async fn write_all(services: Services, mut waiting: mpsc::Receiver<(KeyId, Timestamp)>, stop: CancellationToken) {
    let mut batch = Vec::new();
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            taken = waiting.recv_many(&mut batch, BATCH), if !stopping || !waiting.is_empty() => {
                if taken == 0 {
                    return;
                }
            }
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                continue;
            }
            else => return,
        }
        let mut newest: HashMap<KeyId, Timestamp> = HashMap::new();
        for (key, at) in batch.drain(..) {
            let noted = newest.entry(key).or_insert(at);
            *noted = at.max(*noted);
        }
        // In one order everywhere, so that two servers on one database never wait for each other in a circle.
        let mut newest: Vec<_> = newest.into_iter().collect();
        newest.sort_unstable();
        let written = services.store.write("note_key_uses", move |tx| {
            Box::pin(async move {
                for (key, at) in newest {
                    keys::note_use(tx, key, at, PRECISION_MICROS).await?;
                }
                Ok(())
            })
        });
        let written: Result<(), bandstand_store::StoreError> = written.await;
        if let Err(error) = written {
            tracing::debug!(%error, "uses of keys were not noted");
        }
    }
}

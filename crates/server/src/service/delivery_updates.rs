//! Tells people what became of their messages while it happens: `delivery_updated`, with the rows of the ledger.
//!
//! It stands beside the path of a write and costs it nothing: what changed is noted after the commit, and only while a
//! person listens at all. A task gathers the changes for as long as a batch of `delivered` marks takes, reads each
//! changed message once, and tells those who may read its room. An update is a hint, like every push: a lost one is
//! made good by the next, or by asking.

use std::collections::{BTreeMap, BTreeSet};

use bandstand_domain::event::Event;
use bandstand_domain::message::MessageKind;
use bandstand_store::ledger::{Head, Record, Subject};
use bandstand_store::{Commit, StoreError, ledger as records, messages, participants, rooms};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::push::event;
use bandstand_wire::rest::delivery::DeliveryUpdated;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::render::delivery as render;
use crate::service::ledger::ENDINGS;
use crate::socket::hub::Hub;
use crate::state::Services;

/// Changes that may wait; more are not told.
const QUEUE: usize = 10_000;

/// Changes that are gathered at a time.
const BATCH: usize = 500;

/// Most deliveries of one message that an update shows.
const ROWS: i64 = 100;

/// Messages that are read at a time, so that one snapshot is not held for long.
const AT_ONCE: usize = 5;

/// A message of which a delivery changed.
type Changed = (RoomId, i64);

/// Takes what changed.
pub struct DeliveryUpdates {
    hub: Hub,
    queue: mpsc::Sender<Changed>,
}

impl DeliveryUpdates {
    /// What takes the changes, and where they come out.
    pub fn new(hub: Hub) -> (Self, mpsc::Receiver<Changed>) {
        let (queue, changed) = mpsc::channel(QUEUE);
        (Self { hub, queue }, changed)
    }

    /// Looks at what was committed. Never waits.
    pub fn observe(&self, commits: &[Commit]) {
        if !self.hub.do_people_listen() {
            return;
        }
        for event in commits.iter().flat_map(|commit| &commit.events) {
            match event {
                Event::MessageCreated { message, .. } | Event::MessageUpdated { message }
                    if message.kind == MessageKind::Text =>
                {
                    self.note(message.room, message.sequence);
                }
                Event::DeliveriesEnded { room, sequences } => {
                    sequences.iter().for_each(|sequence| self.note(*room, *sequence));
                }
                _ => {}
            }
        }
    }

    fn note(&self, room: RoomId, sequence: i64) {
        if self.queue.try_send((room, sequence)).is_err() {
            metrics::counter!("delivery_updates_skipped_total").increment(1);
        }
    }
}

/// Starts the task that tells people. It ends once `stop` is cancelled.
pub fn start(
    services: Services,
    hub: Hub,
    mut changed: mpsc::Receiver<Changed>,
    stop: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                taken = changed.recv_many(&mut batch, BATCH) => if taken == 0 { return },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(services.limits.delivered_every) => {}
            }
            while batch.len() < BATCH
                && let Ok(one) = changed.try_recv()
            {
                batch.push(one);
            }
            let mut by_room: BTreeMap<RoomId, BTreeSet<i64>> = BTreeMap::new();
            for (room, sequence) in batch.drain(..) {
                by_room.entry(room).or_default().insert(sequence);
            }
            for (room, sequences) in by_room {
                let sequences: Vec<i64> = sequences.into_iter().collect();
                for some in sequences.chunks(AT_ONCE) {
                    if let Err(why) = tell(&services, &hub, room, some.to_vec()).await {
                        tracing::warn!(error = %why, room.id = %room, "cannot tell what became of messages");
                    }
                }
            }
        }
    })
}

/// A changed message as it is read.
struct Found {
    message: MessageId,
    head: Head,
    records: Vec<Record>,
}

async fn tell(services: &Services, hub: &Hub, room: RoomId, sequences: Vec<i64>) -> Result<(), StoreError> {
    let listening = hub.clone();
    let (people, found): (Vec<IdentityId>, Vec<Found>) = services
        .store
        .read("delivery_updates", move |tx| {
            Box::pin(async move {
                let Some(room_key) = rooms::key(tx, room).await? else { return Ok((Vec::new(), Vec::new())) };
                let people = participants::readers(tx, room_key).await?;
                let people = listening.who_listens(people);
                let mut found = Vec::new();
                if people.is_empty() {
                    return Ok((people, found));
                }
                for sequence in sequences {
                    let Some(message) = messages::id_at(tx, room_key, sequence).await? else { continue };
                    let Some(head) = records::head(tx, room_key, sequence).await? else { continue };
                    let subject = Subject { room_key, sequence, posted_at: head.posted_at, endings: &ENDINGS };
                    let records = records::of_message(tx, subject, 0, ROWS + 1).await?;
                    found.push(Found { message, head, records });
                }
                Ok((people, found))
            })
        })
        .await?;
    for Found { message, head, mut records } in found {
        let shown = usize::try_from(ROWS).unwrap_or(usize::MAX);
        let has_more = records.len() > shown;
        records.truncate(shown);
        if records.is_empty() {
            continue;
        }
        let rows = records.into_iter().map(|record| render::row(&services.accounted(room, message, &head, record)));
        let update = DeliveryUpdated { message_id: message, chat_room_id: room, deliveries: rows.collect(), has_more };
        hub.tell_people(&people, event::DELIVERY_UPDATED, &update);
    }
    Ok(())
}

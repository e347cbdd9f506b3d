//! The one task between the store and the sockets: it puts each room's commits in order and announces them.
//!
//! One task rather than a lock: the store's writer only hands over (a fan-out to a thousand would keep it from the next
//! commit for a millisecond), order needs no further thought, and waiting for a missing commit is a timer. Announcing
//! costs some microseconds plus a fraction of one for each listener; the writing is done by the sockets' own tasks.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bandstand_domain::event::Event;
use bandstand_store::{Commit, Store, StoreError};
use bandstand_wire::ids::RoomId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::audience;
use super::hub::Shared;
use super::sequencer::{Gap, Sequencer};
use crate::service::missed;

/// How often activity reports expire and throttles are tidied.
const TICK: Duration = Duration::from_millis(250);

/// How often rooms that nobody hears are forgotten: late enough that two commits that overtake each other meet.
const TIDY: Duration = Duration::from_secs(10);

/// What the task is told.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The store committed.
    Commits(Vec<Commit>),
    /// The store cannot say whether it committed these.
    Uncertain(Vec<Commit>),
    /// What storage holds of a gap in a room; `sure` when the gap's commits are known to have happened.
    Read {
        /// Where.
        room: RoomId,
        /// What was asked for.
        gap: Gap,
        /// The gap's rows, each with its sequence number.
        rows: Vec<(i64, Event)>,
        /// Whether the room goes on even if there are none.
        sure: bool,
    },
    /// Somebody joined a room that stood at this sequence.
    Joined(RoomId, i64),
    /// Tell when everything before this was announced.
    Flush(oneshot::Sender<()>),
}

/// How often, and at what distance, storage is asked what became of a commit that is uncertain.
const ASK_UNCERTAIN: u32 = 60;
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Runs until the last handle to the hub is gone; `back` is for answers, and keeps no handle alive.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut notices: mpsc::UnboundedReceiver<Notice>,
    back: mpsc::WeakUnboundedSender<Notice>,
) {
    let mut order = Order { back, rooms: HashMap::new(), waiting: Vec::new() };
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut tidied = Instant::now();
    loop {
        let gap = order.deadline();
        tokio::select! {
            notice = notices.recv() => match notice {
                Some(notice) => order.take(&shared, notice),
                None => return,
            },
            () = tokio::time::sleep_until(gap.unwrap_or_else(Instant::now)), if gap.is_some() => order.give_up(&shared),
            _ = tick.tick() => {
                let now = Instant::now();
                shared.expire(now);
                if now.duration_since(tidied) >= TIDY {
                    tidied = now;
                    order.tidy(&shared);
                }
            }
        }
    }
}

/// Every room's order.
struct Order {
    back: mpsc::WeakUnboundedSender<Notice>,
    rooms: HashMap<RoomId, Sequencer>,
    /// Rooms in which a commit waits for a missing one; nearly always empty.
    waiting: Vec<RoomId>,
}

impl Order {
    fn take(&mut self, shared: &Shared, notice: Notice) {
        match notice {
            Notice::Commits(commits) => commits.into_iter().for_each(|commit| self.commit(shared, commit)),
            Notice::Uncertain(commits) => commits.into_iter().for_each(|commit| self.uncertain(shared, commit)),
            Notice::Read { room, gap, rows, sure } => {
                if sure || !rows.is_empty() {
                    metrics::counter!("hub_repaired_rows_total").increment(u64::try_from(rows.len()).unwrap_or(0));
                    let ready = self.rooms.entry(room).or_default().fill(gap, rows);
                    self.forget_waiting();
                    announce(shared, &ready);
                }
            }
            Notice::Joined(room, sequence) => self.rooms.entry(room).or_default().start(sequence),
            Notice::Flush(done) => {
                // Whoever asks may have stopped waiting.
                let _ = done.send(());
            }
        }
    }

    fn commit(&mut self, shared: &Shared, commit: Commit) {
        let Some((room, sequence)) = commit.room else {
            return announce(shared, &commit.events);
        };
        let sequencer = self.rooms.entry(room).or_default();
        let ready = sequencer.accept(sequence, commit.events, Instant::now());
        if !sequencer.is_idle() && !self.waiting.contains(&room) {
            self.waiting.push(room);
        }
        announce(shared, &ready);
    }

    fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|room| self.rooms.get(room)?.deadline()).min()
    }

    fn give_up(&mut self, shared: &Shared) {
        let now = Instant::now();
        for room in &self.waiting {
            let Some(sequencer) = self.rooms.get_mut(room) else { continue };
            if let Some(store) = shared.store.get()
                && let Some(gap) = sequencer.ask(now)
            {
                read_back(store.clone(), self.back.clone(), *room, gap, true);
                continue;
            }
            let (ready, missing) = sequencer.give_up(now);
            if missing > 0 {
                tracing::warn!(room.id = %room, missing, "commits of a room did not arrive in time; going on without");
                metrics::counter!("hub_missing_commits_total").increment(missing.unsigned_abs());
            }
            announce(shared, &ready);
        }
        self.forget_waiting();
    }

    fn forget_waiting(&mut self) {
        let rooms = &self.rooms;
        self.waiting.retain(|room| rooms.get(room).is_some_and(|sequencer| !sequencer.is_idle()));
    }

    /// A commit that may or may not have happened. A key or an identity that may be gone loses its sockets: it connects
    /// again if it is not. What may have been posted is looked up. All else is found by whoever asks next.
    fn uncertain(&self, shared: &Shared, commit: Commit) {
        let harmless = |event: &Event| matches!(event, Event::KeyRevoked { .. } | Event::IdentityRemoved { .. });
        let ready: Vec<Event> = commit.events.into_iter().filter(harmless).collect();
        announce(shared, &ready);
        if let (Some((room, sequence)), Some(store)) = (commit.room, shared.store.get()) {
            let gap = Gap { after: sequence - 1, before: sequence + 1 };
            read_back(store.clone(), self.back.clone(), room, gap, false);
        }
    }

    /// Forgets rooms that nobody hears: the next commit or join starts them anew.
    fn tidy(&mut self, shared: &Shared) {
        self.rooms.retain(|room, sequencer| !sequencer.is_idle() || shared.rooms.contains(*room));
        self.rooms.shrink_to(self.rooms.len() * 2);
    }
}

/// Reads what storage holds of a gap, apart from the task, which must not wait. Where the store just failed (the commit
/// is not `sure`) it is asked for a minute; else once, since the room waits for the answer.
fn read_back(store: Store, back: mpsc::WeakUnboundedSender<Notice>, room: RoomId, gap: Gap, sure: bool) {
    tokio::spawn(async move {
        let mut tries = if sure { 1 } else { ASK_UNCERTAIN };
        let rows = loop {
            match missed::rows(&store, room, gap.after, gap.before).await {
                Ok(rows) => break rows,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tries -= 1;
                    if tries == 0 || back.strong_count() == 0 {
                        tracing::warn!(room.id = %room, %error, "missing rows of a room cannot be read");
                        return;
                    }
                }
            }
            tokio::time::sleep(ASK_AGAIN).await;
        };
        if let Some(back) = back.upgrade() {
            // The task is gone only with the runtime, and then nobody is connected.
            let _ = back.send(Notice::Read { room, gap, rows, sure });
        }
    });
}

/// A panic is a bug in one kind of event; without the catch it would end all pushes of the server, silently.
fn announce(shared: &Shared, events: &[Event]) {
    for event in events {
        if std::panic::catch_unwind(AssertUnwindSafe(|| audience::announce(shared, event))).is_err() {
            tracing::error!("announcing an event panicked; its listeners find it through REST");
        }
    }
}

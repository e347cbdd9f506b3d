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
use bandstand_store::Commit;
use bandstand_wire::ids::RoomId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::audience;
use super::hub::Shared;
use super::sequencer::Sequencer;

/// How often activity reports expire and throttles are tidied.
const TICK: Duration = Duration::from_millis(250);

/// How often rooms that nobody hears are forgotten: late enough that two commits that overtake each other meet.
const TIDY: Duration = Duration::from_secs(10);

/// What the task is told.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The store committed.
    Commits(Vec<Commit>),
    /// Somebody joined a room that stood at this sequence.
    Joined(RoomId, i64),
    /// Tell when everything before this was announced.
    Flush(oneshot::Sender<()>),
}

/// Runs until the last handle to the hub is gone.
pub(crate) async fn run(shared: Arc<Shared>, mut notices: mpsc::UnboundedReceiver<Notice>) {
    let mut order = Order::default();
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
#[derive(Default)]
struct Order {
    rooms: HashMap<RoomId, Sequencer>,
    /// Rooms in which a commit waits for a missing one; nearly always empty.
    waiting: Vec<RoomId>,
}

impl Order {
    fn take(&mut self, shared: &Shared, notice: Notice) {
        match notice {
            Notice::Commits(commits) => commits.into_iter().for_each(|commit| self.commit(shared, commit)),
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
            let (ready, missing) = sequencer.give_up(now);
            if missing > 0 {
                tracing::warn!(room.id = %room, missing, "commits of a room did not arrive in time; going on without");
                metrics::counter!("hub_missing_commits_total").increment(missing.unsigned_abs());
            }
            announce(shared, &ready);
        }
        let rooms = &self.rooms;
        self.waiting.retain(|room| rooms.get(room).is_some_and(|sequencer| !sequencer.is_idle()));
    }

    /// Forgets rooms that nobody hears: the next commit or join starts them anew.
    fn tidy(&mut self, shared: &Shared) {
        self.rooms.retain(|room, sequencer| !sequencer.is_idle() || shared.rooms.contains(*room));
        self.rooms.shrink_to(self.rooms.len() * 2);
    }
}

/// A panic is a bug in one kind of event; without the catch it would end all pushes of the server, silently.
fn announce(shared: &Shared, events: &[Event]) {
    for event in events {
        if std::panic::catch_unwind(AssertUnwindSafe(|| audience::announce(shared, event))).is_err() {
            tracing::error!("announcing an event panicked; its listeners find it through REST");
        }
    }
}

//! What this server sees of agents: when they are connected, replaced by a newer connection, refused for sending too
//! much, and their signs of life in rooms. The ledger reads it here while the server runs; a background job writes it
//! down, so that the next run knows.
//!
//! Little is written: a row when an agent comes or goes, many at a time, and a row a minute while it works in a room. A
//! crash loses what was seen in the last quarter of a second, as if it had happened that much earlier. A run that ends
//! says so; of one that crashed, the next finds when it last wrote.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bandstand_domain::clock::Clock;
use bandstand_domain::ledger::Limited;
use bandstand_store::StoreError;
use bandstand_store::sightings::{self, Sighting};
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::state::Services;

/// What happens meanwhile goes into one transaction.
const TOGETHER: Duration = Duration::from_millis(250);

/// While an agent is connected, a run writes so often that it lives.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// A sign of life that goes on is written so often.
const ACTIVITY_EVERY: i64 = 60_000_000;

/// Refusals that are no further apart are one row of them.
const REFUSALS_APART: i64 = 60_000_000;

/// What was written is kept in memory for so long, so that a reader whose snapshot is older still finds it.
const KEPT: i64 = 60_000_000;

/// Most rows in one transaction.
const BATCH: usize = 500;

/// Cheap to clone; all clones see the same.
#[derive(Clone)]
pub struct Sightings(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
    changed: Notify,
}

#[derive(Default)]
struct Seen {
    agents: HashMap<IdentityId, Agent>,
    rooms: HashMap<(RoomId, IdentityId), Activity>,
}

/// What was seen of an agent in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Agent {
    connected: Option<(Timestamp, Option<Timestamp>)>,
    superseded_at: Option<Timestamp>,
    limited: Option<Limited>,
    dirty: bool,
}

/// Signs of life in a room.
#[derive(Clone, Copy, Debug)]
struct Activity {
    last: Timestamp,
    written: Option<Timestamp>,
    over: bool,
}

/// What this server sees of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// Since when it is connected, or since when it no longer is; none if it was not connected in this run.
    pub live: Option<Result<Timestamp, Timestamp>>,
    /// When a newer connection replaced an older one.
    pub superseded_at: Option<Timestamp>,
    /// When its requests were refused.
    pub limited: Option<Limited>,
}

impl Sightings {
    /// Nothing seen yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { clock, seen: Mutex::default(), changed: Notify::new() }))
    }

    /// An agent's first connection began.
    pub fn connected(&self, agent: IdentityId) {
        let now = self.0.clock.now();
        self.change(agent, |seen| seen.connected = Some((now, None)));
    }

    /// An agent's last connection ended.
    pub fn gone(&self, agent: IdentityId) {
        let now = self.0.clock.now();
        self.change(agent, |seen| seen.connected = seen.connected.map(|(since, _)| (since, Some(now))));
    }

    /// A newer connection of an agent took the place of an older one.
    pub fn superseded(&self, agent: IdentityId) {
        let now = self.0.clock.now();
        self.change(agent, |seen| seen.superseded_at = Some(now));
    }

    /// A request of an agent was refused for being one too many, and it was told to come back after a while. Cheap:
    /// whoever limits requests calls it for each refusal.
    pub fn rate_limited(&self, agent: IdentityId, retry_after: Duration) {
        let now = self.0.clock.now();
        let wait = i64::try_from(retry_after.as_micros()).unwrap_or(i64::MAX);
        self.change(agent, |seen| {
            let apart = |before: &Limited| now.as_micros().saturating_sub(before.last_at.as_micros());
            let same = seen.limited.filter(|before| apart(before) <= REFUSALS_APART);
            let first_at = same.map_or(now, |before| before.first_at);
            seen.limited = Some(Limited { first_at, last_at: now, until: now.plus_micros(wait) });
        });
    }

    /// An agent reported that it works in a room, or that it no longer does.
    pub fn active(&self, room: RoomId, agent: IdentityId, working: bool) {
        let now = self.0.clock.now();
        let mut seen = self.lock();
        let activity = seen.rooms.entry((room, agent)).or_insert(Activity { last: now, written: None, over: !working });
        activity.last = now;
        activity.over = !working;
        let due = activity.due(now);
        drop(seen);
        if due {
            self.0.changed.notify_one();
        }
    }

    /// What was seen of an agent.
    pub fn of(&self, agent: IdentityId) -> Glimpse {
        let seen = self.lock();
        let Some(one) = seen.agents.get(&agent) else { return Glimpse::default() };
        let live = one.connected.map(|(since, until)| until.map_or(Ok(since), Err));
        Glimpse { live, superseded_at: one.superseded_at, limited: one.limited }
    }

    /// An agent's last report of activity in a room, or of its end.
    pub fn activity(&self, room: RoomId, agent: IdentityId) -> Option<Timestamp> {
        self.lock().rooms.get(&(room, agent)).map(|activity| activity.last)
    }

    fn change(&self, agent: IdentityId, what: impl FnOnce(&mut Agent)) {
        let mut seen = self.lock();
        let one = seen.agents.entry(agent).or_default();
        what(one);
        one.dirty = true;
        drop(seen);
        self.0.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is to be written: nobody else writes it from here on. With `all`, also signs of life that need not
    /// be written yet.
    fn take(&self, all: bool) -> Unwritten {
        let now = self.0.clock.now();
        let mut unwritten = Unwritten::default();
        let mut seen = self.lock();
        for (agent, one) in seen.agents.iter_mut().filter(|(_, one)| one.dirty).take(BATCH) {
            one.dirty = false;
            let limited = one.limited.map(|limited| [limited.first_at, limited.last_at, limited.until]);
            let (connected, superseded_at) = (one.connected, one.superseded_at);
            unwritten.agents.push(Sighting { agent: *agent, connected, superseded_at, limited });
        }
        for ((room, agent), activity) in
            seen.rooms.iter_mut().filter(|(_, activity)| activity.due(now) || (all && activity.is_new())).take(BATCH)
        {
            activity.written = Some(activity.last);
            unwritten.rooms.push((*room, *agent, activity.last));
        }
        unwritten
    }

    /// What could not be written is to be written again.
    fn put_back(&self, unwritten: &Unwritten) {
        let mut seen = self.lock();
        for sighting in &unwritten.agents {
            if let Some(one) = seen.agents.get_mut(&sighting.agent) {
                one.dirty = true;
            }
        }
        for (room, agent, _) in &unwritten.rooms {
            if let Some(activity) = seen.rooms.get_mut(&(*room, *agent)) {
                activity.written = None;
            }
        }
    }

    /// Forgets what was written a while ago and does not go on; whether any agent is connected.
    fn tidy(&self) -> bool {
        let old = self.0.clock.now().plus_micros(-KEPT);
        let mut seen = self.lock();
        seen.agents.retain(|_, one| {
            let until = match one.connected {
                Some((_, None)) => return true,
                Some((_, until)) => until,
                None => None,
            };
            let newest = until.max(one.superseded_at).max(one.limited.map(|limited| limited.last_at));
            one.dirty || newest.is_none_or(|newest| newest > old)
        });
        seen.rooms.retain(|_, activity| activity.is_new() || activity.last > old);
        seen.agents.values().any(|one| matches!(one.connected, Some((_, None))))
    }
}

impl Activity {
    fn is_new(&self) -> bool {
        self.written.is_none_or(|written| written < self.last)
    }

    /// Whether it is to be written: when it ends, and every now and then.
    fn due(&self, now: Timestamp) -> bool {
        let since = |written: Timestamp| now.as_micros().saturating_sub(written.as_micros());
        self.is_new() && (self.over || self.written.is_none_or(|written| since(written) >= ACTIVITY_EVERY))
    }
}

#[derive(Clone, Default)]
struct Unwritten {
    agents: Vec<Sighting>,
    rooms: Vec<(RoomId, IdentityId, Timestamp)>,
}

impl Unwritten {
    fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.rooms.is_empty()
    }
}

/// Begins a run of the server: whatever connections an earlier one left open are over.
///
/// # Errors
/// When the store fails.
pub async fn begin(services: &Services) -> Result<i64, StoreError> {
    let now = services.clock.now();
    services.store.write("begin_run", move |tx| Box::pin(sightings::begin_run(tx, now))).await
}

/// Starts the job that writes down what is seen in run `run`. It ends, with all written, once `stop` is cancelled.
pub fn start(services: Services, run: i64, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        alive.tick().await;
        loop {
            let is_tick = tokio::select! {
                () = services.sightings.0.changed.notified() => false,
                _ = alive.tick() => true,
                () = stop.cancelled() => break,
            };
            if !is_tick {
                tokio::select! {
                    () = tokio::time::sleep(TOGETHER) => {}
                    () = stop.cancelled() => break,
                }
            }
            let someone = services.sightings.tidy();
            if let Err(why) = write(&services, run, is_tick && someone, false).await {
                tracing::warn!(error = %why, "what was seen of agents was not written; trying again later");
            }
        }
        let ended = async {
            write(&services, run, false, true).await?;
            let now = services.clock.now();
            services.store.write("end_run", move |tx| Box::pin(sightings::end_run(tx, run, now))).await
        };
        let ended: Result<(), StoreError> = ended.await;
        if let Err(why) = ended {
            tracing::warn!(error = %why, "the end of this run was not written; the next one takes it for a crash");
        }
    })
}

/// Writes what is new; `alive` also when nothing is.
async fn write(services: &Services, run: i64, alive: bool, all: bool) -> Result<(), StoreError> {
    let mut alive = alive;
    loop {
        let unwritten = services.sightings.take(all);
        if unwritten.is_empty() && !alive {
            return Ok(());
        }
        alive = false;
        let (now, new) = (services.clock.now(), unwritten.clone());
        let written: Result<(), StoreError> = services
            .store
            .write("note_sightings", move |tx| {
                Box::pin(async move {
                    sightings::alive(tx, run, now).await?;
                    sightings::note(tx, run, &new.agents).await?;
                    sightings::note_activity(tx, &new.rooms).await
                })
            })
            .await;
        if let Err(why) = written {
            services.sightings.put_back(&unwritten);
            return Err(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use uuid::Uuid;

    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::SeqCst))
        }
    }

    fn sightings() -> (Sightings, Arc<Hand>) {
        let hand = Arc::new(Hand(AtomicI64::new(0)));
        (Sightings::new(hand.clone()), hand)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn coming_and_going_is_written_once_and_forgotten_later() {
        let (sightings, hand) = sightings();
        let agent = IdentityId(Uuid::from_u128(1));
        sightings.connected(agent);
        assert_eq!(sightings.of(agent).live, Some(Ok(at(0))));
        hand.0.store(5_000_000, Ordering::SeqCst);
        sightings.gone(agent);
        assert_eq!(sightings.of(agent).live, Some(Err(at(5))));
        let taken = sightings.take(false);
        assert_eq!(taken.agents.len(), 1);
        assert_eq!(taken.agents[0].connected, Some((at(0), Some(at(5)))));
        assert!(sightings.take(true).is_empty());
        sightings.put_back(&taken);
        assert_eq!(sightings.take(false).agents, taken.agents);
        assert!(!sightings.tidy());
        assert!(sightings.of(agent).live.is_some(), "a reader may have an older snapshot");
        hand.0.store(70_000_000, Ordering::SeqCst);
        sightings.tidy();
        assert_eq!(sightings.of(agent), Glimpse::default());
    }

    #[test]
    fn an_hour_of_activity_is_written_once_a_minute() {
        let (sightings, hand) = sightings();
        let (room, agent) = (RoomId(Uuid::from_u128(2)), IdentityId(Uuid::from_u128(1)));
        let mut written = 0;
        for second in (0..3600).step_by(3) {
            hand.0.store(second * 1_000_000, Ordering::SeqCst);
            sightings.active(room, agent, true);
            written += sightings.take(false).rooms.len();
        }
        assert_eq!(written, 60);
        sightings.active(room, agent, true);
        hand.0.store(3_600_000_000, Ordering::SeqCst);
        sightings.active(room, agent, false);
        assert_eq!(sightings.take(false).rooms, [(room, agent, at(3600))]);
    }

    #[test]
    fn refusals_in_a_row_have_one_beginning() {
        let (sightings, hand) = sightings();
        let agent = IdentityId(Uuid::from_u128(1));
        for second in [10, 11, 40] {
            hand.0.store(second * 1_000_000, Ordering::SeqCst);
            sightings.rate_limited(agent, Duration::from_secs(2));
        }
        let limited = Limited { first_at: at(10), last_at: at(40), until: at(42) };
        assert_eq!(sightings.of(agent).limited, Some(limited));
        hand.0.store(200_000_000, Ordering::SeqCst);
        sightings.rate_limited(agent, Duration::from_secs(1));
        assert_eq!(sightings.of(agent).limited.map(|limited| limited.first_at), Some(at(200)));
    }
}

//! Signs that an agent is at work: what the processing lease is judged by.
//!
//! They are spans of time on the monotonic clock, in this process's memory: whoever restarts the server gives each
//! agent the whole lease again, since nobody could report to a server that was down. With several servers on one
//! database another implementation of [`SignsOfLife`] takes its place; the job that uses it does not change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bandstand_domain::lease::Signs;
use bandstand_wire::ids::{IdentityId, RoomId};
use tokio::time::Instant;

use crate::socket::hub::Hub;
use crate::socket::locked;

/// Knows whether an agent is at work.
pub trait SignsOfLife: Send + Sync {
    /// What is known of an agent and its work in a room.
    fn of(&self, agent: IdentityId, room: RoomId) -> Signs;

    /// The attempt that this was asked for has lapsed: its signs are not needed any more.
    fn forget(&self, agent: IdentityId, room: RoomId);
}

/// Collects the signs, from marks, reports, posts and connections; cheap to clone.
#[derive(Clone)]
pub struct Observed(Arc<Inner>);

struct Inner {
    since: Instant,
    work: Mutex<HashMap<(IdentityId, RoomId), Work>>,
    left: Mutex<HashMap<IdentityId, Instant>>,
}

#[derive(Clone, Copy)]
struct Work {
    last: Instant,
    reports: bool,
}

/// What is older than this is forgotten. What that loses is on the safe side: a silence of this length has been judged
/// long before, and an absence counts from the server's start at most.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// When a map has grown to a multiple of this, what is old is looked for.
const TIDY: usize = 1024;

impl Default for Observed {
    fn default() -> Self {
        Self(Arc::new(Inner { since: Instant::now(), work: Mutex::default(), left: Mutex::default() }))
    }
}

impl Observed {
    /// An agent took up a message in a room.
    pub fn claimed(&self, agent: IdentityId, room: RoomId) {
        self.note(agent, room, Work { last: Instant::now(), reports: false });
    }

    /// An agent ended its attempt in a room.
    pub fn ended(&self, agent: IdentityId, room: RoomId) {
        locked(&self.0.work).remove(&(agent, room));
    }

    /// An agent said whether it works in a room.
    pub fn reported(&self, agent: IdentityId, room: RoomId) {
        self.note(agent, room, Work { last: Instant::now(), reports: true });
    }

    /// An agent posted in a room. It counts only while an attempt is known, and says nothing about reports.
    pub fn posted(&self, agent: IdentityId, room: RoomId) {
        if let Some(work) = locked(&self.0.work).get_mut(&(agent, room)) {
            work.last = Instant::now();
        }
    }

    /// An agent's last connection ended.
    pub fn left(&self, agent: IdentityId) {
        let (mut left, now) = (locked(&self.0.left), Instant::now());
        if left.len() % TIDY == TIDY - 1 {
            left.retain(|_, at| now.duration_since(*at) < KEPT);
        }
        left.insert(agent, now);
    }

    fn note(&self, agent: IdentityId, room: RoomId, work: Work) {
        let mut all = locked(&self.0.work);
        if all.len() % TIDY == TIDY - 1 {
            all.retain(|_, old| work.last.duration_since(old.last) < KEPT);
        }
        all.insert((agent, room), work);
    }

    fn of(&self, agent: IdentityId, room: RoomId, connected: bool, now: Instant) -> Signs {
        let work = locked(&self.0.work).get(&(agent, room)).copied();
        let left = locked(&self.0.left).get(&agent).copied();
        let ago = |then: Option<Instant>| now.duration_since(then.unwrap_or(self.0.since));
        Signs {
            connected,
            gone_for: if connected { Duration::ZERO } else { ago(left) },
            reports: work.is_some_and(|work| work.reports),
            quiet_for: ago(work.map(|work| work.last)),
        }
    }
}

/// The signs of those who are connected to this server.
pub struct LiveSigns(Hub);

impl LiveSigns {
    /// Over the hub of a running server.
    pub fn new(hub: Hub) -> Self {
        Self(hub)
    }
}

impl SignsOfLife for LiveSigns {
    fn of(&self, agent: IdentityId, room: RoomId) -> Signs {
        self.0.observed().of(agent, room, self.0.is_online(agent), Instant::now())
    }

    fn forget(&self, agent: IdentityId, room: RoomId) {
        self.0.observed().ended(agent, room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test(start_paused = true)]
    async fn signs_are_spans_since_the_last_one() {
        let (observed, agent, room) = (Observed::default(), IdentityId(Uuid::from_u128(1)), RoomId(Uuid::from_u128(2)));
        let of = |connected| observed.of(agent, room, connected, Instant::now());
        let second = Duration::from_secs(1);
        tokio::time::advance(7 * second).await;
        assert_eq!(of(false).gone_for, 7 * second, "never seen: as long as the server has run");
        observed.claimed(agent, room);
        tokio::time::advance(second).await;
        assert_eq!((of(true).reports, of(true).quiet_for, of(true).gone_for), (false, second, Duration::ZERO));
        observed.reported(agent, room);
        observed.left(agent);
        tokio::time::advance(2 * second).await;
        assert_eq!((of(false).reports, of(false).quiet_for, of(false).gone_for), (true, 2 * second, 2 * second));
        observed.posted(agent, room);
        assert_eq!((of(false).reports, of(false).quiet_for), (true, Duration::ZERO));
        observed.ended(agent, room);
        observed.posted(agent, room);
        assert!(!of(false).reports);
        assert_eq!(of(false).quiet_for, 10 * second);
    }
}

//! How many requests a minute one key may make, and how many unknown keys one address may show.
//!
//! Each key (or address) has room for a minute's worth of requests, which fills again evenly; a full one is forgotten.
//! One number says it all: when it will be full (the generic cell rate algorithm). Time is the clock that is passed in;
//! should it jump back, nobody waits longer than for an empty one.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use bandstand_domain::clock::Clock;
use bandstand_wire::ids::{IdentityKind, KeyId};

use crate::auth::Caller;
use crate::settings::Limits;

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// `GET` by an agent.
    AgentReads,
    /// All else by an agent.
    AgentWrites,
    /// `GET` by a user.
    UserReads,
    /// All else by a user.
    UserWrites,
}

impl Class {
    /// The class of a request.
    pub fn of(kind: IdentityKind, reads: bool) -> Self {
        match (kind, reads) {
            (IdentityKind::Agent, true) => Self::AgentReads,
            (IdentityKind::Agent, false) => Self::AgentWrites,
            (IdentityKind::User, true) => Self::UserReads,
            (IdentityKind::User, false) => Self::UserWrites,
        }
    }

    /// As a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentReads => "agent_reads",
            Self::AgentWrites => "agent_writes",
            Self::UserReads => "user_reads",
            Self::UserWrites => "user_writes",
        }
    }

    fn limit(self, limits: &Limits) -> Option<u32> {
        match self {
            Self::AgentReads => limits.agent_reads_per_minute,
            Self::AgentWrites => limits.agent_writes_per_minute,
            Self::UserReads => limits.user_reads_per_minute,
            Self::UserWrites => limits.user_writes_per_minute,
        }
    }
}

/// How a key stands after a request, as reply headers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Requests a minute.
    pub limit: u32,
    /// Requests that it may make at once.
    pub remaining: u32,
    /// When it may make [`limit`](Self::limit) again, or after a refusal the next one: seconds since 1970, rounded up.
    pub reset: i64,
    /// Whole seconds to wait, when this one was refused; at least 1.
    pub wait: Option<u64>,
}

const SECOND: i64 = 1_000_000;

/// One key's or connection's allowance: what it may use up at once, and how long that takes to fill again.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Microseconds in which all of it fills again.
    window: i64,
    /// Microseconds in which one fills again.
    each: i64,
}

impl Allowance {
    /// `count` at once, which take `seconds` to fill again.
    pub fn new(count: u32, seconds: i64) -> Self {
        let window = seconds.max(1) * SECOND;
        let each = (window / i64::from(count.max(1))).max(1);
        // Rounding must not cost the last of them.
        Self { window: each * i64::from(count.max(1)), each }
    }

    /// Uses one up: `full_at` is when all of it will be there again, moved on if this one was there, or `force` is set.
    ///
    /// # Errors
    /// Microseconds to wait.
    pub fn take(self, full_at: &mut i64, now: i64, force: bool) -> Result<(), i64> {
        let used = (*full_at).clamp(now, now.saturating_add(self.window)) - now;
        let lacking = used + self.each - self.window;
        if lacking > 0 {
            *full_at = now + if force { self.window } else { used };
            return if force { Ok(()) } else { Err(lacking) };
        }
        *full_at = now + used + self.each;
        Ok(())
    }

    fn remaining(self, full_at: i64, now: i64) -> u32 {
        u32::try_from((self.window - (full_at - now).clamp(0, self.window)) / self.each).unwrap_or(u32::MAX)
    }
}

/// When each allowance will be full. Those that are full by now are forgotten when their number has doubled.
#[derive(Debug)]
struct Table<K> {
    full_at: HashMap<K, i64>,
    tidy_at: usize,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { full_at: HashMap::new(), tidy_at: SMALL }
    }
}

/// A table below this size is not tidied.
const SMALL: usize = 1024;

/// A table never has more rows: addresses cost an attacker nothing. Beyond it, the table starts over.
const MOST: usize = 100_000;

impl<K: Hash + Eq> Table<K> {
    fn row(&mut self, key: K, now: i64) -> &mut i64 {
        if self.full_at.len() >= self.tidy_at {
            self.full_at.retain(|_, full_at| *full_at > now);
            if self.full_at.len() >= MOST {
                self.full_at.clear();
            }
            self.tidy_at = (self.full_at.len() * 2).clamp(SMALL, MOST);
            self.full_at.shrink_to(self.tidy_at);
        }
        self.full_at.entry(key).or_insert(now)
    }
}

/// All rates of a running server.
pub struct Rates {
    limits: Arc<Limits>,
    clock: Arc<dyn Clock>,
    callers: Mutex<Table<(KeyId, Class)>>,
    strangers: Mutex<Table<IpAddr>>,
}

fn locked<T>(table: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whole seconds that are no shorter.
fn seconds(micros: i64) -> i64 {
    micros.div_euclid(SECOND) + i64::from(micros.rem_euclid(SECOND) > 0)
}

impl Rates {
    /// With these limits and this clock.
    pub fn new(limits: Arc<Limits>, clock: Arc<dyn Clock>) -> Self {
        Self { limits, clock, callers: Mutex::default(), strangers: Mutex::default() }
    }

    /// Whether requests are counted at all.
    pub fn counts_requests(&self) -> bool {
        let classes = [Class::AgentReads, Class::AgentWrites, Class::UserReads, Class::UserWrites];
        classes.into_iter().any(|class| class.limit(&self.limits).is_some())
    }

    /// Counts a request; `None` when its class has no limit. What `settles` is counted and never refused: clients send
    /// it once, and without it a message would be worked on again.
    pub fn take(&self, caller: Caller, reads: bool, settles: bool) -> Option<Standing> {
        let class = Class::of(caller.kind, reads);
        let limit = class.limit(&self.limits)?;
        let allowance = Allowance::new(limit, 60);
        let now = self.clock.now().as_micros();
        let mut callers = locked(&self.callers);
        let full_at = callers.row((caller.key, class), now);
        let taken = allowance.take(full_at, now, settles);
        let remaining = allowance.remaining(*full_at, now);
        Some(match taken {
            Ok(()) => Standing { limit, remaining, reset: seconds(*full_at), wait: None },
            Err(lacking) => {
                metrics::counter!("requests_limited_total", "limit" => class.as_str()).increment(1);
                let wait = u64::try_from(seconds(lacking)).unwrap_or(1).max(1);
                Standing { limit, remaining: 0, reset: seconds(now + lacking), wait: Some(wait) }
            }
        })
    }

    /// Whether an address has shown so many unknown keys that no more are looked up for it just now.
    ///
    /// # Errors
    /// Whole seconds to wait.
    pub fn may_try(&self, from: Option<IpAddr>) -> Result<(), u64> {
        let (Some(from), Some(allowance)) = (from.map(network), self.failures()) else { return Ok(()) };
        let now = self.clock.now().as_micros();
        let mut full_at = locked(&self.strangers).full_at.get(&from).copied().unwrap_or(now);
        // A try, which counts only once it has failed.
        allowance.take(&mut full_at, now, false).map_err(|lacking| u64::try_from(seconds(lacking)).unwrap_or(1).max(1))
    }

    /// A key was not looked up because of that.
    pub fn refused_stranger(&self) {
        metrics::counter!("requests_limited_total", "limit" => "auth_failures").increment(1);
    }

    /// An address has shown an unknown key.
    pub fn failed(&self, from: Option<IpAddr>) {
        let (Some(from), Some(allowance)) = (from.map(network), self.failures()) else { return };
        let now = self.clock.now().as_micros();
        let mut strangers = locked(&self.strangers);
        let counted = allowance.take(strangers.row(from, now), now, true);
        debug_assert!(counted.is_ok(), "forced");
    }

    fn failures(&self) -> Option<Allowance> {
        let limit = self.limits.auth_failures_per_minute;
        (limit > 0).then(|| Allowance::new(limit, 60))
    }
}

/// What counts as one address: with version 6, whoever has one has 2⁶⁴ of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_minutes_worth_at_once_and_then_evenly() {
        let (allowance, mut full_at) = (Allowance::new(60, 60), 0);
        for used in 0..60 {
            assert_eq!(allowance.remaining(full_at, 0), 60 - used);
            assert_eq!(allowance.take(&mut full_at, 0, false), Ok(()));
        }
        assert_eq!(allowance.take(&mut full_at, 0, false), Err(SECOND));
        assert_eq!(allowance.take(&mut full_at, SECOND - 1, false), Err(1));
        assert_eq!(allowance.take(&mut full_at, SECOND, false), Ok(()));
        assert_eq!(allowance.take(&mut full_at, SECOND, true), Ok(()));
        assert_eq!(allowance.remaining(full_at, SECOND), 0);
        assert_eq!(allowance.remaining(full_at, 61 * SECOND), 60);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:1"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
    }

    #[test]
    fn full_rows_are_forgotten_and_the_rest_is_bounded() {
        let mut table = Table::default();
        for key in 0..10_000_u64 {
            *table.row(key, i64::try_from(key).unwrap()) += 10;
        }
        assert!(table.full_at.len() <= 2 * SMALL, "{}", table.full_at.len());
        for key in 0..250_000_u64 {
            *table.row(key, 0) = i64::MAX;
        }
        assert!(table.full_at.len() <= MOST, "{}", table.full_at.len());
    }

    proptest! {
        /// However the clock moves, nobody gets more than what fills again in the time that passed, and nobody waits
        /// longer than an empty allowance takes to give one.
        #[test]
        fn no_more_than_allowed(count in 1_u32..50, steps in prop::collection::vec(-5_000_000_i64..5_000_000, 1..200)) {
            let allowance = Allowance::new(count, 60);
            let (mut full_at, mut now, mut forward, mut taken) = (0, 0, 0, 0);
            for step in steps {
                now += step;
                forward += step.max(0);
                match allowance.take(&mut full_at, now, false) {
                    Ok(()) => taken += 1,
                    Err(wait) => prop_assert!((1..=allowance.each).contains(&wait), "{wait}"),
                }
            }
            prop_assert!(taken <= i64::from(count) + forward / allowance.each + 1, "{taken} of {count}");
        }
    }
}

//! Time of day as a test decides it, and ids that say nothing about the real time.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use bandstand_domain::clock::{Clock, IdSource};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

/// 2026-01-01T00:00:00Z, where every test begins.
const START_MICROS: i64 = 1_767_225_600_000_000;

/// The server's time of day. It stands still until the test moves it, except that no two readings are equal: each is a
/// microsecond later than the one before.
///
/// Only what people see and what expires by the calendar follows it; pauses (heartbeats, batches) are real time.
#[derive(Debug)]
pub struct ScriptedClock(Mutex<i64>);

impl Default for ScriptedClock {
    fn default() -> Self {
        Self(Mutex::new(START_MICROS))
    }
}

impl ScriptedClock {
    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(micros);
    }

    /// Moves it back, as a machine does whose clock was wrong.
    pub fn jump_back(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_sub(micros);
    }
}

impl Clock for ScriptedClock {
    fn now(&self) -> Timestamp {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now += 1;
        Timestamp::from_micros(*now)
    }
}

/// Ids of version 7 that count up from the same start in each test, so that a test can name them in snapshots.
#[derive(Debug, Default)]
pub(crate) struct CountedIds(std::sync::atomic::AtomicU64);

impl IdSource for CountedIds {
    fn uuid(&self) -> Uuid {
        const FIRST: u128 = 0x019b_7600_0000_7000_8000_0000_0000_0001;
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Uuid::from_u128(FIRST + u128::from(number))
    }
}

//! How long a lost connection waits before it is tried again.

use std::time::Duration;

use bandstand_wire::phoenix::close_code;

/// "Try again later": the server is overloaded.
const TRY_AGAIN_LATER: u16 = 1013;
const BASE: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);
/// A connection that held so long was a good one: counting starts anew.
const STABLE: Duration = Duration::from_secs(60);
/// A connection that held no longer was not worth having.
const RAPID: Duration = Duration::from_secs(5);

/// Counts failures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    rapid: u32,
}

impl Backoff {
    /// The wait after a connection that held for `up` and was closed with `code`; `fraction` is chance, from 0 to 1.
    pub(super) fn after_loss(&mut self, code: Option<u16>, up: Duration, fraction: f64) -> Duration {
        if up >= STABLE {
            *self = Self::default();
        }
        self.rapid = if up < RAPID { self.rapid + 1 } else { 0 };
        let between = |low: u64, high: u64| {
            let (low, high) = (Duration::from_secs(low), Duration::from_secs(high));
            low + (high - low).mul_f64(fraction)
        };
        let floor = match self.rapid {
            0 | 1 => Duration::ZERO,
            2 => Duration::from_secs(2),
            3 => Duration::from_secs(10),
            _ => between(30, 60),
        };
        let wait = match code {
            // A restart: all agents come back, so they spread.
            Some(close_code::RESTART) => between(1, 5),
            Some(TRY_AGAIN_LATER) => between(30, 60),
            _ => self.next(fraction),
        };
        wait.max(floor)
    }

    /// The wait after one more try that failed: twice the last, from half of it up to all of it by chance.
    pub(super) fn next(&mut self, fraction: f64) -> Duration {
        let plain = BASE.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX);
        self.failures = self.failures.saturating_add(1);
        plain.mul_f64(0.5 + 0.5 * fraction)
    }
}

/// The wait before the `attempt`-th further try of a first connect, from 0.
pub(super) fn first_connect(attempt: u32, fraction: f64) -> Duration {
    let steps = [1, 5, 10, 20, 30, 40, 50];
    let seconds = usize::try_from(attempt).ok().and_then(|at| steps.get(at)).copied().unwrap_or(60);
    Duration::from_secs(seconds).mul_f64(0.5 + 0.5 * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_wait_longer_each_time_and_a_good_connection_forgets_them() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(backoff.after_loss(None, STABLE, 0.0), Duration::from_millis(250));
    }

    #[test]
    fn connections_that_do_not_hold_are_held_down() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..5).map(|_| backoff.after_loss(None, Duration::ZERO, 0.5).as_secs()).collect();
        assert_eq!(waits, [0, 2, 10, 45, 45]);
    }

    #[test]
    fn a_restart_spreads_and_an_overload_waits() {
        let up = Duration::from_secs(10);
        assert_eq!(Backoff::default().after_loss(Some(1012), up, 0.0).as_secs(), 1);
        assert_eq!(Backoff::default().after_loss(Some(1012), up, 1.0).as_secs(), 5);
        assert_eq!(Backoff::default().after_loss(Some(1013), up, 0.0).as_secs(), 30);
    }
}

//! When to look again: waits after failures and the pauses of an idle room.

use std::time::Duration;

use crate::time::Randomness;

/// The wait after `failures` failures in a row (from 1): doubling from half a second to 30 s, spread over its upper half.
pub(super) fn backoff(failures: u32, randomness: &dyn Randomness) -> Duration {
    const FIRST: Duration = Duration::from_millis(500);
    const LAST: Duration = Duration::from_secs(30);
    let whole = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(6)).min(LAST);
    whole.mul_f64(0.5 + randomness.fraction() / 2.0)
}

/// The pauses between looks at an idle room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePauses {
    /// The first, and the one to which any work goes back.
    pub first: Duration,
    /// The longest that doubling leads to.
    pub longest: Duration,
    /// In a room where a person stopped the agent; it doesn't grow, so that a missed word to go on is found.
    pub stopped: Duration,
}

impl Default for IdlePauses {
    fn default() -> Self {
        Self { first: Duration::from_secs(60), longest: Duration::from_secs(120), stopped: Duration::from_secs(60) }
    }
}

impl IdlePauses {
    /// The pause after `checks` looks that found nothing. The first is anywhere up to its length, so that the rooms of an
    /// agent that starts are spread out.
    pub(super) fn pause(&self, checks: u32, stopped: bool, randomness: &dyn Randomness) -> Duration {
        if stopped {
            return self.stopped;
        }
        match checks {
            0 => self.first.mul_f64(randomness.fraction()).max(Duration::from_millis(1)),
            checks => self.first.saturating_mul(1 << (checks - 1).min(16)).min(self.longest.max(self.first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(f64);

    impl Randomness for Fixed {
        fn fraction(&self) -> f64 {
            self.0
        }

        fn uuid(&self) -> uuid::Uuid {
            uuid::Uuid::nil()
        }
    }

    #[test]
    fn waits_double_up_to_half_a_minute_and_are_spread() {
        let low: Vec<u128> = (1..=8).map(|failures| backoff(failures, &Fixed(0.0)).as_millis()).collect();
        assert_eq!(low, [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
        assert!(backoff(u32::MAX, &Fixed(0.999)) < Duration::from_secs(30));
    }

    #[test]
    fn an_idle_room_is_looked_at_less_and_less_often_and_a_stopped_one_always_as_often() {
        let pauses = IdlePauses::default();
        let seconds = |checks, stopped| pauses.pause(checks, stopped, &Fixed(0.5)).as_secs();
        assert_eq!([0, 1, 2, 3, 40].map(|checks| seconds(checks, false)), [30, 60, 120, 120, 120]);
        assert_eq!([0, 5].map(|checks| seconds(checks, true)), [60, 60]);
    }
}

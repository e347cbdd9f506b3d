//! The processing lease: when an attempt that runs is seen as lapsed, because its agent went away or fell silent.
//!
//! A lapse is no failure. The attempt stays the newest one and may still end well; the lapse says that nobody seems to
//! work on it, and has the message told to the agent again.

use std::time::Duration;

use crate::room::words;

words! {
    /// Why an attempt lapsed.
    Lapse {
        /// The agent has had no connection for too long, and gave no other sign of life.
        Gone = "gone",
        /// The agent reported what it does, and then no longer.
        Silent = "silent",
    }
}

/// How long an agent may be away, or silent, before its attempt lapses. `None` turns that rule off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// Without a connection.
    pub gone: Option<Duration>,
    /// Without an activity report, after there was one.
    pub silent: Option<Duration>,
}

impl LeaseTimes {
    /// The shorter of the two: an attempt need not be looked at earlier. `None` when both rules are off.
    pub fn shortest(self) -> Option<Duration> {
        match (self.gone, self.silent) {
            (Some(gone), Some(silent)) => Some(gone.min(silent)),
            (one, other) => one.or(other),
        }
    }
}

/// What is known of an agent that has an attempt in a room. Spans of time, not moments: they are measured on a clock
/// that never jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    /// It has a connection.
    pub connected: bool,
    /// How long it has had none; at most how long this server has run.
    pub gone_for: Duration,
    /// It has reported activity in this room during the attempt.
    pub reports: bool,
    /// How long ago its last sign of life there was: the claim, a report, a post.
    pub quiet_for: Duration,
}

/// Whether an attempt has lapsed, and why.
///
/// An agent without a connection that goes on reporting is at work: only its socket is cut. One with a connection that
/// never reports may be at work, and nobody can tell: its attempt does not lapse, since telling it again would have a
/// client without any memory do the work twice.
pub fn judge(times: LeaseTimes, signs: Signs) -> Option<Lapse> {
    let over = |limit: Option<Duration>, span: Duration| limit.is_some_and(|limit| span >= limit);
    if !signs.connected && over(times.gone, signs.gone_for.min(signs.quiet_for)) {
        return Some(Lapse::Gone);
    }
    (signs.reports && over(times.silent, signs.quiet_for)).then_some(Lapse::Silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMES: LeaseTimes =
        LeaseTimes { gone: Some(Duration::from_secs(60)), silent: Some(Duration::from_secs(120)) };

    fn signs(connected: bool, gone: u64, reports: bool, quiet: u64) -> Signs {
        let (gone_for, quiet_for) = (Duration::from_secs(gone), Duration::from_secs(quiet));
        Signs { connected, gone_for, reports, quiet_for }
    }

    #[test]
    fn the_table_of_lapses() {
        for (signs, expected, why) in [
            (signs(true, 0, true, 3), None, "at work"),
            (signs(true, 0, true, 120), Some(Lapse::Silent), "it reported, and no longer does"),
            (signs(true, 0, false, 9000), None, "it never reports: a long turn looks like this"),
            (signs(false, 60, false, 60), Some(Lapse::Gone), "killed"),
            (signs(false, 59, false, 600), None, "it may come back"),
            (signs(false, 600, true, 3), None, "only its socket is cut"),
            (signs(false, 600, false, 5), None, "it works without a socket, and has just begun"),
            (signs(false, 600, true, 60), Some(Lapse::Gone), "cut off, and no report since"),
        ] {
            assert_eq!(judge(TIMES, signs), expected, "{why}");
        }
    }

    proptest! {
        // Whatever the times: a sign of life within both keeps the lease, and with both rules off nothing lapses.
        #[test]
        fn a_fresh_sign_keeps_the_lease(
            connected: bool, reports: bool, gone in 0..1000_u64, quiet in 0..1000_u64,
            limit in proptest::option::of(1..1000_u64), other in proptest::option::of(1..1000_u64),
        ) {
            let signs = signs(connected, gone, reports, quiet);
            let times = LeaseTimes { gone: limit.map(Duration::from_secs), silent: other.map(Duration::from_secs) };
            let lapse = judge(times, signs);
            if times.shortest().is_none_or(|shortest| signs.quiet_for < shortest) {
                prop_assert_eq!(lapse, None);
            }
            if connected && !reports {
                prop_assert_eq!(lapse, None);
            }
        }
    }
}

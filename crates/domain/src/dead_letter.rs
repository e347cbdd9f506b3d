//! Dead letters: messages that are given up for one agent after too many attempts or too long a time.

use std::time::Duration;

use bandstand_wire::ids::{MessageId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::identity::Profile;
use crate::membership::Role;
use crate::room::words;

words! {
    /// Why a message was given up. The words are kept with the delivery, as its reason.
    DeadLetterReason {
        /// As many attempts as the limit allows ended without success.
        Attempts = "attempts",
        /// It waited for longer than the limit allows.
        Age = "age",
    }
}

/// The error of an attempt that was running when its message was given up.
pub const GIVEN_UP: &str = "dead-lettered";

/// How an attempt ended, as far as its count matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The agent marked it as failed.
    Failed,
    /// A newer claim took its place.
    Superseded {
        /// It had lapsed before.
        lapsed: bool,
    },
}

/// Whether such an attempt counts toward the limit: a failure does. A claim that follows another one does not count,
/// since clients repeat it by themselves; except where the earlier one had lapsed, which means that the message ended
/// its agent.
pub fn counts(ended: Ended) -> bool {
    match ended {
        Ended::Failed => true,
        Ended::Superseded { lapsed } => lapsed,
    }
}

/// Whether a message with so many counted attempts is given up. `None` is no limit.
pub fn is_exhausted(counted: i64, limit: Option<u32>) -> bool {
    limit.is_some_and(|limit| counted >= i64::from(limit))
}

/// A message that was given up for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where.
    pub room: RoomId,
    /// Which.
    pub message: MessageId,
    /// Who sent it.
    pub sender: Profile,
    /// For whom it was.
    pub agent: Profile,
    /// Why; as kept, so that a word of a newer version is shown and not refused.
    pub reason: String,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// When it was given up.
    pub dead_at: Timestamp,
    /// All attempts, superseded ones too.
    pub attempts: i64,
    /// What the newest attempt failed with.
    pub last_error: Option<String>,
}

/// Whether somebody may have a dead letter delivered again: whoever manages the room by its `role` there, or owns the
/// agent.
pub fn may_redeliver(role: Option<Role>, owns_agent: bool) -> bool {
    owns_agent || matches!(role, Some(Role::Owner | Role::Admin))
}

/// The time that ages are measured by: it follows the clock of the machine, but not at once when that jumps ahead. So a
/// clock that is wrong for a while gives up little, and one that is right again later takes nothing with it.
#[derive(Clone, Copy, Debug)]
pub struct Slew {
    now: Timestamp,
}

/// A jump ahead up to here is followed at once: ordinary corrections of a clock.
const STEP: Duration = Duration::from_secs(60);

/// Beyond it, so many times faster than time passes: after a night's sleep of the machine, an hour.
const CATCH_UP: u32 = 10;

impl Slew {
    /// Starts at what the clock says.
    pub fn new(clock: Timestamp) -> Self {
        Self { now: clock }
    }

    /// The time to measure by, when the clock says `clock` and `elapsed` has truly passed since the last call.
    pub fn follow(&mut self, clock: Timestamp, elapsed: Duration) -> Timestamp {
        let reach = elapsed.saturating_mul(CATCH_UP).saturating_add(STEP);
        let reach = i64::try_from(reach.as_micros()).unwrap_or(i64::MAX);
        self.now = clock.min(Timestamp::from_micros(self.now.as_micros().saturating_add(reach)));
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn what_counts() {
        assert!(counts(Ended::Failed));
        assert!(!counts(Ended::Superseded { lapsed: false }), "a repeated request");
        assert!(counts(Ended::Superseded { lapsed: true }), "the agent died of it");
        assert!(is_exhausted(3, Some(3)) && !is_exhausted(2, Some(3)) && !is_exhausted(1_000_000, None));
    }

    #[test]
    fn who_may_redeliver() {
        assert!(may_redeliver(Some(Role::Owner), false) && may_redeliver(Some(Role::Admin), false));
        assert!(may_redeliver(Some(Role::Member), true) && may_redeliver(None, true));
        assert!(!may_redeliver(Some(Role::Member), false) && !may_redeliver(None, false));
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_followed_slowly_and_back_at_once() {
        let mut time = Slew::new(at(1000));
        assert_eq!(time.follow(at(1010), Duration::from_secs(10)), at(1010));
        let year = 365 * 24 * 3600;
        assert_eq!(time.follow(at(1020 + year), Duration::from_secs(10)), at(1010 + 160));
        assert_eq!(
            time.follow(at(1030), Duration::from_secs(10)),
            at(1030),
            "it was wrong, and nothing is left of that"
        );
    }
}

//! What becomes of a message for one agent: from stored to a final state, with every attempt in between.

use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;

/// Where a delivery stands. The order is the order of a life: nothing yet, delivered, being worked on, and the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeliveryState {
    /// Stored, and nothing has happened.
    Stored,
    /// Pushed to the agent, or returned by `/messages/next`.
    Delivered,
    /// An attempt is running (or its agent died: it is served again).
    Processing,
    /// The last attempt failed; it is served again.
    Failed,
    /// Done.
    Processed,
    /// Will never be served: the recipient was removed, or the room or the agent deleted.
    Cancelled,
    /// Given up after too many attempts or too long a time.
    DeadLettered,
}

impl DeliveryState {
    /// Every state, in the order of [`Self::code`].
    pub const ALL: [Self; 7] = [
        Self::Stored,
        Self::Delivered,
        Self::Processing,
        Self::Failed,
        Self::Processed,
        Self::Cancelled,
        Self::DeadLettered,
    ];

    /// The states that `/messages/next` serves.
    pub const OPEN: [Self; 4] = [Self::Stored, Self::Delivered, Self::Processing, Self::Failed];

    /// Whether `/messages/next` serves it.
    pub fn is_open(self) -> bool {
        Self::OPEN.contains(&self)
    }

    /// The number that the database keeps. Never change one: old rows hold it.
    pub fn code(self) -> i64 {
        match self {
            Self::Stored => 0,
            Self::Delivered => 1,
            Self::Processing => 2,
            Self::Failed => 3,
            Self::Processed => 4,
            Self::Cancelled => 5,
            Self::DeadLettered => 6,
        }
    }

    /// Reads [`Self::code`].
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The word clients know, for the states that they know.
    pub fn wire(self) -> Option<&'static str> {
        match self {
            Self::Delivered => Some("delivered"),
            Self::Processing => Some("processing"),
            Self::Failed => Some("failed"),
            Self::Processed => Some("processed"),
            Self::Stored | Self::Cancelled | Self::DeadLettered => None,
        }
    }
}

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// Running.
    Processing,
    /// Ended with `processed`.
    Success,
    /// Ended with `failed`, or a newer attempt took its place.
    Failed,
}

impl AttemptState {
    /// The number that the database keeps.
    pub fn code(self) -> i64 {
        match self {
            Self::Processing => 0,
            Self::Success => 1,
            Self::Failed => 2,
        }
    }

    /// Reads [`Self::code`].
    pub fn from_code(code: i64) -> Option<Self> {
        [Self::Processing, Self::Success, Self::Failed].into_iter().find(|state| state.code() == code)
    }

    /// The word clients know.
    pub fn wire(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Success => "success",
            Self::Failed => "failed",
        }
    }
}

/// The error text of an attempt that a newer one replaced.
pub const SUPERSEDED: &str = "superseded";

/// One try of an agent at a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: i64,
    /// How it stands.
    pub state: AttemptState,
    /// When the agent marked the message as being processed.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
}

/// What became of a message for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The agent.
    pub recipient: IdentityId,
    /// Where it stands.
    pub state: DeliveryState,
    /// When it was first pushed or returned by `/messages/next`.
    pub delivered_at: Option<Timestamp>,
    /// When it was marked as processed.
    pub processed_at: Option<Timestamp>,
    /// Every attempt, oldest first.
    pub attempts: Vec<Attempt>,
}

/// Which deliveries a list shows (`status` of `GET …/messages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    /// Not processed: stored, delivered, processing, failed. What applies when no status is asked for.
    Unprocessed,
    /// No status, delivered or failed.
    Pending,
    /// Being worked on.
    Processing,
    /// Done.
    Processed,
    /// Failed.
    Failed,
    /// All that mention the agent.
    All,
}

impl StatusFilter {
    /// Reads the query parameter's word.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "pending" => Self::Pending,
            "processing" => Self::Processing,
            "processed" => Self::Processed,
            "failed" => Self::Failed,
            "all" => Self::All,
            _ => return None,
        })
    }

    /// The word, or `None` for the default set.
    pub fn wire(self) -> Option<&'static str> {
        Some(match self {
            Self::Unprocessed => return None,
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Processed => "processed",
            Self::Failed => "failed",
            Self::All => "all",
        })
    }

    /// The states it shows.
    pub fn states(self) -> &'static [DeliveryState] {
        use DeliveryState as S;
        match self {
            Self::Unprocessed => &[S::Stored, S::Delivered, S::Processing, S::Failed],
            Self::Pending => &[S::Stored, S::Delivered, S::Failed],
            Self::Processing => &[S::Processing],
            Self::Processed => &[S::Processed],
            Self::Failed => &[S::Failed],
            Self::All => &S::ALL,
        }
    }
}

/// A mark that an agent sets on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Work begins: a new attempt.
    Processing,
    /// Work is done.
    Processed,
    /// Work is done, as there was none: the agent says that the message is not for it, and perhaps why.
    Declined(Option<String>),
    /// Work failed, with the reason.
    Failed(String),
}

impl Mark {
    /// The state that the delivery is in afterwards.
    pub fn state(&self) -> DeliveryState {
        match self {
            Self::Processing => DeliveryState::Processing,
            Self::Processed | Self::Declined(_) => DeliveryState::Processed,
            Self::Failed(_) => DeliveryState::Failed,
        }
    }
}

/// What a mark does to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Open attempt `number`; the attempt named in `supersedes`, if any, ends as failed.
    Begin {
        /// The new attempt's number.
        number: i64,
        /// The attempt that was still open.
        supersedes: Option<i64>,
    },
    /// Close the running attempt.
    End {
        /// Its number.
        number: i64,
    },
}

/// A mark was set without a running attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no active processing attempt; mark the message as processing first")]
pub struct NoAttempt;

/// Decides what a mark does, given the delivery's last attempt (its number and whether it still runs).
///
/// Every `processing` opens a new attempt, so that a restarted agent takes over its own stuck message. `processed` and
/// `failed` need a running one.
///
/// # Errors
/// [`NoAttempt`].
pub fn step(mark: &Mark, last: Option<(i64, AttemptState)>) -> Result<Step, NoAttempt> {
    let running = last.filter(|(_, state)| *state == AttemptState::Processing).map(|(number, _)| number);
    match mark {
        Mark::Processing => Ok(Step::Begin { number: last.map_or(0, |(n, _)| n) + 1, supersedes: running }),
        Mark::Processed | Mark::Declined(_) | Mark::Failed(_) => {
            running.map(|number| Step::End { number }).ok_or(NoAttempt)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_processed_message_is_reopened_only_by_a_new_attempt() {
        let done = Some((1, AttemptState::Success));
        assert_eq!(step(&Mark::Processed, done), Err(NoAttempt));
        assert_eq!(step(&Mark::Failed("x".into()), done), Err(NoAttempt));
        assert_eq!(step(&Mark::Processing, done), Ok(Step::Begin { number: 2, supersedes: None }));
    }

    #[test]
    fn a_second_claim_supersedes_the_first() {
        let running = Some((3, AttemptState::Processing));
        assert_eq!(step(&Mark::Processing, running), Ok(Step::Begin { number: 4, supersedes: Some(3) }));
    }

    #[test]
    fn codes_read_back() {
        for state in DeliveryState::ALL {
            assert_eq!(DeliveryState::from_code(state.code()), Some(state));
        }
    }

    fn marks() -> impl Strategy<Value = Vec<Mark>> {
        let mark = prop_oneof![
            Just(Mark::Processing),
            Just(Mark::Processed),
            Just(Mark::Declined(None)),
            Just(Mark::Failed("f".into())),
        ];
        proptest::collection::vec(mark, 0..40)
    }

    proptest! {
        // Whatever is marked in whatever order: numbers count up by one, and at most one attempt runs, the newest.
        #[test]
        fn at_most_one_attempt_runs(marks in marks()) {
            let mut attempts: Vec<AttemptState> = Vec::new();
            for mark in &marks {
                let last = attempts.last().map(|state| (attempts.len() as i64, *state));
                match step(mark, last) {
                    Ok(Step::Begin { number, supersedes }) => {
                        prop_assert_eq!(number, attempts.len() as i64 + 1);
                        if let Some(old) = supersedes {
                            attempts[old as usize - 1] = AttemptState::Failed;
                        }
                        attempts.push(AttemptState::Processing);
                    }
                    Ok(Step::End { number }) => {
                        prop_assert_eq!(attempts[number as usize - 1], AttemptState::Processing);
                        attempts[number as usize - 1] =
                            if matches!(mark, Mark::Failed(_)) { AttemptState::Failed } else { AttemptState::Success };
                    }
                    Err(NoAttempt) => prop_assert!(attempts.last() != Some(&AttemptState::Processing)),
                }
                prop_assert!(attempts.iter().rev().skip(1).all(|state| *state != AttemptState::Processing));
            }
        }
    }
}

//! What an agent has done with each message of one room, for as long as the process lives.

use std::collections::{HashMap, HashSet, VecDeque};

use bandstand_wire::ids::MessageId;

/// How the handling of a message ended, as the platform is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Handled.
    Processed,
    /// Not handled; the text says why and is visible to the people of the room.
    Failed(String),
}

/// Whether a message may run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligibility {
    /// It may.
    Runnable,
    /// Handled, and the platform knows it.
    Completed,
    /// Handled, and the platform has yet to be told.
    Unmarked,
    /// It failed as often as it may in the life of this process.
    Exhausted,
}

/// The bookkeeping that keeps a message from being handled twice to completion.
///
/// Bounded: the oldest of [`Ledger::REMEMBERED`] finished messages are forgotten. Forgetting is safe: the platform
/// serves nothing that it knows to be processed, and what it does serve again has failed or was never handled.
#[derive(Debug)]
pub(super) struct Ledger {
    max_attempts: u32,
    attempts: HashMap<MessageId, u32>,
    unmarked: VecDeque<(MessageId, Mark)>,
    consumed: HashSet<MessageId>,
    completed: Recent,
    exhausted: Recent,
}

impl Ledger {
    /// Finished messages that are remembered.
    pub(super) const REMEMBERED: usize = 1_000;

    /// A ledger in which a message may run `max_attempts` times (0: never).
    pub(super) fn new(max_attempts: u32) -> Self {
        Self {
            max_attempts,
            attempts: HashMap::new(),
            unmarked: VecDeque::new(),
            consumed: HashSet::new(),
            completed: Recent::default(),
            exhausted: Recent::default(),
        }
    }

    /// Whether the message may run.
    pub(super) fn eligibility(&self, id: MessageId) -> Eligibility {
        if self.unmarked.iter().any(|(unmarked, _)| *unmarked == id) {
            Eligibility::Unmarked
        } else if self.completed.contains(id) {
            Eligibility::Completed
        } else if self.max_attempts == 0 || self.exhausted.contains(id) {
            Eligibility::Exhausted
        } else {
            Eligibility::Runnable
        }
    }

    /// A turn begins on it: one attempt is used up.
    pub(super) fn begin(&mut self, id: MessageId) {
        *self.attempts.entry(id).or_insert(0) += 1;
    }

    /// It was dealt with beside the turns: what is left to do is the mark.
    pub(super) fn consume(&mut self, id: MessageId) {
        if self.eligibility(id) == Eligibility::Runnable {
            self.consumed.insert(id);
        }
    }

    /// Whether only the mark is left to do.
    pub(super) fn is_consumed(&self, id: MessageId) -> bool {
        self.consumed.contains(&id)
    }

    /// The attempt did not count: the turn never ran, or was taken back by a stop.
    pub(super) fn give_back(&mut self, id: MessageId) {
        if let Some(attempts) = self.attempts.get_mut(&id) {
            *attempts = attempts.saturating_sub(1);
            if *attempts == 0 {
                self.attempts.remove(&id);
            }
        }
    }

    /// Whether the attempt that runs is the last one.
    pub(super) fn is_last_attempt(&self, id: MessageId) -> bool {
        self.attempts.get(&id).copied().unwrap_or(0) >= self.max_attempts
    }

    /// The handling ended; the platform is to be told.
    pub(super) fn owe(&mut self, id: MessageId, mark: Mark) {
        self.unmarked.retain(|(unmarked, _)| *unmarked != id);
        self.unmarked.push_back((id, mark));
    }

    /// The oldest mark that the platform has yet to confirm.
    pub(super) fn owed(&self) -> Option<(MessageId, Mark)> {
        self.unmarked.front().cloned()
    }

    /// The platform took the mark, or will never take it: either way it is not sent again.
    pub(super) fn settle(&mut self, id: MessageId) {
        self.consumed.remove(&id);
        let Some(at) = self.unmarked.iter().position(|(unmarked, _)| *unmarked == id) else { return };
        let Some((_, mark)) = self.unmarked.remove(at) else { return };
        match mark {
            Mark::Processed => {
                self.attempts.remove(&id);
                self.completed.insert(id);
            }
            Mark::Failed(_) if self.is_last_attempt(id) => {
                self.attempts.remove(&id);
                self.exhausted.insert(id);
            }
            Mark::Failed(_) => {}
        }
    }

    /// The platform has no such message for us: nothing will be done about it.
    pub(super) fn drop_message(&mut self, id: MessageId) {
        self.consumed.remove(&id);
        self.unmarked.retain(|(unmarked, _)| *unmarked != id);
        self.attempts.remove(&id);
        self.completed.insert(id);
    }
}

/// The newest ids of a kind, oldest first. There are so few that looking through all of them takes no longer than a hash.
#[derive(Debug, Default)]
struct Recent(VecDeque<MessageId>);

impl Recent {
    fn contains(&self, id: MessageId) -> bool {
        self.0.contains(&id)
    }

    fn insert(&mut self, id: MessageId) {
        if self.contains(id) {
            return;
        }
        if self.0.len() >= Ledger::REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> MessageId {
        MessageId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn a_message_fails_for_good_after_its_last_attempt_and_only_when_the_mark_landed() {
        let mut ledger = Ledger::new(2);
        for last in [false, true] {
            assert_eq!(ledger.eligibility(id(1)), Eligibility::Runnable);
            ledger.begin(id(1));
            assert_eq!(ledger.is_last_attempt(id(1)), last);
            ledger.owe(id(1), Mark::Failed("no".to_owned()));
            assert_eq!(ledger.eligibility(id(1)), Eligibility::Unmarked);
            ledger.settle(id(1));
        }
        assert_eq!(ledger.eligibility(id(1)), Eligibility::Exhausted);
    }

    #[test]
    fn an_attempt_that_is_given_back_does_not_count() {
        let mut ledger = Ledger::new(1);
        for _ in 0..5 {
            ledger.begin(id(1));
            ledger.give_back(id(1));
        }
        assert_eq!(ledger.eligibility(id(1)), Eligibility::Runnable);
    }

    #[test]
    fn only_the_newest_finished_messages_are_remembered() {
        let mut ledger = Ledger::new(1);
        let many = Ledger::REMEMBERED as u128 + 1;
        for number in 0..many {
            ledger.begin(id(number));
            ledger.owe(id(number), Mark::Processed);
            ledger.settle(id(number));
        }
        assert_eq!(ledger.eligibility(id(0)), Eligibility::Runnable);
        assert_eq!(ledger.eligibility(id(1)), Eligibility::Completed);
        assert!(ledger.attempts.is_empty());
    }
}

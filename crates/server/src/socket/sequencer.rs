//! One room's commits in the order of their sequence numbers.
//!
//! On SQLite they arrive in order anyway. On PostgreSQL each is announced by its own task, so that a later one can
//! overtake an earlier one by a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bandstand_domain::event::Event;
use tokio::time::Instant;

/// How long a commit that came early waits for the missing ones before it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// How long it waits, after that, for what storage says of the missing ones.
pub(crate) const ANSWER: Duration = Duration::from_secs(1);

/// Most commits that are remembered as read from storage.
const REPAIRED: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Sequencer {
    /// The sequence number that is due. None until a join or a commit tells where the room stands.
    next: Option<i64>,
    /// What came early, and until when it waits.
    early: BTreeMap<i64, (Instant, Vec<Event>)>,
    /// Storage was asked for the missing ones, and until when its answer is waited for.
    asked: Option<Instant>,
    /// Whose rows were announced from storage: should their commits come after all, the rows are known.
    repaired: BTreeSet<i64>,
}

/// Commits that are missing: those after one sequence number and before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The last one that came.
    pub(crate) after: i64,
    /// The next one that came.
    pub(crate) before: i64,
}

impl Sequencer {
    /// The room stood at this sequence when somebody joined.
    pub(crate) fn start(&mut self, sequence: i64) {
        self.next.get_or_insert(sequence + 1);
    }

    /// Takes a commit, and returns the events that may be announced now. One that comes after it was given up is
    /// announced late rather than not at all.
    pub(crate) fn accept(&mut self, sequence: i64, events: Vec<Event>, now: Instant) -> Vec<Event> {
        let next = *self.next.get_or_insert(sequence);
        if sequence > next {
            let (_, waiting) = self.early.entry(sequence).or_insert_with(|| (now + PATIENCE, Vec::new()));
            waiting.extend(events);
            return Vec::new();
        }
        let mut ready = events;
        if sequence == next {
            self.next = Some(sequence + 1);
            self.release(&mut ready);
        } else if self.repaired.remove(&sequence) {
            ready.retain(|event| !matches!(event, Event::MessageCreated { .. } | Event::EventCreated { .. }));
        }
        ready
    }

    /// Until when it waits: for the missing commits, or for what storage says of them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let oldest = self.early.values().map(|(deadline, _)| *deadline).min()?;
        Some(self.asked.unwrap_or(oldest))
    }

    /// What to ask storage for, where waiting took too long and it was not asked yet.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Gap> {
        if self.asked.is_some() || self.deadline()? > now {
            return None;
        }
        let (&before, _) = self.early.first_key_value()?;
        self.asked = Some(now + ANSWER);
        Some(Gap { after: self.next? - 1, before })
    }

    /// What storage says of a gap: its rows with their sequence numbers, in order. The events to announce now; what came
    /// meanwhile is left out.
    pub(crate) fn fill(&mut self, gap: Gap, rows: Vec<(i64, Event)>) -> Vec<Event> {
        self.asked = None;
        let next = self.next.unwrap_or(gap.before);
        let mut ready = Vec::new();
        for (sequence, event) in rows {
            if self.next.is_none() || sequence >= next {
                self.repaired.insert(sequence);
                ready.push(event);
            }
        }
        while self.repaired.len() > REPAIRED {
            self.repaired.pop_first();
        }
        self.next = Some(next.max(gap.before));
        self.release(&mut ready);
        ready
    }

    /// Gives up waiting where it took too long: the events to announce, and how many commits are missing.
    pub(crate) fn give_up(&mut self, now: Instant) -> (Vec<Event>, i64) {
        let (mut ready, mut missing) = (Vec::new(), 0);
        if self.asked.is_some_and(|until| until > now) {
            return (ready, missing);
        }
        self.asked = None;
        while self.deadline().is_some_and(|deadline| deadline <= now) {
            let Some((&sequence, _)) = self.early.first_key_value() else { break };
            missing += sequence - self.next.unwrap_or(sequence);
            self.next = Some(sequence);
            self.release(&mut ready);
        }
        (ready, missing)
    }

    /// Whether nothing waits, so that forgetting the room would lose nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.early.is_empty()
    }

    /// Moves on over all that is there without a hole.
    fn release(&mut self, ready: &mut Vec<Event>) {
        while let Some(next) = self.next {
            let Some((_, events)) = self.early.remove(&next) else { break };
            ready.extend(events);
            self.next = Some(next + 1);
        }
        if self.early.is_empty() {
            self.asked = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::ids::IdentityId;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn events(number: i64) -> Vec<Event> {
        vec![Event::IdentityChanged { id: IdentityId(Uuid::from_u128(number as u128)) }]
    }

    fn numbers(events: Vec<Event>) -> Vec<i64> {
        events
            .into_iter()
            .map(|event| match event {
                Event::IdentityChanged { id } => id.0.as_u128() as i64,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn an_early_commit_waits_for_the_missing_one() {
        let (mut room, now) = (Sequencer::default(), Instant::now());
        room.start(4);
        assert!(room.accept(6, events(6), now).is_empty());
        assert_eq!(numbers(room.accept(5, events(5), now)), [5, 6]);
        assert_eq!(room.deadline(), None);
    }

    #[test]
    fn it_does_not_wait_for_ever_and_the_late_one_is_still_told() {
        let (mut room, now) = (Sequencer::default(), Instant::now());
        room.start(4);
        assert!(room.accept(6, events(6), now).is_empty());
        assert!(room.accept(8, events(8), now + PATIENCE / 2).is_empty());
        assert_eq!(room.give_up(now + PATIENCE / 2), (vec![], 0));
        assert_eq!(room.give_up(now + PATIENCE), (events(6), 1));
        assert_eq!(numbers(room.accept(5, events(5), now)), [5]);
        assert_eq!(numbers(room.accept(7, events(7), now)), [7, 8]);
    }

    fn row(number: i64) -> (i64, Event) {
        (number, events(number).remove(0))
    }

    #[test]
    fn storage_is_asked_once_and_its_rows_come_before_what_waited() {
        let (mut room, now) = (Sequencer::default(), Instant::now());
        room.start(4);
        assert!(room.accept(8, events(8), now).is_empty());
        assert_eq!(room.ask(now), None, "it waits first");
        let late = now + PATIENCE;
        let gap = Gap { after: 4, before: 8 };
        assert_eq!(room.ask(late), Some(gap));
        assert_eq!((room.ask(late), room.deadline()), (None, Some(late + ANSWER)));
        assert_eq!(room.give_up(late), (vec![], 0), "the answer is waited for");
        assert_eq!(numbers(room.accept(5, events(5), late)), [5]);
        assert_eq!(numbers(room.fill(gap, vec![row(5), row(7)])), [7, 8], "what came meanwhile is not told twice");
        assert!(room.is_idle());
    }

    #[test]
    fn without_an_answer_it_goes_on() {
        let (mut room, now) = (Sequencer::default(), Instant::now());
        room.start(4);
        assert!(room.accept(6, events(6), now).is_empty());
        assert!(room.ask(now + PATIENCE).is_some());
        assert_eq!(room.give_up(now + PATIENCE + ANSWER), (events(6), 1));
        assert_eq!(room.fill(Gap { after: 4, before: 6 }, vec![row(5)]), [], "the answer came too late: /next has it");
    }

    #[test]
    fn the_first_commit_seen_starts_a_room() {
        let (mut room, now) = (Sequencer::default(), Instant::now());
        assert_eq!(numbers(room.accept(9, events(9), now)), [9]);
        room.start(3);
        assert_eq!(numbers(room.accept(10, events(10), now)), [10]);
    }

    proptest! {
        #[test]
        fn any_order_of_arrival_becomes_the_order_of_the_room(
            order in Just((1..30_i64).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let (mut room, now) = (Sequencer::default(), Instant::now());
            room.start(0);
            let told: Vec<i64> = order.iter().flat_map(|at| numbers(room.accept(*at, events(*at), now))).collect();
            prop_assert_eq!(told, (1..30).collect::<Vec<_>>());
            prop_assert!(room.is_idle());
        }

        #[test]
        fn whatever_is_lost_nothing_that_arrived_is(
            order in Just((1..30_i64).collect::<Vec<_>>()).prop_shuffle(),
            lost in proptest::collection::btree_set(1..30_i64, 0..10),
        ) {
            let (mut room, now) = (Sequencer::default(), Instant::now());
            room.start(0);
            let kept: Vec<i64> = order.into_iter().filter(|at| !lost.contains(at)).collect();
            let mut told: Vec<i64> = kept.iter().flat_map(|at| numbers(room.accept(*at, events(*at), now))).collect();
            told.extend(numbers(room.give_up(now + PATIENCE).0));
            prop_assert!(told.is_sorted());
            prop_assert_eq!(told.len(), kept.len());
            prop_assert!(room.is_idle());
        }
    }
}

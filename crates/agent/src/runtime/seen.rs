//! Tells what comes twice from what is new.

use std::collections::{HashSet, VecDeque};

/// The newest keys that were noted.
#[derive(Debug)]
pub(super) struct Seen {
    keys: HashSet<String>,
    order: VecDeque<String>,
    kept: usize,
}

impl Seen {
    /// Remembers the newest `kept` keys.
    pub(super) fn new(kept: usize) -> Self {
        Self { keys: HashSet::new(), order: VecDeque::new(), kept }
    }

    /// Whether the key was noted. The empty key never is.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Notes a key.
    pub(super) fn note(&mut self, key: &str) {
        if key.is_empty() || !self.keys.insert(key.to_owned()) {
            return;
        }
        self.order.push_back(key.to_owned());
        if self.order.len() > self.kept
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_remembered() {
        let mut seen = Seen::new(2);
        for key in ["a", "b", "b", "", "c"] {
            seen.note(key);
        }
        assert_eq!(["a", "b", "c", ""].map(|key| seen.contains(key)), [false, true, true, false]);
    }
}

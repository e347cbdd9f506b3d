//! Which result answers which call, wherever it stands.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::model::{Part, Transcript};

/// Where something stands in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Which message, from 0.
    pub index: usize,
    /// Which part of it, from 0.
    pub part: usize,
}

/// Calls and results of a transcript, paired.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    calls: HashMap<Place, Place>,
    answered: HashSet<Place>,
}

impl Answers {
    /// A result belongs to the nearest call before it that has its id and no result yet, else to the nearest.
    pub fn of(transcript: &Transcript) -> Self {
        let mut answers = Self::default();
        let mut calls: HashMap<&str, Vec<Place>> = HashMap::new();
        for (index, message) in transcript.messages.iter().enumerate() {
            for (part_index, part) in message.parts.iter().enumerate() {
                let place = Place { index, part: part_index };
                match part {
                    Part::ToolCall(call) => calls.entry(call.id.as_str()).or_default().push(place),
                    Part::ToolResult(result) => {
                        let candidates = calls.get(result.call_id.as_str()).map_or(&[][..], Vec::as_slice);
                        let open = candidates.iter().rev().find(|call| !answers.answered.contains(call));
                        if let Some(call) = open.or(candidates.last()) {
                            answers.calls.insert(place, *call);
                            answers.answered.insert(*call);
                        }
                    }
                    _ => {}
                }
            }
        }
        answers
    }

    /// The call that a result answers; nothing for the answer to nothing.
    pub fn call_of(&self, result: Place) -> Option<Place> {
        self.calls.get(&result).copied()
    }

    /// Whether a call has a result.
    pub fn is_answered(&self, call: Place) -> bool {
        self.answered.contains(&call)
    }
}

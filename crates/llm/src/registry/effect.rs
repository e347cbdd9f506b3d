//! What a successful call of a tool does to the turn that it is made in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a successful call does to the turn. A failed call does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It only looked: the turn still owes an answer. What a tool does unless it says otherwise.
    #[default]
    Observe,
    /// It did real work, so a turn that ends in silence afterwards is complete.
    Act,
    /// It delivered the answer itself.
    Reply,
    /// Silence is the answer.
    Decline,
}

/// A word that names nothing of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown word `{word}`; expected one of {expected}")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// What it might have been.
    pub expected: &'static str,
}

impl Effect {
    /// All effects.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Act, Self::Reply, Self::Decline];

    /// The word that travels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Act => "act",
            Self::Reply => "reply",
            Self::Decline => "decline",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Effect {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Self::ALL
            .into_iter()
            .find(|effect| effect.as_str() == word)
            .ok_or_else(|| UnknownWord { word: word.into(), expected: "observe, act, reply, decline" })
    }
}

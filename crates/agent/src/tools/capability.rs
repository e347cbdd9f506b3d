//! Groups of tools that an agent may have beyond the chat tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// A group of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Contacts and requests to become one.
    Contacts,
    /// Memories.
    Memory,
    /// Files of rooms. Only where the server says that it has them.
    Files,
    /// Task boards.
    Tasks,
}

/// A word that names no group of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported capability `{0}`; expected contacts, memory, files or tasks")]
pub struct UnsupportedCapability(pub String);

impl Capability {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Contacts, Self::Memory, Self::Files, Self::Tasks];

    /// Its word, which is also the group of its tools.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Contacts => "contacts",
            Self::Memory => "memory",
            Self::Files => "files",
            Self::Tasks => "tasks",
        }
    }
}

impl FromStr for Capability {
    type Err = UnsupportedCapability;

    fn from_str(word: &str) -> Result<Self, UnsupportedCapability> {
        Self::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(|| UnsupportedCapability(word.to_owned()))
    }
}

/// Which groups of tools an agent has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// The chat tools alone.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every group.
    pub fn all() -> Self {
        Self::of(Capability::ALL)
    }

    /// These.
    pub fn of(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self(capabilities.into_iter().collect())
    }

    /// With one more.
    #[must_use]
    pub fn and(mut self, capability: Capability) -> Self {
        self.0.insert(capability);
        self
    }

    /// Whether one is among them.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// Whether tools of a group are offered: chat tools always are.
    pub fn include(&self, group: &str) -> bool {
        group == "chat" || self.0.iter().any(|capability| capability.as_str() == group)
    }

    /// What is left of them at a server with these flags (`None` when its flags are not known): files need
    /// `ff_file_transfer`, and nothing else needs a flag.
    #[must_use]
    pub fn supported_by(mut self, flags: Option<&BTreeMap<String, bool>>) -> Self {
        if let Some(flags) = flags
            && !flags.get("ff_file_transfer").copied().unwrap_or_default()
        {
            self.0.remove(&Capability::Files);
        }
        self
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Capability> {
        self.0.iter().copied()
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Capability::as_str).collect();
        f.write_str(&words.join(", "))
    }
}

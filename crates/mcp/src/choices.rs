//! Which tools are served: scopes, groups, and perhaps one room for all of them.

use std::fmt;

/// Whose tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// An agent's, with an agent's key.
    Agent,
    /// A person's, with a user's key.
    Human,
}

/// Tools beyond those that are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Contacts and contact requests.
    Contacts,
    /// Memories.
    Memory,
    /// The task board.
    Tasks,
    /// Files of rooms. `band-mcp` does not have it.
    Files,
}

/// A closed list of words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;
}

impl Word for Scope {
    const ALL: &'static [Self] = &[Self::Agent, Self::Human];

    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Human => "human",
        }
    }
}

impl Word for Group {
    const ALL: &'static [Self] = &[Self::Contacts, Self::Memory, Self::Tasks, Self::Files];

    fn word(self) -> &'static str {
        match self {
            Self::Contacts => "contacts",
            Self::Memory => "memory",
            Self::Tasks => "tasks",
            Self::Files => "files",
        }
    }
}

/// A word that is none of those that are known. It is left out, and worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What was set: `--scope` or `--tools`.
    pub place: &'static str,
    /// The word.
    pub word: String,
    /// What may have been meant.
    pub meant: Option<&'static str>,
    known: Vec<&'static str>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} value '{}' — ", self.place, self.word)?;
        match self.meant {
            Some(meant) => write!(f, "did you mean '{meant}'? ignoring."),
            None => write!(f, "valid values: {}. ignoring.", self.known.join(", ")),
        }
    }
}

/// No scope is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("No valid --scope values resolved. Expected one or more of: agent, human.")]
pub struct NoScope;

/// Which tools are served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choices {
    /// Whose, in the order in which their tools are listed.
    pub scopes: Vec<Scope>,
    /// Which beyond the usual ones.
    pub groups: Vec<Group>,
    /// The one room that all tools act on. Without it, each tool that acts on a room takes a `chat_id`.
    pub room: Option<String>,
}

impl Default for Choices {
    fn default() -> Self {
        Self { scopes: vec![Scope::Agent], groups: Vec::new(), room: None }
    }
}

impl Choices {
    /// Reads what was written. Each list is words separated by commas, in any case; none at all means the usual, and an
    /// empty one means nothing. Words that are not known are left out and returned.
    ///
    /// # Errors
    /// [`NoScope`] when no scope is left.
    pub fn read(
        scopes: Option<&[String]>,
        groups: Option<&[String]>,
        room: Option<String>,
    ) -> Result<(Self, Vec<Unknown>), (NoScope, Vec<Unknown>)> {
        let mut unknown = Vec::new();
        let usual = Self::default();
        let scopes = scopes.map_or(usual.scopes, |words| pick("--scope", words, &mut unknown));
        let groups = groups.map_or(usual.groups, |words| pick("--tools", words, &mut unknown));
        if scopes.is_empty() {
            return Err((NoScope, unknown));
        }
        Ok((Self { scopes, groups, room: room.filter(|room| !room.is_empty()) }, unknown))
    }

    /// Whether tools of a group are served. `chat` always is.
    pub(crate) fn include(&self, group: &str) -> bool {
        group == "chat" || self.groups.iter().any(|chosen| chosen.word() == group)
    }
}

fn pick<W: Word>(place: &'static str, words: &[String], unknown: &mut Vec<Unknown>) -> Vec<W> {
    let mut picked: Vec<W> = Vec::new();
    let words = words.iter().flat_map(|list| list.split(',')).map(|word| word.trim().to_lowercase());
    for word in words.filter(|word| !word.is_empty()) {
        match W::ALL.iter().find(|known| known.word() == word) {
            Some(known) if picked.contains(known) => {}
            Some(known) => picked.push(*known),
            None => {
                let known: Vec<&str> = W::ALL.iter().map(|known| known.word()).collect();
                let likely = |known: &&&str| strsim::normalized_levenshtein(known, &word) >= 0.6;
                let meant = known.iter().filter(likely).copied().next();
                unknown.push(Unknown { place, word, meant, known });
            }
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn lists_are_read_in_every_way_of_writing_them() {
        let (choices, unknown) =
            Choices::read(Some(&words(&["Human, agent", "human"])), Some(&words(&["tasks,,MEMORY"])), None).unwrap();
        assert_eq!(choices.scopes, [Scope::Human, Scope::Agent]);
        assert_eq!(choices.groups, [Group::Tasks, Group::Memory]);
        assert!(unknown.is_empty());
        assert_eq!(Choices::read(None, None, Some(String::new())).unwrap().0, Choices::default());
        assert!(Choices::read(None, Some(&words(&[""])), None).unwrap().0.groups.is_empty());
    }

    #[test]
    fn a_word_that_is_not_known_is_left_out_with_a_word_on_what_was_meant() {
        let (choices, unknown) = Choices::read(None, Some(&words(&["contact,zebra"])), None).unwrap();
        assert!(choices.groups.is_empty());
        let said: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "unknown --tools value 'contact' — did you mean 'contacts'? ignoring.",
                "unknown --tools value 'zebra' — valid values: contacts, memory, tasks, files. ignoring.",
            ]
        );
        assert!(Choices::read(Some(&words(&["robot"])), None, None).is_err());
    }
}

//! The audit log of administrative acts: a chain of entries, each of which holds the hash of the one before, so that
//! whoever has the log can tell whether an entry was changed, left out or put in. An entry's hash is SHA-256 over its
//! fields in a fixed order, each preceded by its length as eight bytes, most significant first; `docs/administration.md`
//! says it so that others can check as well.

use std::fmt;

use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The first field of every hash: what is hashed, and in which form.
const FORM: &str = "bandstand-audit-1";

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What stands before the first entry.
    pub const START: Self = Self([0; 32]);

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().as_bytes();
        if text.len() != 64 {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?;
        }
        Some(Self(bytes))
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

/// Through what an administrator came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AuditDoor")]
pub enum Door {
    /// `/api/v1/admin`.
    Api,
    /// The admin socket of the running server.
    Socket,
    /// The command line on the store itself, while no server ran.
    Offline,
    /// The server by itself, when it started.
    Start,
    /// A backup that was restored.
    Restore,
}

impl Door {
    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Socket => "socket",
            Self::Offline => "offline",
            Self::Start => "start",
            Self::Restore => "restore",
        }
    }

    /// Reads [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Api, Self::Socket, Self::Offline, Self::Start, Self::Restore]
            .into_iter()
            .find(|door| door.as_str() == text)
    }
}

/// What is to be noted of an act.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// When.
    pub at: Timestamp,
    /// The user who did it; none for whoever may open the data folder.
    pub actor_id: Option<IdentityId>,
    /// The user's handle then, or `local`.
    pub actor: String,
    /// Through what.
    pub door: Door,
    /// What, e.g. `user.add`.
    pub act: String,
    /// To whom or what: a handle, a name or an id; empty when it is the server as a whole.
    pub target: String,
    /// More of it, never a secret: an object.
    pub details: Value,
}

/// A noted act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub struct Entry {
    /// 1, 2, 3 … without a gap.
    pub sequence: i64,
    /// When.
    pub at: Timestamp,
    /// The user who did it; none for whoever may open the data folder.
    pub actor_id: Option<IdentityId>,
    /// The user's handle then, or `local`.
    pub actor: String,
    /// Through what.
    pub door: Door,
    /// What.
    pub act: String,
    /// To whom or what.
    pub target: String,
    /// More of it.
    pub details: Value,
    /// The hash of the entry before; zeros before the first.
    pub previous_hash: Hash,
    /// Its own.
    pub hash: Hash,
}

impl Entry {
    /// The entry after one with this sequence and hash.
    pub fn after(sequence: i64, previous_hash: Hash, act: Act) -> Self {
        let Act { at, actor_id, actor, door, act, target, details } = act;
        let sequence = sequence.saturating_add(1);
        let mut entry =
            Self { sequence, at, actor_id, actor, door, act, target, details, previous_hash, hash: Hash::START };
        entry.hash = entry.computed();
        entry
    }

    /// The hash that its fields make.
    pub fn computed(&self) -> Hash {
        let mut hasher = Sha256::new();
        let mut field = |text: &str| {
            hasher.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(text.as_bytes());
        };
        field(FORM);
        field(&self.sequence.to_string());
        field(&self.at.to_string());
        field(&self.actor_id.map(|id| id.to_string()).unwrap_or_default());
        field(&self.actor);
        field(self.door.as_str());
        field(&self.act);
        field(&self.target);
        field(&canonical(&self.details));
        field(&self.previous_hash.to_string());
        Hash(hasher.finalize().into())
    }
}

/// JSON in one form: without spaces, the keys of objects in the order of their bytes.
pub fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Where a log is not what it says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An entry is missing, or one is there twice.
    #[error("entry {expected} is missing: entry {found} stands in its place")]
    Sequence {
        /// Which should have come.
        expected: i64,
        /// Which came.
        found: i64,
    },
    /// An entry does not follow the one before it.
    #[error("entry {0} does not follow the entry before it: one of the two was changed")]
    Previous(i64),
    /// An entry's fields do not make its hash.
    #[error("entry {0} was changed: its fields do not make its hash")]
    Changed(i64),
    /// The log ends before the entry that it should end with.
    #[error("the log ends with entry {found}, though {expected} were written: the rest was cut off")]
    Cut {
        /// The sequence of the last entry that was written.
        expected: i64,
        /// The sequence of the last entry that is there.
        found: i64,
    },
    /// No entry has the hash that was noted elsewhere.
    #[error("no entry has the hash {0}: the log was cut off before it, or written anew")]
    NoSuchHead(Hash),
}

/// How far a log reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditHead")]
pub struct Head {
    /// The last entry's sequence; 0 for an empty log.
    pub sequence: i64,
    /// The last entry's hash.
    pub hash: Hash,
}

impl Head {
    /// Of an empty log.
    pub const EMPTY: Self = Self { sequence: 0, hash: Hash::START };
}

/// Checks a log entry by entry, from the first.
#[derive(Clone, Debug)]
pub struct Verifier {
    head: Head,
    wanted: Option<Hash>,
    found: bool,
}

impl Verifier {
    /// With the hash of an entry that was noted elsewhere, which must be there.
    pub fn new(wanted: Option<Hash>) -> Self {
        Self { head: Head::EMPTY, wanted, found: wanted == Some(Hash::START) }
    }

    /// The next entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn take(&mut self, entry: &Entry) -> Result<(), Broken> {
        let expected = self.head.sequence.saturating_add(1);
        if entry.sequence != expected {
            return Err(Broken::Sequence { expected, found: entry.sequence });
        }
        if entry.computed() != entry.hash {
            return Err(Broken::Changed(entry.sequence));
        }
        if entry.previous_hash != self.head.hash {
            return Err(Broken::Previous(entry.sequence));
        }
        self.head = Head { sequence: entry.sequence, hash: entry.hash };
        self.found |= self.wanted == Some(entry.hash);
        Ok(())
    }

    /// After the last entry; `written` is what the database says was written, if it was asked.
    ///
    /// # Errors
    /// What is missing.
    pub fn finish(self, written: Option<Head>) -> Result<Head, Broken> {
        if let Some(written) = written.filter(|written| *written != self.head) {
            return Err(Broken::Cut { expected: written.sequence, found: self.head.sequence });
        }
        match self.wanted {
            Some(wanted) if !self.found => Err(Broken::NoSuchHead(wanted)),
            Some(_) | None => Ok(self.head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn act(number: i64, details: Value) -> Act {
        Act {
            at: Timestamp::from_micros(1_767_225_600_000_000 + number),
            actor_id: (number % 2 == 0).then(|| IdentityId(uuid::Uuid::from_u128(7))),
            actor: "ana".to_owned(),
            door: Door::Api,
            act: "user.add".to_owned(),
            target: format!("user-{number}"),
            details,
        }
    }

    fn log(length: i64) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for number in 0..length {
            let last = entries.last().map_or(Head::EMPTY, |last| Head { sequence: last.sequence, hash: last.hash });
            entries.push(Entry::after(last.sequence, last.hash, act(number, json!({"b": number, "a": "é\n"}))));
        }
        entries
    }

    fn verify(entries: &[Entry], wanted: Option<Hash>, written: Option<Head>) -> Result<Head, Broken> {
        let mut verifier = Verifier::new(wanted);
        entries.iter().try_for_each(|entry| verifier.take(entry))?;
        verifier.finish(written)
    }

    /// Made by the ten lines of Python in `docs/administration.md`: the form never changes.
    #[test]
    fn the_form_of_the_hash_stays() {
        let entry = log(1).remove(0);
        assert_eq!(canonical(&entry.details), r#"{"a":"é\n","b":0}"#);
        assert_eq!(entry.hash.to_string(), "025a0c818837bdbccb348b83771c72c28b4648bd0b18d9712bd25a2344d5e3e7");
    }

    #[test]
    fn an_entry_travels_as_json_and_stays_whole() {
        let entries = log(3);
        let text = serde_json::to_string(&entries).unwrap();
        let read: Vec<Entry> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, entries);
        assert!(verify(&read, None, None).is_ok());
    }

    #[test]
    fn a_log_that_was_cut_off_is_whole_in_itself_and_known_by_its_head() {
        let entries = log(5);
        let head = Head { sequence: 5, hash: entries[4].hash };
        assert_eq!(verify(&entries, Some(head.hash), Some(head)), Ok(head));
        assert_eq!(verify(&entries, Some(entries[2].hash), None), Ok(head), "it has grown since");
        assert!(verify(&entries[..4], None, None).is_ok());
        assert_eq!(verify(&entries[..4], Some(head.hash), None), Err(Broken::NoSuchHead(head.hash)));
        assert_eq!(verify(&entries[..4], None, Some(head)), Err(Broken::Cut { expected: 5, found: 4 }));
        assert_eq!(verify(&[], None, Some(Head::EMPTY)), Ok(Head::EMPTY));
    }

    proptest! {
        /// Whatever is done to one entry, that entry or its follower is named.
        #[test]
        fn a_changed_log_is_found_at_its_first_wrong_entry(at in 0_usize..6, what in 0_usize..8) {
            let mut entries = log(6);
            let place = i64::try_from(at).unwrap() + 1;
            let entry = &mut entries[at];
            match what {
                0 => entry.at = entry.at.plus_micros(1),
                1 => entry.actor.push('x'),
                2 => entry.target = String::new(),
                3 => entry.details = json!({"a": "é\n"}),
                4 => entry.door = Door::Socket,
                5 => entry.actor_id = Some(IdentityId(uuid::Uuid::from_u128(8))),
                6 => {
                    entry.act.push('s');
                    entry.hash = entry.computed();
                }
                _ => {
                    entries.remove(at);
                }
            }
            let found = verify(&entries, None, None);
            let last = at == 5;
            match what {
                // Whoever can also make the hash anew is found by the entry that follows, or by the head.
                6 if last => prop_assert!(found.is_ok()),
                6 => prop_assert_eq!(found, Err(Broken::Previous(place + 1))),
                7 if last => prop_assert!(found.is_ok()),
                7 => prop_assert_eq!(found, Err(Broken::Sequence { expected: place, found: place + 1 })),
                _ => prop_assert_eq!(found, Err(Broken::Changed(place))),
            }
        }

        #[test]
        fn hashes_read_back(bytes in any::<[u8; 32]>(), text in ".{0,70}") {
            prop_assert_eq!(Hash::parse(&Hash(bytes).to_string()), Some(Hash(bytes)));
            let _ = Hash::parse(&text);
        }
    }
}

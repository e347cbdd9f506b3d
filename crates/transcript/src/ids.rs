//! The link between a tool call and its result, and the name of a tool: two types that cannot be mixed up.

use std::collections::HashSet;
use std::fmt;

/// Identifies one call of a tool; its result carries the same. Never the id of a provider's item, never a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolCallId(String);

/// What a tool is called in the registry. Compared exactly; never rebuilt from an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(String);

macro_rules! text_type {
    ($name:ident) => {
        impl $name {
            /// Takes the text as it is; whether a provider accepts it is the linter's question.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

text_type!(ToolCallId);
text_type!(ToolName);

/// The longest name of a tool that every provider takes, in characters.
pub const MAX_TOOL_NAME: usize = 64;

/// The shape that a server wants call ids in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdRule {
    /// Anything that is not empty, up to so many characters.
    UpTo(usize),
    /// Letters, digits, `_` and `-`, at least one.
    Word,
    /// Exactly so many letters and digits.
    Exactly(usize),
}

impl IdRule {
    /// Whether the server would take this id.
    pub fn allows(self, id: &str) -> bool {
        match self {
            Self::UpTo(most) => !id.trim().is_empty() && id.chars().count() <= most,
            Self::Word => !id.is_empty() && id.bytes().all(is_word),
            Self::Exactly(length) => id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }

    /// A legal id in place of `old`, the same for the same input, and none of `taken`.
    pub fn fresh(self, old: &str, taken: &HashSet<String>) -> String {
        let mut round = 0_u64;
        loop {
            let hash = fingerprint(old, round);
            let id = match self {
                Self::Exactly(length) => base62(hash, length),
                Self::Word | Self::UpTo(_) => format!("call_{}", base62(hash, 16)),
            };
            if self.allows(&id) && !taken.contains(&id) {
                return id;
            }
            round += 1;
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// FNV-1a with a final mix: stable over versions and platforms, which the standard hasher does not promise.
fn fingerprint(text: &str, round: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (hash >> 29)
}

fn base62(mut value: u64, length: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(length);
    for _ in 0..length {
        text.push(char::from(DIGITS[(value % 62) as usize]));
        value = (value / 62).wrapping_add(value.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3);
    }
    text
}

/// Whether every provider takes this as the name of a tool: 1 to 64 of letters, digits, `_` and `-`.
pub fn is_legal_tool_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_TOOL_NAME && name.bytes().all(is_word)
}

/// A legal name for the wire in place of `name`: other characters become `_`, the rest is cut off.
pub fn wire_tool_name(name: &str) -> String {
    let name: String = name
        .chars()
        .take(MAX_TOOL_NAME)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if name.is_empty() { "unnamed_tool".to_owned() } else { name }
}

/// Which name of the registry each name on the wire stands for. Only names that had to change are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameTable {
    pairs: Vec<(ToolName, String)>,
    /// Names that went out as they are: no stand-in may be one of them.
    plain: HashSet<String>,
    /// Whether the registry's names are known, so that a stand-in met again is one, and not another tool.
    whole: bool,
}

impl NameTable {
    /// A table for all tools of a registry: legal names stay whatever the order, and a stand-in that comes back in a
    /// history is not renamed once more.
    pub fn for_tools<'a>(names: impl IntoIterator<Item = &'a ToolName>) -> Self {
        let names: Vec<&ToolName> = names.into_iter().collect();
        let legal = names.iter().filter(|name| is_legal_tool_name(name.as_str()));
        let plain = legal.map(|name| name.as_str().to_owned()).collect();
        let mut table = Self { pairs: Vec::new(), plain, whole: true };
        for name in names {
            table.to_wire(name);
        }
        table
    }

    /// The name on the wire: itself where it is legal, else its stand-in, which no other name shares.
    pub fn to_wire(&mut self, name: &ToolName) -> String {
        let free = self.whole || !self.pairs.iter().any(|(_, wire)| wire == name.as_str());
        if is_legal_tool_name(name.as_str()) && free {
            if !self.plain.contains(name.as_str()) {
                self.plain.insert(name.as_str().to_owned());
            }
            return name.as_str().to_owned();
        }
        if let Some((_, wire)) = self.pairs.iter().find(|(known, _)| known == name) {
            return wire.clone();
        }
        let plain = wire_tool_name(name.as_str());
        let mut wire = plain.clone();
        let mut number = 2;
        while self.plain.contains(&wire) || self.pairs.iter().any(|(_, taken)| *taken == wire) {
            let suffix = format!("_{number}");
            wire = plain.chars().take(MAX_TOOL_NAME - suffix.len()).collect::<String>() + &suffix;
            number += 1;
        }
        self.pairs.push((name.clone(), wire.clone()));
        wire
    }

    /// The name in the registry that a model meant; a name that is not in the table stands for itself.
    pub fn from_wire(&self, wire: &str) -> ToolName {
        self.pairs.iter().find(|(_, known)| known == wire).map_or_else(|| ToolName::new(wire), |(name, _)| name.clone())
    }

    /// Each changed name with its stand-in.
    pub fn pairs(&self) -> &[(ToolName, String)] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_ids_are_legal_and_new() {
        for rule in [IdRule::UpTo(40), IdRule::Word, IdRule::Exactly(9)] {
            let mut taken = HashSet::new();
            for old in ["", "call_wind_0001", "ünï", &"x".repeat(5000)] {
                for _ in 0..50 {
                    let id = rule.fresh(old, &taken);
                    assert!(rule.allows(&id), "{id}");
                    assert!(taken.insert(id));
                }
            }
        }
    }

    #[test]
    fn names_come_back_from_the_wire() {
        let mut table = NameTable::default();
        let (dotted, slashed) = (ToolName::new("fs.read"), ToolName::new("fs/read"));
        let (first, second) = (table.to_wire(&dotted), table.to_wire(&slashed));
        assert_ne!(first, second);
        assert_eq!(table.from_wire(&first), dotted);
        assert_eq!(table.from_wire(&second), slashed);
        assert_eq!(table.to_wire(&ToolName::new("plain")), "plain");
        assert_eq!(table.to_wire(&dotted), first);
        table.to_wire(&ToolName::new("a_b"));
        assert_ne!(table.to_wire(&ToolName::new("a.b")), "a_b");
    }

    #[test]
    fn with_the_registry_known_a_name_is_renamed_once() {
        let names = ["a.b", "a_b", "fs.read"].map(ToolName::new);
        let mut table = NameTable::for_tools(&names);
        // A legal name stays, whatever came before it.
        assert_eq!(names.each_ref().map(|name| table.to_wire(name)), ["a_b_2", "a_b", "fs_read"]);
        // A history that kept what stood on the wire.
        assert_eq!(table.to_wire(&ToolName::new("fs_read")), "fs_read");
        assert_eq!(table.from_wire("fs_read"), ToolName::new("fs.read"));
        assert_eq!(table.from_wire("a_b"), ToolName::new("a_b"));
    }
}

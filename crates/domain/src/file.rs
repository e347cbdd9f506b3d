//! Files of a room: what they are called, what they are, and which part of one is asked for.

use bandstand_wire::ids::FileId;
use bandstand_wire::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A file of a room, as messages that carry it know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Which.
    pub id: FileId,
    /// What its uploader called it.
    pub name: String,
    /// What it is, worked out from its bytes.
    pub content_type: String,
    /// How long it is.
    pub bytes: i64,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// When it goes away; never when absent.
    pub expires_at: Option<Timestamp>,
}

/// Most attachments of one message.
pub const ATTACHMENTS_MAX: usize = 10;

/// Longest name, in characters.
pub const NAME_MAX_CHARACTERS: usize = 255;

/// Why a file's name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing there.
    #[error("can't be blank")]
    Blank,
    /// Longer than [`NAME_MAX_CHARACTERS`].
    #[error("should be at most 255 character(s)")]
    TooLong,
    /// Holds a control character.
    #[error("must not contain control characters")]
    ControlCharacter,
}

/// A file's name: the last part of what was given, since some clients send a whole path. It is only ever shown, never
/// used to find the file.
///
/// # Errors
/// [`NameError`].
pub fn name(given: &str) -> Result<String, NameError> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    if last.is_empty() || last.chars().all(|c| c == '.') {
        return Err(NameError::Blank);
    }
    if last.chars().any(char::is_control) {
        return Err(NameError::ControlCharacter);
    }
    if last.chars().count() > NAME_MAX_CHARACTERS {
        return Err(NameError::TooLong);
    }
    Ok(last.to_owned())
}

/// Reads a SHA-256 in lower-case hexadecimal.
pub fn sha256(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut hash = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != hash.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = digit(*high)? * 16 + digit(*low)?;
    }
    Some(hash)
}

/// Writes a hash as [`sha256`] reads it.
pub fn hex(hash: &[u8]) -> String {
    use std::fmt::Write;
    hash.iter().fold(String::with_capacity(hash.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Which part of a file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// From the first to the last byte of it, both included.
    Bytes {
        /// First byte, from 0.
        first: u64,
        /// Last byte.
        last: u64,
    },
    /// None of it: the range starts beyond its end.
    Unsatisfiable,
}

/// Reads a `Range` header for a file of `length` bytes: `bytes=a-b`, `bytes=a-` or `bytes=-n`. Anything else, several
/// ranges included, means the whole file, as HTTP allows.
pub fn part(header: Option<&str>, length: u64) -> Part {
    let Some((first, last)) =
        header.and_then(|text| text.trim().strip_prefix("bytes=")).and_then(|r| r.split_once('-'))
    else {
        return Part::Whole;
    };
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number too large for the machine is beyond any file's end.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let end = length.saturating_sub(1);
    match (first.trim(), last.trim()) {
        ("", suffix) => match number(suffix) {
            None => Part::Whole,
            Some(0) => Part::Unsatisfiable,
            Some(_) if length == 0 => Part::Unsatisfiable,
            Some(count) => Part::Bytes { first: length.saturating_sub(count), last: end },
        },
        (first, last) => match (number(first), last.is_empty().then_some(u64::MAX).or_else(|| number(last))) {
            (Some(first), Some(last)) if first <= last => {
                if first >= length {
                    Part::Unsatisfiable
                } else {
                    Part::Bytes { first, last: last.min(end) }
                }
            }
            _ => Part::Whole,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_its_last_part() {
        assert_eq!(name("report.pdf"), Ok("report.pdf".into()));
        assert_eq!(name("../../etc/passwd"), Ok("passwd".into()));
        assert_eq!(name("C:\\temp\\a b.txt"), Ok("a b.txt".into()));
        assert_eq!(name("folder/"), Err(NameError::Blank));
        assert_eq!(name(".."), Err(NameError::Blank));
        assert_eq!(name("a\nb"), Err(NameError::ControlCharacter));
        assert_eq!(name(&"x".repeat(256)), Err(NameError::TooLong));
    }

    #[test]
    fn ranges() {
        let table = [
            (None, Part::Whole),
            (Some("bytes=0-3"), Part::Bytes { first: 0, last: 3 }),
            (Some("bytes=4-"), Part::Bytes { first: 4, last: 9 }),
            (Some("bytes=-3"), Part::Bytes { first: 7, last: 9 }),
            (Some("bytes=-30"), Part::Bytes { first: 0, last: 9 }),
            (Some("bytes=8-99999999999999999999"), Part::Bytes { first: 8, last: 9 }),
            (Some("bytes=10-"), Part::Unsatisfiable),
            (Some("bytes=-0"), Part::Unsatisfiable),
            (Some("bytes=3-2"), Part::Whole),
            (Some("bytes=0-1,3-4"), Part::Whole),
            (Some("lines=0-1"), Part::Whole),
            (Some("bytes=a-b"), Part::Whole),
        ];
        for (header, expected) in table {
            assert_eq!(part(header, 10), expected, "{header:?}");
        }
        assert_eq!(part(Some("bytes=0-"), 0), Part::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_hash_reads_back(hash in any::<[u8; 32]>()) {
            prop_assert_eq!(sha256(&hex(&hash)), Some(hash));
        }

        #[test]
        fn any_header_is_answered_within_the_file(header in "(bytes=)?[0-9,-]{0,12}|.{0,20}", length in any::<u64>()) {
            if let Part::Bytes { first, last } = part(Some(&header), length) {
                prop_assert!(first <= last && last < length);
            }
            let _ = (name(&header), sha256(&header));
        }
    }
}

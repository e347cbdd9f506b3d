//! What text may be posted.

/// Longest message text, in bytes of UTF-8 as the sender wrote it.
pub const MESSAGE_MAX_BYTES: usize = 524_288;

/// Longest message text once written as JSON, so that a push stays below the 1,000,000 bytes that clients take.
pub const MESSAGE_MAX_JSON_BYTES: usize = 900_000;

/// Longest event text, in characters.
pub const EVENT_MAX_CHARACTERS: usize = 16_384;

/// Largest event metadata, in bytes of JSON.
pub const EVENT_METADATA_MAX_BYTES: usize = 65_536;

/// Whether the text holds something to see: a letter, number, punctuation mark or symbol (Unicode classes L, N, P, S).
pub fn is_visible(text: &str) -> bool {
    text.chars().any(is_visible_character)
}

/// Unicode classes L, N, P and S are what is left when separators (Z), controls and unassigned (C) and marks (M) are
/// taken away.
fn is_visible_character(c: char) -> bool {
    use unicode_general_category::{GeneralCategory as G, get_general_category};
    !matches!(
        get_general_category(c),
        G::SpaceSeparator
            | G::LineSeparator
            | G::ParagraphSeparator
            | G::Control
            | G::Format
            | G::Surrogate
            | G::PrivateUse
            | G::Unassigned
            | G::NonspacingMark
            | G::SpacingMark
            | G::EnclosingMark
    )
}

/// How many bytes the text takes as a JSON string, without the quotes.
pub fn json_bytes(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            _ => c.len_utf8(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_is_what_nobody_can_see() {
        for blank in ["", "  \n\t", "\u{200b}\u{feff}", "\u{301}", "\u{e000}"] {
            assert!(!is_visible(blank), "{blank:?}");
        }
        for visible in ["a", " . ", "½", "→", "漢", "\u{200b}x"] {
            assert!(is_visible(visible), "{visible:?}");
        }
    }

    #[test]
    fn json_length_counts_escapes() {
        for text in ["plain", "a\"b\\c\n", "\u{1}ü漢", "\u{7f}"] {
            assert_eq!(json_bytes(text), serde_json::to_string(text).unwrap().len() - 2, "{text:?}");
        }
    }
}

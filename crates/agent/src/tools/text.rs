//! What text may be posted.

use unicode_general_category::{GeneralCategory as G, get_general_category};

/// Longest event text, in characters.
pub(super) const EVENT_MAX_CHARACTERS: usize = 16_384;

const CUT: &str = "... [truncated] ...";

/// Whether the text holds something to see: a letter, a number, a punctuation mark or a symbol.
pub fn has_visible_content(text: &str) -> bool {
    text.chars().any(|character| {
        !matches!(
            get_general_category(character),
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
    })
}

/// An event's text, cut in the middle if it is too long: its start says what it is, its end how it came out.
pub(super) fn cut_event(content: String) -> String {
    let length = content.chars().count();
    if length <= EVENT_MAX_CHARACTERS {
        return content;
    }
    let keep = EVENT_MAX_CHARACTERS - CUT.len();
    let head: String = content.chars().take(keep - keep / 2).collect();
    let tail: String = content.chars().skip(length - keep / 2).collect();
    format!("{head}{CUT}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_events_keep_their_start_and_their_end() {
        assert_eq!(cut_event("short".into()), "short");
        let exact = "é".repeat(EVENT_MAX_CHARACTERS);
        assert_eq!(cut_event(exact.clone()), exact);
        let cut = cut_event(format!("start{exact}end"));
        assert_eq!(cut.chars().count(), EVENT_MAX_CHARACTERS);
        assert!(cut.starts_with("starté") && cut.ends_with("éend") && cut.contains(CUT));
    }

    #[test]
    fn blank_is_what_nobody_can_see() {
        assert!(!has_visible_content(" \u{200b} \n"));
        assert!(has_visible_content("\u{200b}."));
    }
}

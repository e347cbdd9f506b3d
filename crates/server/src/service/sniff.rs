//! What a file is, from its bytes alone: neither its name nor what its uploader says is believed.

/// What is said of bytes that are nothing in particular, or something that must not run anywhere.
const BYTES: &str = "application/octet-stream";

/// The type of a file that starts with `head`; `more` tells whether there is more of it.
pub(crate) fn content_type(head: &[u8], more: bool) -> &'static str {
    if let Some(known) = infer::get(head) {
        return match known.matcher_type() {
            infer::MatcherType::App => BYTES,
            // A page that a browser would run is shown as what it is made of.
            infer::MatcherType::Text => "text/plain",
            _ => known.mime_type(),
        };
    }
    if is_text(head, more) { "text/plain" } else { BYTES }
}

/// UTF-8 without control characters other than white space. The last character may be cut in half.
fn is_text(head: &[u8], more: bool) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(why) if more && why.error_len().is_none() => {
            let (whole, _) = head.split_at(why.valid_up_to());
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_say_what_they_are() {
        let table: [(&[u8], &str); 8] = [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"plain words\nand more", "text/plain"),
            (b"<!DOCTYPE html><script>alert(1)</script>", "text/plain"),
            (b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", "text/plain"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", BYTES),
            (b"\0\x01\x02\x03", BYTES),
            (b"", "text/plain"),
        ];
        for (head, expected) in table {
            assert_eq!(content_type(head, false), expected, "{head:?}");
        }
    }

    #[test]
    fn a_character_cut_in_half_is_still_text() {
        let text = "漢字".as_bytes();
        assert_eq!(content_type(&text[..4], true), "text/plain");
        assert_eq!(content_type(&text[..4], false), BYTES);
    }

    proptest! {
        #[test]
        fn nothing_that_a_browser_runs_is_ever_said(head in proptest::collection::vec(any::<u8>(), 0..64)) {
            let said = content_type(&head, true);
            prop_assert!(!said.contains("html") && !said.contains("svg") && !said.contains("javascript"));
        }
    }
}

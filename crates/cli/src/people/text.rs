//! What others wrote, made fit for a terminal: it must not be able to move the cursor, to hide text or to fake a line.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use super::model::Row;
use crate::sys;

/// Without anything that a terminal would act on. Line breaks stay.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            '\r' => {}
            // Marks that turn the order of what follows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            other if other.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// A text on one line, as long as `columns` at most.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clipped(&harmless(&words.join(" ")), columns)
}

/// The beginning of a line that takes `columns` at most.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if width + wide > columns.saturating_sub(1) {
            // Only if there is more than fits.
            let rest: usize = text.chars().skip(out.chars().count()).map(|c| c.width().unwrap_or(0)).sum();
            if width + rest > columns {
                out.push('…');
                return out;
            }
        }
        out.push(character);
        width += wide;
    }
    out
}

/// A text in lines of so many columns at most, broken between words where that is possible.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let (mut line, mut width) = (String::new(), 0);
        for word in paragraph.split_inclusive(' ') {
            let bare: usize = word.trim_end().chars().map(|it| it.width().unwrap_or(0)).sum();
            if width > 0 && width + bare > columns {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                width = 0;
            }
            for character in word.chars() {
                let wide = character.width().unwrap_or(0);
                if width > 0 && width + wide > columns && character != ' ' {
                    lines.push(std::mem::take(&mut line));
                    width = 0;
                }
                line.push(character);
                width += wide;
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// The text of a row with `@handle` in the place of each token.
pub(crate) fn readable(row: &Row) -> String {
    let mut out = String::with_capacity(row.content.len());
    let mut rest = row.content.as_str();
    while let Some(at) = rest.find("@[[") {
        let (before, token) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = token.find("]]") else {
            out.push_str(token);
            return harmless(&out);
        };
        match handle_of(row.metadata.as_ref(), &token[3..end]) {
            // Writing to a String cannot fail.
            Some(handle) => drop(write!(out, "@{}", handle.trim_start_matches('@'))),
            None => out.push_str(&token[..end + 2]),
        }
        rest = &token[end + 2..];
    }
    out.push_str(rest);
    harmless(&out)
}

fn handle_of<'a>(metadata: Option<&'a Value>, id: &str) -> Option<&'a str> {
    let mentions = metadata?.get("mentions")?.as_array()?;
    let mention =
        mentions.iter().find(|mention| mention.get("id").and_then(Value::as_str).is_some_and(|it| same_id(it, id)))?;
    ["handle", "name"].iter().find_map(|key| mention.get(key).and_then(Value::as_str)).filter(|it| !it.is_empty())
}

fn same_id(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other.trim())
}

/// A moment of the server as this machine's clock shows it: `12:03:04`, or as it came when it is no moment.
pub(crate) fn time_of_day(moment: &str) -> String {
    let Ok(moment) = bandstand_wire::time::Timestamp::parse(moment) else { return harmless(moment) };
    match sys::local_time(moment.as_micros().div_euclid(1_000_000)) {
        Some(local) => format!("{:02}:{:02}:{:02}", local.hour, local.minute, local.second),
        None => moment.to_string(),
    }
}

/// The day and the time.
pub(crate) fn day_and_time(moment: &str) -> String {
    let Ok(parsed) = bandstand_wire::time::Timestamp::parse(moment) else { return harmless(moment) };
    match sys::local_time(parsed.as_micros().div_euclid(1_000_000)) {
        Some(local) => {
            format!(
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
                local.year, local.month, local.day, local.hour, local.minute, local.second
            )
        }
        None => parsed.to_string(),
    }
}

/// A sentence of the server with its moments as this machine's clock shows them.
pub(crate) fn with_local_times(sentence: &str) -> String {
    let word = |word: &str| {
        let moment = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let end = &word[moment.len()..];
        match moment.contains('T') && bandstand_wire::time::Timestamp::parse(moment).is_ok() {
            true => format!("{}{end}", day_and_time(moment)),
            false => word.to_owned(),
        }
    };
    sentence.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(content: &str) -> Row {
        serde_json::from_value(serde_json::json!({
            "id": "00000000-0000-0000-0000-000000000001", "content": content, "message_type": "text",
            "sender_id": "00000000-0000-0000-0000-000000000002", "inserted_at": "2026-01-01T10:00:00.000000Z",
            "metadata": {"mentions": [{"id": "00000000-0000-0000-0000-000000000007", "handle": "ana/writer"}]},
        }))
        .unwrap()
    }

    #[test]
    fn a_terminal_is_not_at_the_mercy_of_what_others_write() {
        assert_eq!(harmless("a\u{1b}[2Jb\rc\u{202e}d\te\nf"), "a\u{fffd}[2Jbcd e\nf");
        assert_eq!(one_line(" a\n\n b\u{7} ", 80), "a b\u{fffd}");
    }

    #[test]
    fn mentions_are_read_as_handles() {
        assert_eq!(readable(&row("hi @[[00000000-0000-0000-0000-000000000007]]!")), "hi @ana/writer!");
        let unknown = "hi @[[00000000-0000-0000-0000-000000000008]]";
        assert_eq!(readable(&row(unknown)), unknown);
        assert_eq!(readable(&row("open @[[ for ever")), "open @[[ for ever");
    }

    #[test]
    fn moments_within_a_sentence() {
        let told = with_local_times("It is offline since 2026-01-01T10:02:00.000000Z.");
        assert!(told.starts_with("It is offline since 202") && told.ends_with('.') && !told.contains('Z'), "{told}");
        assert_eq!(with_local_times("Nothing at all: To."), "Nothing at all: To.");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one\n\ntwo", 8), ["one", "", "two"]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrapped("日本語 x", 4), ["日本", "語 x"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn a_line_is_cut_at_its_columns() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abcde…");
        assert_eq!(clipped("日本語", 5), "日本…");
        assert_eq!(clipped("日本語", 6), "日本語");
    }
}

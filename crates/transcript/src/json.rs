//! Small readers of JSON values.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Parses strict JSON, except that half a UTF-16 pair, which models and servers do write, is read as U+FFFD.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(_) => serde_json::from_str(&without_half_pairs(text)?).ok(),
    }
}

/// The text with escapes of half pairs replaced; nothing when there are none.
fn without_half_pairs(text: &str) -> Option<String> {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let mut mended: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        let length = match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                let mended = mended.get_or_insert_default();
                mended.push_str(&text[copied..at]);
                mended.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            Some(_) => 6,
            // The escaped character may be a long one; the next search begins behind the backslash and its byte.
            None => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        at += length;
    }
    let mut mended = mended?;
    mended.push_str(&text[copied..]);
    Some(mended)
}

/// A string field that is not empty.
pub(crate) fn filled<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A string field, else nothing.
pub(crate) fn string<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list field, else an empty one.
pub(crate) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An unsigned field.
pub(crate) fn number(object: &Value, key: &str) -> Option<u64> {
    object.get(key).and_then(Value::as_u64)
}

/// What an object holds beside `known`; fields that are null say nothing and are left out.
pub(crate) fn rest(object: &Value, known: &[&str]) -> Map<String, Value> {
    let Some(object) = object.as_object() else { return Map::new() };
    object
        .iter()
        .filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether text says nothing.
pub(crate) fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_pairs_do_not_make_json_unreadable() {
        let read = |text: &str| parse::<Value>(text);
        assert_eq!(read(r#"{"a":"\ud83d\ude00 \ud83d!"}"#), Some(serde_json::json!({ "a": "\u{1F600} \u{FFFD}!" })));
        assert_eq!(read(r#""\ude00\ud83d""#), Some(serde_json::json!("\u{FFFD}\u{FFFD}")));
        // An escaped backslash is no escape of a unit.
        assert_eq!(read(r#""\\ud83d""#), Some(serde_json::json!("\\ud83d")));
        assert_eq!(read(r#"{"a":"\ud83d"#), None);
        assert_eq!(read(r#""\ud83"#), None);
        assert_eq!(read("\"\\ü"), None);
    }
}

//! Small readers of JSON values.

use serde_json::{Map, Value};

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

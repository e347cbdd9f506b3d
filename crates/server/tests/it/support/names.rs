//! Ids by what they stand for, so that a test compares whole values and still reads like the story.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;
use uuid::Uuid;

/// Which id stands for what.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeMap<String, String>>);

const UUID: usize = 36;

impl Names {
    /// From now on the id reads as `<name>`.
    pub(crate) fn give(&self, id: &str, name: &str) {
        self.0.lock().unwrap().entry(id.to_owned()).or_insert_with(|| format!("<{name}>"));
    }

    /// The value with all ids replaced: by their names, or by `<id>`.
    pub(crate) fn replace(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.replace(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (self.text(key), self.replace(value))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        let names = self.0.lock().unwrap();
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match rest.get(..UUID).filter(|id| id.contains('-') && Uuid::parse_str(id).is_ok()) {
                Some(id) => {
                    replaced.push_str(names.get(id).map_or("<id>", String::as_str));
                    rest = &rest[UUID..];
                }
                None => {
                    replaced.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        replaced
    }
}

//! When two payloads mean the same, by the comparison rules of `tests/cases/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use bandstand_transcript::format::Format;
use bandstand_transcript::ids::IdRule;
use bandstand_transcript::profile::Profile;
use serde_json::{Value, json};

/// Compares values that hold `$any_text` and `$id:X`.
pub(crate) struct Comparison {
    rule: IdRule,
    /// What each label stands for.
    labels: BTreeMap<String, String>,
    /// Ids written out in the case: no label stands for one of them.
    written: BTreeSet<String>,
    /// Whether assistant content beside calls is fixed by the profile.
    strict_content: bool,
    /// Ids of items that came with the payload may be there though the expected payload leaves them out.
    carried_ids: BTreeSet<String>,
}

impl Comparison {
    pub(crate) fn new(format: Format, profile: &Profile, case: &Value) -> Self {
        let mut written = BTreeSet::new();
        collect_ids(case, &mut written);
        let mut carried_ids = BTreeSet::new();
        collect_item_ids(&case["input"], &mut carried_ids);
        Self {
            rule: profile.id_rule(format),
            labels: BTreeMap::new(),
            written,
            strict_content: matches!(profile.name, "ollama" | "llama.cpp" | "lmstudio"),
            carried_ids,
        }
    }

    pub(crate) fn payload(&mut self, expected: &Value, actual: &Value, format: Format) -> Result<(), String> {
        let (expected, actual) = (self.normal(expected, format), self.normal(actual, format));
        let before = self.labels.clone();
        let compared = self.value("", &expected, &actual);
        if compared.is_err() {
            self.labels = before;
        }
        compared
    }

    /// One form for what the rules call equal.
    fn normal(&self, payload: &Value, format: Format) -> Value {
        let mut payload = payload.clone();
        match format {
            Format::OpenAiChat => {
                each(&mut payload, "messages", |message| normal_chat(message, self.strict_content));
                each(&mut payload, "choices", |choice| {
                    if let Some(message) = choice.get_mut("message") {
                        normal_chat(message, self.strict_content);
                    }
                });
            }
            Format::OpenAiResponses => {
                if let Some(text) = payload.get("input").and_then(Value::as_str) {
                    payload["input"] = json!([{ "role": "user", "content": text }]);
                }
                each(&mut payload, "input", |item| normal_item(item, &self.carried_ids));
                each(&mut payload, "output", |item| normal_item(item, &self.carried_ids));
            }
            Format::Anthropic => {
                if let Some(system) = payload.get_mut("system") {
                    listed(system, "text");
                }
                each(&mut payload, "messages", normal_anthropic);
                join_turns(&mut payload);
            }
        }
        payload
    }

    pub(crate) fn value(&mut self, at: &str, expected: &Value, actual: &Value) -> Result<(), String> {
        match (expected, actual) {
            (Value::String(wanted), Value::String(found)) => self.text(at, wanted, found),
            (Value::Object(wanted), Value::Object(found)) => {
                let keys: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
                for key in keys {
                    let place = format!("{at}/{key}");
                    let nothing = Value::Null;
                    let (wanted, found) = (wanted.get(key).unwrap_or(&nothing), found.get(key).unwrap_or(&nothing));
                    if wanted.is_null() && found.is_null() {
                        continue;
                    }
                    if key == "arguments" && wanted.is_string() && found.is_string() {
                        let read = |value: &Value| serde_json::from_str::<Value>(value.as_str().unwrap_or_default());
                        if let (Ok(wanted), Ok(found)) = (read(wanted), read(found)) {
                            self.value(&place, &wanted, &found)?;
                            continue;
                        }
                    }
                    self.value(&place, wanted, found)?;
                }
                Ok(())
            }
            (Value::Array(wanted), Value::Array(found)) => {
                if wanted.len() != found.len() {
                    return Err(format!(
                        "{at}: {} entries instead of {}: {actual} instead of {expected}",
                        found.len(),
                        wanted.len()
                    ));
                }
                for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                    self.value(&format!("{at}/{index}"), wanted, found)?;
                }
                Ok(())
            }
            (Value::Number(wanted), Value::Number(found)) if wanted.as_f64() == found.as_f64() => Ok(()),
            _ if expected == actual => Ok(()),
            _ => Err(format!("{at}: {actual} instead of {expected}")),
        }
    }

    fn text(&mut self, at: &str, wanted: &str, found: &str) -> Result<(), String> {
        if wanted == "$any_text" {
            return if found.trim().is_empty() { Err(format!("{at}: no text")) } else { Ok(()) };
        }
        let Some(label) = wanted.strip_prefix("$id:") else {
            return if wanted == found { Ok(()) } else { Err(format!("{at}: {found:?} instead of {wanted:?}")) };
        };
        if !self.rule.allows(found) || self.written.contains(found) {
            return Err(format!("{at}: {found:?} is not a new legal id"));
        }
        if self.labels.iter().any(|(other, id)| other != label && id == found) {
            return Err(format!("{at}: {found:?} stands for two labels"));
        }
        match self.labels.insert(label.to_owned(), found.to_owned()) {
            Some(before) if before != found => Err(format!("{at}: {found:?} and {before:?} for one label")),
            _ => Ok(()),
        }
    }
}

fn each(payload: &mut Value, key: &str, change: impl FnMut(&mut Value)) {
    if let Some(items) = payload.get_mut(key).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(change);
    }
}

/// A string becomes a list of one text part.
fn listed(content: &mut Value, kind: &str) {
    if let Value::String(text) = content {
        *content = if text.is_empty() { json!([]) } else { json!([{ "type": kind, "text": text }]) };
    }
}

fn normal_chat(message: &mut Value, strict_content: bool) {
    let calls = message.get("tool_calls").is_some_and(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty()));
    let Some(fields) = message.as_object_mut() else { return };
    if let Some(content) = fields.get_mut("content") {
        if calls && !strict_content && content.as_str().is_some_and(str::is_empty) {
            *content = Value::Null;
        }
        listed(content, "text");
        // A refusal is a field or a part.
        if let Value::Array(parts) = content {
            let refusal: String = parts.iter().filter_map(|part| part.get("refusal").and_then(Value::as_str)).collect();
            if !refusal.is_empty() {
                parts.retain(|part| part.get("refusal").is_none());
                if parts.is_empty() {
                    *content = Value::Null;
                }
                fields.insert("refusal".to_owned(), json!(refusal));
            }
        }
    }
}

fn normal_item(item: &mut Value, carried: &BTreeSet<String>) {
    let assistant = item["role"] == "assistant";
    let Some(fields) = item.as_object_mut() else { return };
    fields.entry("type").or_insert(json!("message"));
    // Says nothing in an input.
    if fields.get("status").is_some_and(|status| status == "completed") {
        fields.remove("status");
    }
    let kind = fields["type"].as_str().unwrap_or_default().to_owned();
    let own = fields.get("id").and_then(Value::as_str).is_some_and(|id| carried.contains(id));
    if own && kind != "reasoning" {
        fields.remove("id");
    }
    for key in ["content", "output"] {
        if let Some(content) = fields.get_mut(key) {
            listed(content, if assistant { "output_text" } else { "input_text" });
            for part in content.as_array_mut().into_iter().flatten() {
                if let Some(part) = part.as_object_mut() {
                    part.remove("annotations");
                    part.remove("logprobs");
                    if part.get("detail").is_some_and(|detail| detail == "auto") {
                        part.remove("detail");
                    }
                }
            }
        }
    }
}

fn normal_anthropic(message: &mut Value) {
    let Some(content) = message.get_mut("content") else { return };
    listed(content, "text");
    for block in content.as_array_mut().into_iter().flatten() {
        if block["type"] != "tool_result" {
            continue;
        }
        if let Some(inner) = block.get_mut("content") {
            listed(inner, "text");
            if inner.as_array().is_some_and(Vec::is_empty) {
                *inner = Value::Null;
            }
        }
        if block.get("is_error").is_some_and(|flag| flag == false) {
            block["is_error"] = Value::Null;
        }
    }
}

/// Neighbours of one role are one message.
fn join_turns(payload: &mut Value) {
    let Some(messages) = payload.get_mut("messages").and_then(Value::as_array_mut) else { return };
    let mut joined: Vec<Value> = Vec::new();
    for message in std::mem::take(messages) {
        match joined.last_mut() {
            Some(last) if last["role"] == message["role"] => {
                let more = message["content"].as_array().cloned().unwrap_or_default();
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(more);
                }
            }
            _ => joined.push(message),
        }
    }
    *messages = joined;
}

fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (true, Some(id)) = (is_id_key(key), value.as_str())
                    && !id.starts_with("$id:")
                {
                    ids.insert(id.to_owned());
                }
                collect_ids(value, ids);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        _ => {}
    }
}

fn is_id_key(key: &str) -> bool {
    matches!(key, "id" | "call_id" | "tool_call_id" | "tool_use_id")
}

/// Ids of items in the input of a case.
fn collect_item_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("type")
                && let Some(id) = fields.get("id").and_then(Value::as_str)
            {
                ids.insert(id.to_owned());
            }
            fields.values().for_each(|value| collect_item_ids(value, ids));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_item_ids(item, ids)),
        _ => {}
    }
}

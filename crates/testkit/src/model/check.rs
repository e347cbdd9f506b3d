//! What a provider refuses in a history. Written without our own linter, which would forgive itself.

use std::collections::BTreeSet;

use bandstand_transcript::Format;
use serde_json::Value;

use super::Asked;

pub(super) fn faults(asked: &Asked) -> Vec<String> {
    let rows = |name: &str| asked.body[name].as_array().cloned().unwrap_or_default();
    let mut faults = match asked.api {
        Format::OpenAiChat => chat(&rows("messages")),
        Format::OpenAiResponses => responses(&rows("input")),
        Format::Anthropic => anthropic(&rows("messages")),
    };
    if asked.body["model"].as_str().is_none_or(str::is_empty) {
        faults.push("no model".to_owned());
    }
    if asked.api == Format::Anthropic && !asked.body["max_tokens"].is_u64() {
        faults.push("no max_tokens".to_owned());
    }
    faults
}

fn ids<'a>(rows: impl Iterator<Item = &'a Value>, name: &str) -> Vec<String> {
    rows.map(|row| row[name].as_str().unwrap_or("(none)").to_owned()).collect()
}

/// Calls and results of one turn: each call once, each result once.
fn compare(at: usize, calls: &[String], results: &[String], faults: &mut Vec<String>) {
    let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    if set(calls) != set(results) || calls.len() != results.len() || set(calls).len() != calls.len() {
        faults.push(format!("message {at}: calls {calls:?}, results {results:?}"));
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn chat(messages: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: Option<(usize, Vec<String>)> = None;
    let mut results = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            results.push(message["tool_call_id"].as_str().unwrap_or("(none)").to_owned());
            if open.is_none() {
                faults.push(format!("message {at}: a result without a call"));
            }
            continue;
        }
        if let Some((at, calls)) = open.take() {
            compare(at, &calls, &std::mem::take(&mut results), &mut faults);
        }
        results.clear();
        let calls = ids(array(&message["tool_calls"]).iter(), "id");
        if !calls.is_empty() {
            open = Some((at, calls));
        }
        if message["role"] == "assistant" && message["content"].is_null() && array(&message["tool_calls"]).is_empty() {
            faults.push(format!("message {at}: nothing in it"));
        }
    }
    if let Some((at, calls)) = open {
        compare(at, &calls, &results, &mut faults);
    }
    faults
}

fn responses(items: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let of = |kind: &'static str| items.iter().filter(move |item| item["type"] == kind);
    compare(0, &ids(of("function_call"), "call_id"), &ids(of("function_call_output"), "call_id"), &mut faults);
    let place = |kind: &str, id: &str| items.iter().position(|item| item["type"] == kind && item["call_id"] == id);
    for id in ids(of("function_call_output"), "call_id") {
        if place("function_call", &id) > place("function_call_output", &id) {
            faults.push(format!("the result of {id} stands before its call"));
        }
    }
    faults
}

fn anthropic(messages: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let none = Value::Null;
    for (at, message) in messages.iter().enumerate() {
        let next = messages.get(at + 1).unwrap_or(&none);
        let of = |message: &Value, kind: &str, name: &str| {
            ids(array(&message["content"]).iter().filter(|block| block["type"] == kind), name)
        };
        if message["role"] == "assistant" {
            compare(at, &of(message, "tool_use", "id"), &of(next, "tool_result", "tool_use_id"), &mut faults);
        }
        let answers =
            at.checked_sub(1).and_then(|before| messages.get(before)).is_some_and(|it| it["role"] == "assistant");
        if !answers && !of(message, "tool_result", "tool_use_id").is_empty() {
            faults.push(format!("message {at}: a result without a call"));
        }
        if message["content"].as_str() == Some("") || message["content"].as_array().is_some_and(Vec::is_empty) {
            faults.push(format!("message {at}: nothing in it"));
        }
    }
    if messages.last().is_some_and(|message| message["role"] != "user") {
        faults.push("the last message is not the user's".to_owned());
    }
    faults
}

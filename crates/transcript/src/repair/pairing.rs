//! Gives every call its one result, where the format wants it.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{INTERRUPTED, list_mut};
use crate::convert::marked;
use crate::format::Format;
use crate::json::{list, string};
use crate::lint::LintOptions;
use crate::lint::pairs::{Fate, Pairs, items};

/// Where a call or result stands: message and block.
type Place = (usize, Option<usize>);

/// A result to put behind its call.
struct Added {
    /// Results that were elsewhere come first, as they stood, then those that had to be made, as the calls stand.
    rank: (bool, usize),
    value: Value,
}

/// What has to happen: results to take out, and results to put behind calls.
struct Plan {
    removed: HashSet<Place>,
    /// By the message of the call.
    added: HashMap<usize, Vec<Added>>,
}

fn in_order(mut added: Vec<Added>) -> impl Iterator<Item = Value> {
    added.sort_by_key(|added| added.rank);
    added.into_iter().map(|added| added.value)
}

pub(super) fn repair(payload: &mut Value, options: &LintOptions) {
    let format = options.format;
    let plan = plan(payload, format);
    match format {
        Format::OpenAiChat => chat(payload, plan),
        Format::OpenAiResponses => responses(payload, plan),
        Format::Anthropic => anthropic(payload, plan),
    }
}

fn plan(payload: &Value, format: Format) -> Plan {
    let pairs = Pairs::of(payload, format);
    let judged = pairs.judge();
    let mut plan = Plan { removed: HashSet::new(), added: HashMap::new() };
    let held = items(payload, format);
    for (result, fate) in pairs.results.iter().zip(&judged.fates) {
        if !matches!(fate, Fate::Answers(_)) {
            plan.removed.insert((result.index, result.block));
        }
    }
    for (at, call) in pairs.calls.iter().enumerate() {
        let added = match judged.answered[at] {
            Some(result) if matches!(judged.fates[result], Fate::Misplaced(_)) => {
                let slot = &pairs.results[result];
                let value = match slot.block {
                    Some(block) => held[slot.index]["content"][block].clone(),
                    None => held[slot.index].clone(),
                };
                Added { rank: (false, result), value }
            }
            Some(_) => continue,
            None => Added { rank: (true, at), value: interrupted(held, call.index, call.id, format) },
        };
        plan.added.entry(call.index).or_default().push(added);
    }
    plan
}

fn interrupted(items: &[Value], index: usize, id: &str, format: Format) -> Value {
    match format {
        Format::OpenAiChat => json!({ "role": "tool", "tool_call_id": id, "content": marked(INTERRUPTED) }),
        Format::OpenAiResponses => {
            let custom = string(&items[index], "type") == "custom_tool_call";
            let kind = if custom { "custom_tool_call_output" } else { "function_call_output" };
            json!({ "type": kind, "call_id": id, "output": marked(INTERRUPTED) })
        }
        Format::Anthropic => {
            json!({ "type": "tool_result", "tool_use_id": id, "content": INTERRUPTED, "is_error": true })
        }
    }
}

fn chat(payload: &mut Value, mut plan: Plan) {
    let Some(messages) = list_mut(payload, Format::OpenAiChat) else { return };
    let mut rebuilt: Vec<Value> = Vec::with_capacity(messages.len());
    let (mut waiting, mut images) = (Vec::new(), Vec::new());
    for (index, mut message) in std::mem::take(messages).into_iter().enumerate() {
        if string(&message, "role") == "tool" {
            if !plan.removed.contains(&(index, None)) {
                take_images(&mut message, &mut images);
                rebuilt.push(message);
            }
            continue;
        }
        close_chat_turn(&mut rebuilt, &mut waiting, &mut images);
        rebuilt.push(message);
        waiting = plan.added.remove(&index).unwrap_or_default();
    }
    close_chat_turn(&mut rebuilt, &mut waiting, &mut images);
    *messages = rebuilt;
}

fn close_chat_turn(rebuilt: &mut Vec<Value>, waiting: &mut Vec<Added>, images: &mut Vec<Value>) {
    for mut result in in_order(std::mem::take(waiting)) {
        take_images(&mut result, images);
        rebuilt.push(result);
    }
    if !images.is_empty() {
        rebuilt.push(json!({ "role": "user", "content": std::mem::take(images) }));
    }
}

/// Takes from a tool message what is no text; it goes into a user message behind the results.
fn take_images(message: &mut Value, images: &mut Vec<Value>) {
    let id = string(message, "tool_call_id").to_owned();
    let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) else { return };
    if content.iter().all(|part| matches!(string(part, "type"), "text" | "")) {
        return;
    }
    let (text, others): (Vec<Value>, Vec<Value>) =
        std::mem::take(content).into_iter().partition(|part| string(part, "type") == "text");
    *content = text;
    if content.is_empty() {
        message["content"] = json!("");
    }
    images.push(json!({ "type": "text", "text": format!("From the result of the call {id}:") }));
    images.extend(others);
}

fn responses(payload: &mut Value, mut plan: Plan) {
    let Some(items) = list_mut(payload, Format::OpenAiResponses) else { return };
    let mut rebuilt: Vec<Value> = Vec::with_capacity(items.len());
    let mut waiting: Vec<Added> = Vec::new();
    for (index, item) in std::mem::take(items).into_iter().enumerate() {
        if plan.removed.contains(&(index, None)) {
            continue;
        }
        // New outputs go behind the run of calls and outputs that they belong to.
        let kind = string(&item, "type");
        if !matches!(kind, "function_call" | "custom_tool_call" | "function_call_output" | "custom_tool_call_output") {
            rebuilt.extend(in_order(std::mem::take(&mut waiting)));
        }
        rebuilt.push(item);
        waiting.extend(plan.added.remove(&index).unwrap_or_default());
    }
    rebuilt.extend(in_order(waiting));
    *items = rebuilt;
}

fn anthropic(payload: &mut Value, mut plan: Plan) {
    let Some(messages) = list_mut(payload, Format::Anthropic) else { return };
    let mut turns: Vec<(String, Vec<Value>)> = Vec::new();
    let mut added: Vec<Vec<Added>> = Vec::new();
    for (index, mut message) in std::mem::take(messages).into_iter().enumerate() {
        let role = string(&message, "role").to_owned();
        let mut emptied = false;
        if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) {
            let mut at = 0;
            let before = content.len();
            content.retain(|_| {
                at += 1;
                !plan.removed.contains(&(index, Some(at - 1)))
            });
            emptied = before > 0 && content.is_empty();
        }
        let new = plan.added.remove(&index).unwrap_or_default();
        match turns.last_mut() {
            Some((last, held)) if *last == role => {
                if !emptied {
                    held.push(message);
                }
                if let Some(waiting) = added.last_mut() {
                    waiting.extend(new);
                }
            }
            _ if emptied => {}
            _ => {
                turns.push((role, vec![message]));
                added.push(new);
            }
        }
    }
    let mut rebuilt = Vec::new();
    let mut waiting: Vec<Value> = Vec::new();
    for ((role, turn), new) in turns.into_iter().zip(added) {
        if role == "user" {
            rebuilt.extend(user_turn(turn, std::mem::take(&mut waiting)));
        } else {
            if !waiting.is_empty() {
                rebuilt.push(json!({ "role": "user", "content": std::mem::take(&mut waiting) }));
            }
            rebuilt.extend(turn);
            waiting = in_order(new).collect();
        }
    }
    if !waiting.is_empty() {
        rebuilt.push(json!({ "role": "user", "content": waiting }));
    }
    *messages = rebuilt;
}

/// A user turn with its results first; left as it is where nothing has to move.
fn user_turn(turn: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let is_result = |block: &Value| string(block, "type") == "tool_result";
    let mut other = false;
    let mut in_order = new.is_empty();
    for message in &turn {
        if message["content"].is_string() {
            other = true;
        }
        for block in list(message, "content") {
            if is_result(block) && other {
                in_order = false;
            }
            other |= !is_result(block);
        }
    }
    if in_order {
        return turn;
    }
    let mut blocks = Vec::new();
    let mut joined = json!({ "role": "user" });
    for mut message in turn {
        match message["content"].take() {
            Value::Array(content) => blocks.extend(content),
            Value::String(text) => blocks.push(json!({ "type": "text", "text": text })),
            _ => {}
        }
        crate::convert::add_fields(&mut joined, message.as_object(), &["content"]);
    }
    let (mut results, others): (Vec<Value>, Vec<Value>) = blocks.into_iter().partition(is_result);
    results.extend(new);
    results.extend(others);
    joined["content"] = Value::Array(results);
    vec![joined]
}

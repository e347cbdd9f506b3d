//! The chunk stream of Chat Completions to a reply, with what compatible servers make of it.

use serde_json::{Map, Value, json};

use super::decode::decode_reply;
use crate::convert::ProviderError;
use crate::format::{WarningCode, Warnings};
use crate::ids::ToolCallId;
use crate::json::{filled, list, number, parse, rest, string};
use crate::model::Part;
use crate::stream::{Assembled, Collected, Delta, assemble};

/// A call on its way.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    /// The fragments one behind the other, as they are meant.
    arguments: String,
    /// The text when a fragment that repeats all before it, and goes on, replaces it: some servers send all anew.
    resent: String,
    custom: bool,
    rest: Map<String, Value>,
}

/// Thinking with its signature on its way, as a gateway before another API hands it on.
#[derive(Debug)]
struct Thinking {
    index: Option<u64>,
    text: String,
    rest: Map<String, Value>,
}

/// Puts the chunks of one completion together. Of several choices the first counts.
#[derive(Debug, Default)]
pub struct Assembler {
    content: String,
    refusal: String,
    reasoning: String,
    reasoning_field: &'static str,
    reasoning_details: Vec<Value>,
    thinking: Vec<Thinking>,
    /// The same of a gateway before Responses; they come whole.
    reasoning_items: Vec<Value>,
    slots: Vec<Slot>,
    finish_reason: Option<String>,
    usage: Option<Value>,
    done: bool,
    pub(crate) error: Option<ProviderError>,
    pub(crate) warnings: Warnings,
}

impl Assembler {
    pub(crate) fn is_over(&self) -> bool {
        self.done || self.error.is_some()
    }

    pub(crate) fn value(&mut self, data: &Value) -> Vec<Delta> {
        if self.is_over() {
            return Vec::new();
        }
        if data == "[DONE]" {
            self.done = true;
            return Vec::new();
        }
        // Beside the choices; some servers put it into one, or into a field of their own.
        let places = ["/usage", "/choices/0/usage", "/x_groq/usage"];
        if let Some(usage) = places.iter().find_map(|at| data.pointer(at).filter(|usage| usage.is_object())) {
            self.usage = Some(usage.clone());
        }
        let mut deltas = Vec::new();
        for choice in list(data, "choices").iter().filter(|choice| number(choice, "index").unwrap_or(0) == 0) {
            // A server that does not stream puts the whole message into one event.
            let whole = choice.get("message").filter(|message| message.is_object() && self.is_empty());
            if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()).or(whole) {
                self.delta(delta, &mut deltas);
            }
            if let Some(reason) = filled(choice, "finish_reason") {
                self.finish_reason = Some(reason.to_owned());
                if reason == "error" {
                    let said = choice.get("error").filter(|error| !error.is_null());
                    self.error = Some(said.map_or_else(ProviderError::unexplained, ProviderError::read));
                }
            }
        }
        deltas
    }

    fn is_empty(&self) -> bool {
        self.content.is_empty() && self.refusal.is_empty() && self.reasoning.is_empty() && self.slots.is_empty()
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Vec<Delta>) {
        for field in ["reasoning_content", "reasoning"] {
            if let Some(text) =
                filled(delta, field).filter(|_| self.reasoning.is_empty() || self.reasoning_field == field)
            {
                self.reasoning_field = field;
                self.reasoning.push_str(text);
                deltas.push(Delta::Reasoning(text.to_owned()));
                break;
            }
        }
        self.reasoning_details.extend(list(delta, "reasoning_details").iter().cloned());
        self.reasoning_items.extend(list(delta, "reasoning_items").iter().cloned());
        for block in list(delta, "thinking_blocks") {
            self.thinking(block);
        }
        let text: String = match delta.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().map(|part| string(part, "text")).collect(),
            _ => String::new(),
        };
        if !text.is_empty() {
            self.content.push_str(&text);
            deltas.push(Delta::Text(text));
        }
        if let Some(text) = filled(delta, "refusal") {
            self.refusal.push_str(text);
            deltas.push(Delta::Refusal(text.to_owned()));
        }
        match delta.get("tool_calls") {
            Some(Value::Array(entries)) => entries.iter().for_each(|entry| self.entry(entry)),
            Some(entry @ Value::Object(_)) => self.entry(entry),
            _ => {}
        }
        if let Some(call) = delta.get("function_call").filter(|call| call.is_object()) {
            self.entry(&json!({ "index": 0, "function": call }));
        }
    }

    /// A block comes in pieces, its signature last; one that is redacted comes whole.
    fn thinking(&mut self, piece: &Value) {
        let index = number(piece, "index");
        let fields = rest(piece, &["index", "thinking"]);
        let signed = |block: &Thinking| block.rest.contains_key("signature");
        match self.thinking.last_mut() {
            Some(last) if last.index == index && last.rest.get("type") == fields.get("type") && !signed(last) => {
                last.text.push_str(string(piece, "thinking"));
                last.rest.extend(fields);
            }
            _ => self.thinking.push(Thinking { index, text: string(piece, "thinking").to_owned(), rest: fields }),
        }
    }

    fn entry(&mut self, entry: &Value) {
        let custom = entry.get("custom").is_some_and(Value::is_object);
        let function = entry.get(if custom { "custom" } else { "function" }).unwrap_or(&Value::Null);
        let (id, name) = (string(entry, "id"), string(function, "name"));
        let arguments = match function.get(if custom { "input" } else { "arguments" }) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            // Some servers send the object itself.
            Some(value) => value.to_string(),
        };
        let (at, known) = self.route(number(entry, "index"), id, name, &arguments);
        let slot = &mut self.slots[at];
        slot.custom |= custom;
        for (key, value) in rest(entry, &["index", "id", "type", "function", "custom"]) {
            slot.rest.insert(key, value);
        }
        if slot.id.is_empty() {
            slot.id = id.to_owned();
        } else if known && !id.is_empty() {
            self.warnings.add_once(WarningCode::IdRepeated, id);
        }
        if slot.name.is_empty() {
            slot.name = name.to_owned();
        } else if !name.is_empty() {
            if slot.name == name {
                if known {
                    self.warnings.add_once(WarningCode::NameRepeated, name);
                }
            } else {
                slot.name.push_str(name);
            }
        }
        if arguments.is_empty() {
            return;
        }
        if !custom && repeats(&slot.arguments, &arguments) {
            self.warnings.add_once(WarningCode::ArgumentsRepeated, slot.id.as_str());
        } else {
            slot.arguments.push_str(&arguments);
            if slot.resent.is_empty() || !arguments.starts_with(&slot.resent) {
                slot.resent.push_str(&arguments);
            } else {
                slot.resent = arguments;
            }
        }
    }

    /// Which call an entry belongs to, and whether it was there before.
    fn route(&mut self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> (usize, bool) {
        let by_id = |slots: &[Slot]| slots.iter().rposition(|slot| !id.is_empty() && slot.id == id);
        let at = match index {
            Some(index) => match self.slots.iter().rposition(|slot| slot.index == Some(index)) {
                Some(at) => {
                    let slot = &self.slots[at];
                    let other_id = !id.is_empty() && !slot.id.is_empty() && slot.id != id;
                    // Without ids, a second whole call in one slot shows by its arguments; an empty object may also
                    // have stood for arguments that were still to come.
                    let placeholder = slot.name == name && slot.arguments.trim() == "{}";
                    let another = (id.is_empty() || slot.id.is_empty())
                        && !name.is_empty()
                        && !placeholder
                        && is_object(&slot.arguments)
                        && is_object(arguments)
                        && !repeats(&slot.arguments, arguments);
                    if other_id || another {
                        match by_id(&self.slots) {
                            Some(known) if known != at => Some(known),
                            _ => {
                                self.warnings.add_once(WarningCode::IndexReused, index.to_string());
                                None
                            }
                        }
                    } else {
                        Some(at)
                    }
                }
                // Under another index the same call may only be said again.
                None => by_id(&self.slots).filter(|at| {
                    let slot = &self.slots[*at];
                    let again = (name.is_empty() || slot.name == name) && repeats(&slot.arguments, arguments);
                    slot.index.is_none() || again
                }),
            },
            None if !id.is_empty() => by_id(&self.slots),
            None if !name.is_empty() => None,
            None => self.slots.len().checked_sub(1),
        };
        match at {
            Some(at) => (at, true),
            None => {
                self.slots.push(Slot { index, ..Slot::default() });
                (self.slots.len() - 1, false)
            }
        }
    }

    pub(crate) fn finish(mut self) -> Assembled {
        let ended = self.done && self.finish_reason.is_some();
        let broken = self.error.is_some() || !ended;
        let mut indexes: Vec<u64> = self.slots.iter().filter_map(|slot| slot.index).collect();
        indexes.dedup();
        indexes.sort_unstable();
        indexes.dedup();
        if indexes.iter().enumerate().any(|(at, index)| at as u64 != *index) {
            self.warnings.add(WarningCode::IndexSparse, format!("{indexes:?}"));
        }
        let (mut calls, mut dropped_calls) = (Vec::new(), Vec::new());
        // By index; calls that share one, and those without, in the order they came.
        self.slots.sort_by_key(|slot| slot.index.unwrap_or(u64::MAX));
        for slot in &mut self.slots {
            if slot.settle() {
                self.warnings.add_once(WarningCode::ArgumentsRepeated, slot.id.as_str());
            }
            let nothing = slot.name.is_empty() && slot.arguments.trim().is_empty();
            let complete = slot.custom
                || is_object(&slot.arguments)
                || (self.finish_reason.is_some() && slot.arguments.trim().is_empty());
            if broken && !complete {
                dropped_calls.push(ToolCallId::new(slot.id.as_str()));
            } else if !nothing {
                calls.push(slot.value());
            }
        }
        let content = if self.content.is_empty() { Value::Null } else { json!(self.content) };
        let mut message = json!({ "role": "assistant", "content": content });
        if !self.reasoning.is_empty() {
            message[self.reasoning_field] = json!(self.reasoning);
        }
        if !self.reasoning_details.is_empty() {
            message["reasoning_details"] = Value::Array(std::mem::take(&mut self.reasoning_details));
        }
        if !self.thinking.is_empty() {
            message["thinking_blocks"] = self.thinking.drain(..).map(Thinking::value).collect();
        }
        if !self.reasoning_items.is_empty() {
            message["reasoning_items"] = Value::Array(std::mem::take(&mut self.reasoning_items));
        }
        if !self.refusal.is_empty() {
            message["refusal"] = json!(self.refusal);
        }
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        let mut raw = json!({
            "choices": [{ "index": 0, "message": message, "finish_reason": self.finish_reason.as_deref().unwrap_or("stop") }],
        });
        if let Some(usage) = self.usage {
            raw["usage"] = usage;
        }
        let collected = Collected { raw, ended, error: self.error, dropped_calls, warnings: self.warnings };
        let mut assembled = assemble(collected, decode_reply);
        // Nothing in the format says that a part is complete; at the end all of them are.
        for part in &assembled.reply.message.parts {
            match part {
                Part::Text(_) => assembled.deltas.push(Delta::TextEnd),
                Part::ToolCall(call) => assembled.deltas.push(Delta::Call(call.clone())),
                Part::Reasoning(reasoning) => assembled.deltas.push(Delta::ReasoningEnd(reasoning.clone())),
                _ => {}
            }
        }
        assembled
    }
}

impl Thinking {
    fn value(self) -> Value {
        let mut block = Map::new();
        let mut rest = self.rest;
        block.extend(rest.shift_remove_entry("type"));
        if block.get("type").is_none_or(|kind| kind == "thinking") {
            block.insert("thinking".to_owned(), json!(self.text));
        }
        block.extend(rest);
        Value::Object(block)
    }
}

impl Slot {
    /// Reads fragments that do not give an object one behind the other in the other ways that servers are known to
    /// mean them: each the whole text so far, or an empty object first and then the real one.
    fn settle(&mut self) -> bool {
        if self.custom || is_object(&self.arguments) {
            return false;
        }
        let real = self.arguments.trim_start().strip_prefix("{}").unwrap_or_default();
        let meant = [self.resent.as_str(), real].into_iter().find(|text| is_object(text)).map(str::to_owned);
        if let Some(meant) = &meant {
            self.arguments.clone_from(meant);
        }
        meant.is_some()
    }

    fn value(&self) -> Value {
        let mut call = if self.custom {
            json!({ "id": self.id, "type": "custom", "custom": { "name": self.name, "input": self.arguments } })
        } else {
            json!({
                "id": self.id, "type": "function",
                "function": { "name": self.name, "arguments": self.arguments },
            })
        };
        for (key, value) in &self.rest {
            call[key.as_str()] = value.clone();
        }
        call
    }
}

/// Whether text looks like, and is, a whole object. The look spares the parser most fragments.
fn is_object(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && text.ends_with('}') && parse::<Map<String, Value>>(text).is_some()
}

/// Whether a fragment only says once more what is already complete.
fn repeats(collected: &str, fragment: &str) -> bool {
    if !(collected.trim_end().ends_with('}') && fragment.trim_start().starts_with('{')) {
        return false;
    }
    let read = |text: &str| parse::<Map<String, Value>>(text);
    read(collected).is_some_and(|collected| read(fragment).is_some_and(|fragment| fragment == collected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    /// What LiteLLM makes of the thinking of another API has to go back to it, or that API refuses the next request.
    #[test]
    fn signed_thinking_is_kept_as_in_a_plain_reply() {
        let mut assembler = Assembler::default();
        let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        for chunk in [
            delta(
                json!({ "reasoning_content": "Who ", "thinking_blocks": [{ "type": "thinking", "thinking": "Who ", "index": 0 }] }),
            ),
            delta(
                json!({ "reasoning_content": "is?", "thinking_blocks": [{ "type": "thinking", "thinking": "is?", "index": 0 }] }),
            ),
            delta(
                json!({ "thinking_blocks": [{ "type": "thinking", "thinking": "", "signature": "s1", "index": 0 }] }),
            ),
            delta(json!({ "thinking_blocks": [{ "type": "redacted_thinking", "data": "d", "index": 1 }] })),
            delta(
                json!({ "thinking_blocks": [{ "type": "thinking", "thinking": "Aha", "signature": null, "index": 2 }] }),
            ),
            delta(
                json!({ "thinking_blocks": [{ "type": "thinking", "thinking": "", "signature": "s2", "index": 2 }] }),
            ),
            delta(json!({ "content": "Two." })),
            json!({ "choices": [{ "index": 0, "finish_reason": "stop", "delta": {
                "content": "", "reasoning_items": [{ "type": "reasoning", "id": "rs_1", "encrypted_content": "e" }],
            } }] }),
            json!("[DONE]"),
        ] {
            assembler.value(&chunk);
        }
        let assembled = assembler.finish();
        let blocks = json!([
            { "type": "thinking", "thinking": "Who is?", "signature": "s1" },
            { "type": "redacted_thinking", "data": "d" },
            { "type": "thinking", "thinking": "Aha", "signature": "s2" },
        ]);
        assert_eq!(assembled.raw.pointer("/choices/0/message/thinking_blocks"), Some(&blocks));
        let carried = assembled.reply.message.carried.of(Format::OpenAiChat).expect("fields of its own");
        assert_eq!(carried.get("thinking_blocks"), Some(&blocks));
        assert_eq!(carried.get("reasoning_items").and_then(|items| items.pointer("/0/id")), Some(&json!("rs_1")));
    }
}

//! The event stream of Responses to a reply.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::decode::decode_reply;
use crate::convert::ProviderError;
use crate::format::{WarningCode, Warnings};
use crate::ids::{ToolCallId, ToolName};
use crate::json::{list, number, string};
use crate::model::{Carried, ReasoningFormat, ReasoningPart, ToolCall, ToolInput};
use crate::stream::{Assembled, Collected, Delta, assemble};

#[derive(Debug, Default)]
struct Item {
    value: Value,
    /// Whether nothing more of it will come.
    done: bool,
}

/// Puts the events of one response together.
#[derive(Debug, Default)]
pub struct Assembler {
    items: BTreeMap<u64, Item>,
    /// The response object of the last event that had one.
    response: Option<Value>,
    terminal: bool,
    error: Option<ProviderError>,
    pub(crate) warnings: Warnings,
}

impl Assembler {
    pub(crate) fn is_over(&self) -> bool {
        self.terminal || self.error.is_some()
    }

    pub(crate) fn value(&mut self, event: &str, data: &Value) -> Vec<Delta> {
        if self.is_over() {
            return Vec::new();
        }
        let kind = data.get("type").and_then(Value::as_str).unwrap_or(event);
        match kind {
            "error" => {
                let nested = data.get("error").filter(|error| error.is_object());
                self.error = Some(ProviderError::read(nested.unwrap_or(data)));
                return Vec::new();
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.terminal = true;
                self.response = data.get("response").cloned();
                if kind == "response.failed" {
                    let error = data.pointer("/response/error").unwrap_or(&Value::Null);
                    self.error = Some(ProviderError::read(error));
                }
                return Vec::new();
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                self.response = data.get("response").cloned();
                return Vec::new();
            }
            _ => {}
        }
        let last = self.items.keys().next_back().copied();
        let index = number(data, "output_index").or(last).unwrap_or(0);
        let part = number(data, "content_index").unwrap_or(0);
        let summary = number(data, "summary_index").unwrap_or(0);
        let text = string(data, "delta");
        match kind {
            "response.output_item.added" => {
                self.items.insert(index, Item { value: data.get("item").cloned().unwrap_or_default(), done: false });
            }
            "response.output_item.done" => return self.item_done(index, data),
            "response.content_part.added" | "response.content_part.done" => {
                let held = data.get("part").cloned().unwrap_or_default();
                self.item(index).put(list_name(&held), part, held);
            }
            "response.output_text.delta" => {
                self.item(index).grow("message", "content", part, "output_text", "text", text);
                return vec![Delta::Text(text.to_owned())];
            }
            "response.output_text.done" => {
                self.item(index).replace("message", "content", part, "output_text", "text", string(data, "text"));
            }
            "response.refusal.delta" => {
                self.item(index).grow("message", "content", part, "refusal", "refusal", text);
                return vec![Delta::Refusal(text.to_owned())];
            }
            "response.refusal.done" => {
                self.item(index).replace("message", "content", part, "refusal", "refusal", string(data, "refusal"));
            }
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
                let held = data.get("part").cloned().unwrap_or_default();
                self.item(index).put("summary", summary, held);
            }
            "response.reasoning_summary_text.delta" => {
                self.item(index).grow("reasoning", "summary", summary, "summary_text", "text", text);
                return vec![Delta::Reasoning(text.to_owned())];
            }
            "response.reasoning_summary_text.done" => {
                self.item(index).replace("reasoning", "summary", summary, "summary_text", "text", string(data, "text"));
            }
            "response.reasoning_text.delta" => {
                self.item(index).grow("reasoning", "content", part, "reasoning_text", "text", text);
                return vec![Delta::Reasoning(text.to_owned())];
            }
            "response.reasoning_text.done" => {
                self.item(index).replace("reasoning", "content", part, "reasoning_text", "text", string(data, "text"));
            }
            "response.function_call_arguments.delta" => self.item(index).append("function_call", "arguments", text),
            "response.function_call_arguments.done" => {
                let item = self.item(index);
                item.set("function_call", "arguments", string(data, "arguments"));
                item.done = true;
            }
            "response.custom_tool_call_input.delta" => self.item(index).append("custom_tool_call", "input", text),
            "response.custom_tool_call_input.done" => {
                let item = self.item(index);
                item.set("custom_tool_call", "input", string(data, "input"));
                item.done = true;
            }
            _ => {}
        }
        Vec::new()
    }

    fn item(&mut self, index: u64) -> &mut Item {
        self.items.entry(index).or_default()
    }

    fn item_done(&mut self, index: u64, data: &Value) -> Vec<Delta> {
        let held = self.items.entry(index).or_default();
        let mut value = data.get("item").cloned().unwrap_or_default();
        // A done item replaces what was built, unless it forgot what had been streamed.
        for key in ["arguments", "input"] {
            let built = string(&held.value, key);
            if !built.is_empty() && string(&value, key).is_empty() && value.is_object() {
                value[key] = json!(built);
            }
        }
        *held = Item { value, done: true };
        deltas_of(&held.value)
    }

    pub(crate) fn finish(mut self) -> Assembled {
        let broken = self.error.is_some() || !self.terminal;
        let mut raw = self.response.take().filter(Value::is_object).unwrap_or_else(|| json!({}));
        let mut dropped_calls = Vec::new();
        if list(&raw, "output").is_empty() || broken {
            let mut output = Vec::new();
            for item in std::mem::take(&mut self.items).into_values() {
                let call = matches!(string(&item.value, "type"), "function_call" | "custom_tool_call");
                if broken && call && !item.done {
                    dropped_calls.push(ToolCallId::new(string(&item.value, "call_id")));
                } else if item.value.is_object() {
                    output.push(item.value);
                }
            }
            if !output.is_empty() {
                self.warnings.add(WarningCode::OutputRebuiltFromItems, "the last event had no output");
            }
            raw["output"] = Value::Array(output);
        }
        if broken {
            // What came of a failed response is read like an answer, and marked as failed by the caller.
            raw["status"] = json!("completed");
            raw["error"] = Value::Null;
        }
        let collected =
            Collected { raw, ended: self.terminal, error: self.error, dropped_calls, warnings: self.warnings };
        assemble(collected, decode_reply)
    }
}

/// Where a part belongs by its kind.
fn list_name(part: &Value) -> &'static str {
    if string(part, "type") == "summary_text" { "summary" } else { "content" }
}

fn deltas_of(item: &Value) -> Vec<Delta> {
    match string(item, "type") {
        "message" => vec![Delta::TextEnd],
        "function_call" => vec![Delta::Call(ToolCall {
            id: ToolCallId::new(string(item, "call_id")),
            name: ToolName::new(string(item, "name")),
            input: ToolInput::from_text(string(item, "arguments")).0,
            signature: None,
            carried: Carried::default(),
        })],
        "reasoning" => {
            let texts: Vec<&str> = list(item, "summary").iter().map(|part| string(part, "text")).collect();
            let signature = string(item, "encrypted_content");
            vec![Delta::ReasoningEnd(ReasoningPart {
                text: texts.join("\n\n"),
                signature: (!signature.is_empty()).then(|| signature.to_owned()),
                format: ReasoningFormat::OpenAiResponses,
                id: item.get("id").and_then(Value::as_str).map(str::to_owned),
                carried: Carried::default(),
            })]
        }
        _ => Vec::new(),
    }
}

/// No response has more parts in one item; an index beyond is not believed.
const MAX_PARTS: u64 = 10_000;

impl Item {
    fn ensure(&mut self, kind: &str) {
        if !self.value.is_object() {
            self.value = json!({ "type": kind });
            if kind == "message" {
                self.value["role"] = json!("assistant");
            }
        }
    }

    fn slot(&mut self, kind: &str, list: &str, at: u64) -> Option<&mut Value> {
        if at > MAX_PARTS {
            return None;
        }
        self.ensure(kind);
        if !self.value.get(list).is_some_and(Value::is_array) {
            self.value[list] = json!([]);
        }
        let parts = self.value[list].as_array_mut()?;
        let at = usize::try_from(at).ok()?;
        while parts.len() <= at {
            parts.push(Value::Null);
        }
        parts.get_mut(at)
    }

    fn put(&mut self, list: &str, at: u64, part: Value) {
        let kind = if list == "summary" { "reasoning" } else { "message" };
        if let Some(slot) = self.slot(kind, list, at) {
            *slot = part;
        }
    }

    fn grow(&mut self, kind: &str, list: &str, at: u64, part: &str, key: &str, text: &str) {
        let Some(slot) = self.slot(kind, list, at) else { return };
        match slot.get_mut(key) {
            Some(Value::String(held)) => held.push_str(text),
            _ => *slot = json!({ "type": part, key: text }),
        }
    }

    fn replace(&mut self, kind: &str, list: &str, at: u64, part: &str, key: &str, text: &str) {
        let Some(slot) = self.slot(kind, list, at) else { return };
        if slot.is_object() {
            slot[key] = json!(text);
        } else {
            *slot = json!({ "type": part, key: text });
        }
    }

    fn append(&mut self, kind: &str, key: &str, text: &str) {
        self.ensure(kind);
        match self.value.get_mut(key) {
            Some(Value::String(held)) => held.push_str(text),
            _ => self.value[key] = json!(text),
        }
    }

    fn set(&mut self, kind: &str, key: &str, text: &str) {
        self.ensure(kind);
        // An empty `done` takes nothing away.
        if !text.is_empty() || self.value.get(key).is_none() {
            self.value[key] = json!(text);
        }
    }
}

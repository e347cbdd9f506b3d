//! The event stream of Anthropic Messages to a reply.

use serde_json::{Map, Value, json};

use super::decode::decode_reply;
use crate::convert::ProviderError;
use crate::format::{WarningCode, Warnings};
use crate::ids::{ToolCallId, ToolName};
use crate::json::{number, parse, string};
use crate::model::{Carried, ReasoningFormat, ReasoningPart, ToolCall, ToolInput};
use crate::stream::{Assembled, Collected, Delta, assemble};

#[derive(Debug, Default)]
struct Block {
    index: u64,
    value: Value,
    /// Fragments of a tool's input, as text.
    fragments: String,
    stopped: bool,
}

/// Puts the events of one message together.
#[derive(Debug, Default)]
pub struct Assembler {
    message: Map<String, Value>,
    /// In order of arrival. An index is a key: of several blocks that a gateway gave one index, the last is meant.
    blocks: Vec<Block>,
    ended: bool,
    pub(crate) error: Option<ProviderError>,
    pub(crate) warnings: Warnings,
}

impl Assembler {
    pub(crate) fn is_over(&self) -> bool {
        self.ended || self.error.is_some()
    }

    pub(crate) fn value(&mut self, event: &str, data: &Value) -> Vec<Delta> {
        if self.is_over() {
            return Vec::new();
        }
        let kind = data.get("type").and_then(Value::as_str).unwrap_or(event);
        match kind {
            "message_start" => {
                if let Some(message) = data.get("message").and_then(Value::as_object) {
                    // A gateway that lost its provider on the way and asked again: what came before is of another
                    // message, which never ended. Put together, the two could not be sent back.
                    let id = |message: &Map<String, Value>| message.get("id").filter(|id| !id.is_null()).cloned();
                    if id(&self.message).is_some_and(|held| id(message).is_some_and(|new| new != held)) {
                        self.blocks.clear();
                    }
                    self.message = message.clone();
                }
            }
            "content_block_start" => return self.start(data),
            "content_block_delta" => return self.grow(data),
            "content_block_stop" => return self.stop(data),
            "message_delta" => self.end_of_message(data),
            "message_stop" => self.ended = true,
            _ => {}
        }
        Vec::new()
    }

    /// The index that an event names; without one, that of the last block.
    fn index(&self, data: &Value) -> u64 {
        number(data, "index").or_else(|| self.blocks.last().map(|block| block.index)).unwrap_or(0)
    }

    fn position(&self, index: u64) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.index == index)
    }

    fn start(&mut self, data: &Value) -> Vec<Delta> {
        let next = self.blocks.iter().map(|block| block.index.saturating_add(1)).max().unwrap_or(0);
        let index = number(data, "index").unwrap_or(next);
        let value = data.get("content_block").cloned().unwrap_or_default();
        let deltas = match string(&value, "type") {
            "text" if !string(&value, "text").is_empty() => vec![Delta::Text(string(&value, "text").to_owned())],
            "thinking" if !string(&value, "thinking").is_empty() => {
                vec![Delta::Reasoning(string(&value, "thinking").to_owned())]
            }
            _ => Vec::new(),
        };
        if self.position(index).is_some() {
            self.warnings.add_once(WarningCode::IndexReused, index.to_string());
        }
        self.blocks.push(Block { index, value, ..Block::default() });
        deltas
    }

    fn grow(&mut self, data: &Value) -> Vec<Delta> {
        let delta = data.get("delta").unwrap_or(&Value::Null);
        let index = self.index(data);
        // Some gateways count wrongly: then it is meant for the open block of its kind.
        let takes = |block: &Block| takes(string(&block.value, "type"), string(delta, "type"));
        let here = self.blocks.iter().rposition(|block| block.index == index && takes(block));
        let open = || self.blocks.iter().rposition(|block| !block.stopped && block.value.is_object() && takes(block));
        let at = here.or_else(open).unwrap_or_else(|| {
            self.blocks.push(Block { index, ..Block::default() });
            self.blocks.len() - 1
        });
        let block = &mut self.blocks[at];
        match string(delta, "type") {
            "text_delta" => {
                append(&mut block.value, "text", "text", string(delta, "text"));
                vec![Delta::Text(string(delta, "text").to_owned())]
            }
            "input_json_delta" => {
                match delta.get("partial_json") {
                    Some(Value::String(text)) => block.fragments.push_str(text),
                    // Some servers send the object itself.
                    Some(value @ Value::Object(_)) => block.fragments.push_str(&value.to_string()),
                    _ => {}
                }
                Vec::new()
            }
            "thinking_delta" => {
                append(&mut block.value, "thinking", "thinking", string(delta, "thinking"));
                vec![Delta::Reasoning(string(delta, "thinking").to_owned())]
            }
            "signature_delta" => {
                set(&mut block.value, "thinking", "signature", delta.get("signature").cloned().unwrap_or_default());
                Vec::new()
            }
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                match block.value.get_mut("citations").and_then(Value::as_array_mut) {
                    Some(citations) => citations.push(citation),
                    None => set(&mut block.value, "text", "citations", json!([citation])),
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn stop(&mut self, data: &Value) -> Vec<Delta> {
        let Some(at) = self.position(self.index(data)) else { return Vec::new() };
        let block = &mut self.blocks[at];
        if std::mem::replace(&mut block.stopped, true) {
            return Vec::new();
        }
        block.settle();
        let value = &block.value;
        match string(value, "type") {
            "text" => vec![Delta::TextEnd],
            "tool_use" => vec![Delta::Call(ToolCall {
                id: ToolCallId::new(string(value, "id")),
                name: ToolName::new(string(value, "name")),
                input: ToolInput::from_value(&value["input"]).0,
                signature: None,
                carried: Carried::default(),
            })],
            kind @ ("thinking" | "redacted_thinking") => {
                let redacted = kind == "redacted_thinking";
                let signature = string(value, if redacted { "data" } else { "signature" });
                vec![Delta::ReasoningEnd(ReasoningPart {
                    text: string(value, "thinking").to_owned(),
                    signature: (!signature.is_empty()).then(|| signature.to_owned()),
                    format: if redacted { ReasoningFormat::AnthropicRedacted } else { ReasoningFormat::Anthropic },
                    id: None,
                    carried: Carried::default(),
                })]
            }
            _ => Vec::new(),
        }
    }

    fn end_of_message(&mut self, data: &Value) {
        for (key, value) in data.get("delta").and_then(Value::as_object).into_iter().flatten() {
            if !value.is_null() {
                self.message.insert(key.clone(), value.clone());
            }
        }
        // The numbers are totals; what is missing keeps its first value.
        let usage = data.get("usage").and_then(Value::as_object);
        if let Some(usage) = usage {
            let held = self.message.entry("usage").or_insert_with(|| json!({}));
            if !held.is_object() {
                *held = json!({});
            }
            for (key, value) in usage.iter().filter(|(_, value)| !value.is_null()) {
                held[key.as_str()] = value.clone();
            }
        }
    }

    pub(crate) fn finish(mut self) -> Assembled {
        let broken = self.error.is_some() || !self.ended;
        let mut dropped_calls = Vec::new();
        let mut content = Vec::new();
        // The index is the position, unless it was given twice: then the order of arrival says more.
        if !self.warnings.has(WarningCode::IndexReused) {
            self.blocks.sort_by_key(|block| block.index);
        }
        for mut block in std::mem::take(&mut self.blocks) {
            block.settle();
            if broken && !block.stopped && string(&block.value, "type") == "tool_use" {
                dropped_calls.push(ToolCallId::new(string(&block.value, "id")));
            } else {
                content.push(block.value);
            }
        }
        let mut raw = Value::Object(self.message);
        // A server that does not stream may have put the content into the first event.
        if !content.is_empty() || !raw.get("content").is_some_and(Value::is_array) {
            raw["content"] = Value::Array(content);
        }
        let collected = Collected { raw, ended: self.ended, error: self.error, dropped_calls, warnings: self.warnings };
        assemble(collected, decode_reply)
    }
}

/// Whether a delta of this type belongs into a block of this type.
fn takes(block: &str, delta: &str) -> bool {
    block.is_empty()
        || match delta {
            "text_delta" | "citations_delta" => block == "text",
            "input_json_delta" => block.ends_with("tool_use"),
            "thinking_delta" | "signature_delta" => block == "thinking",
            _ => true,
        }
}

impl Block {
    /// Puts the fragments in; text that is no JSON stays text, which says that it is invalid.
    fn settle(&mut self) {
        let fragments = std::mem::take(&mut self.fragments);
        if !fragments.trim().is_empty() {
            let input = parse(&fragments).unwrap_or(Value::String(fragments));
            set(&mut self.value, "tool_use", "input", input);
        }
    }
}

fn set(block: &mut Value, kind: &str, key: &str, value: Value) {
    if !block.is_object() {
        *block = json!({ "type": kind });
    }
    block[key] = value;
}

fn append(block: &mut Value, kind: &str, key: &str, text: &str) {
    if let Some(Value::String(held)) = block.get_mut(key) {
        held.push_str(text);
    } else {
        set(block, kind, key, json!(text));
    }
}

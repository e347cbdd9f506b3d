//! A reply to the event stream of Anthropic Messages.

use serde_json::{Value, json};

use super::encode::stop_label;
use crate::convert::{ProviderError, Reply};
use crate::ids::NameTable;
use crate::model::ReasoningFormat;
use crate::sse::SseEvent;
use crate::stream::Delta;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

/// Writes one message as events. Each block is closed before the next opens.
#[derive(Debug)]
pub struct Encoder {
    id: String,
    model: String,
    started: bool,
    index: u64,
    open: Option<Open>,
    /// Reasoning waits for its signature: a thinking block without one could never be sent back.
    thinking: String,
    names: NameTable,
}

impl Encoder {
    pub(crate) fn new(id: &str, model: &str) -> Self {
        Self {
            id: id.to_owned(),
            model: model.to_owned(),
            started: false,
            index: 0,
            open: None,
            thinking: String::new(),
            names: NameTable::default(),
        }
    }

    fn start(&mut self, events: &mut Vec<SseEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            events.push(event(json!({ "type": "message_start", "message": {
                "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 0, "output_tokens": 0 },
            } })));
        }
    }

    fn open(&mut self, kind: Open, block: Value, events: &mut Vec<SseEvent>) {
        if self.open == Some(kind) {
            return;
        }
        self.close(events);
        self.open = Some(kind);
        events.push(event(json!({ "type": "content_block_start", "index": self.index, "content_block": block })));
    }

    fn grow(&self, delta: Value, events: &mut Vec<SseEvent>) {
        events.push(event(json!({ "type": "content_block_delta", "index": self.index, "delta": delta })));
    }

    fn close(&mut self, events: &mut Vec<SseEvent>) {
        if self.open.take().is_some() {
            self.stop(events);
        }
    }

    fn stop(&mut self, events: &mut Vec<SseEvent>) {
        events.push(event(json!({ "type": "content_block_stop", "index": self.index })));
        self.index += 1;
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> Vec<SseEvent> {
        let mut events = Vec::new();
        self.start(&mut events);
        match delta {
            Delta::Text(text) | Delta::Refusal(text) => {
                if !text.is_empty() {
                    self.open(Open::Text, json!({ "type": "text", "text": "" }), &mut events);
                    self.grow(json!({ "type": "text_delta", "text": text }), &mut events);
                }
            }
            Delta::TextEnd => self.close(&mut events),
            Delta::Reasoning(text) => self.thinking.push_str(text),
            Delta::ReasoningEnd(reasoning) => {
                self.thinking.clear();
                match (reasoning.format, &reasoning.signature) {
                    (ReasoningFormat::Anthropic, Some(signature)) => {
                        let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
                        self.open(Open::Thinking, block, &mut events);
                        if !reasoning.text.is_empty() {
                            let delta = json!({ "type": "thinking_delta", "thinking": reasoning.text });
                            self.grow(delta, &mut events);
                        }
                        self.grow(json!({ "type": "signature_delta", "signature": signature }), &mut events);
                        self.close(&mut events);
                    }
                    (ReasoningFormat::AnthropicRedacted, Some(data)) => {
                        self.close(&mut events);
                        let block = json!({ "type": "redacted_thinking", "data": data });
                        events.push(event(
                            json!({ "type": "content_block_start", "index": self.index, "content_block": block }),
                        ));
                        self.stop(&mut events);
                    }
                    _ => {}
                }
            }
            Delta::Call(call) => {
                self.close(&mut events);
                let name = self.names.to_wire(&call.name);
                let block = json!({ "type": "tool_use", "id": call.id.as_str(), "name": name, "input": {} });
                events
                    .push(event(json!({ "type": "content_block_start", "index": self.index, "content_block": block })));
                let text = call.input.wire_text();
                self.grow(json!({ "type": "input_json_delta", "partial_json": text }), &mut events);
                self.stop(&mut events);
            }
        }
        events
    }

    pub(crate) fn finish(mut self, reply: &Reply) -> Vec<SseEvent> {
        let mut events = Vec::new();
        self.start(&mut events);
        self.close(&mut events);
        let usage = reply.usage.unwrap_or_default();
        let input = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        events.push(event(json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_label(reply.stop_reason), "stop_sequence": null },
            "usage": {
                "input_tokens": input, "output_tokens": usage.output,
                "cache_creation_input_tokens": usage.cache_write, "cache_read_input_tokens": usage.cache_read,
            },
        })));
        events.push(event(json!({ "type": "message_stop" })));
        events
    }

    pub(crate) fn fail(self, error: &ProviderError) -> Vec<SseEvent> {
        vec![event(json!({ "type": "error", "error": { "type": error.kind, "message": error.message } }))]
    }
}

fn event(data: Value) -> SseEvent {
    SseEvent { event: data["type"].as_str().unwrap_or_default().to_owned(), data: data.to_string() }
}

//! A reply to the chunk stream of Chat Completions.

use serde_json::{Value, json};

use super::encode::{finish_label, usage_value};
use crate::convert::{ProviderError, Reply};
use crate::ids::NameTable;
use crate::sse::SseEvent;
use crate::stream::Delta;

/// Writes one completion as chunks. Calls are numbered from 0; id and name come once.
#[derive(Debug)]
pub struct Encoder {
    id: String,
    model: String,
    created: u64,
    started: bool,
    calls: u64,
    names: NameTable,
}

impl Encoder {
    pub(crate) fn new(id: &str, model: &str, created: u64) -> Self {
        let (id, model) = (id.to_owned(), model.to_owned());
        Self { id, model, created, started: false, calls: 0, names: NameTable::default() }
    }

    fn chunk(&self, delta: Value, finish: Option<&str>) -> SseEvent {
        SseEvent::data(
            json!({
                "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
                "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
            })
            .to_string(),
        )
    }

    fn start(&mut self, events: &mut Vec<SseEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            events.push(self.chunk(json!({ "role": "assistant", "content": null }), None));
        }
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> Vec<SseEvent> {
        let mut events = Vec::new();
        self.start(&mut events);
        match delta {
            Delta::Text(text) => events.push(self.chunk(json!({ "content": text }), None)),
            Delta::Refusal(text) => events.push(self.chunk(json!({ "refusal": text }), None)),
            Delta::Call(call) => {
                let name = self.names.to_wire(&call.name);
                let index = self.calls;
                self.calls += 1;
                events.push(self.chunk(
                    json!({ "tool_calls": [{
                        "index": index, "id": call.id.as_str(), "type": "function",
                        "function": { "name": name, "arguments": "" },
                    }] }),
                    None,
                ));
                let arguments = call.input.wire_text();
                let delta = json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] });
                events.push(self.chunk(delta, None));
            }
            // The format has no field for reasoning.
            Delta::TextEnd | Delta::Reasoning(_) | Delta::ReasoningEnd(_) => {}
        }
        events
    }

    pub(crate) fn finish(mut self, reply: &Reply) -> Vec<SseEvent> {
        let mut events = Vec::new();
        self.start(&mut events);
        events.push(self.chunk(json!({}), Some(finish_label(reply.stop_reason))));
        if let Some(usage) = &reply.usage {
            events.push(SseEvent::data(
                json!({
                    "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
                    "choices": [], "usage": usage_value(usage),
                })
                .to_string(),
            ));
        }
        events.push(SseEvent::data("[DONE]"));
        events
    }

    pub(crate) fn fail(self, error: &ProviderError) -> Vec<SseEvent> {
        let error = json!({ "error": { "type": error.kind, "message": error.message, "param": null, "code": null } });
        vec![SseEvent::data(error.to_string())]
    }
}

//! A reply to the event stream of Responses.

use serde_json::{Value, json};

use super::encode::{reply_items, response_value};
use crate::convert::{ProviderError, Reply, Usage};
use crate::format::Warnings;
use crate::ids::NameTable;
use crate::model::{Message, Part, Role, StopReason};
use crate::sse::SseEvent;
use crate::stream::Delta;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Refusal,
}

/// Writes one response as events with sequence numbers.
#[derive(Debug)]
pub struct Encoder {
    id: String,
    model: String,
    created: u64,
    sequence: u64,
    started: bool,
    open: Option<Open>,
    text: String,
    output: Vec<Value>,
    names: NameTable,
}

impl Encoder {
    pub(crate) fn new(id: &str, model: &str, created: u64) -> Self {
        Self {
            id: id.to_owned(),
            model: model.to_owned(),
            created,
            sequence: 0,
            started: false,
            open: None,
            text: String::new(),
            output: Vec::new(),
            names: NameTable::default(),
        }
    }

    fn event(&mut self, kind: &str, mut data: Value) -> SseEvent {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        SseEvent { event: kind.to_owned(), data: data.to_string() }
    }

    fn start(&mut self, events: &mut Vec<SseEvent>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let reply = Reply {
            message: Message::new(Role::Assistant, Vec::new()),
            stop_reason: StopReason::End,
            usage: Some(Usage::default()),
            warnings: Warnings::default(),
        };
        let mut response = response_value(&reply, &self.id, &self.model, self.created, Vec::new());
        response["status"] = json!("in_progress");
        response["usage"] = Value::Null;
        events.push(self.event("response.created", json!({ "response": response })));
        events.push(self.event("response.in_progress", json!({ "response": response })));
    }

    fn open(&mut self, kind: Open, events: &mut Vec<SseEvent>) {
        if self.open == Some(kind) {
            return;
        }
        self.close(events);
        self.open = Some(kind);
        let index = self.output.len();
        let item = json!({
            "type": "message", "id": format!("msg_{index}"), "role": "assistant", "status": "in_progress",
            "content": [],
        });
        events.push(self.event("response.output_item.added", json!({ "output_index": index, "item": item })));
        let part = part_value(kind, "");
        events.push(self.event("response.content_part.added", self.place(json!({ "part": part }))));
    }

    fn place(&self, mut data: Value) -> Value {
        let index = self.output.len();
        data["item_id"] = json!(format!("msg_{index}"));
        data["output_index"] = json!(index);
        data["content_index"] = json!(0);
        data
    }

    fn grow(&mut self, kind: Open, text: &str, events: &mut Vec<SseEvent>) {
        if text.is_empty() {
            return;
        }
        self.open(kind, events);
        self.text.push_str(text);
        let data = match kind {
            Open::Text => json!({ "delta": text, "logprobs": [] }),
            Open::Refusal => json!({ "delta": text }),
        };
        let name = if kind == Open::Text { "response.output_text.delta" } else { "response.refusal.delta" };
        events.push(self.event(name, self.place(data)));
    }

    fn close(&mut self, events: &mut Vec<SseEvent>) {
        let Some(kind) = self.open.take() else { return };
        let text = std::mem::take(&mut self.text);
        let (name, data) = match kind {
            Open::Text => ("response.output_text.done", json!({ "text": text, "logprobs": [] })),
            Open::Refusal => ("response.refusal.done", json!({ "refusal": text })),
        };
        events.push(self.event(name, self.place(data)));
        let part = part_value(kind, &text);
        events.push(self.event("response.content_part.done", self.place(json!({ "part": part }))));
        let index = self.output.len();
        let item = json!({
            "type": "message", "id": format!("msg_{index}"), "role": "assistant", "status": "completed",
            "content": [part],
        });
        events.push(self.event("response.output_item.done", json!({ "output_index": index, "item": item })));
        self.output.push(item);
    }

    /// An item that comes whole.
    fn whole(&mut self, part: Part, events: &mut Vec<SseEvent>) {
        self.close(events);
        let index = self.output.len();
        for mut item in reply_items(&Message::new(Role::Assistant, vec![part]), &mut self.names) {
            let kind = item["type"].as_str().unwrap_or_default().to_owned();
            if let Some((prefix, _)) = item["id"].as_str().unwrap_or_default().split_once('_')
                && item["id"].as_str().is_some_and(|id| id.ends_with("_0"))
            {
                item["id"] = json!(format!("{prefix}_{index}"));
            }
            let mut added = item.clone();
            if kind == "function_call" {
                added["arguments"] = json!("");
                added["status"] = json!("in_progress");
            } else if kind == "reasoning" {
                added["summary"] = json!([]);
            }
            events.push(self.event("response.output_item.added", json!({ "output_index": index, "item": added })));
            let id = item["id"].clone();
            if kind == "function_call" {
                let arguments = item["arguments"].clone();
                let delta = json!({ "item_id": id, "output_index": index, "delta": arguments });
                events.push(self.event("response.function_call_arguments.delta", delta));
                let done = json!({
                    "item_id": id, "output_index": index, "arguments": arguments, "name": item["name"],
                });
                events.push(self.event("response.function_call_arguments.done", done));
            }
            if kind == "reasoning" {
                let parts: Vec<Value> = item["summary"].as_array().cloned().unwrap_or_default();
                for (at, part) in parts.into_iter().enumerate() {
                    let place = |mut data: Value| {
                        data["item_id"] = id.clone();
                        data["output_index"] = json!(index);
                        data["summary_index"] = json!(at);
                        data
                    };
                    let empty = json!({ "type": "summary_text", "text": "" });
                    let text = part["text"].clone();
                    events.push(self.event("response.reasoning_summary_part.added", place(json!({ "part": empty }))));
                    events.push(self.event("response.reasoning_summary_text.delta", place(json!({ "delta": text }))));
                    events.push(self.event("response.reasoning_summary_text.done", place(json!({ "text": text }))));
                    events.push(self.event("response.reasoning_summary_part.done", place(json!({ "part": part }))));
                }
            }
            events.push(self.event("response.output_item.done", json!({ "output_index": index, "item": item })));
            self.output.push(item);
        }
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> Vec<SseEvent> {
        let mut events = Vec::new();
        self.start(&mut events);
        match delta {
            Delta::Text(text) => self.grow(Open::Text, text, &mut events),
            Delta::Refusal(text) => self.grow(Open::Refusal, text, &mut events),
            Delta::TextEnd => self.close(&mut events),
            // Shown when it is complete: its item has to come before what follows.
            Delta::Reasoning(_) => {}
            Delta::ReasoningEnd(reasoning) => self.whole(Part::Reasoning(reasoning.clone()), &mut events),
            Delta::Call(call) => self.whole(Part::ToolCall(call.clone()), &mut events),
        }
        events
    }

    pub(crate) fn finish(mut self, reply: &Reply) -> Vec<SseEvent> {
        let mut events = Vec::new();
        self.start(&mut events);
        self.close(&mut events);
        let output = std::mem::take(&mut self.output);
        let response = response_value(reply, &self.id, &self.model, self.created, output);
        let kind = match response["status"].as_str() {
            Some("incomplete") => "response.incomplete",
            Some("failed") => "response.failed",
            _ => "response.completed",
        };
        events.push(self.event(kind, json!({ "response": response })));
        events
    }

    pub(crate) fn fail(mut self, error: &ProviderError) -> Vec<SseEvent> {
        vec![self.event("error", json!({ "code": error.kind, "message": error.message, "param": null }))]
    }
}

fn part_value(kind: Open, text: &str) -> Value {
    match kind {
        Open::Text => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }),
        Open::Refusal => json!({ "type": "refusal", "refusal": text }),
    }
}

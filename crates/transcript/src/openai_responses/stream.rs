//! The event stream of Responses to a reply.

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
    index: u64,
    value: Value,
    /// Whether it is complete.
    done: bool,
    /// Whether its own end event was there.
    closed: bool,
}

/// Puts the events of one response together.
#[derive(Debug, Default)]
pub struct Assembler {
    /// In order of arrival.
    items: Vec<Item>,
    /// The response object of the last event that had one.
    response: Option<Value>,
    terminal: bool,
    pub(crate) error: Option<ProviderError>,
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
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                self.terminal = true;
                self.response = data.get("response").cloned();
                let status = data.pointer("/response/status");
                if kind == "response.failed" || status.is_some_and(|status| status == "failed") {
                    let said = data.pointer("/response/error").filter(|error| !error.is_null());
                    self.error = Some(said.map_or_else(ProviderError::unexplained, ProviderError::read));
                }
                return Vec::new();
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                // Another response in the same stream: a gateway asked again, and the first never ended.
                let id = |response: Option<&Value>| response.map(|response| string(response, "id").to_owned());
                let (held, new) = (id(self.response.as_ref()), id(data.get("response")));
                if held.is_some_and(|held| !held.is_empty() && new.is_some_and(|new| !new.is_empty() && new != held)) {
                    self.items.clear();
                }
                self.response = data.get("response").cloned();
                return Vec::new();
            }
            _ => {}
        }
        let part = number(data, "content_index").unwrap_or(0);
        let summary = number(data, "summary_index").unwrap_or(0);
        let text = string(data, "delta");
        match kind {
            "response.output_item.added" => {
                let value = data.get("item").cloned().unwrap_or_default();
                let at = self.new_item(data, string(&value, "id"), string(&value, "type"));
                self.items[at].value = value;
            }
            "response.output_item.done" => return self.item_done(data),
            "response.content_part.added" | "response.content_part.done" => {
                let held = data.get("part").cloned().unwrap_or_default();
                self.item(data, "").put(list_name(&held), part, held);
            }
            "response.output_text.delta" => {
                self.item(data, "message").grow("content", part, "output_text", "text", text);
                return vec![Delta::Text(text.to_owned())];
            }
            "response.output_text.done" => {
                self.item(data, "message").replace("content", part, "output_text", "text", string(data, "text"));
            }
            "response.refusal.delta" => {
                self.item(data, "message").grow("content", part, "refusal", "refusal", text);
                return vec![Delta::Refusal(text.to_owned())];
            }
            "response.refusal.done" => {
                self.item(data, "message").replace("content", part, "refusal", "refusal", string(data, "refusal"));
            }
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
                let held = data.get("part").cloned().unwrap_or_default();
                self.item(data, "reasoning").put("summary", summary, held);
            }
            "response.reasoning_summary_text.delta" => {
                self.item(data, "reasoning").grow("summary", summary, "summary_text", "text", text);
                return vec![Delta::Reasoning(text.to_owned())];
            }
            "response.reasoning_summary_text.done" => {
                let item = self.item(data, "reasoning");
                item.replace("summary", summary, "summary_text", "text", string(data, "text"));
            }
            "response.reasoning_text.delta" => {
                self.item(data, "reasoning").grow("content", part, "reasoning_text", "text", text);
                return vec![Delta::Reasoning(text.to_owned())];
            }
            "response.reasoning_text.done" => {
                let item = self.item(data, "reasoning");
                item.replace("content", part, "reasoning_text", "text", string(data, "text"));
            }
            "response.function_call_arguments.delta" => self.item(data, "function_call").append("arguments", text),
            "response.function_call_arguments.done" => {
                let item = self.item(data, "function_call");
                item.set("arguments", string(data, "arguments"));
                item.done = true;
            }
            "response.custom_tool_call_input.delta" => self.item(data, "custom_tool_call").append("input", text),
            "response.custom_tool_call_input.done" => {
                let item = self.item(data, "custom_tool_call");
                item.set("input", string(data, "input"));
                item.done = true;
            }
            _ => {}
        }
        Vec::new()
    }

    /// The item that an event is about, by its index. Gateways give one index to several items, or another one at the
    /// end than at the start: then the item's id tells, and else its kind.
    fn find(&self, data: &Value, id: &str, kind: &str) -> Option<usize> {
        let index = number(data, "output_index");
        let fits = |item: &Item| kind.is_empty() || ["", kind].contains(&string(&item.value, "type"));
        let named = |item: &Item| !id.is_empty() && string(&item.value, "id") == id;
        let here = |item: &Item| index.is_none_or(|index| item.index == index);
        // Some gateways make up an id for every event; only behind the end of an item is another id another item.
        let other = |item: &Item| {
            let held = string(&item.value, "id");
            item.closed && !id.is_empty() && !held.is_empty() && held != id
        };
        let last = |wanted: &dyn Fn(&Item) -> bool| self.items.iter().rposition(wanted);
        last(&|item| here(item) && named(item))
            .or_else(|| last(&|item| named(item) && fits(item)))
            .or_else(|| last(&|item| here(item) && fits(item) && !other(item)))
    }

    fn new_item(&mut self, data: &Value, id: &str, kind: &str) -> usize {
        let next = self.items.iter().map(|item| item.index.saturating_add(1)).max().unwrap_or(0);
        let index = number(data, "output_index").unwrap_or(next);
        // What deltas built before their item was announced is that item.
        let same = self.items.iter().rposition(|item| {
            let (held, known) = (string(&item.value, "id"), string(&item.value, "type"));
            item.index == index && !item.done && (held.is_empty() || held == id) && ["", kind].contains(&known)
        });
        same.unwrap_or_else(|| {
            if self.items.iter().any(|item| item.index == index) {
                self.warnings.add_once(WarningCode::IndexReused, index.to_string());
            }
            self.items.push(Item { index, ..Item::default() });
            self.items.len() - 1
        })
    }

    /// The item to change; made when there is none yet.
    fn item(&mut self, data: &Value, kind: &str) -> &mut Item {
        let id = string(data, "item_id");
        let at = self.find(data, id, kind).unwrap_or_else(|| self.new_item(data, id, kind));
        let item = &mut self.items[at];
        item.ensure(if kind.is_empty() { "message" } else { kind });
        item
    }

    fn item_done(&mut self, data: &Value) -> Vec<Delta> {
        let mut value = data.get("item").cloned().unwrap_or_default();
        let (id, kind) = (string(&value, "id").to_owned(), string(&value, "type").to_owned());
        let at = self.find(data, &id, &kind).unwrap_or_else(|| self.new_item(data, &id, &kind));
        let held = &mut self.items[at];
        // A done item replaces what was built, unless it forgot what had been streamed.
        for key in ["arguments", "input"] {
            let built = string(&held.value, key);
            if !built.is_empty() && string(&value, key).is_empty() && value.is_object() {
                value[key] = json!(built);
            }
        }
        let forgot = |key: &str| list(&value, key).is_empty() && !list(&held.value, key).is_empty();
        let forgotten: Vec<&str> = ["content", "summary"].into_iter().filter(|key| forgot(key)).collect();
        for key in forgotten {
            value[key] = held.value[key].clone();
        }
        held.value = value;
        (held.done, held.closed) = (true, true);
        deltas_of(&held.value)
    }

    pub(crate) fn finish(mut self) -> Assembled {
        let broken = self.error.is_some() || !self.terminal;
        let mut raw = self.response.take().filter(Value::is_object).unwrap_or_else(|| json!({}));
        let mut dropped_calls = Vec::new();
        if list(&raw, "output").is_empty() || broken {
            let mut output = Vec::new();
            // The index is the position, unless it was given twice: then the order of arrival says more.
            if !self.warnings.has(WarningCode::IndexReused) {
                self.items.sort_by_key(|item| item.index);
            }
            for item in std::mem::take(&mut self.items) {
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

    fn slot(&mut self, list: &str, at: u64) -> Option<&mut Value> {
        if at > MAX_PARTS || !self.value.is_object() {
            return None;
        }
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
        if let Some(slot) = self.slot(list, at) {
            *slot = part;
        }
    }

    fn grow(&mut self, list: &str, at: u64, part: &str, key: &str, text: &str) {
        let Some(slot) = self.slot(list, at) else { return };
        match slot.get_mut(key) {
            Some(Value::String(held)) => held.push_str(text),
            _ => *slot = json!({ "type": part, key: text }),
        }
    }

    fn replace(&mut self, list: &str, at: u64, part: &str, key: &str, text: &str) {
        let Some(slot) = self.slot(list, at) else { return };
        if slot.is_object() {
            slot[key] = json!(text);
        } else {
            *slot = json!({ "type": part, key: text });
        }
    }

    fn append(&mut self, key: &str, text: &str) {
        match self.value.get_mut(key) {
            Some(Value::String(held)) => held.push_str(text),
            _ => self.value[key] = json!(text),
        }
    }

    fn set(&mut self, key: &str, text: &str) {
        // An empty `done` takes nothing away.
        if !text.is_empty() || self.value.get(key).is_none() {
            self.value[key] = json!(text);
        }
    }
}

//! Faults of Responses.

use serde_json::Value;

use super::pairs::{Pairs, items};
use super::{FindingCode, LintOptions, Sink};
use crate::format::Format;
use crate::json::{filled, list, string};
use crate::openai_responses::is_model_item;

/// What the id of an item begins with; nothing for kinds whose ids are not known.
pub(crate) fn id_prefix(item: &Value) -> Option<&'static str> {
    match item.get("type").and_then(Value::as_str) {
        None | Some("message") if item["role"] == "assistant" => Some("msg"),
        // `fc_…` and `fco_…`.
        Some("function_call" | "function_call_output") => Some("fc"),
        Some("custom_tool_call") => Some("ctc"),
        Some("reasoning") => Some("rs"),
        _ => None,
    }
}

pub(super) fn lint(payload: &Value, options: &LintOptions, sink: &mut Sink) {
    let items = items(payload, Format::OpenAiResponses);
    let mut reasoned = false;
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() {
            sink.add(FindingCode::BadMessage, index, None);
            continue;
        }
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
        if !is_model_item(item) {
            reasoned = false;
        }
        reasoned |= kind == "reasoning";
        if kind == "message" && !matches!(string(item, "role"), "user" | "assistant" | "system" | "developer") {
            sink.with_field(FindingCode::BadMessage, index, None, "role");
        }
        if let (Some(id), Some(prefix)) = (filled(item, "id"), id_prefix(item)) {
            if !id.starts_with(prefix) {
                sink.with_id(FindingCode::WrongItemIdPrefix, index, None, id);
            } else if options.reasoning_model && !reasoned && kind != "reasoning" && is_model_item(item) {
                sink.with_id(FindingCode::ItemIdWithoutReasoning, index, None, id);
            }
        }
        if kind == "reasoning" && !followed(items, index) {
            let finding = sink.add(FindingCode::ReasoningWithoutFollowingItem, index, None);
            finding.ids.extend(filled(item, "id").map(str::to_owned));
        }
        if kind == "message" && item["role"] == "assistant" {
            for (at, part) in list(item, "content").iter().enumerate() {
                if string(part, "type").starts_with("input_") {
                    sink.with_field(FindingCode::UnsupportedField, index, Some(at), string(part, "type"));
                }
            }
            if item.get("content").is_none_or(Value::is_null) {
                sink.with_field(FindingCode::EmptyTextBlock, index, None, "content");
            }
        }
    }
    sink.pairs(&Pairs::of(payload, Format::OpenAiResponses), options);
}

/// Whether what the reasoning led to stands behind it.
pub(crate) fn followed(items: &[Value], index: usize) -> bool {
    items[index + 1..].iter().find(|item| string(item, "type") != "reasoning").is_some_and(is_model_item)
}

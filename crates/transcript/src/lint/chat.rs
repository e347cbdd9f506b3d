//! Faults of Chat Completions.

use serde_json::Value;

use super::pairs::{Pairs, items};
use super::{FindingCode, LintOptions, Sink};
use crate::format::Format;
use crate::json::{list, string};

/// What OpenAI documents for an assistant message.
pub(crate) const ASSISTANT_FIELDS: &[&str] =
    &["role", "content", "name", "refusal", "audio", "tool_calls", "function_call"];

pub(super) fn lint(payload: &Value, options: &LintOptions, sink: &mut Sink) {
    let messages = items(payload, Format::OpenAiChat);
    let mut last_role = "";
    for (index, message) in messages.iter().enumerate() {
        let role = string(message, "role");
        match role {
            "assistant" => assistant(message, index, options, sink),
            "tool" => {
                for part in list(message, "content") {
                    if !matches!(string(part, "type"), "text" | "") {
                        sink.with_field(FindingCode::UnsupportedField, index, None, string(part, "type"));
                        break;
                    }
                }
            }
            "user" if last_role == "tool" && !options.profile.user_after_tool => {
                sink.add(FindingCode::RoleOrder, index, None);
            }
            "user" | "system" | "developer" | "function" => {}
            _ => sink.with_field(FindingCode::BadMessage, index, None, "role"),
        }
        last_role = role;
    }
    sink.pairs(&Pairs::of(payload, Format::OpenAiChat), options);
}

fn assistant(message: &Value, index: usize, options: &LintOptions, sink: &mut Sink) {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    if calls.is_some_and(Vec::is_empty) {
        sink.with_field(FindingCode::EmptyToolCallsArray, index, None, "tool_calls");
    }
    let has = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
    let called = calls.is_some_and(|calls| !calls.is_empty()) || has("function_call");
    if !called && !has("content") && !has("refusal") && !has("audio") {
        sink.with_field(FindingCode::EmptyTextBlock, index, None, "content");
    }
    if options.profile.refuses_unknown_fields
        && let Some(fields) = message.as_object()
    {
        for (field, value) in fields {
            if !value.is_null() && !ASSISTANT_FIELDS.contains(&field.as_str()) {
                sink.with_field(FindingCode::UnsupportedField, index, None, field);
            }
        }
    }
}

//! Tells the formats apart.

use serde_json::Value;

use crate::format::Format;
use crate::json::{list, string};

/// The format that a message or item is certainly in; nothing where several would do.
pub fn message_format(message: &Value) -> Option<Format> {
    let kind = string(message, "type");
    if message.get("call_id").is_some()
        || matches!(
            kind,
            "function_call" | "function_call_output" | "reasoning" | "custom_tool_call" | "item_reference"
        )
    {
        return Some(Format::OpenAiResponses);
    }
    if message.get("tool_calls").is_some()
        || message.get("tool_call_id").is_some()
        || message.get("function_call").is_some()
        || matches!(string(message, "role"), "tool" | "function")
    {
        return Some(Format::OpenAiChat);
    }
    list(message, "content").iter().find_map(|block| match string(block, "type") {
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use" | "document" => {
            Some(Format::Anthropic)
        }
        "image" if block.get("source").is_some() => Some(Format::Anthropic),
        "image_url" | "input_audio" | "file" => Some(Format::OpenAiChat),
        "input_text" | "output_text" | "input_image" | "input_file" => Some(Format::OpenAiResponses),
        _ => None,
    })
}

/// The format that most of a payload is in, and the messages that are certainly in another.
pub fn detect(payload: &Value) -> (Option<Format>, Vec<(usize, Format)>) {
    let responses = payload.get("input").is_some_and(Value::is_array);
    let items = list(payload, if responses { "input" } else { "messages" });
    let votes: Vec<(usize, Format)> =
        items.iter().enumerate().filter_map(|(at, item)| message_format(item).map(|format| (at, format))).collect();
    let count = |format: Format| votes.iter().filter(|(_, vote)| *vote == format).count();
    let format = if responses {
        Some(Format::OpenAiResponses)
    } else {
        let most = [Format::OpenAiChat, Format::Anthropic]
            .into_iter()
            .filter(|format| count(*format) > 0)
            .max_by_key(|format| count(*format));
        most.or_else(|| by_envelope(payload, items))
    };
    let mixed = votes.into_iter().filter(|(_, vote)| format.is_some_and(|format| *vote != format)).collect();
    (format, mixed)
}

/// What the fields around the messages say.
fn by_envelope(payload: &Value, items: &[Value]) -> Option<Format> {
    let tools = list(payload, "tools");
    if payload.get("system").is_some()
        || payload.get("anthropic_version").is_some()
        || tools.iter().any(|tool| tool.get("input_schema").is_some())
    {
        return Some(Format::Anthropic);
    }
    let system = items.iter().any(|item| matches!(string(item, "role"), "system" | "developer"));
    (system || tools.iter().any(|tool| tool.get("function").is_some())).then_some(Format::OpenAiChat)
}

//! Anthropic Messages to the canonical form.

use serde_json::Value;

use crate::canonical::carried_rest;
use crate::convert::{DecodeError, Decoded, MadeIds, ProviderError, Reply, Usage, settle, shape, text_part};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{ToolCallId, ToolName};
use crate::json::{blank, filled, list, number, string};
use crate::model::{
    Carried, Content, ForeignPart, ImagePart, ImageSource, Message, Part, ReasoningFormat, ReasoningPart, RefusalPart,
    Role, StopReason, TextPart, ToolCall, ToolInput, ToolOutput, ToolResult,
};

const FORMAT: Format = Format::Anthropic;

/// Reads a request's history: `messages` and, where it is, `system`.
pub fn decode_history(payload: &Value) -> Result<Decoded, DecodeError> {
    let Some(messages) = payload.get("messages").and_then(Value::as_array) else {
        return Err(shape("/messages", "is not a list"));
    };
    let mut decoded = Decoded::default();
    if let Some(system) = payload.get("system") {
        decoded.transcript.push(Message::from(FORMAT, Role::System, text_blocks(system)));
    }
    let mut ids = MadeIds::default();
    for (index, message) in messages.iter().enumerate() {
        let role = string(message, "role");
        match role {
            "user" => read_user(message, &mut ids, &mut decoded),
            "assistant" => {
                ids.new_turn();
                let parts = read_assistant(message.get("content"), &mut ids, &mut decoded.warnings);
                decoded
                    .transcript
                    .push(Message { carried: kept(message), ..Message::from(FORMAT, Role::Assistant, parts) });
            }
            "system" => {
                let parts = message.get("content").map(text_blocks).unwrap_or_default();
                decoded.transcript.push(Message::from(FORMAT, Role::System, parts));
            }
            other => return Err(shape(format!("/messages/{index}/role"), format!("`{other}` is no role here"))),
        }
    }
    Ok(decoded)
}

/// Reads a message that the API answered with.
pub fn decode_reply(reply: &Value) -> Result<Reply, DecodeError> {
    if string(reply, "type") == "error" {
        return Err(DecodeError::Provider(ProviderError::read(reply.get("error").unwrap_or(reply))));
    }
    if !reply.get("content").is_some_and(Value::is_array) {
        return Err(shape("/content", "is not a list"));
    }
    let mut warnings = Warnings::default();
    let mut parts = read_assistant(reply.get("content"), &mut MadeIds::default(), &mut warnings);
    let label = match string(reply, "stop_reason") {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::End,
    };
    if label == StopReason::Refusal && parts.is_empty() {
        // There is no refusal block; without this the message would be empty, and the next request refused.
        let words = reply.get("stop_details").and_then(|details| filled(details, "explanation"));
        parts.extend(
            words.map(|words| Part::Refusal(RefusalPart { text: words.to_owned(), carried: Carried::default() })),
        );
    }
    let message = Message::from(FORMAT, Role::Assistant, parts);
    let stop_reason = settle(label, &message, &mut warnings);
    Ok(Reply { message, stop_reason, usage: reply.get("usage").and_then(read_usage), warnings })
}

pub(super) fn read_usage(usage: &Value) -> Option<Usage> {
    let (input, output) = (number(usage, "input_tokens"), number(usage, "output_tokens"));
    input.or(output)?;
    let cache_read = number(usage, "cache_read_input_tokens").unwrap_or(0);
    let cache_write = number(usage, "cache_creation_input_tokens").unwrap_or(0);
    Some(Usage {
        input: input.unwrap_or(0).saturating_add(cache_read).saturating_add(cache_write),
        output: output.unwrap_or(0),
        cache_read,
        cache_write,
        reasoning: 0,
    })
}

fn kept(message: &Value) -> Carried {
    const REPLY_FIELDS: &[&str] = &[
        "role",
        "content",
        "id",
        "type",
        "model",
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "usage",
        "container",
    ];
    carried_rest(FORMAT, message, REPLY_FIELDS)
}

fn text_blocks(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) => text_part(text, Carried::default()).into_iter().collect(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| text_part(string(block, "text"), carried_rest(FORMAT, block, &["type", "text"])))
            .collect(),
        _ => Vec::new(),
    }
}

fn read_user(message: &Value, ids: &mut MadeIds, decoded: &mut Decoded) {
    let Decoded { transcript, warnings } = decoded;
    let (mut results, mut others) = (Vec::new(), Vec::new());
    match message.get("content") {
        Some(Value::String(text)) => others.extend(text_part(text, Carried::default())),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match string(block, "type") {
                    "tool_result" => results.push(Part::ToolResult(read_result(block, ids))),
                    "text" => {
                        others.extend(text_part(string(block, "text"), carried_rest(FORMAT, block, &["type", "text"])))
                    }
                    "image" => others.push(match read_image(block) {
                        Some(image) => Part::Image(image),
                        None => foreign(block),
                    }),
                    _ if block.is_object() => others.push(foreign(block)),
                    _ => warnings.add(WarningCode::Unreadable, "a content block that is no object"),
                }
            }
        }
        _ => {}
    }
    transcript.push(Message::from(FORMAT, Role::Tool, results));
    transcript.push(Message { carried: kept(message), ..Message::from(FORMAT, Role::User, others) });
}

fn foreign(block: &Value) -> Part {
    Part::Foreign(ForeignPart { format: FORMAT, block: block.clone() })
}

fn read_image(block: &Value) -> Option<ImagePart> {
    let source = block.get("source")?;
    let carried = carried_rest(FORMAT, block, &["type", "source"]);
    let source = match string(source, "type") {
        "base64" => ImageSource::Base64 {
            media_type: string(source, "media_type").to_owned(),
            data: string(source, "data").to_owned(),
        },
        "url" => ImageSource::Url(string(source, "url").to_owned()),
        _ => return None,
    };
    Some(ImagePart { source, carried })
}

fn read_result(block: &Value, ids: &mut MadeIds) -> ToolResult {
    let mut content = Vec::new();
    match block.get("content") {
        Some(Value::String(text)) if !blank(text) => content.push(Content::Text(TextPart::new(text))),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                let carried = carried_rest(FORMAT, block, &["type", "text"]);
                match string(block, "type") {
                    "text" if blank(string(block, "text")) => {}
                    "text" => {
                        content.push(Content::Text(TextPart { text: string(block, "text").to_owned(), carried }));
                    }
                    "image" => content.push(match read_image(block) {
                        Some(image) => Content::Image(image),
                        None => Content::Foreign(ForeignPart { format: FORMAT, block: block.clone() }),
                    }),
                    _ => content.push(Content::Foreign(ForeignPart { format: FORMAT, block: block.clone() })),
                }
            }
        }
        _ => {}
    }
    ToolResult {
        call_id: ToolCallId::new(match string(block, "tool_use_id") {
            "" => ids.answered(None),
            id => id.to_owned(),
        }),
        name: None,
        output: ToolOutput { content, is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false) },
        carried: carried_rest(FORMAT, block, &["type", "tool_use_id", "content", "is_error"]),
    }
}

fn read_assistant(content: Option<&Value>, ids: &mut MadeIds, warnings: &mut Warnings) -> Vec<Part> {
    let blocks = match content {
        Some(Value::String(text)) => return text_part(text, Carried::default()).into_iter().collect(),
        Some(Value::Array(blocks)) => blocks.as_slice(),
        _ => return Vec::new(),
    };
    let mut parts = Vec::new();
    for block in blocks {
        match string(block, "type") {
            "text" => {
                let mut kept = carried_rest(FORMAT, block, &["type", "text"]);
                if list(block, "citations").is_empty() {
                    kept = carried_rest(FORMAT, block, &["type", "text", "citations"]);
                }
                parts.extend(text_part(string(block, "text"), kept));
            }
            "tool_use" => {
                let (input, twice) = ToolInput::from_value(block.get("input").unwrap_or(&Value::Null));
                let (id, name) = (string(block, "id"), string(block, "name"));
                let id = if id.is_empty() { ids.make(name, warnings) } else { id.to_owned() };
                if twice {
                    warnings.add(WarningCode::ArgumentsDoubleEncoded, id.as_str());
                }
                parts.push(Part::ToolCall(ToolCall {
                    id: ToolCallId::new(id),
                    name: ToolName::new(name),
                    input,
                    signature: None,
                    carried: carried_rest(FORMAT, block, &["type", "id", "name", "input"]),
                }));
            }
            "thinking" => parts.push(Part::Reasoning(ReasoningPart {
                text: string(block, "thinking").to_owned(),
                signature: filled(block, "signature").map(str::to_owned),
                format: ReasoningFormat::Anthropic,
                id: None,
                carried: carried_rest(FORMAT, block, &["type", "thinking", "signature"]),
            })),
            "redacted_thinking" => parts.push(Part::Reasoning(ReasoningPart {
                text: String::new(),
                signature: filled(block, "data").map(str::to_owned),
                format: ReasoningFormat::AnthropicRedacted,
                id: None,
                carried: carried_rest(FORMAT, block, &["type", "data"]),
            })),
            _ if block.is_object() => parts.push(foreign(block)),
            _ => warnings.add(WarningCode::Unreadable, "a content block that is no object"),
        }
    }
    parts
}

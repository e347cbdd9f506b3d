//! Responses to the canonical form.

use serde_json::{Map, Value, json};

use crate::canonical::carried_rest;
use crate::convert::{DecodeError, Decoded, MadeIds, ProviderError, Reply, Usage, settle, shape, text_part, unmark};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{ToolCallId, ToolName};
use crate::json::{blank, filled, list, number, rest, string};
use crate::model::{
    Carried, Content, ForeignPart, ImagePart, Message, Part, ReasoningFormat, ReasoningPart, RefusalPart, Role,
    StopReason, TextPart, ToolCall, ToolInput, ToolOutput, ToolResult, Transcript,
};

const FORMAT: Format = Format::OpenAiResponses;

/// Reads a request's history: `input` (a string or items) and, where it is, `instructions`.
pub fn decode_history(payload: &Value) -> Result<Decoded, DecodeError> {
    let mut decoded = Decoded::default();
    if let Some(text) = filled(payload, "instructions") {
        decoded.transcript.push(Message::from(
            FORMAT,
            Role::System,
            text_part(text, Carried::default()).into_iter().collect(),
        ));
    }
    match payload.get("input") {
        Some(Value::String(text)) => {
            let parts = text_part(text, Carried::default()).into_iter().collect();
            decoded.transcript.push(Message::from(FORMAT, Role::User, parts));
        }
        Some(Value::Array(items)) => {
            let mut reader = Reader::default();
            for (index, item) in items.iter().enumerate() {
                reader.item(item, index, &mut decoded.transcript)?;
            }
            decoded.warnings = reader.warnings;
        }
        _ => return Err(shape("/input", "is neither a string nor a list")),
    }
    Ok(decoded)
}

/// Reads a response object.
pub fn decode_reply(reply: &Value) -> Result<Reply, DecodeError> {
    let status = string(reply, "status");
    let error = reply.get("error").filter(|error| !error.is_null());
    if status == "failed" || (error.is_some() && !reply.get("output").is_some_and(Value::is_array)) {
        return Err(DecodeError::Provider(ProviderError::read(error.unwrap_or(&Value::Null))));
    }
    if !reply.get("output").is_some_and(Value::is_array) {
        return Err(shape("/output", "is not a list"));
    }
    let (mut transcript, mut reader) = (Transcript::default(), Reader::default());
    for (index, item) in list(reply, "output").iter().enumerate() {
        reader.item(item, index, &mut transcript)?;
    }
    let mut warnings = reader.warnings;
    let mut message = Message::from(FORMAT, Role::Assistant, Vec::new());
    for read in transcript.messages {
        message.parts.extend(read.parts);
    }
    let refused = message.parts.iter().any(|part| matches!(part, Part::Refusal(_)));
    let reason = reply.get("incomplete_details").map_or("", |details| string(details, "reason"));
    let label = match (status, reason) {
        ("incomplete", "max_output_tokens") => StopReason::Length,
        ("incomplete", "content_filter") => StopReason::Filter,
        ("incomplete", "steered") | ("queued" | "in_progress", _) => StopReason::Pause,
        ("incomplete", _) => StopReason::Length,
        ("cancelled", _) => StopReason::Error,
        _ if message.calls().next().is_some() => StopReason::ToolUse,
        _ if refused => StopReason::Refusal,
        _ => StopReason::End,
    };
    let stop_reason = settle(label, &message, &mut warnings);
    Ok(Reply { message, stop_reason, usage: reply.get("usage").and_then(read_usage), warnings })
}

pub(super) fn read_usage(usage: &Value) -> Option<Usage> {
    let (input, output) = (number(usage, "input_tokens"), number(usage, "output_tokens"));
    input.or(output)?;
    let detail = |group: &str, key: &str| usage.get(group).and_then(|group| number(group, key)).unwrap_or(0);
    Some(Usage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: detail("input_tokens_details", "cached_tokens"),
        cache_write: detail("input_tokens_details", "cache_write_tokens"),
        reasoning: detail("output_tokens_details", "reasoning_tokens"),
    })
}

/// Items that the model made follow one another into one message.
fn push_assistant(transcript: &mut Transcript, parts: Vec<Part>) {
    if parts.is_empty() {
        return;
    }
    match transcript.messages.last_mut() {
        Some(last) if last.role == Role::Assistant => last.parts.extend(parts),
        _ => transcript.push(Message::from(FORMAT, Role::Assistant, parts)),
    }
}

#[derive(Default)]
struct Reader {
    ids: MadeIds,
    warnings: Warnings,
}

impl Reader {
    fn item(&mut self, item: &Value, index: usize, transcript: &mut Transcript) -> Result<(), DecodeError> {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
        match kind {
            "message" => match string(item, "role") {
                "system" | "developer" => {
                    transcript.push(Message::from(FORMAT, Role::System, content_parts(item.get("content"), None)));
                }
                "user" => {
                    self.ids.new_turn();
                    transcript.push(Message::from(FORMAT, Role::User, content_parts(item.get("content"), None)));
                }
                "assistant" => {
                    let fields = rest(item, &["type", "role", "content"]);
                    push_assistant(transcript, content_parts(item.get("content"), Some(&fields)));
                }
                other => return Err(shape(format!("/input/{index}/role"), format!("`{other}` is no role here"))),
            },
            "function_call" | "custom_tool_call" => {
                let call = self.call(item, kind == "custom_tool_call");
                push_assistant(transcript, vec![Part::ToolCall(call)]);
            }
            "function_call_output" | "custom_tool_call_output" => {
                transcript.push(Message::from(FORMAT, Role::Tool, vec![Part::ToolResult(self.output(item, kind))]));
            }
            "reasoning" => push_assistant(transcript, vec![Part::Reasoning(read_reasoning(item))]),
            _ => {
                let part = Part::Foreign(ForeignPart { format: FORMAT, block: item.clone() });
                if kind.ends_with("_output") {
                    transcript.push(Message::from(FORMAT, Role::User, vec![part]));
                } else {
                    push_assistant(transcript, vec![part]);
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, item: &Value, custom: bool) -> ToolCall {
        let mut id = string(item, "call_id").to_owned();
        if id.is_empty() {
            id = self.ids.make(string(item, "name"), &mut self.warnings);
        }
        let mut fields = rest(item, &["type", "call_id", "name", "arguments", "input"]);
        let (input, twice) = if custom {
            fields.insert("type".to_owned(), json!("custom_tool_call"));
            (ToolInput::object(Map::from_iter([("input".to_owned(), json!(string(item, "input")))])), false)
        } else {
            match item.get("arguments") {
                Some(Value::String(text)) => ToolInput::from_text(text),
                other => (ToolInput::from_value(other.unwrap_or(&Value::Null)).0, false),
            }
        };
        if twice {
            self.warnings.add(WarningCode::ArgumentsDoubleEncoded, id.as_str());
        }
        ToolCall {
            id: ToolCallId::new(id),
            name: ToolName::new(string(item, "name")),
            input,
            signature: None,
            carried: Carried::new(FORMAT, fields),
        }
    }

    fn output(&mut self, item: &Value, kind: &str) -> ToolResult {
        let mut content = Vec::new();
        match item.get("output") {
            Some(Value::String(text)) if !blank(text) => content.push(Content::Text(TextPart::new(text))),
            Some(value @ Value::Array(_)) => {
                for part in content_parts(Some(value), None) {
                    match part {
                        Part::Text(text) => content.push(Content::Text(text)),
                        Part::Image(image) => content.push(Content::Image(image)),
                        Part::Foreign(foreign) => content.push(Content::Foreign(foreign)),
                        _ => {}
                    }
                }
            }
            Some(value @ (Value::Object(_) | Value::Number(_) | Value::Bool(_))) => {
                content.push(Content::Text(TextPart::new(value.to_string())));
            }
            _ => {}
        }
        let mut output = ToolOutput { content, is_error: false };
        unmark(&mut output);
        let id = match string(item, "call_id") {
            "" => self.ids.answered(filled(item, "name")),
            id => id.to_owned(),
        };
        let mut fields = rest(item, &["type", "call_id", "output", "name"]);
        if kind == "custom_tool_call_output" {
            fields.insert("type".to_owned(), json!(kind));
        }
        if let Some(name) = filled(item, "name") {
            fields.insert("result_name".to_owned(), json!(name));
        }
        ToolResult {
            call_id: ToolCallId::new(id),
            name: filled(item, "name").map(ToolName::new),
            output,
            carried: Carried::new(FORMAT, fields),
        }
    }
}

/// Parts of a message item. `item` holds the fields of an assistant's item, kept at its parts for the way back.
fn content_parts(content: Option<&Value>, item: Option<&Map<String, Value>>) -> Vec<Part> {
    let carried = |block: &Value, first: bool| {
        let mut fields = rest(block, &["type", "text", "refusal", "logprobs"]);
        if list(block, "annotations").is_empty() {
            fields.remove("annotations");
        }
        if let Some(item) = item.filter(|item| !item.is_empty()) {
            fields.insert("item".to_owned(), Value::Object(item.clone()));
        }
        if item.is_some() && !first {
            fields.insert("joined".to_owned(), json!(true));
        }
        Carried::new(FORMAT, fields)
    };
    match content {
        Some(Value::String(text)) => text_part(text, carried(&Value::Null, true)).into_iter().collect(),
        Some(Value::Array(blocks)) => {
            let mut parts: Vec<Part> = Vec::new();
            for block in blocks {
                let first = parts.is_empty();
                match string(block, "type") {
                    "input_text" | "output_text" | "text" => {
                        parts.extend(text_part(string(block, "text"), carried(block, first)));
                    }
                    "refusal" if !blank(string(block, "refusal")) => parts.push(Part::Refusal(RefusalPart {
                        text: string(block, "refusal").to_owned(),
                        carried: carried(block, first),
                    })),
                    "refusal" => {}
                    "input_image" => parts.push(match filled(block, "image_url") {
                        Some(url) => Part::Image(ImagePart {
                            carried: carried_rest(FORMAT, block, &["type", "image_url"]),
                            ..ImagePart::from_url(url)
                        }),
                        None => Part::Foreign(ForeignPart { format: FORMAT, block: block.clone() }),
                    }),
                    _ if block.is_object() => {
                        parts.push(Part::Foreign(ForeignPart { format: FORMAT, block: block.clone() }));
                    }
                    _ => {}
                }
            }
            parts
        }
        _ => Vec::new(),
    }
}

fn read_reasoning(item: &Value) -> ReasoningPart {
    let texts = |key: &str| -> Vec<&str> {
        list(item, key).iter().map(|part| string(part, "text")).filter(|text| !text.is_empty()).collect()
    };
    let summary = texts("summary");
    let text = if summary.is_empty() { texts("content") } else { summary };
    let mut fields = rest(item, &["type", "id", "encrypted_content", "summary"]);
    let plain = text.len() <= 1 && list(item, "content").is_empty();
    if !plain {
        fields.insert("summary".to_owned(), item.get("summary").cloned().unwrap_or(json!([])));
    }
    ReasoningPart {
        text: text.join("\n\n"),
        signature: filled(item, "encrypted_content").map(str::to_owned),
        format: ReasoningFormat::OpenAiResponses,
        id: filled(item, "id").map(str::to_owned),
        carried: Carried::new(FORMAT, fields),
    }
}

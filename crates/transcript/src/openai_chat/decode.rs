//! Chat Completions to the canonical form.

use serde_json::{Map, Value, json};

use crate::canonical::carried_rest;
use crate::convert::{DecodeError, Decoded, MadeIds, ProviderError, Reply, Usage, settle, shape, text_part, unmark};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{ToolCallId, ToolName};
use crate::json::{blank, filled, list, number, rest, string};
use crate::model::{
    Carried, Content, ForeignPart, ImagePart, Message, Part, ReasoningFormat, ReasoningPart, RefusalPart, Role,
    StopReason, TextPart, ToolCall, ToolInput, ToolOutput, ToolResult,
};

const FORMAT: Format = Format::OpenAiChat;
/// Between a call's id and a signature that a gateway packed into it.
pub(super) const SIGNATURE_MARK: &str = "__thought__";

/// Where Gemini's endpoint puts the signature of a call.
pub(super) const GOOGLE_SIGNATURE: &str = "/extra_content/google/thought_signature";

/// Reads a request's history: `messages`.
pub fn decode_history(payload: &Value) -> Result<Decoded, DecodeError> {
    let Some(messages) = payload.get("messages").and_then(Value::as_array) else {
        return Err(shape("/messages", "is not a list"));
    };
    let mut decoded = Decoded::default();
    let mut reader = Reader::default();
    for (index, message) in messages.iter().enumerate() {
        let name = filled(message, "name").map(str::to_owned);
        let message = match string(message, "role") {
            "system" | "developer" => Message {
                name,
                carried: carried_rest(FORMAT, message, &["role", "content", "name"]),
                ..Message::from(FORMAT, Role::System, content_parts(message.get("content")))
            },
            "user" => Message {
                name,
                carried: carried_rest(FORMAT, message, &["role", "content", "name"]),
                ..Message::from(FORMAT, Role::User, content_parts(message.get("content")))
            },
            "assistant" => Message { name, ..reader.assistant(message, false) },
            "tool" | "function" => Message::from(FORMAT, Role::Tool, vec![Part::ToolResult(reader.result(message))]),
            other => return Err(shape(format!("/messages/{index}/role"), format!("`{other}` is no role here"))),
        };
        decoded.transcript.push(message);
    }
    decoded.warnings = reader.warnings;
    Ok(decoded)
}

/// Reads a completion that the API answered with; of several choices the first.
pub fn decode_reply(reply: &Value) -> Result<Reply, DecodeError> {
    let choices = list(reply, "choices");
    let Some(choice) = choices.iter().find(|choice| number(choice, "index").unwrap_or(0) == 0).or(choices.first())
    else {
        if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
            return Err(DecodeError::Provider(ProviderError::read(error)));
        }
        if string(reply, "object") == "error" {
            return Err(DecodeError::Provider(ProviderError::read(reply)));
        }
        return Err(shape("/choices", "is empty or no list"));
    };
    let mut reader = Reader::default();
    if choices.len() > 1 {
        reader.warnings.add(WarningCode::ChoicesDropped, format!("{} choices, the first counts", choices.len()));
    }
    let empty = Value::Object(Map::new());
    let message = reader.assistant(choice.get("message").unwrap_or(&empty), true);
    let refused = message.parts.iter().any(|part| matches!(part, Part::Refusal(_)));
    let label = match string(choice, "finish_reason") {
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" | "max_tokens" | "MAX_TOKENS" => StopReason::Length,
        "content_filter" => StopReason::Filter,
        "error" => StopReason::Error,
        _ if refused => StopReason::Refusal,
        _ => StopReason::End,
    };
    let mut warnings = reader.warnings;
    let stop_reason = settle(label, &message, &mut warnings);
    Ok(Reply { message, stop_reason, usage: reply.get("usage").and_then(read_usage), warnings })
}

pub(super) fn read_usage(usage: &Value) -> Option<Usage> {
    let (input, output) = (number(usage, "prompt_tokens"), number(usage, "completion_tokens"));
    input.or(output)?;
    let detail = |group: &str, key: &str| usage.get(group).and_then(|group| number(group, key)).unwrap_or(0);
    Some(Usage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: detail("prompt_tokens_details", "cached_tokens"),
        cache_write: detail("prompt_tokens_details", "cache_write_tokens"),
        reasoning: detail("completion_tokens_details", "reasoning_tokens"),
    })
}

fn text_of(block: &Value) -> Option<Part> {
    text_part(string(block, "text"), carried_rest(FORMAT, block, &["type", "text"]))
}

fn content_parts(content: Option<&Value>) -> Vec<Part> {
    match content {
        Some(Value::String(text)) => text_part(text, Carried::default()).into_iter().collect(),
        Some(Value::Array(blocks)) => blocks
            .iter()
            .filter_map(|block| match string(block, "type") {
                "text" => text_of(block),
                "refusal" => refusal(string(block, "refusal")),
                "image_url" => Some(image(block).map_or_else(|| foreign(block), Part::Image)),
                _ if block.is_object() => Some(foreign(block)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn image(block: &Value) -> Option<ImagePart> {
    let held = block.get("image_url")?;
    let url = held.as_str().or_else(|| filled(held, "url"))?;
    let mut fields = rest(block, &["type", "image_url"]);
    if let Some(detail) = filled(held, "detail") {
        fields.insert("detail".to_owned(), json!(detail));
    }
    Some(ImagePart { carried: Carried::new(FORMAT, fields), ..ImagePart::from_url(url) })
}

fn foreign(block: &Value) -> Part {
    Part::Foreign(ForeignPart { format: FORMAT, block: block.clone() })
}

fn refusal(text: &str) -> Option<Part> {
    (!blank(text)).then(|| Part::Refusal(RefusalPart { text: text.to_owned(), carried: Carried::default() }))
}

#[derive(Default)]
struct Reader {
    ids: MadeIds,
    warnings: Warnings,
}

impl Reader {
    fn assistant(&mut self, message: &Value, reply: bool) -> Message {
        let mut parts = Vec::new();
        let (field, reasoning) = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|field| filled(message, field).map(|text| (field, text)))
            .unwrap_or_default();
        // Details may be encrypted, and then come without a readable text.
        let details = message.get("reasoning_details").filter(|_| !list(message, "reasoning_details").is_empty());
        if !blank(reasoning) || details.is_some() {
            let mut fields = Map::new();
            if field != "reasoning_content" && !field.is_empty() {
                fields.insert("field".to_owned(), json!(field));
            }
            if let Some(details) = details {
                fields.insert("reasoning_details".to_owned(), details.clone());
            }
            parts.push(Part::Reasoning(ReasoningPart {
                text: if blank(reasoning) { String::new() } else { reasoning.to_owned() },
                signature: None,
                format: ReasoningFormat::ReasoningContent,
                id: None,
                carried: Carried::new(FORMAT, fields),
            }));
        }
        parts.extend(content_parts(message.get("content")));
        parts.extend(refusal(string(message, "refusal")));
        self.ids.new_turn();
        for call in list(message, "tool_calls") {
            parts.extend(self.call(call).map(Part::ToolCall));
        }
        if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
            parts.extend(self.call(&json!({ "function": call })).map(Part::ToolCall));
        }
        let mut known = vec![
            "role",
            "content",
            "name",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
            "refusal",
            "tool_calls",
            "function_call",
        ];
        if reply {
            // What only replies have, and requests refuse.
            known.extend(["annotations", "audio"]);
        }
        Message { carried: carried_rest(FORMAT, message, &known), ..Message::from(FORMAT, Role::Assistant, parts) }
    }

    fn call(&mut self, call: &Value) -> Option<ToolCall> {
        let custom =
            string(call, "type") == "custom" || (call.get("custom").is_some() && call.get("function").is_none());
        let function = call.get(if custom { "custom" } else { "function" })?;
        let name = string(function, "name");
        let (id, signature) = self.split_id(string(call, "id"));
        // The signature that may be in `extra_content` stays there too: a server that gave it there wants it there.
        let mut fields = rest(call, &["id", "type", "function", "custom", "index"]);
        let (input, twice) = if custom {
            fields.insert("type".to_owned(), json!("custom"));
            let text = string(function, "input").to_owned();
            (ToolInput::object(Map::from_iter([("input".to_owned(), json!(text))])), false)
        } else {
            match function.get("arguments") {
                Some(Value::String(text)) => ToolInput::from_text(text),
                other => (ToolInput::from_value(other.unwrap_or(&Value::Null)).0, false),
            }
        };
        let google = call.pointer(GOOGLE_SIGNATURE).and_then(Value::as_str);
        let id = if id.is_empty() { self.ids.make(name, &mut self.warnings) } else { id };
        if twice {
            self.warnings.add(WarningCode::ArgumentsDoubleEncoded, id.as_str());
        }
        Some(ToolCall {
            id: ToolCallId::new(id),
            name: ToolName::new(name),
            input,
            signature: signature.or_else(|| google.map(str::to_owned)),
            carried: Carried::new(FORMAT, fields),
        })
    }

    fn split_id(&mut self, id: &str) -> (String, Option<String>) {
        match id.split_once(SIGNATURE_MARK) {
            Some((plain, signature)) if !plain.is_empty() => {
                self.warnings.add_once(WarningCode::SignatureSplitFromId, plain);
                (plain.to_owned(), Some(signature.to_owned()))
            }
            _ => (id.to_owned(), None),
        }
    }

    fn result(&mut self, message: &Value) -> ToolResult {
        let name = filled(message, "name");
        let (mut id, _) = self.split_id(string(message, "tool_call_id"));
        if id.is_empty() {
            id = self.ids.answered(name);
        }
        let mut content = Vec::new();
        for part in content_parts(message.get("content")) {
            match part {
                Part::Text(text) => content.push(Content::Text(text)),
                Part::Image(image) => content.push(Content::Image(image)),
                Part::Foreign(foreign) => content.push(Content::Foreign(foreign)),
                _ => {}
            }
        }
        if let Some(value @ (Value::Object(_) | Value::Number(_) | Value::Bool(_))) = message.get("content") {
            // Some clients send the object itself.
            content.push(Content::Text(TextPart::new(value.to_string())));
        }
        let mut output = ToolOutput { content, is_error: false };
        unmark(&mut output);
        let mut fields = rest(message, &["role", "content", "tool_call_id", "name"]);
        if let Some(name) = name {
            fields.insert("result_name".to_owned(), json!(name));
        }
        ToolResult {
            call_id: ToolCallId::new(id),
            name: name.map(ToolName::new),
            output,
            carried: Carried::new(FORMAT, fields),
        }
    }
}

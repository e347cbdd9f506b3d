//! The transcript as JSON: the documented canonical form, and the stored form, which keeps all that is carried along.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::format::Format;
use crate::ids::{ToolCallId, ToolName};
use crate::json::{list, rest, string};
use crate::model::{
    Carried, Content, ForeignPart, ImagePart, ImageSource, Message, Part, ReasoningFormat, ReasoningPart, RefusalPart,
    Role, StopReason, TextPart, ToolCall, ToolInput, ToolOutput, ToolResult, Transcript,
};

/// Why a canonical transcript could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {what}")]
pub struct CanonicalError {
    /// Where, as a JSON pointer.
    pub at: String,
    /// What is wrong.
    pub what: String,
}

fn wrong(at: &str, what: impl Into<String>) -> CanonicalError {
    CanonicalError { at: at.to_owned(), what: what.into() }
}

impl Transcript {
    /// The documented form: `{messages: [{role, parts}], stop_reason?}`. What providers added is not in it.
    pub fn to_canonical(&self) -> Value {
        self.to_json(false)
    }

    /// The form to store: the canonical one, and in each part what has to come back to its provider.
    pub fn to_stored(&self) -> Value {
        self.to_json(true)
    }

    fn to_json(&self, whole: bool) -> Value {
        let messages: Vec<Value> = self.messages.iter().filter_map(|message| message_json(message, whole)).collect();
        let mut object = json!({ "messages": messages });
        if let Some(reason) = self.stop_reason {
            object["stop_reason"] = json!(reason.name());
        }
        object
    }

    /// Reads both forms.
    pub fn from_canonical(value: &Value) -> Result<Self, CanonicalError> {
        let Some(messages) = value.get("messages").and_then(Value::as_array) else {
            return Err(wrong("/messages", "is not a list"));
        };
        let mut transcript = Self::default();
        for (index, message) in messages.iter().enumerate() {
            transcript.messages.push(read_message(message, &format!("/messages/{index}"))?);
        }
        if let Some(reason) = value.get("stop_reason").filter(|reason| !reason.is_null()) {
            let named = reason.as_str().and_then(StopReason::from_name);
            transcript.stop_reason = Some(named.ok_or_else(|| wrong("/stop_reason", format!("{reason} is unknown")))?);
        }
        Ok(transcript)
    }
}

impl Message {
    /// One message in the documented form; nothing when all its parts are of a provider's own kind.
    pub fn to_canonical(&self) -> Option<Value> {
        message_json(self, false)
    }
}

impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_stored().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Transcript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_canonical(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn message_json(message: &Message, whole: bool) -> Option<Value> {
    let parts: Vec<Value> = message.parts.iter().filter_map(|part| part_json(part, whole)).collect();
    if parts.is_empty() && !message.parts.is_empty() {
        return None;
    }
    let mut object = json!({ "role": message.role.name(), "parts": parts });
    if whole {
        if let Some(name) = &message.name {
            object["name"] = json!(name);
        }
        if let Some(origin) = message.origin {
            object["origin"] = json!(origin.name());
        }
        carry(&mut object, &message.carried);
    }
    Some(object)
}

fn carry(object: &mut Value, carried: &Carried) {
    if let Some((format, fields)) = carried.any() {
        object["carried"] = json!({ "format": format.name(), "fields": fields });
    }
}

fn part_json(part: &Part, whole: bool) -> Option<Value> {
    let (mut object, carried) = match part {
        Part::Text(text) => (json!({ "type": "text", "text": text.text }), &text.carried),
        Part::Image(image) => (image_json(image), &image.carried),
        Part::ToolCall(call) => (call_json(call, whole), &call.carried),
        Part::ToolResult(result) => {
            let content: Vec<Value> =
                result.output.content.iter().filter_map(|content| content_json(content, whole)).collect();
            let mut object = json!({
                "type": "tool_result", "call_id": result.call_id.as_str(), "content": content,
                "is_error": result.output.is_error,
            });
            if let Some(name) = &result.name {
                object["name"] = json!(name.as_str());
            }
            (object, &result.carried)
        }
        Part::Reasoning(reasoning) => {
            let mut object = json!({ "type": "reasoning", "text": reasoning.text, "format": reasoning.format.name() });
            if let Some(signature) = &reasoning.signature {
                object["signature"] = json!(signature);
            }
            if let Some(id) = &reasoning.id {
                object["id"] = json!(id);
            }
            (object, &reasoning.carried)
        }
        Part::Refusal(refusal) => (json!({ "type": "refusal", "text": refusal.text }), &refusal.carried),
        Part::Foreign(foreign) => return whole.then(|| foreign_json(foreign)),
    };
    if whole {
        carry(&mut object, carried);
    }
    Some(object)
}

fn call_json(call: &ToolCall, whole: bool) -> Value {
    let mut object = json!({ "type": "tool_call", "id": call.id.as_str(), "name": call.name.as_str() });
    match &call.input {
        ToolInput::Object { fields, text } => {
            object["arguments"] = Value::Object(fields.clone());
            if let (true, Some(text)) = (whole, text) {
                object["arguments_text"] = json!(text);
            }
        }
        ToolInput::Invalid { raw } => {
            object["arguments"] = Value::Null;
            object["arguments_raw"] = json!(raw);
        }
    }
    if let Some(signature) = &call.signature {
        object["signature"] = json!(signature);
    }
    object
}

fn foreign_json(foreign: &ForeignPart) -> Value {
    json!({ "type": "foreign", "format": foreign.format.name(), "block": foreign.block })
}

fn content_json(content: &Content, whole: bool) -> Option<Value> {
    let (mut object, carried) = match content {
        Content::Text(text) => (json!({ "type": "text", "text": text.text }), &text.carried),
        Content::Image(image) => (image_json(image), &image.carried),
        Content::Foreign(foreign) => return whole.then(|| foreign_json(foreign)),
    };
    if whole {
        carry(&mut object, carried);
    }
    Some(object)
}

fn image_json(image: &ImagePart) -> Value {
    match &image.source {
        ImageSource::Base64 { media_type, data } => {
            json!({ "type": "image", "media_type": media_type, "data": data })
        }
        ImageSource::Url(url) => json!({ "type": "image", "url": url }),
    }
}

fn read_message(value: &Value, at: &str) -> Result<Message, CanonicalError> {
    let role = match string(value, "role") {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => return Err(wrong(&format!("{at}/role"), format!("`{other}` is no role"))),
    };
    let mut parts = Vec::new();
    for (index, part) in list(value, "parts").iter().enumerate() {
        parts.push(read_part(part, &format!("{at}/parts/{index}"))?);
    }
    let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
    let origin = Format::from_name(string(value, "origin"));
    Ok(Message { role, parts, name, origin, carried: read_carried(value) })
}

fn read_carried(value: &Value) -> Carried {
    let Some(carried) = value.get("carried") else { return Carried::default() };
    let fields = carried.get("fields").and_then(Value::as_object).cloned().unwrap_or_default();
    Format::from_name(string(carried, "format")).map_or_else(Carried::default, |format| Carried::new(format, fields))
}

fn text_field(value: &Value, key: &str, at: &str) -> Result<String, CanonicalError> {
    let text = value.get(key).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| wrong(&format!("{at}/{key}"), "is not a string"))
}

fn optional(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn read_part(value: &Value, at: &str) -> Result<Part, CanonicalError> {
    let carried = read_carried(value);
    Ok(match string(value, "type") {
        "text" => Part::Text(TextPart { text: text_field(value, "text", at)?, carried }),
        "refusal" => Part::Refusal(RefusalPart { text: text_field(value, "text", at)?, carried }),
        "image" => Part::Image(read_image(value, at)?),
        "foreign" => Part::Foreign(read_foreign(value, at)?),
        "tool_call" => Part::ToolCall(ToolCall {
            id: ToolCallId::new(text_field(value, "id", at)?),
            name: ToolName::new(text_field(value, "name", at)?),
            input: read_input(value),
            signature: optional(value, "signature"),
            carried,
        }),
        "tool_result" => {
            let mut content = Vec::new();
            for (index, part) in list(value, "content").iter().enumerate() {
                content.push(read_content(part, &format!("{at}/content/{index}"))?);
            }
            let is_error = value.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            Part::ToolResult(ToolResult {
                call_id: ToolCallId::new(text_field(value, "call_id", at)?),
                name: optional(value, "name").map(ToolName::new),
                output: ToolOutput { content, is_error },
                carried,
            })
        }
        "reasoning" => {
            let format = string(value, "format");
            Part::Reasoning(ReasoningPart {
                text: string(value, "text").to_owned(),
                signature: optional(value, "signature"),
                format: ReasoningFormat::from_name(format)
                    .ok_or_else(|| wrong(&format!("{at}/format"), format!("`{format}` is unknown")))?,
                id: optional(value, "id"),
                carried,
            })
        }
        other => return Err(wrong(&format!("{at}/type"), format!("`{other}` is no part"))),
    })
}

fn read_input(value: &Value) -> ToolInput {
    match value.get("arguments") {
        Some(Value::Object(fields)) => {
            // The text counts only while it still says the same as the arguments.
            let text = optional(value, "arguments_text")
                .filter(|text| serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|read| read == *fields));
            ToolInput::Object { fields: fields.clone(), text }
        }
        other => match optional(value, "arguments_raw") {
            Some(raw) => ToolInput::Invalid { raw },
            None => ToolInput::from_value(other.unwrap_or(&Value::Null)).0,
        },
    }
}

fn read_foreign(value: &Value, at: &str) -> Result<ForeignPart, CanonicalError> {
    let format = string(value, "format");
    let format =
        Format::from_name(format).ok_or_else(|| wrong(&format!("{at}/format"), format!("`{format}` is unknown")))?;
    Ok(ForeignPart { format, block: value.get("block").cloned().unwrap_or_default() })
}

fn read_content(value: &Value, at: &str) -> Result<Content, CanonicalError> {
    Ok(match string(value, "type") {
        "text" => Content::Text(TextPart { text: text_field(value, "text", at)?, carried: read_carried(value) }),
        "image" => Content::Image(read_image(value, at)?),
        "foreign" => Content::Foreign(read_foreign(value, at)?),
        other => return Err(wrong(&format!("{at}/type"), format!("`{other}` cannot stand in a result"))),
    })
}

fn read_image(value: &Value, at: &str) -> Result<ImagePart, CanonicalError> {
    let source = if let Some(url) = optional(value, "url") {
        ImageSource::Url(url)
    } else {
        ImageSource::Base64 { media_type: text_field(value, "media_type", at)?, data: text_field(value, "data", at)? }
    };
    Ok(ImagePart { source, carried: read_carried(value) })
}

/// What an object has beside `known`, kept for its own format.
pub(crate) fn carried_rest(format: Format, object: &Value, known: &[&str]) -> Carried {
    Carried::new(format, rest(object, known))
}

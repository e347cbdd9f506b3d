//! The canonical conversation: one ordered list of parts per message, whatever the provider.

use serde_json::{Map, Value};

use crate::format::Format;
use crate::ids::{ToolCallId, ToolName};
use crate::json::parse;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions; OpenAI's `developer` is the same.
    System,
    /// Whoever the model answers.
    User,
    /// The model.
    Assistant,
    /// Results of tools.
    Tool,
}

impl Role {
    /// Its name in the canonical form.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Why the model stopped. The label is a hint: whether there are calls is decided by the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It was done.
    End,
    /// It wants tools to run.
    ToolUse,
    /// It hit the token limit; nothing of the turn may be run.
    Length,
    /// A filter cut the answer.
    Filter,
    /// The model refused.
    Refusal,
    /// The provider wants the turn sent back unchanged.
    Pause,
    /// The reply failed or the stream broke.
    Error,
}

impl StopReason {
    /// Its name in the canonical form.
    pub fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::ToolUse => "tool_use",
            Self::Length => "length",
            Self::Filter => "filter",
            Self::Refusal => "refusal",
            Self::Pause => "pause",
            Self::Error => "error",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::End, Self::ToolUse, Self::Length, Self::Filter, Self::Refusal, Self::Pause, Self::Error]
            .into_iter()
            .find(|reason| reason.name() == name)
    }
}

/// What a provider's object held beside what the canonical form knows (cache marks, citations, item ids, fields of
/// tomorrow). It goes back to the format that it came from and to no other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Carried(Option<Box<(Format, Map<String, Value>)>>);

impl Carried {
    /// Keeps `fields` for `format`; nothing is kept of an empty map.
    pub fn new(format: Format, fields: Map<String, Value>) -> Self {
        if fields.is_empty() { Self(None) } else { Self(Some(Box::new((format, fields)))) }
    }

    /// What is kept for `format`.
    pub fn of(&self, format: Format) -> Option<&Map<String, Value>> {
        self.0.as_deref().filter(|(from, _)| *from == format).map(|(_, fields)| fields)
    }

    /// The format that the fields came from, with the fields.
    pub fn any(&self) -> Option<(Format, &Map<String, Value>)> {
        self.0.as_deref().map(|(from, fields)| (*from, fields))
    }
}

/// A piece of text. Never blank in what decoders produce.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// What else the provider said of it.
    pub carried: Carried,
}

impl TextPart {
    /// Text alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), carried: Carried::default() }
    }
}

/// Where the bytes of an image are.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageSource {
    /// In the transcript.
    Base64 {
        /// For example `image/png`.
        media_type: String,
        /// Standard base64.
        data: String,
    },
    /// Elsewhere.
    Url(String),
}

/// An image.
#[derive(Debug, Clone, PartialEq)]
pub struct ImagePart {
    /// Its bytes.
    pub source: ImageSource,
    /// What else the provider said of it.
    pub carried: Carried,
}

impl ImagePart {
    /// The address: the URL itself, or a `data:` URL.
    pub fn url(&self) -> String {
        match &self.source {
            ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
            ImageSource::Url(url) => url.clone(),
        }
    }

    /// Reads an address; a base64 `data:` URL is taken apart.
    pub fn from_url(url: &str) -> Self {
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let source = match inline {
            Some((media_type, data)) => {
                ImageSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
            }
            None => ImageSource::Url(url.to_owned()),
        };
        Self { source, carried: Carried::default() }
    }
}

/// What the model hands to a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolInput {
    /// A JSON object, as every tool wants it.
    Object {
        /// The arguments by name, in the model's order.
        fields: Map<String, Value>,
        /// The text they came as, where they came as text: sent back byte by byte, which prompt caches need.
        text: Option<String>,
    },
    /// Text that is no JSON object: cut off, or malformed. Never run.
    Invalid {
        /// The text as received.
        raw: String,
    },
}

impl ToolInput {
    /// Arguments that are known to be an object.
    pub fn object(fields: Map<String, Value>) -> Self {
        Self::Object { fields, text: None }
    }

    /// Reads the text form. Blank text is the empty object; a string that holds an object is unwrapped once, and the
    /// second value says that it was.
    pub fn from_text(text: &str) -> (Self, bool) {
        if text.trim().is_empty() {
            return (Self::object(Map::new()), false);
        }
        if let Ok(fields) = serde_json::from_str(text) {
            return (Self::Object { fields, text: Some(text.to_owned()) }, false);
        }
        match parse(text) {
            // It had to be mended, so its text is not what goes back.
            Some(Value::Object(fields)) => (Self::object(fields), false),
            Some(Value::String(inner)) => match serde_json::from_str(&inner) {
                Ok(Value::Object(fields)) => (Self::Object { fields, text: Some(inner) }, true),
                _ => (Self::Invalid { raw: text.to_owned() }, false),
            },
            _ => (Self::Invalid { raw: text.to_owned() }, false),
        }
    }

    /// Reads either form: an object, or text.
    pub fn from_value(value: &Value) -> (Self, bool) {
        match value {
            Value::Object(fields) => (Self::object(fields.clone()), false),
            Value::String(text) => match Self::from_text(text) {
                // An object that came as text where an object belongs is encoded once too often.
                (input, _) if !text.trim().is_empty() && matches!(input, Self::Object { .. }) => (input, true),
                other => other,
            },
            Value::Null => (Self::object(Map::new()), false),
            other => (Self::Invalid { raw: other.to_string() }, false),
        }
    }

    /// The arguments, when they are valid.
    pub fn fields(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Object { fields, .. } => Some(fields),
            Self::Invalid { .. } => None,
        }
    }

    /// The text form for the wire. Invalid input goes out as `{}`: servers refuse what they cannot parse.
    pub fn wire_text(&self) -> String {
        match self {
            Self::Object { text: Some(text), .. } => text.clone(),
            Self::Object { fields, text: None } => Value::Object(fields.clone()).to_string(),
            Self::Invalid { .. } => "{}".to_owned(),
        }
    }

    /// The object form for the wire; `{}` for invalid input.
    pub fn wire_object(&self) -> Value {
        Value::Object(self.fields().cloned().unwrap_or_default())
    }
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Links the result to it.
    pub id: ToolCallId,
    /// Which tool.
    pub name: ToolName,
    /// With which arguments.
    pub input: ToolInput,
    /// Opaque to us, and only for the provider that made the call.
    pub signature: Option<String>,
    /// What else the provider said of it.
    pub carried: Carried,
}

/// What may stand in the output of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(TextPart),
    /// An image.
    Image(ImagePart),
    /// A block of a provider's own kind.
    Foreign(ForeignPart),
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// Text and images, in order; may be empty.
    pub content: Vec<Content>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A text; blank text is no content.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let content = if text.trim().is_empty() { Vec::new() } else { vec![Content::Text(TextPart::new(text))] };
        Self { content, is_error: false }
    }

    /// A failure, told to the model in words.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// All its text, joined by line breaks.
    pub fn all_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|content| match content {
                Content::Text(part) => Some(part.text.as_str()),
                Content::Image(_) | Content::Foreign(_) => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: ToolCallId,
    /// The tool's name where the source said it; the call has the name that counts.
    pub name: Option<ToolName>,
    /// The answer.
    pub output: ToolOutput,
    /// What else the provider said of it.
    pub carried: Carried,
}

/// Who minted a reasoning part, and so to whom it may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasoningFormat {
    /// A signed thinking block.
    Anthropic,
    /// A redacted thinking block: no text, the signature is the opaque data.
    AnthropicRedacted,
    /// A reasoning item: the signature is its encrypted content.
    OpenAiResponses,
    /// Plain text of compatible servers.
    ReasoningContent,
}

impl ReasoningFormat {
    /// Its name in the canonical form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::AnthropicRedacted => "anthropic.redacted",
            Self::OpenAiResponses => "openai.responses",
            Self::ReasoningContent => "reasoning_content",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Anthropic, Self::AnthropicRedacted, Self::OpenAiResponses, Self::ReasoningContent]
            .into_iter()
            .find(|format| format.name() == name)
    }
}

/// What the model thought. Sent back unchanged and in place, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct ReasoningPart {
    /// The readable text; may be empty beside a signature.
    pub text: String,
    /// Opaque to us.
    pub signature: Option<String>,
    /// Who minted it.
    pub format: ReasoningFormat,
    /// The provider's id of the item.
    pub id: Option<String>,
    /// What else the provider said of it.
    pub carried: Carried,
}

/// A refusal in words.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusalPart {
    /// The words.
    pub text: String,
    /// What else the provider said of it.
    pub carried: Carried,
}

/// A block of a kind that only its provider knows (a server's own tool, a document). Kept whole for the way back.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignPart {
    /// Whose it is.
    pub format: Format,
    /// The block as it was.
    pub block: Value,
}

impl ForeignPart {
    /// The `type` of the block.
    pub fn kind(&self) -> &str {
        self.block.get("type").and_then(Value::as_str).unwrap_or("unknown")
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text (system, user, assistant).
    Text(TextPart),
    /// An image (user).
    Image(ImagePart),
    /// A call (assistant).
    ToolCall(ToolCall),
    /// A result (tool).
    ToolResult(ToolResult),
    /// Reasoning (assistant).
    Reasoning(ReasoningPart),
    /// A refusal (assistant).
    Refusal(RefusalPart),
    /// A block of a provider's own kind.
    Foreign(ForeignPart),
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// In the provider's order; nothing is grouped by kind.
    pub parts: Vec<Part>,
    /// The participant's name, where the format has one.
    pub name: Option<String>,
    /// The format that it was read from: a turn goes back to it in its own order.
    pub origin: Option<Format>,
    /// What else the provider said of the message.
    pub carried: Carried,
}

impl Message {
    /// A message of these parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, name: None, origin: None, carried: Carried::default() }
    }

    /// The same, read from `origin`.
    pub(crate) fn from(origin: Format, role: Role, parts: Vec<Part>) -> Self {
        Self { origin: Some(origin), ..Self::new(role, parts) }
    }

    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::Text(TextPart::new(text))])
    }

    /// Its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Its results, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Its text and refusals, joined without anything between.
    pub fn plain_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(part) => Some(part.text.as_str()),
                Part::Refusal(part) => Some(part.text.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// What the runtime keeps of a conversation. Never repaired in place: only the copy for the wire is
/// (see [`ProviderHistory`](crate::histories::ProviderHistory)).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    /// In order.
    pub messages: Vec<Message>,
    /// Why the last assistant message ended, where that is known.
    pub stop_reason: Option<StopReason>,
}

impl Transcript {
    /// A conversation of these messages.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, stop_reason: None }
    }

    /// Adds a message: left out when it is empty, joined to the one before when both are results.
    pub fn push(&mut self, message: Message) {
        if message.parts.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(last) if last.role == Role::Tool && message.role == Role::Tool => last.parts.extend(message.parts),
            _ => self.messages.push(message),
        }
    }

    /// Ids of calls that have no result anywhere behind them, in order.
    pub fn open_calls(&self) -> Vec<&ToolCall> {
        let mut open: Vec<&ToolCall> = Vec::new();
        for message in &self.messages {
            for part in &message.parts {
                match part {
                    Part::ToolCall(call) => open.push(call),
                    Part::ToolResult(result) => {
                        if let Some(at) = open.iter().position(|call| call.id == result.call_id) {
                            open.remove(at);
                        }
                    }
                    _ => {}
                }
            }
        }
        open
    }
}

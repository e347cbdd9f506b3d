//! What decoding and encoding give back, and the steps that the three formats share.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{IdRule, NameTable, ToolCallId};
use crate::model::{
    Carried, Content, Message, Part, ReasoningFormat, Role, StopReason, TextPart, ToolOutput, Transcript,
};
use crate::profile::Profile;

/// In formats without a flag for it, the text of a failed result begins with this.
pub const ERROR_MARKER: &str = "[tool_error] ";

/// What an Anthropic encoder does with system text behind the first turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MidSystem {
    /// Left in place as a system message; for models that take it.
    Native,
    /// Moved to the top, behind the other system text.
    #[default]
    Hoist,
    /// Left in place as a user's text.
    User,
}

/// How to encode.
#[derive(Debug, Clone, Copy)]
pub struct EncodeOptions {
    /// For which server.
    pub profile: &'static Profile,
    /// Anthropic only.
    pub mid_system: MidSystem,
    /// Responses only: whether the model reasons. It refuses an item's id without the reasoning that it was made with, so
    /// the copy that is sent keeps an id only behind its reasoning.
    pub reasoning_model: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { profile: Profile::none(), mid_system: MidSystem::default(), reasoning_model: false }
    }
}

impl EncodeOptions {
    /// For this server.
    pub fn for_profile(profile: &'static Profile) -> Self {
        Self { profile, ..Self::default() }
    }
}

/// Tokens of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// All that was read, cached or not.
    pub input: u64,
    /// All that was written, reasoning included.
    pub output: u64,
    /// Of the input: read from a cache.
    pub cache_read: u64,
    /// Of the input: written to a cache.
    pub cache_write: u64,
    /// Of the output: reasoning.
    pub reasoning: u64,
}

/// A history as read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    /// The conversation in its normal form.
    pub transcript: Transcript,
    /// What had to be guessed.
    pub warnings: Warnings,
}

/// A provider's reply as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The assistant's message; without parts when the reply was empty.
    pub message: Message,
    /// Why it ended. Decided by label and content together.
    pub stop_reason: StopReason,
    /// Tokens, when the provider said.
    pub usage: Option<Usage>,
    /// What had to be guessed.
    pub warnings: Warnings,
}

impl Reply {
    /// The reply as a transcript of its own.
    pub fn into_transcript(self) -> Transcript {
        let mut transcript = Transcript { messages: Vec::new(), stop_reason: Some(self.stop_reason) };
        transcript.push(self.message);
        transcript
    }
}

/// A history for the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// `messages`, or `input` with `instructions`, or `messages` with `system`.
    pub payload: Value,
    /// What was changed or lost.
    pub warnings: Warnings,
    /// Leads from names on the wire back to the registry's.
    pub names: NameTable,
}

/// Why something is not a history or a reply of its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The value has another shape.
    #[error("{at}: {what}")]
    Shape {
        /// Where, as a JSON pointer.
        at: String,
        /// What is wrong.
        what: String,
    },
    /// It is an error of the provider.
    #[error("the provider failed: {0}")]
    Provider(ProviderError),
}

/// An error that a provider reported, in a body or inside a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct ProviderError {
    /// The provider's own type or code, for example `overloaded_error`.
    pub kind: String,
    /// The provider's words.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl ProviderError {
    /// Reads `{type, message, code}` as all three providers write it.
    pub fn read(error: &Value) -> Self {
        let text = |key: &str| error.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = error.get("code").and_then(Value::as_u64);
        let code = text("code").map(str::to_owned).or_else(|| number.map(|code| code.to_string()));
        let kind = text("type").filter(|kind| *kind != "error").map(str::to_owned).or_else(|| code.clone());
        let kind = kind.unwrap_or_else(|| "error".to_owned());
        let message = text("message").or_else(|| error.as_str()).unwrap_or("the provider gave no message").to_owned();
        let status = number.or_else(|| code.as_deref().and_then(|code| code.parse().ok()));
        let retryable = [Some(kind.as_str()), code.as_deref()].into_iter().flatten().any(may_pass)
            || status.is_some_and(|status| matches!(status, 408 | 409 | 429 | 500..=599));
        Self { kind, message, retryable }
    }
}

impl ProviderError {
    /// The turn failed, and that is all that was said: the same request may well succeed.
    pub(crate) fn unexplained() -> Self {
        let message = "the reply is marked as failed, without a reason".to_owned();
        Self { kind: "error".to_owned(), message, retryable: true }
    }
}

fn may_pass(kind: &str) -> bool {
    matches!(kind, "overloaded_error" | "api_error" | "timeout_error" | "server_error" | "internal_server_error")
        || ["rate_limit", "overloaded", "timeout", "unavailable", "vector_store_timeout", "internal_error"]
            .iter()
            .any(|part| kind.contains(part))
}

pub(crate) fn shape(at: impl Into<String>, what: impl Into<String>) -> DecodeError {
    DecodeError::Shape { at: at.into(), what: what.into() }
}

/// Puts the marker of a failure in front of a text.
pub(crate) fn marked(text: &str) -> String {
    format!("{ERROR_MARKER}{text}")
}

/// Reads the marker of a failure back.
pub(crate) fn unmark(output: &mut ToolOutput) {
    let at = output.content.iter().position(|content| matches!(content, Content::Text(_)));
    let Some((at, Content::Text(first))) = at.and_then(|at| Some((at, output.content.get_mut(at)?))) else { return };
    let bare = ERROR_MARKER.trim_end();
    if let Some(text) = first.text.strip_prefix(ERROR_MARKER).or((first.text == bare).then_some("")) {
        first.text = text.to_owned();
        output.is_error = true;
        if first.text.trim().is_empty() {
            output.content.remove(at);
        }
    }
}

/// Label and content together: calls decide, except where the turn did not end well.
pub(crate) fn settle(label: StopReason, message: &Message, warnings: &mut Warnings) -> StopReason {
    let complete = message.calls().any(|call| call.input.fields().is_some());
    let any = message.calls().next().is_some();
    match label {
        StopReason::End if complete => {
            warnings
                .add(WarningCode::FinishReasonPromoted, "the label says that the model was done, but there are calls");
            StopReason::ToolUse
        }
        StopReason::ToolUse if !any => {
            warnings.add(WarningCode::StopLabelWithoutCalls, "the label announces calls, but there are none");
            StopReason::End
        }
        StopReason::Length => {
            for call in message.calls().filter(|call| call.input.fields().is_none()) {
                warnings.add(WarningCode::TruncatedToolCall, call.id.as_str());
            }
            label
        }
        _ => label,
    }
}

/// Whether reasoning of this kind may go to this format as its own.
pub(crate) fn reasoning_home(format: ReasoningFormat) -> Format {
    match format {
        ReasoningFormat::Anthropic | ReasoningFormat::AnthropicRedacted => Format::Anthropic,
        ReasoningFormat::OpenAiResponses => Format::OpenAiResponses,
        ReasoningFormat::ReasoningContent => Format::OpenAiChat,
    }
}

/// Says what is lost of a part's carried fields on the way to `target`.
pub(crate) fn own_fields<'a>(
    carried: &'a Carried,
    target: Format,
    warnings: &mut Warnings,
) -> Option<&'a Map<String, Value>> {
    let (from, fields) = carried.any()?;
    if from == target {
        return Some(fields);
    }
    // What only says where something stood, or what it was called there, is no loss.
    for key in fields
        .keys()
        .filter(|key| !matches!(key.as_str(), "item" | "joined" | "field" | "detail" | "type" | "result_name"))
    {
        warnings.add_once(WarningCode::FieldsDropped, format!("{key} ({from})"));
    }
    None
}

/// Whether a call is one of a free-text tool, in whichever of OpenAI's formats it was made.
pub(crate) fn is_custom(carried: &Carried) -> bool {
    let kind = carried.any().and_then(|(_, fields)| fields.get("type"));
    kind.is_some_and(|kind| kind == "custom" || kind == "custom_tool_call")
}

/// Adds carried fields that the encoder did not set itself.
pub(crate) fn add_fields(object: &mut Value, fields: Option<&Map<String, Value>>, except: &[&str]) {
    let (Some(object), Some(fields)) = (object.as_object_mut(), fields) else { return };
    for (key, value) in fields {
        if !except.contains(&key.as_str()) && !object.contains_key(key) {
            object.insert(key.clone(), value.clone());
        }
    }
}

pub(crate) fn text_part(text: &str, carried: Carried) -> Option<Part> {
    (!text.trim().is_empty()).then(|| Part::Text(TextPart { text: text.to_owned(), carried }))
}

/// Ids for calls that came without one. They are legal everywhere, and results without an id find them again.
#[derive(Debug, Default)]
pub(crate) struct MadeIds {
    made: usize,
    /// Names and ids of calls that wait for their results.
    open: VecDeque<(String, String)>,
}

impl MadeIds {
    /// An id for a call of this tool.
    pub(crate) fn make(&mut self, name: &str, warnings: &mut Warnings) -> String {
        self.made += 1;
        let id = IdRule::Exactly(9).fresh(&format!("{name}#{}", self.made), &HashSet::new());
        warnings.add(WarningCode::ToolCallIdMade, id.as_str());
        self.open.push_back((name.to_owned(), id.clone()));
        id
    }

    /// The call that a result without an id answers: by the tool's name where it is known, else in order.
    pub(crate) fn answered(&mut self, name: Option<&str>) -> String {
        let at = self.open.iter().position(|(called, _)| name == Some(called.as_str())).unwrap_or(0);
        self.open.remove(at).map(|(_, made)| made).unwrap_or_default()
    }

    /// A new turn of the model: what waited is answered no more.
    pub(crate) fn new_turn(&mut self) {
        self.open.clear();
    }
}

/// A copy whose call ids the server takes and which are unique; results follow their calls.
pub(crate) fn with_legal_ids(
    transcript: &Transcript,
    format: Format,
    profile: &Profile,
    warnings: &mut Warnings,
) -> Transcript {
    let rule = profile.id_rule(format);
    let mut copy = transcript.clone();
    let mut taken: HashSet<String> = HashSet::new();
    for message in &transcript.messages {
        taken.extend(message.calls().map(|call| call.id.as_str().to_owned()));
        taken.extend(message.results().map(|result| result.call_id.as_str().to_owned()));
    }
    let mut used: HashSet<String> = HashSet::new();
    // For each id as it was: what it became, for each call of the latest message that had it.
    let mut current: HashMap<String, VecDeque<String>> = HashMap::new();
    for message in &mut copy.messages {
        let mut in_this_message: HashSet<String> = HashSet::new();
        for part in &mut message.parts {
            match part {
                Part::ToolCall(call) => {
                    let old = call.id.as_str().to_owned();
                    let new = if rule.allows(&old) && !used.contains(&old) {
                        old.clone()
                    } else {
                        let seed = if used.contains(&old) { format!("{old}#{}", used.len()) } else { old.clone() };
                        let new = rule.fresh(&seed, &taken);
                        warnings.add(WarningCode::ToolCallIdRenamed, format!("{old} became {new}"));
                        new
                    };
                    taken.insert(new.clone());
                    used.insert(new.clone());
                    if in_this_message.insert(old.clone()) {
                        current.insert(old, VecDeque::from([new.clone()]));
                    } else if let Some(queue) = current.get_mut(&old) {
                        queue.push_back(new.clone());
                    }
                    call.id = ToolCallId::new(new);
                }
                Part::ToolResult(result) => {
                    let old = result.call_id.as_str();
                    let new = match current.get_mut(old) {
                        Some(queue) if queue.len() > 1 => queue.pop_front(),
                        Some(queue) => queue.front().cloned(),
                        None if rule.allows(old) => None,
                        None => Some(rule.fresh(old, &taken)),
                    };
                    if let Some(new) = new {
                        result.call_id = ToolCallId::new(new);
                    }
                }
                _ => {}
            }
        }
    }
    copy
}

/// Moves results up behind the message with their calls, for formats that want them there.
pub(crate) fn place_results(transcript: &mut Transcript) {
    let messages = std::mem::take(&mut transcript.messages);
    let mut placed: Vec<Message> = Vec::with_capacity(messages.len());
    for mut message in messages {
        if message.role != Role::Tool {
            placed.push(message);
            continue;
        }
        let mut stay = Vec::new();
        for part in std::mem::take(&mut message.parts) {
            let Part::ToolResult(result) = &part else {
                stay.push(part);
                continue;
            };
            let asked = placed.iter().rposition(|earlier| earlier.calls().any(|call| call.id == result.call_id));
            match asked {
                // Already in place, or behind nothing that asked: stays where it is.
                Some(at) if at + 1 < placed.len() => {
                    if placed[at + 1].role == Role::Tool {
                        placed[at + 1].parts.push(part);
                    } else {
                        placed.insert(at + 1, Message::new(Role::Tool, vec![part]));
                    }
                }
                _ => stay.push(part),
            }
        }
        if !stay.is_empty() {
            message.parts = stay;
            placed.push(message);
        }
    }
    transcript.messages = placed;
}

//! Streamed replies, both ways: events to a reply, and a reply to events.

use serde_json::Value;

use crate::convert::{DecodeError, ProviderError, Reply};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::ToolCallId;
use crate::json::{parse, string};
use crate::model::{Message, Part, ReasoningPart, Role, StopReason, ToolCall};
use crate::sse::{SseEvent, SseParser};
use crate::{anthropic, openai_chat, openai_responses};

/// The kind of error of a stream that ended without its end event.
pub const INCOMPLETE_STREAM: &str = "incomplete_stream";

/// What a stream has given since the event before. Whoever shows an answer as it grows shows these; what counts is
/// the reply at the end.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// The text or refusal that grew is complete.
    TextEnd,
    /// More reasoning.
    Reasoning(String),
    /// The reasoning that grew, or came whole, is complete.
    ReasoningEnd(ReasoningPart),
    /// More of a refusal.
    Refusal(String),
    /// A call is complete.
    Call(ToolCall),
}

impl Delta {
    /// The deltas that give this part at once.
    pub fn of_part(part: &Part) -> Vec<Self> {
        match part {
            Part::Text(text) => vec![Self::Text(text.text.clone()), Self::TextEnd],
            Part::Refusal(refusal) => vec![Self::Refusal(refusal.text.clone()), Self::TextEnd],
            Part::Reasoning(reasoning) => {
                let mut deltas = Vec::new();
                if !reasoning.text.is_empty() {
                    deltas.push(Self::Reasoning(reasoning.text.clone()));
                }
                deltas.push(Self::ReasoningEnd(reasoning.clone()));
                deltas
            }
            Part::ToolCall(call) => vec![Self::Call(call.clone())],
            Part::Image(_) | Part::ToolResult(_) | Part::Foreign(_) => Vec::new(),
        }
    }
}

/// A stream put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// The reply; when the stream broke, what was received of it, with [`StopReason::Error`].
    pub reply: Reply,
    /// Whether the stream came to its own end. Nothing of an incomplete one is run or stored as a finished turn.
    pub complete: bool,
    /// Why it is not complete.
    pub error: Option<ProviderError>,
    /// Calls that were not finished when the stream broke; they are not in the message.
    pub dropped_calls: Vec<ToolCallId>,
    /// The reply in the provider's own form, as it would have come unstreamed.
    pub raw: Value,
    /// What was complete only at the end.
    pub deltas: Vec<Delta>,
}

/// Puts the events of one stream together.
#[derive(Debug)]
pub enum Assembler {
    /// Chat Completions.
    OpenAiChat(openai_chat::Assembler),
    /// Responses.
    OpenAiResponses(openai_responses::Assembler),
    /// Anthropic Messages.
    Anthropic(anthropic::Assembler),
}

impl Assembler {
    /// For a stream of this format.
    pub fn new(format: Format) -> Self {
        match format {
            Format::OpenAiChat => Self::OpenAiChat(openai_chat::Assembler::default()),
            Format::OpenAiResponses => Self::OpenAiResponses(openai_responses::Assembler::default()),
            Format::Anthropic => Self::Anthropic(anthropic::Assembler::default()),
        }
    }

    /// Takes the next event. Events and fields that are not known are skipped.
    pub fn event(&mut self, event: &SseEvent) -> Vec<Delta> {
        let data = event.data.trim();
        match (data, parse::<Value>(data)) {
            ("[DONE]", _) => self.value(&event.event, &Value::String("[DONE]".to_owned())),
            (_, Some(value)) => self.value(&event.event, &value),
            ("", None) => Vec::new(),
            (_, None) => {
                self.warnings().add_once(WarningCode::Unreadable, "an event that is no JSON");
                Vec::new()
            }
        }
    }

    /// Takes the next event as JSON; `"[DONE]"` is a string.
    pub fn value(&mut self, event: &str, data: &Value) -> Vec<Delta> {
        if self.is_over() {
            return Vec::new();
        }
        if let Some(error) = reported_error(event, data) {
            self.fail(error);
            return Vec::new();
        }
        match self {
            Self::OpenAiChat(assembler) => assembler.value(data),
            Self::OpenAiResponses(assembler) => assembler.value(event, data),
            Self::Anthropic(assembler) => assembler.value(event, data),
        }
    }

    /// Whether the end event, or an error, was there: nothing that follows counts.
    pub fn is_over(&self) -> bool {
        match self {
            Self::OpenAiChat(assembler) => assembler.is_over(),
            Self::OpenAiResponses(assembler) => assembler.is_over(),
            Self::Anthropic(assembler) => assembler.is_over(),
        }
    }

    /// The stream is over: what came of it.
    pub fn finish(self) -> Assembled {
        match self {
            Self::OpenAiChat(assembler) => assembler.finish(),
            Self::OpenAiResponses(assembler) => assembler.finish(),
            Self::Anthropic(assembler) => assembler.finish(),
        }
    }

    fn fail(&mut self, error: ProviderError) {
        let failed = match self {
            Self::OpenAiChat(assembler) => &mut assembler.error,
            Self::OpenAiResponses(assembler) => &mut assembler.error,
            Self::Anthropic(assembler) => &mut assembler.error,
        };
        *failed = Some(error);
    }

    fn warnings(&mut self) -> &mut Warnings {
        match self {
            Self::OpenAiChat(assembler) => &mut assembler.warnings,
            Self::OpenAiResponses(assembler) => &mut assembler.warnings,
            Self::Anthropic(assembler) => &mut assembler.warnings,
        }
    }
}

/// The error that an event reports, in all the shapes that providers and gateways give it: `{error: …}` with or without
/// a type around it, an object of type `error`, or anything that came as an event named `error`.
fn reported_error(event: &str, data: &Value) -> Option<ProviderError> {
    let inner = data.get("error").filter(|error| error.is_object() || error.is_string());
    // Events of a type of their own say for themselves what an error inside them means.
    if let Some(inner) = inner.filter(|_| matches!(string(data, "type"), "" | "error")) {
        return Some(ProviderError::read(inner));
    }
    let named = event == "error" || [string(data, "type"), string(data, "object")].contains(&"error");
    (named && !data.is_null()).then(|| ProviderError::read(data))
}

/// Bytes of a stream to its reply.
#[derive(Debug)]
pub struct StreamReader {
    parser: SseParser,
    assembler: Assembler,
}

impl StreamReader {
    /// For a stream of this format.
    pub fn new(format: Format) -> Self {
        Self { parser: SseParser::new(), assembler: Assembler::new(format) }
    }

    /// Takes the next bytes, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        self.parser.push(bytes).iter().flat_map(|event| self.assembler.event(event)).collect()
    }

    /// How many bytes wait for the end of their event. The caller bounds it.
    pub fn pending(&self) -> usize {
        self.parser.pending()
    }

    /// Whether the end event, or an error, was there.
    pub fn is_over(&self) -> bool {
        self.assembler.is_over()
    }

    /// The stream is over.
    pub fn finish(mut self) -> Assembled {
        let mut deltas = Vec::new();
        if let Some(event) = self.parser.finish() {
            deltas = self.assembler.event(&event);
        }
        let mut assembled = self.assembler.finish();
        deltas.append(&mut assembled.deltas);
        Assembled { deltas, ..assembled }
    }
}

/// What an assembler collected, before it is decoded.
pub(crate) struct Collected {
    pub(crate) raw: Value,
    pub(crate) ended: bool,
    pub(crate) error: Option<ProviderError>,
    pub(crate) dropped_calls: Vec<ToolCallId>,
    pub(crate) warnings: Warnings,
}

/// Decodes what was collected with the decoder of plain replies, so that both mean the same.
pub(crate) fn assemble(collected: Collected, decode: impl Fn(&Value) -> Result<Reply, DecodeError>) -> Assembled {
    let Collected { raw, ended, mut error, dropped_calls, mut warnings } = collected;
    if !ended && error.is_none() {
        error = Some(ProviderError {
            kind: INCOMPLETE_STREAM.to_owned(),
            message: "the stream ended without its end event".to_owned(),
            retryable: true,
        });
    }
    let mut reply = decode(&raw).unwrap_or_else(|failure| {
        error.get_or_insert(match failure {
            DecodeError::Provider(error) => error,
            DecodeError::Shape { at, what } => {
                ProviderError { kind: "invalid_reply".to_owned(), message: format!("{at}: {what}"), retryable: false }
            }
        });
        Reply {
            message: Message::new(Role::Assistant, Vec::new()),
            stop_reason: StopReason::Error,
            usage: None,
            warnings: Warnings::default(),
        }
    });
    if error.is_some() {
        reply.stop_reason = StopReason::Error;
        // Labels say nothing about a turn that failed.
        warnings = Warnings::default();
        reply.warnings = Warnings::default();
    }
    warnings.extend(std::mem::take(&mut reply.warnings));
    reply.warnings = warnings;
    Assembled { complete: error.is_none(), reply, error, dropped_calls, raw, deltas: Vec::new() }
}

/// Writes one reply as the events of a format: piece by piece with [`Encoder::delta`], then [`Encoder::finish`].
#[derive(Debug)]
pub enum Encoder {
    /// Chat Completions.
    OpenAiChat(openai_chat::Encoder),
    /// Responses.
    OpenAiResponses(openai_responses::Encoder),
    /// Anthropic Messages.
    Anthropic(anthropic::Encoder),
}

impl Encoder {
    /// A stream with this id and model; `created` is in seconds since 1970.
    pub fn new(format: Format, id: &str, model: &str, created: u64) -> Self {
        match format {
            Format::OpenAiChat => Self::OpenAiChat(openai_chat::Encoder::new(id, model, created)),
            Format::OpenAiResponses => Self::OpenAiResponses(openai_responses::Encoder::new(id, model, created)),
            Format::Anthropic => Self::Anthropic(anthropic::Encoder::new(id, model)),
        }
    }

    /// The events of a piece.
    pub fn delta(&mut self, delta: &Delta) -> Vec<SseEvent> {
        match self {
            Self::OpenAiChat(encoder) => encoder.delta(delta),
            Self::OpenAiResponses(encoder) => encoder.delta(delta),
            Self::Anthropic(encoder) => encoder.delta(delta),
        }
    }

    /// The last events: stop reason, usage, end.
    pub fn finish(self, reply: &Reply) -> Vec<SseEvent> {
        match self {
            Self::OpenAiChat(encoder) => encoder.finish(reply),
            Self::OpenAiResponses(encoder) => encoder.finish(reply),
            Self::Anthropic(encoder) => encoder.finish(reply),
        }
    }

    /// The last event of a stream that failed on the way.
    pub fn fail(self, error: &ProviderError) -> Vec<SseEvent> {
        match self {
            Self::OpenAiChat(encoder) => encoder.fail(error),
            Self::OpenAiResponses(encoder) => encoder.fail(error),
            Self::Anthropic(encoder) => encoder.fail(error),
        }
    }
}

/// A whole reply as the events of a format.
pub fn encode_stream(reply: &Reply, format: Format, id: &str, model: &str, created: u64) -> Vec<SseEvent> {
    let mut encoder = Encoder::new(format, id, model, created);
    let deltas: Vec<Delta> = reply.message.parts.iter().flat_map(Delta::of_part).collect();
    let mut events: Vec<SseEvent> = deltas.iter().flat_map(|delta| encoder.delta(delta)).collect();
    events.extend(encoder.finish(reply));
    events
}

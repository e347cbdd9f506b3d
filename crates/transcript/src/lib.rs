//! One conversation, any model: the canonical transcript and its conversions.
//!
//! Pure: no I/O, no async, no clock. Bytes and values go in, values come out, and whatever had to be changed, guessed
//! or lost on the way is said as a [`Warning`].
#![forbid(unsafe_code)]

pub mod anthropic;
mod canonical;
pub mod convert;
pub mod format;
pub mod histories;
pub mod ids;
mod json;
pub mod lint;
pub mod model;
pub mod openai_chat;
pub mod openai_responses;
pub mod profile;
pub mod project;
pub mod read;
pub mod repair;
pub mod room;
pub mod sse;
pub mod stream;

use serde_json::Value;

pub use canonical::CanonicalError;
pub use convert::{DecodeError, Decoded, EncodeOptions, Encoded, MidSystem, ProviderError, Reply, Usage};
pub use format::{Format, Warning, WarningCode, Warnings};
pub use histories::{ClientHistory, ProviderHistory};
pub use ids::{NameTable, ToolCallId, ToolName};
pub use lint::{Finding, FindingCode, LintOptions, Severity};
pub use model::{Content, Message, Part, Role, StopReason, ToolCall, ToolInput, ToolOutput, ToolResult, Transcript};
pub use profile::Profile;

/// Reads a request's history: an object with `messages`, or `input`, and the system text beside it.
pub fn decode_history(payload: &Value, format: Format) -> Result<Decoded, DecodeError> {
    match format {
        Format::OpenAiChat => openai_chat::decode_history(payload),
        Format::OpenAiResponses => openai_responses::decode_history(payload),
        Format::Anthropic => anthropic::decode_history(payload),
    }
}

/// Writes a history in a format. The transcript itself stays as it is.
pub fn encode_history(transcript: &Transcript, format: Format, options: &EncodeOptions) -> Encoded {
    match format {
        Format::OpenAiChat => openai_chat::encode_history(transcript, options),
        Format::OpenAiResponses => openai_responses::encode_history(transcript, options),
        Format::Anthropic => anthropic::encode_history(transcript, options),
    }
}

/// Reads an unstreamed reply.
pub fn decode_reply(reply: &Value, format: Format) -> Result<Reply, DecodeError> {
    match format {
        Format::OpenAiChat => openai_chat::decode_reply(reply),
        Format::OpenAiResponses => openai_responses::decode_reply(reply),
        Format::Anthropic => anthropic::decode_reply(reply),
    }
}

/// Writes a reply as the API of a format would have. `created` is in seconds since 1970.
pub fn encode_reply(reply: &Reply, format: Format, id: &str, model: &str, created: u64) -> (Value, Warnings) {
    match format {
        Format::OpenAiChat => openai_chat::encode_reply(reply, id, model, created),
        Format::OpenAiResponses => openai_responses::encode_reply(reply, id, model, created),
        Format::Anthropic => anthropic::encode_reply(reply, id, model),
    }
}

//! One conversation, any model: the canonical transcript and its conversions.
//!
//! Pure: no I/O, no async, no clock. Bytes and values go in, values come out, and whatever had to be changed, guessed
//! or lost on the way is said as a [`Warning`].
//!
//! # A history from one API to another
//!
//! ```
//! use bandstand_transcript::{EncodeOptions, Format, ProviderHistory, decode_history};
//! use serde_json::json;
//!
//! // What a client of Chat Completions kept. The call was interrupted, and its id is from elsewhere.
//! let stored = json!({ "messages": [
//!     { "role": "system", "content": "You help harbour staff." },
//!     { "role": "user", "content": "High water at Kestrel Quay?" },
//!     { "role": "assistant", "content": null, "tool_calls": [{ "id": "call:1", "type": "function",
//!         "function": { "name": "lookup_tide", "arguments": "{\"port\":\"Kestrel Quay\"}" } }] },
//!     { "role": "user", "content": "Hello?" },
//! ] });
//! let transcript = decode_history(&stored, Format::OpenAiChat)?.transcript;
//!
//! // What Anthropic gets: a copy in its form, repaired so that it is taken. The transcript stays as it was.
//! let sent = ProviderHistory::prepare(&transcript, Format::Anthropic, &EncodeOptions::default());
//! let messages = &sent.payload()["messages"];
//! assert_eq!(sent.payload()["system"], "You help harbour staff.");
//! assert_eq!(messages[1]["content"][0]["input"], json!({ "port": "Kestrel Quay" }));
//! assert_eq!(messages[2]["content"][0]["type"], "tool_result");
//! assert_eq!(messages[2]["content"][0]["is_error"], true);
//! assert_eq!(messages[2]["content"][1]["text"], "Hello?");
//! assert_eq!(sent.repaired[0].code.code(), "missing_tool_result");
//! # Ok::<(), bandstand_transcript::DecodeError>(())
//! ```
//!
//! # A stream, however the network cut it
//!
//! ```
//! use bandstand_transcript::{Format, StopReason};
//! use bandstand_transcript::stream::StreamReader;
//!
//! let wire = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Ahoy\"}}]}\n\n\
//!     data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! let mut reader = StreamReader::new(Format::OpenAiChat);
//! for piece in wire.chunks(7) {
//!     reader.push(piece);
//! }
//! let assembled = reader.finish();
//! assert!(assembled.complete);
//! assert_eq!(assembled.reply.message.plain_text(), "Ahoy");
//! assert_eq!(assembled.reply.stop_reason, StopReason::End);
//! ```
//!
//! # Where things are
//!
//! | | |
//! | --- | --- |
//! | [`model`], [`ids`] | the conversation; id, name, input and output of a tool are four types |
//! | [`histories`] | three histories, three types: what a client sees, what the runtime keeps, what a provider gets |
//! | [`openai_chat`], [`openai_responses`], [`anthropic`] | each format: decode, encode, streams both ways |
//! | [`profile`] | what servers refuse and bend, as one table |
//! | [`project`](mod@project) | what survives in a format; property tests hold the converters to it |
//! | [`lint`](mod@lint), [`repair`](mod@repair), [`read`](mod@read) | faults of a history, a copy without them, and histories in broken files |
//! | [`answers`] | which result answers which call |
//! | [`diff`](mod@diff) | what became of a conversation: two transcripts, compared by what they mean |
//! | [`tools`] | what a request offers beside the history: tools, the choice among them, and their names on the wire |
//! | [`room`] | our own rooms: `/context` rows, `tool_call` and `tool_result` events |
//! | [`sse`], [`stream`] | bytes to events to replies, and back |
#![forbid(unsafe_code)]

pub mod answers;
pub mod anthropic;
mod canonical;
pub mod convert;
pub mod diff;
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
pub mod tools;

use serde_json::Value;

pub use canonical::CanonicalError;
pub use convert::{DecodeError, Decoded, EncodeOptions, Encoded, MidSystem, ProviderError, Reply, Usage};
pub use format::{Format, Warning, WarningCode, Warnings};
pub use histories::{ClientHistory, ProviderHistory, encode_history_with};
pub use ids::{NameTable, ToolCallId, ToolName};
pub use lint::{Finding, FindingCode, LintOptions, Section, Severity};
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

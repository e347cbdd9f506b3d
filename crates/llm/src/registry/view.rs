//! What others are told of a tool: the same schema in the envelope of each protocol.
//!
//! Numeric bounds are left out for model providers, some of which refuse them; they hold all the same, because
//! arguments are checked against the full schema. MCP clients are told them.

use bandstand_transcript::Format;
use bandstand_transcript::tools::{ToolDefinition, encode_tool};
use serde_json::{Value, json};

use super::{Spec, schema};

/// A tool as any model is told of it. Not strict: optional arguments stay optional.
pub fn definition(spec: &Spec) -> ToolDefinition {
    ToolDefinition::function(spec.name(), spec.description(), schema::without_bounds(spec.schema().as_value()))
}

/// OpenAI Chat Completions: `{"type": "function", "function": {…}}`.
pub fn openai_chat(spec: &Spec) -> Value {
    encode_tool(&definition(spec), Format::OpenAiChat).unwrap_or_default()
}

/// OpenAI Responses: the same without the inner object.
pub fn openai_responses(spec: &Spec) -> Value {
    encode_tool(&definition(spec), Format::OpenAiResponses).unwrap_or_default()
}

/// Anthropic Messages.
pub fn anthropic(spec: &Spec) -> Value {
    encode_tool(&definition(spec), Format::Anthropic).unwrap_or_default()
}

/// MCP's `tools/list`, with the numeric bounds.
pub fn mcp(spec: &Spec) -> Value {
    json!({
        "name": spec.name(),
        "description": spec.description(),
        "inputSchema": spec.schema().as_value(),
        "annotations": { "readOnlyHint": spec.is_read_only() },
    })
}

//! What others are told of a tool: the same schema in the envelope of each protocol.
//!
//! Numeric bounds are left out for model providers, some of which refuse them; they hold all the same, because
//! arguments are checked against the full schema. MCP clients are told them.

use serde_json::{Value, json};

use super::{Spec, schema};

/// OpenAI Chat Completions: `{"type": "function", "function": {…}}`.
pub fn openai_chat(spec: &Spec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name(),
            "description": spec.description(),
            "parameters": schema::without_bounds(spec.schema().as_value()),
        },
    })
}

/// OpenAI Responses: the same without the inner object. Not strict: optional arguments stay optional.
pub fn openai_responses(spec: &Spec) -> Value {
    json!({
        "type": "function",
        "name": spec.name(),
        "description": spec.description(),
        "parameters": schema::without_bounds(spec.schema().as_value()),
        "strict": false,
    })
}

/// Anthropic Messages.
pub fn anthropic(spec: &Spec) -> Value {
    json!({
        "name": spec.name(),
        "description": spec.description(),
        "input_schema": schema::without_bounds(spec.schema().as_value()),
    })
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

//! The error envelope of every reply that is not a success, on both APIs and before a socket's upgrade.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEnvelope {
    /// What went wrong.
    pub error: ErrorBody,
}

/// What went wrong: a code for programs, a message for people, the request's id for the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Stable token, e.g. `not_found`. Clients compare it exactly.
    pub code: String,
    /// One sentence. Some messages are compared by clients too.
    pub message: String,
    /// The id of this request; the same as the reply's `x-request-id` header. `null` only before a socket's upgrade.
    pub request_id: Option<String>,
    /// For a validation error: a JSON Pointer (or a bare field name) to the list of what is wrong there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Map<String, Value>>,
    /// Whole seconds to wait, on a rate-limited socket upgrade.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after: Option<u64>,
}

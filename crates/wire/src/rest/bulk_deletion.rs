//! Jobs that delete many rooms or agents.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::BulkDeletionId;
use crate::time::Timestamp;

/// A job, finished or not.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BulkDeletionJob {
    /// Which.
    pub id: BulkDeletionId,
    /// `chat` or `agent`.
    #[schemars(with = "crate::rest::words::BulkResource")]
    pub resource_type: &'static str,
    /// `queued`, `processing`, `completed` or `failed`.
    #[schemars(with = "crate::rest::words::BulkStatus")]
    pub status: &'static str,
    /// Whether agents are deleted even if they worked.
    pub force: bool,
    /// How many ids the request named.
    pub total: usize,
    /// How many of them have a result.
    pub processed: usize,
    /// How many were deleted.
    pub succeeded: usize,
    /// How many were not.
    pub failed: usize,
    /// One for each id, in the order of the request.
    pub results: Vec<BulkItem>,
    /// When it was accepted.
    pub inserted_at: Timestamp,
    /// When its first item was taken up.
    pub started_at: Option<Timestamp>,
    /// When its last item had its result.
    pub completed_at: Option<Timestamp>,
}

/// What became of one id.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BulkItem {
    /// The id as the request gave it.
    pub id: String,
    /// `pending`, `succeeded` or `failed`.
    #[schemars(with = "crate::rest::words::BulkItemStatus")]
    pub status: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<BulkError>,
}

/// Why an id was not deleted.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BulkError {
    /// For programs.
    pub code: &'static str,
    /// For people.
    pub message: &'static str,
}

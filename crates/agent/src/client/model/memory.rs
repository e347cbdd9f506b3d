//! What an agent remembers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Memory {
    /// Which.
    pub id: String,
    /// What is remembered.
    pub content: String,
    /// Why it was stored.
    #[serde(default)]
    pub thought: Option<String>,
    /// `sensory`, `working` or `long_term`.
    pub system: String,
    /// What kind of memory within its system.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it tells about.
    pub segment: String,
    /// For whom it is.
    pub scope: String,
    /// `active`, `superseded` or `archived`.
    #[serde(default)]
    pub status: Option<String>,
    /// Tags and references.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// Whom it is about.
    #[serde(default)]
    pub subject_id: Option<String>,
    /// The agent that stored it.
    #[serde(default)]
    pub source_agent_id: Option<String>,
    /// The organization that it is shared with.
    #[serde(default)]
    pub organization_id: Option<String>,
    /// When it was stored.
    #[serde(default)]
    pub inserted_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

/// A page of memories. Its metadata stands under either name, depending on the server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MemoryPage {
    /// The rows.
    pub data: Vec<Memory>,
    /// Where they stand.
    #[serde(default)]
    pub meta: Option<Value>,
    /// The same.
    #[serde(default)]
    pub metadata: Option<Value>,
}

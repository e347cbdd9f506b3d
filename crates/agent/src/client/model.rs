//! The rows that the Agent API answers with.
//!
//! Words that may grow (a role, a status, a message type) are texts, and keys that nobody here knows are ignored, so
//! that a newer server does not break an older agent. Written as JSON, a row has every key, with null for what is not
//! there: that is the form in which tools hand them to a model.

mod contact;
mod identity;
mod memory;
mod message;
mod room;
mod task;

use serde::{Deserialize, Deserializer, Serialize};

pub use contact::{
    Contact, ContactOutcome, ContactRemoved, ContactRequests, ContactRequestsPage, DirectionTotals, ReceivedRequest,
    RequestDirections, SentRequest,
};
pub use identity::{Me, Peer};
pub use memory::{Memory, MemoryPage};
pub use message::{
    Attachment, ChatMessage, DelegationToken, Marked, MentionRow, PostedEvent, PostedMessage, Recipient, message_type,
};
pub use room::{ChatRoom, Participant};
pub use task::{Board, Task, TaskActor, TaskAssignment, TaskEvent};

/// A page of a list that is counted.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Page<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Where they stand among all.
    #[serde(default)]
    pub metadata: PageMetadata,
}

/// Where a counted page stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PageMetadata {
    /// The page, from 1.
    #[serde(default)]
    pub page: Option<i64>,
    /// Rows a page.
    #[serde(default)]
    pub page_size: Option<i64>,
    /// Rows in all.
    #[serde(default)]
    pub total_count: Option<i64>,
    /// Pages in all; without it there is only one.
    #[serde(default)]
    pub total_pages: Option<i64>,
}

impl PageMetadata {
    /// Whether there is a page after this one.
    pub fn has_next(&self, page: i64) -> bool {
        self.total_pages.unwrap_or(1) > page
    }
}

/// A page of a list that is walked with a cursor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct CursorPage<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Where to go on.
    pub metadata: CursorMetadata,
}

/// Where a walk goes on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct CursorMetadata {
    /// Whether there is more.
    #[serde(default)]
    pub has_more: bool,
    /// Rows a page.
    #[serde(default)]
    pub limit: Option<i64>,
    /// The next page's cursor; null at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// Reads null as nothing.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

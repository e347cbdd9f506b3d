//! What is sent.

use bandstand_wire::ids::IdentityId;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::client::model::message_type;

/// A message to post.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MessageDraft {
    /// The text.
    pub content: String,
    /// Whom it is for. At least one.
    pub mentions: Vec<DraftMention>,
    /// Files of the room. Left out when there is none: the platform refuses a null.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachment_ids: Vec<String>,
}

/// Somebody that a message is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DraftMention {
    /// Who.
    pub id: IdentityId,
    /// Its handle, without `@`.
    pub handle: Option<String>,
}

impl MessageDraft {
    /// A text.
    pub fn new(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Somebody whom it is for.
    #[must_use]
    pub fn to(mut self, id: IdentityId) -> Self {
        self.mentions.push(DraftMention { id, handle: None });
        self
    }
}

/// An event to post.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventDraft {
    /// For people.
    pub content: String,
    /// See [`message_type`].
    pub message_type: String,
    /// For programs; null is sent too.
    pub metadata: Option<Value>,
}

impl EventDraft {
    /// An event of any type.
    pub fn new(message_type: impl Into<String>, content: impl Into<String>) -> Self {
        Self { content: content.into(), message_type: message_type.into(), metadata: None }
    }

    /// A thought.
    pub fn thought(content: impl Into<String>) -> Self {
        Self::new(message_type::THOUGHT, content)
    }

    /// Something for programs.
    #[must_use]
    pub fn metadata(mut self, metadata: Value) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// A room to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomDraft {
    /// An opaque link of the creator's, a UUID.
    pub task_id: Option<String>,
    /// A title; without one, the first message gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Which part of a room's context is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContextPlace {
    /// The oldest rows.
    #[default]
    Start,
    /// What comes after an earlier page.
    Cursor(String),
    /// A page, from 1. An older way, which the hosted platform is about to drop.
    Page(i64),
}

/// Which messages are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageQuery {
    /// `pending`, `processing`, `processed`, `failed` or `all`; what is not processed otherwise.
    pub status: Option<String>,
    /// What comes after an earlier page.
    pub cursor: Option<String>,
    /// Rows a page, at most 100.
    pub limit: Option<i64>,
    /// Newest first.
    pub newest_first: bool,
}

/// A memory to store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryDraft {
    /// What is remembered.
    pub content: String,
    /// `sensory`, `working` or `long_term`.
    pub system: String,
    /// What kind of memory within its system.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it tells about: `user`, `agent`, `tool` or `guideline`.
    pub segment: String,
    /// Why it is stored.
    pub thought: String,
    /// For whom it is: `agent`, `subject` or `organization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Whom it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// Tags and references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Which memories are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Whom they are about.
    pub subject_id: Option<String>,
    /// For whom they are.
    pub scope: Option<String>,
    /// Their system.
    pub system: Option<String>,
    /// Their kind.
    pub kind: Option<String>,
    /// What they tell about.
    pub segment: Option<String>,
    /// Words in them.
    pub content_query: Option<String>,
    /// Their status.
    pub status: Option<String>,
    /// Rows a page, at most 50.
    pub page_size: Option<i64>,
}

/// A task to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskDraft {
    /// What is to be done.
    pub subject: String,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The active task that it replaces: a UUID or a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes_id: Option<String>,
}

/// A change of a task. Only what is given changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskChange {
    /// How far the agent is with its own part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What the agent is doing just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// A note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `active`, `cancelled` or `archived`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

//! Failures that a room is told of.

use bandstand_wire::ids::RoomId;
use serde_json::{Value, json};

use crate::client::EventDraft;
use crate::client::model::message_type;

/// What a room may read of an error that nobody looked through: its text may hold secrets.
pub const INTERNAL_ERROR: &str = "Internal error while processing message; see agent logs.";

/// A failure of a turn, safe for a room to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFailure {
    /// Whose failure it is: a model's provider, or the runtime.
    pub provider: String,
    /// A code, such as an HTTP status.
    pub code: Option<String>,
    /// For people.
    pub message: String,
    /// More.
    pub detail: Option<String>,
}

impl AgentFailure {
    /// A failure without code and detail.
    pub fn new(provider: impl Into<String>, message: impl Into<String>) -> Self {
        Self { provider: provider.into(), code: None, message: message.into(), detail: None }
    }

    /// A failure of which only the agent's log knows more.
    pub fn internal(provider: impl Into<String>) -> Self {
        Self::new(provider, INTERNAL_ERROR)
    }

    /// With a code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// With more.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The event that tells the room.
    pub fn to_event(&self) -> EventDraft {
        let content = match self.message.trim() {
            "" => format!("{} failed without an error message.", self.provider),
            message => message.to_owned(),
        };
        EventDraft::new(message_type::ERROR, content).metadata(self.metadata())
    }

    fn metadata(&self) -> Value {
        json!({"failure": {
            "provider": self.provider,
            "code": self.code,
            "message": self.message,
            "detail": self.detail,
        }})
    }
}

/// What became of the report of a failure. A report never fails: it is made where something else has failed already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureReport {
    /// The room knows.
    Posted,
    /// The room does not know.
    NotPosted {
        /// Why.
        reason: String,
    },
    /// The agent is stopped in the room: the turn ends without a mark.
    Stopped {
        /// Which room.
        room: RoomId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_has_all_four_keys_and_never_blank_content() {
        let event = AgentFailure::new("acme", "  \n").to_event();
        assert_eq!(event.content, "acme failed without an error message.");
        let expected = json!({"failure": {"provider": "acme", "code": null, "message": "  \n", "detail": null}});
        assert_eq!(event.metadata, Some(expected));
        let event = AgentFailure::new("acme", " overloaded ").code("529").detail("try later").to_event();
        assert_eq!((event.message_type.as_str(), event.content.as_str()), ("error", "overloaded"));
    }
}

//! Messages and events: the rows of a room's history.

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::delivery::Delivery;
use crate::file::Attachment;
use crate::identity::Profile;
use crate::room::words;

words! {
    /// What a row of a room's history is (`message_type` on the wire).
    MessageKind {
        /// A text for people or agents.
        Text = "text",
        /// An agent calls a tool.
        ToolCall = "tool_call",
        /// What a tool returned.
        ToolResult = "tool_result",
        /// An agent's reasoning.
        Thought = "thought",
        /// A failure.
        Error = "error",
        /// Progress of work.
        Task = "task",
        /// An agent wants a person to look.
        Attention = "attention",
    }
}

impl MessageKind {
    /// The number that the database keeps. Never change one: old rows hold it.
    pub fn code(self) -> i64 {
        match self {
            Self::Text => 0,
            Self::ToolCall => 1,
            Self::ToolResult => 2,
            Self::Thought => 3,
            Self::Error => 4,
            Self::Task => 5,
            Self::Attention => 6,
        }
    }

    /// Reads [`Self::code`].
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }
}

/// Somebody that a text message mentions, as known when it was posted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// Who.
    pub id: IdentityId,
    /// Its handle then, without `@`.
    pub handle: String,
    /// Its name then.
    pub name: String,
    /// A reference: named in the text, but not delivered to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
}

/// A row of a room's history with what is known of its deliveries.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Which.
    pub id: MessageId,
    /// Where.
    pub room: RoomId,
    /// Its place in the room; grows with every change of the room, so there are gaps between messages.
    pub sequence: i64,
    /// What it is.
    pub kind: MessageKind,
    /// Who posted it.
    pub sender: Profile,
    /// The text, with mentions as `@[[uuid]]`.
    pub content: String,
    /// Whom a text message mentions.
    pub mentions: Vec<Mention>,
    /// Files that a text message carries.
    pub attachments: Vec<Attachment>,
    /// An event's metadata: the JSON text that the sender supplied.
    pub metadata: Option<String>,
    /// What became of it for each agent that it was delivered to (or that marked it), by identity.
    pub deliveries: Vec<Delivery>,
    /// When it was posted. Within a room it never goes back, even if the clock does.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

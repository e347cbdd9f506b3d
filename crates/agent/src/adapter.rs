//! The one trait that an agent's own logic implements.

mod echo;
mod llm;
mod scripted;

use std::fmt;

use async_trait::async_trait;
use bandstand_llm::registry::Stopped;
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client::model::{Attachment, ChatMessage, Me};
use crate::client::socket::Mode;
use crate::tools::{AgentTools, Capabilities};

pub use echo::Echo;
pub use llm::{Emit, Llm, LlmSettings};
pub use scripted::{Scripted, Step};

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Somebody.
    Identity {
        /// Who.
        id: IdentityId,
        /// `User` or `Agent`.
        kind: String,
        /// Its name.
        name: Option<String>,
    },
    /// The runtime itself, which made the message of a contact event.
    ContactEvents,
}

impl Sender {
    /// Who, when it is somebody.
    pub fn id(&self) -> Option<IdentityId> {
        match self {
            Self::Identity { id, .. } => Some(*id),
            Self::ContactEvents => None,
        }
    }

    /// `User`, `Agent` or `System`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Identity { kind, .. } => kind,
            Self::ContactEvents => "System",
        }
    }

    /// What to call it: its name, else its kind.
    pub fn name(&self) -> &str {
        match self {
            Self::Identity { name: Some(name), .. } => name,
            Self::Identity { kind, .. } => kind,
            Self::ContactEvents => "Contact Events",
        }
    }
}

/// A message that an agent is to deal with.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingMessage {
    /// Which.
    pub id: MessageId,
    /// Where.
    pub room: RoomId,
    /// Who sent it.
    pub sender: Sender,
    /// The text, with mentions as `@handle`.
    pub content: String,
    /// Its files.
    pub attachments: Vec<Attachment>,
    /// When it was posted.
    pub inserted_at: Option<String>,
    /// Mentions and deliveries.
    pub metadata: Option<Value>,
}

impl IncomingMessage {
    /// From a message as it came, with the text as it is.
    pub fn of(message: ChatMessage, room: RoomId) -> Self {
        let ChatMessage {
            id, content, sender_id, sender_type, sender_name, metadata, attachments, inserted_at, ..
        } = message;
        let sender = Sender::Identity { id: sender_id, kind: sender_type, name: sender_name };
        Self { id, room, sender, content, attachments, inserted_at, metadata }
    }

    /// Whether the runtime made it of a contact event.
    pub fn is_contact_event(&self) -> bool {
        self.sender == Sender::ContactEvents
    }
}

/// Something that was said or done in a room before the turn.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// Which.
    pub id: MessageId,
    /// `text`, `tool_call`, `tool_result`, …
    pub message_type: String,
    /// The text, with mentions as `@handle`.
    pub content: String,
    /// Who sent it.
    pub sender: Sender,
    /// Whether it was this agent.
    pub own: bool,
    /// Whatever came with it.
    pub metadata: Option<Value>,
}

/// What an adapter is given for one turn.
#[derive(Debug)]
pub struct TurnInput {
    /// The message.
    pub message: IncomingMessage,
    /// What can be done about it, bound to its room and turn.
    pub tools: AgentTools,
    /// What came before it: in the first turn of a room since the agent started, else nothing.
    pub history: Vec<HistoryEntry>,
    /// Who is in the room, when that changed since the last turn.
    pub participants: Option<String>,
    /// What is new about contacts.
    pub contacts: Option<String>,
    /// Whether it is the first turn of the room since the agent started.
    pub is_session_start: bool,
    /// Cancelled when the turn is interrupted or the agent stops. Dropping the future follows.
    pub cancel: CancellationToken,
}

/// Why a turn did not end well.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The input was not accepted and no model ran: the message waits.
    #[error("the input was not accepted: {0}")]
    NotAccepted(String),
    /// It failed, and the room knows already. The text goes to the failed mark, which people can read.
    #[error("{0}")]
    Reported(String),
    /// The turn must end without a mark.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// It failed. The text stays in the agent's log.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl TurnError {
    /// It failed because of this.
    pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl From<crate::client::ClientError> for TurnError {
    fn from(error: crate::client::ClientError) -> Self {
        match error {
            crate::client::ClientError::Stopped { .. } => Self::Stopped(Stopped { reason: error.to_string() }),
            error => Self::failed(error),
        }
    }
}

impl From<bandstand_llm::registry::ToolError> for TurnError {
    fn from(error: bandstand_llm::registry::ToolError) -> Self {
        match error {
            bandstand_llm::registry::ToolError::Stopped(stopped) => Self::Stopped(stopped),
            error => Self::failed(error),
        }
    }
}

/// An agent's own logic: what it does with a message.
///
/// One adapter serves all rooms of its agent, several of them at the same time; within a room, turns come one after the
/// other.
///
/// ```
/// use async_trait::async_trait;
/// use bandstand_agent::adapter::{Adapter, TurnError, TurnInput};
///
/// struct Polite;
///
/// #[async_trait]
/// impl Adapter for Polite {
///     async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
///         let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
///         input.tools.send_message("Thank you.", &[sender.as_str()]).await?;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Adapter: Send + Sync {
    /// Which tools beyond the chat tools its model is offered. None unless it says so.
    fn capabilities(&self) -> Capabilities {
        Capabilities::none()
    }

    /// Whether its turns are judged by the [turn rule](crate::turn).
    fn judges_turns(&self) -> bool {
        true
    }

    /// The agent starts. `capabilities` are those that the server supports.
    ///
    /// # Errors
    /// Whatever keeps the agent from starting.
    async fn on_started(
        &self,
        me: &Me,
        capabilities: &Capabilities,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let _ = (me, capabilities);
        Ok(())
    }

    /// A message came.
    ///
    /// # Errors
    /// [`TurnError`].
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError>;

    /// May take a message as an answer to something that the adapter asked, before any turn is made of it. True means
    /// that it was taken.
    async fn try_handle_control(&self, message: &IncomingMessage, tools: &AgentTools) -> bool {
        let _ = (message, tools);
        false
    }

    /// A person interrupted or stopped the agent: work that outlives its turn must end.
    async fn on_interrupt(&self, room: RoomId, mode: Mode) {
        let _ = (room, mode);
    }

    /// The agent left a room.
    async fn on_room_closed(&self, room: RoomId) {
        let _ = room;
    }

    /// The agent stops.
    async fn on_stopped(&self) {}
}

impl fmt::Debug for dyn Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adapter")
    }
}

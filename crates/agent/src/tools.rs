//! What an agent can do in a room: each platform tool as a method for programs, and all of them, with the author's own,
//! as tools for a model.
//!
//! [`AgentTools`] is bound to one room and one turn. A method that succeeds records its effect on the turn, whoever
//! called it and how. What a model is offered, and how its calls are carried out, is in [`AgentTools::offered`] and
//! [`AgentTools::execute_tool_call_structured`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use bandstand_agent::client::Client;
//! use bandstand_agent::tools::{AgentTools, Binding};
//!
//! let client = Client::new("http://localhost:4000", "band_a_…")?;
//! let room = client.rooms(1, 1).await?.data[0].id;
//! let tools = AgentTools::new(client, room, Binding::default());
//! tools.send_message("Hello!", &["@ann"]).await?;
//! assert!(tools.turn().replied());
//! # Ok(())
//! # }
//! ```

mod capability;
mod chat;
mod contact_tools;
mod contacts;
mod execute;
mod files;
mod judge;
mod memories;
mod platform;
mod resolve;
mod source;
mod tasks;
mod text;
mod toolbox;

use std::fmt;
use std::sync::Arc;

use bandstand_llm::registry::{Spec, Stopped, ToolError, view};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use serde_json::Value;

use crate::approval::Approvals;
use crate::client::{Client, ClientError};
use crate::roster::{Member, Roster};
use crate::turn::Turn;

pub use bandstand_llm::registry::{Approval, Effect, Filter, Tool, ToolOutcome};
pub use capability::{Capabilities, Capability, UnsupportedCapability};
pub use chat::{NoReply, ParticipantAdded, ParticipantRemoved};
pub use contact_tools::{ContactSummary, ContactTools, ContactsSummary, RequestsSummary};
pub use files::{FileContent, RoomFiles, SentFile};
pub use platform::{PLATFORM_TOOLS, PlatformTool, platform_name, platform_tool};
pub use resolve::ResolveError;
pub use source::{ToolConflict, ToolSource};
pub use text::has_visible_content;
pub use toolbox::Toolbox;

/// What a room's tools are bound to, besides the room.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    /// The agent's own id; it is left out where others are listed.
    pub agent: Option<IdentityId>,
    /// Who is in the room.
    pub roster: Roster,
    /// The room of contact events, if there is one. In it, contact tools are always offered.
    pub hub_room: Option<RoomId>,
    /// The turn.
    pub turn: Turn,
    /// The message that the turn is about, for logs.
    pub message: Option<MessageId>,
    /// All tools of the agent.
    pub toolbox: Arc<Toolbox>,
}

/// What an agent can do in one room, in one turn. Cheap to clone; all clones share the turn and the roster.
#[derive(Clone)]
pub struct AgentTools {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    room: RoomId,
    binding: Binding,
}

impl fmt::Debug for AgentTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTools").field("room", &self.room()).finish_non_exhaustive()
    }
}

/// Whose form a schema has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
}

impl std::str::FromStr for Format {
    type Err = InvalidFormat;

    fn from_str(text: &str) -> Result<Self, InvalidFormat> {
        match text {
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            other => Err(InvalidFormat(other.to_owned())),
        }
    }
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid format: {0}. Must be 'openai' or 'anthropic'")]
pub struct InvalidFormat(pub String);

impl AgentTools {
    /// Tools of a room.
    pub fn new(client: Client, room: RoomId, binding: Binding) -> Self {
        Self { inner: Arc::new(Inner { client, room, binding }) }
    }

    /// The room.
    pub fn room(&self) -> RoomId {
        self.inner.room
    }

    /// The client, for what no tool does. What is done with it records nothing on the turn.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The turn's ledger.
    pub fn turn(&self) -> &Turn {
        &self.inner.binding.turn
    }

    /// This agent's id, when the tools are bound to one.
    pub fn agent_id(&self) -> Option<IdentityId> {
        self.inner.binding.agent
    }

    /// The message that the turn is about.
    pub fn message(&self) -> Option<MessageId> {
        self.inner.binding.message
    }

    /// Who is in the room, as known now.
    pub fn participants(&self) -> Vec<Member> {
        self.roster().members()
    }

    /// Who is in the room, shared.
    pub fn roster(&self) -> &Roster {
        &self.inner.binding.roster
    }

    /// All tools of the agent.
    pub fn toolbox(&self) -> &Toolbox {
        &self.inner.binding.toolbox
    }

    /// The open questions of the agent.
    pub fn approvals(&self) -> &Approvals {
        self.toolbox().approvals()
    }

    /// Whether this is the room of contact events.
    pub fn is_hub_room(&self) -> bool {
        self.inner.binding.hub_room == Some(self.room())
    }

    /// The platform tools in a provider's form: the chat tools and those of `capabilities`; without any given, contacts.
    /// In the hub room the contact tools are always there.
    ///
    /// These are the platform's own tools alone. What a model of this agent is offered is [`Self::offered`].
    pub fn tool_schemas(&self, format: Format, capabilities: Option<&Capabilities>) -> Vec<Value> {
        let capabilities = match capabilities {
            Some(capabilities) => capabilities.clone(),
            None => Capabilities::of([Capability::Contacts]),
        };
        let capabilities = self.with_hub(capabilities);
        let specs = platform::registry().specs().filter(|spec| capabilities.include(spec.group()));
        specs.map(|spec| schema(format, spec)).collect()
    }

    /// [`Self::tool_schemas`] in OpenAI's form.
    pub fn openai_tool_schemas(&self, capabilities: Option<&Capabilities>) -> Vec<Value> {
        self.tool_schemas(Format::OpenAi, capabilities)
    }

    /// [`Self::tool_schemas`] in Anthropic's form.
    pub fn anthropic_tool_schemas(&self, capabilities: Option<&Capabilities>) -> Vec<Value> {
        self.tool_schemas(Format::Anthropic, capabilities)
    }

    /// Every tool that a model of this agent is offered in this room, the author's own included: what the toolbox'
    /// capabilities and filter leave, and what its approval policy does not deny.
    pub fn offered(&self) -> Vec<Spec> {
        let toolbox = self.toolbox();
        let capabilities = self.with_hub(toolbox.capabilities().clone());
        let offered = toolbox.registry().specs().filter(|spec| {
            (platform_tool(spec.name()).is_none() || capabilities.include(spec.group()))
                && toolbox.tool_filter().passes(spec)
                && spec.approval() != Approval::Deny
        });
        offered.cloned().collect()
    }

    /// [`Self::offered`] in a provider's form.
    pub fn offered_schemas(&self, format: Format) -> Vec<Value> {
        self.offered().iter().map(|spec| schema(format, spec)).collect()
    }

    fn with_hub(&self, capabilities: Capabilities) -> Capabilities {
        if self.is_hub_room() { capabilities.and(Capability::Contacts) } else { capabilities }
    }
}

fn schema(format: Format, spec: &Spec) -> Value {
    match format {
        Format::OpenAi => view::openai_chat(spec),
        Format::OpenAiResponses => view::openai_responses(spec),
        Format::Anthropic => view::anthropic(spec),
    }
}

/// A server's refusal in words for a model: status, code and message, never headers or bodies.
fn tool_error(error: ClientError) -> ToolError {
    match error {
        ClientError::Stopped { .. } => Stopped { reason: error.to_string() }.into(),
        error => ToolError::failed(error.to_string()),
    }
}

//! What each of a person's tools takes. The documentation of a type and its fields is what models read.

use bandstand_agent::registry::{Faults, ToolInput};
use bandstand_agent::tools::has_visible_content;
use schemars::JsonSchema;
use serde::Deserialize;

/// Only what goes into a path as it is.
fn check_id(faults: &mut Faults, argument: &str, id: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.is_empty() || !id.bytes().all(plain) {
        faults.at(argument, "ID must contain only ASCII letters, digits, underscores or hyphens");
    }
}

/// Checks one argument of each input as an id.
macro_rules! ids {
    ($($name:ident: $($field:ident),+);+ $(;)?) => {$(
        impl ToolInput for $name {
            fn check(&self, faults: &mut Faults) {
                $(check_id(faults, stringify!($field), &self.$field);)+
            }
        }
    )+};
}

ids! {
    GetChat: chat_id;
    ListMessages: chat_id;
    ListParticipants: chat_id;
    AddParticipant: chat_id;
    RemoveParticipant: chat_id, participant_id;
    RequestById: request_id;
    MemoryById: memory_id;
}

/// List agents owned by the user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListAgents {
    /// Page number (optional).
    pub(super) page: Option<i64>,
    /// Items per page (optional).
    pub(super) page_size: Option<i64>,
}

/// Register a new remote agent.
///
/// Returns the agent details including API key. Save the API key - it's only shown once!
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RegisterAgent {
    /// Agent name (required).
    pub(super) name: String,
    /// Agent description (required).
    pub(super) description: String,
}

/// Get the current user's profile details.
///
/// Returns your profile information including name, email, role, etc.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetProfile {}

/// Update the current user's profile.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UpdateProfile {
    /// New first name (optional).
    pub(super) first_name: Option<String>,
    /// New last name (optional).
    pub(super) last_name: Option<String>,
}

/// List entities you can interact with in chat rooms.
///
/// Peers include other users, your agents, and global agents.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListPeers {
    /// Exclude entities already in this chat room (optional).
    pub(super) not_in_chat: Option<String>,
    /// Filter by type: 'User' or 'Agent' (optional).
    pub(super) peer_type: Option<String>,
    /// Page number (optional).
    pub(super) page: Option<i64>,
    /// Items per page (optional).
    pub(super) page_size: Option<i64>,
}

/// List chat rooms where the user is a participant.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListChats {
    /// Page number (optional).
    pub(super) page: Option<i64>,
    /// Items per page (optional).
    pub(super) page_size: Option<i64>,
}

/// Create a new chat room with the user as owner.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CreateChat {
    /// Optional task ID to associate with the chat.
    pub(super) task_id: Option<String>,
}

/// Get a specific chat room by ID.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetChat {
    /// The chat room ID (required).
    pub(super) chat_id: String,
}

/// List messages in a chat room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListMessages {
    /// The chat room ID (required).
    pub(super) chat_id: String,
    /// Page number (optional).
    pub(super) page: Option<i64>,
    /// Items per page (optional).
    pub(super) page_size: Option<i64>,
    /// Filter by type: 'text', 'tool_call', etc. (optional).
    pub(super) message_type: Option<String>,
    /// ISO 8601 timestamp to filter messages after (optional).
    pub(super) since: Option<String>,
}

/// Send a message in a chat room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendMessage {
    /// The chat room ID (required).
    pub(super) chat_id: String,
    /// Message text (required).
    pub(super) content: String,
    /// Non-empty comma-separated participant names to @mention (required). Must contain at least one name; empty string
    /// is not accepted.
    pub(super) recipients: String,
}

impl ToolInput for SendMessage {
    fn check(&self, faults: &mut Faults) {
        check_id(faults, "chat_id", &self.chat_id);
        if !has_visible_content(&self.content) {
            faults.at("content", "can't be blank");
        }
    }
}

/// List participants in a chat room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListParticipants {
    /// The chat room ID (required).
    pub(super) chat_id: String,
    /// Filter by type: 'User' or 'Agent' (optional).
    pub(super) participant_type: Option<String>,
}

/// Add a participant to a chat room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddParticipant {
    /// The chat room ID (required).
    pub(super) chat_id: String,
    /// ID of user or agent to add (required).
    pub(super) participant_id: String,
    /// 'owner', 'admin', or 'member' (optional, defaults to 'member').
    pub(super) role: Option<String>,
}

/// Remove a participant from a chat room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RemoveParticipant {
    /// The chat room ID (required).
    pub(super) chat_id: String,
    /// ID of participant to remove (required).
    pub(super) participant_id: String,
}

/// List the user's contacts.
///
/// Returns active contacts with their details including handle, email, and type.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListContacts {
    /// Page number for pagination (optional).
    pub(super) page: Option<i64>,
    /// Number of items per page (optional).
    pub(super) page_size: Option<i64>,
}

/// Send a contact request to another user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CreateContactRequest {
    /// Handle of the user to add (with or without @ prefix, required).
    pub(super) recipient_handle: String,
    /// Optional message to include with the request (max 500 chars).
    pub(super) message: Option<String>,
}

/// List contact requests received by the user.
///
/// Returns pending contact requests that need approval or rejection.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListReceivedRequests {
    /// Page number for pagination (optional).
    pub(super) page: Option<i64>,
    /// Number of items per page (optional).
    pub(super) page_size: Option<i64>,
}

/// Which requests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
pub(super) enum SentStatus {
    Pending,
    Approved,
    Rejected,
    Cancelled,
    All,
}

impl SentStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::All => "all",
        }
    }
}

/// List contact requests sent by the user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListSentRequests {
    /// Filter by status: 'pending', 'approved', 'rejected', 'cancelled', or 'all' (optional).
    pub(super) status: Option<SentStatus>,
    /// Page number for pagination (optional).
    pub(super) page: Option<i64>,
    /// Number of items per page (optional).
    pub(super) page_size: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RequestById {
    /// The contact request ID (required).
    pub(super) request_id: String,
}

/// Look up an entity by handle.
///
/// Resolves a handle to its entity details. Use this to verify a handle
/// exists before sending a contact request.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ResolveHandle {
    /// The handle to resolve (required).
    pub(super) handle: String,
}

/// Remove an existing contact.
///
/// Removes a contact by either contact_id or handle. At least one must be provided.
/// If both are provided, both are sent to the API (contact_id takes precedence).
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RemoveContact {
    /// The contact record ID (optional, provide this or handle).
    pub(super) contact_id: Option<String>,
    /// The contact's handle (optional, provide this or contact_id).
    pub(super) handle: Option<String>,
}

/// List memories available to the authenticated user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListMemories {
    /// Filter by chat room ID.
    pub(super) chat_room_id: Option<String>,
    /// Filter by scope.
    pub(super) scope: Option<String>,
    /// Filter by memory system.
    pub(super) system: Option<String>,
    /// Filter by memory type.
    pub(super) memory_type: Option<String>,
    /// Filter by segment.
    pub(super) segment: Option<String>,
    /// Full-text search query.
    pub(super) content_query: Option<String>,
    /// Number of results per page.
    pub(super) page_size: Option<i64>,
    /// Filter by status.
    pub(super) status: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MemoryById {
    /// Memory ID (required).
    pub(super) memory_id: String,
}

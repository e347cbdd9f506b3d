//! Payloads of pushes. Which keys may be null and which must rather be left out follows the strictest client: a payload
//! that its validator rejects is lost work.
//!
//! The payload of `message_created`, `message_updated` and `event_created` is the REST row of the message, and that of
//! `room_updated` the REST row of the room; those of `room_tasks` are the REST task and board. People read the REST row of the request in `contact_request_received`, agents
//! a flat form of it. For the rows see [`crate::rest`].

mod activity;
mod contact;
mod control;
mod participant;
mod room;

pub use activity::{Activity, ActivityChanged, WorkingAgent};
pub use contact::{ContactAdded, ContactRemoved, ContactRequestReceived, ContactRequestUpdated};
pub use control::{AgentControl, Supersede};
pub use participant::{AgentConnection, ParticipantAdded, ParticipantPresence, ParticipantRemoved, PresenceSnapshot};
pub use room::{RoomAdded, RoomDeleted, RoomRemoved};

/// Names of events.
pub mod event {
    /// A text message, to the agents that it mentions and to people.
    pub const MESSAGE_CREATED: &str = "message_created";
    /// A message or one of its deliveries changed, to people.
    pub const MESSAGE_UPDATED: &str = "message_updated";
    /// What became of a message changed for one of its recipients, to people who hear of their rooms: the rows of the
    /// ledger.
    pub const DELIVERY_UPDATED: &str = "delivery_updated";
    /// A tool call, thought and the like, to people.
    pub const EVENT_CREATED: &str = "event_created";
    /// You are in a room now.
    pub const ROOM_ADDED: &str = "room_added";
    /// You are no longer in a room.
    pub const ROOM_REMOVED: &str = "room_removed";
    /// A room's title, status or membership changed, to people.
    pub const ROOM_UPDATED: &str = "room_updated";
    /// The room is gone.
    pub const ROOM_DELETED: &str = "room_deleted";
    /// Somebody joined the room.
    pub const PARTICIPANT_ADDED: &str = "participant_added";
    /// Somebody left the room.
    pub const PARTICIPANT_REMOVED: &str = "participant_removed";
    /// A participant came online or went offline, to people.
    pub const PARTICIPANT_PRESENCE_CHANGED: &str = "participant_presence_changed";
    /// The older form of the same, for agents that come online.
    pub const AGENT_CONNECTED: &str = "agent_connected";
    /// The older form of the same, for agents that go offline.
    pub const AGENT_DISCONNECTED: &str = "agent_disconnected";
    /// Who works in the room changed, to people.
    pub const ACTIVITY_CHANGED: &str = "activity_changed";
    /// Somebody asks to become contacts, to whom it asks.
    pub const CONTACT_REQUEST_RECEIVED: &str = "contact_request_received";
    /// A request was answered or taken back, to both.
    pub const CONTACT_REQUEST_UPDATED: &str = "contact_request_updated";
    /// You have a new contact.
    pub const CONTACT_ADDED: &str = "contact_added";
    /// You have a contact no more.
    pub const CONTACT_REMOVED: &str = "contact_removed";
    /// A task came to be.
    pub const TASK_CREATED: &str = "task_created";
    /// A task changed.
    pub const TASK_UPDATED: &str = "task_updated";
    /// The room's goal changed.
    pub const BOARD_UPDATED: &str = "board_updated";
    /// An agent is to stop, to go on, or to give up its turn.
    pub const AGENT_CONTROL: &str = "agent.control";
    /// A newer connection of the same agent takes over.
    pub const SUPERSEDE: &str = "supersede";
}

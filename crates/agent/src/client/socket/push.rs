//! What the server pushes.

use bandstand_wire::ids::{ExecutionId, RoomId};
use serde::Deserialize;
use serde_json::Value;

use crate::client::model::{ChatMessage, Contact, ContactOutcome, Participant, ReceivedRequest};

/// Something that the server pushed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Push {
    /// A message that mentions the agent.
    MessageCreated(Box<ChatMessage>),
    /// The agent is in a room now.
    RoomAdded(RoomPush),
    /// The agent is no more in a room.
    RoomRemoved(RoomPush),
    /// A room is gone.
    RoomDeleted {
        /// Which.
        room: RoomId,
    },
    /// Somebody joined a room.
    ParticipantAdded(Participant),
    /// Somebody left a room.
    ParticipantRemoved(Participant),
    /// Somebody asks to become a contact.
    ContactRequestReceived(ReceivedRequest),
    /// A request was answered or withdrawn.
    ContactRequestUpdated(ContactOutcome),
    /// There is a new contact.
    ContactAdded(Contact),
    /// A contact ended.
    ContactRemoved {
        /// Its record.
        id: String,
    },
    /// Something that this version does not know.
    Other {
        /// Its name.
        event: String,
        /// What it says.
        payload: Value,
    },
}

/// A room that the agent entered or left.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RoomPush {
    /// Which.
    pub id: RoomId,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// Its creator's opaque link.
    #[serde(default)]
    pub task_id: Option<String>,
}

/// What a person wants of a running agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Give up the turn that it is in.
    Interrupt,
    /// Do nothing more.
    Stop,
    /// Go on.
    Play,
}

/// Where a signal counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In all rooms of the agent, unless it names one.
    Agent,
    /// In one room.
    Room,
}

/// A control signal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Signal {
    /// What is wanted.
    pub mode: Mode,
    /// Where it counts.
    pub scope: Scope,
    /// Which room; none with [`Scope::Agent`] means all, and with [`Scope::Room`] nothing.
    pub room_id: Option<RoomId>,
    /// Which execution is meant.
    pub execution_id: Option<ExecutionId>,
    /// The same for the same signal.
    pub correlation_id: String,
}

/// The end that the server announces to an older connection.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Supersede {
    pub(super) reason: String,
    pub(super) message: String,
    #[serde(default)]
    pub(super) retryable: Value,
}

/// Reads a push; none when its payload is not what its event says.
pub(super) fn read(event: &str, payload: &str) -> Option<Push> {
    #[derive(Deserialize)]
    struct Room {
        id: RoomId,
    }
    #[derive(Deserialize)]
    struct Contact {
        id: String,
    }
    let push = match event {
        "message_created" => Push::MessageCreated(from(payload)?),
        "room_added" => Push::RoomAdded(from(payload)?),
        "room_removed" => Push::RoomRemoved(from(payload)?),
        "room_deleted" => Push::RoomDeleted { room: from::<Room>(payload)?.id },
        "participant_added" => Push::ParticipantAdded(from(payload)?),
        "participant_removed" => Push::ParticipantRemoved(from(payload)?),
        "contact_request_received" => Push::ContactRequestReceived(from(payload)?),
        "contact_request_updated" => Push::ContactRequestUpdated(from(payload)?),
        "contact_added" => Push::ContactAdded(from(payload)?),
        "contact_removed" => Push::ContactRemoved { id: from::<Contact>(payload)?.id },
        other => Push::Other { event: other.to_owned(), payload: from(payload)? },
    };
    Some(push)
}

pub(super) fn from<'a, T: Deserialize<'a>>(payload: &'a str) -> Option<T> {
    serde_json::from_str(payload).ok()
}

//! What happened, as announced to sockets after COMMIT. Each event holds all that its pushes need, so that announcing
//! reads nothing.

use bandstand_wire::ids::{IdentityId, KeyId, RoomId};

use crate::identity::Profile;
use crate::membership::Participant;
use crate::message::Message;
use crate::room::Room;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A text message was posted. Agents hear it when they are mentioned, people always.
    MessageCreated {
        /// The message; its mentions say who hears it.
        message: Message,
    },
    /// A delivery of a message changed, or the message did. Only people hear it.
    MessageUpdated {
        /// The message with at least the deliveries that changed.
        message: Message,
    },
    /// An event (tool call, thought, …) was posted. Only people hear it.
    EventCreated {
        /// The row.
        message: Message,
    },
    /// Somebody became a participant: told to itself on its rooms channel.
    RoomAdded {
        /// Who joined.
        member: Participant,
        /// Which room.
        room: Room,
    },
    /// Somebody stopped being a participant: told to itself on its rooms channel, and its room topics fall silent.
    RoomRemoved {
        /// Who left.
        member: Participant,
        /// Which room.
        room: Room,
        /// Whether it may still read the room (a user whose agent stays in it); then its room topics go on.
        still_reads: bool,
    },
    /// Title, status or membership of a room changed: told to the users who may read it.
    RoomUpdated {
        /// The room as it is now.
        room: Room,
        /// Its readers among people.
        users: Vec<IdentityId>,
    },
    /// A room is gone.
    RoomDeleted {
        /// Which.
        room: Room,
        /// Who was in it.
        members: Vec<Participant>,
    },
    /// Somebody joined a room: told to those in it.
    ParticipantAdded {
        /// Which room.
        room: RoomId,
        /// Who.
        participant: Participant,
    },
    /// Somebody left a room: told to those in it.
    ParticipantRemoved {
        /// Which room.
        room: RoomId,
        /// Who.
        participant: Profile,
    },
    /// An API key no longer opens anything: its sockets close, and caches forget it.
    KeyRevoked {
        /// Which key.
        key: KeyId,
    },
    /// An identity is gone: its sockets close, and caches forget it.
    IdentityRemoved {
        /// Who.
        id: IdentityId,
    },
    /// An identity's name or handle changed: caches forget it.
    IdentityChanged {
        /// Who.
        id: IdentityId,
    },
}

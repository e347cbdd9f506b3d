//! What happened, as announced to sockets after COMMIT. Each event holds all that its pushes need, so that announcing
//! reads nothing.

use bandstand_wire::ids::{ContactId, IdentityId, KeyId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::board::{Board, Overview};
use crate::contact::{Contact, ContactRequest};
use crate::execution::{Addressee, Signal};
use crate::identity::Profile;
use crate::membership::Participant;
use crate::message::Message;
use crate::room::Room;
use crate::task::Task;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A text message was posted. Agents hear it when they are mentioned, people always.
    MessageCreated {
        /// The message; its mentions say who hears it.
        message: Message,
        /// Mentioned agents that are stopped in this room: they hear it once they may go on.
        held_back: Vec<IdentityId>,
    },
    /// A message that was held back from agents while they were stopped is told to them now.
    MessageReplayed {
        /// The message.
        message: Message,
        /// Who missed it.
        agents: Vec<IdentityId>,
    },
    /// Agents are told to stop, to go on or to give up their turn: each on its control channel.
    AgentsSignalled {
        /// What they are told.
        signal: Signal,
        /// Who.
        agents: Vec<Addressee>,
    },
    /// A delivery of a message changed, or the message did. Only people hear it.
    MessageUpdated {
        /// The message with at least the deliveries that changed.
        message: Message,
    },
    /// Open deliveries of these messages ended, because their recipient left: only the ledger's listeners care.
    DeliveriesEnded {
        /// Where.
        room: RoomId,
        /// Which messages.
        sequences: Vec<i64>,
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
    /// Title, status, membership or task counts of a room changed: told to the users who may read it.
    RoomUpdated {
        /// The room as it is now.
        room: Room,
        /// What else people see of it while tasks are on.
        overview: Overview,
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
    /// Somebody asks to become contacts: told to the recipient.
    ContactRequestReceived {
        /// The request.
        request: ContactRequest,
    },
    /// A request was answered, or taken back: told to both.
    ContactRequestUpdated {
        /// The request as it is now.
        request: ContactRequest,
    },
    /// Somebody has a new contact: told to it.
    ContactAdded {
        /// Whose contact.
        identity: IdentityId,
        /// The contact as it has it.
        contact: Contact,
    },
    /// Somebody has a contact no more: told to it.
    ContactRemoved {
        /// Whose contact.
        identity: IdentityId,
        /// The record that is gone.
        contact: ContactId,
    },
    /// A task came to be: told to those in the room.
    TaskCreated {
        /// The task.
        task: Task,
    },
    /// A task changed: told to those in the room.
    TaskUpdated {
        /// The task as it is now.
        task: Task,
    },
    /// A room's goal changed: told to those in the room.
    BoardUpdated {
        /// The board as it is now.
        board: Board,
    },
    /// An API key no longer opens anything: its sockets close, and caches forget it.
    KeyRevoked {
        /// Which key.
        key: KeyId,
    },
    /// An API key ends by itself: its sockets close then, and caches look again until when it counts.
    KeyExpires {
        /// Which key.
        key: KeyId,
        /// From then on it opens nothing.
        at: Timestamp,
    },
    /// The tokens that this server issued count no longer: sockets that were opened with one close, and caches forget
    /// them.
    TokensRevoked,
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

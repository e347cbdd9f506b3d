//! What the ledger looks at: all that is recorded about one message and one participant.

use bandstand_wire::ids::{IdentityKind, MessageId};
use bandstand_wire::time::Timestamp;

use super::Connection;
use crate::delivery::{AttemptState, DeliveryState};
use crate::execution::Stopped;

/// Whether a message names a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// No.
    No,
    /// It sent the message.
    Sender,
    /// Named, but not delivered to.
    Reference,
    /// Mentioned.
    Mention,
}

/// Whether somebody was in the room when a message was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// It was.
    Then,
    /// It was not.
    Not {
        /// When it joined, if that was later.
        joined_at: Option<Timestamp>,
        /// When it left, if that was before.
        left_at: Option<Timestamp>,
    },
}

/// One try, as the ledger looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFacts {
    /// From 1.
    pub number: i64,
    /// How it stands.
    pub state: AttemptState,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// When it was seen as lapsed.
    pub lapsed_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// What its agent said of a success.
    pub outcome: Outcome,
}

/// What a finished attempt left in the room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The agent said that the message is not for it.
    pub declined: bool,
    /// Why, in its words.
    pub reason: Option<String>,
    /// Whether it posted a text in the room during the attempt; `None` where that was not recorded.
    pub replied: Option<bool>,
}

/// A delivery as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFacts {
    /// Whether the message mentions the agent; else the agent merely marked it.
    pub recipient: bool,
    /// The state.
    pub state: DeliveryState,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// When it was first pushed.
    pub pushed_at: Option<Timestamp>,
    /// When it was first served.
    pub served_at: Option<Timestamp>,
    /// When it reached its present end.
    pub finished_at: Option<Timestamp>,
    /// Why it ended without being processed.
    pub reason: Option<String>,
    /// It was given up for its age.
    pub expired: bool,
    /// How many attempts there were.
    pub attempts: i64,
    /// The newest of them, oldest first.
    pub newest: Vec<AttemptFacts>,
    /// The recipient left, or was deleted, and the row does not say so yet: when and why.
    pub ending: Option<(Timestamp, &'static str)>,
}

/// Requests of an agent that were refused for being too many, without one that was taken in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The first.
    pub first_at: Timestamp,
    /// The newest.
    pub last_at: Timestamp,
    /// When it was told that it may come back.
    pub until: Timestamp,
}

/// All that is known about one message and one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// When the message was posted.
    pub posted_at: Timestamp,
    /// Person or program; `None` for somebody that the room has never known.
    pub kind: Option<IdentityKind>,
    /// Whether the message names it.
    pub named: Named,
    /// Whether it was in the room then.
    pub stay: Stay,
    /// Its delivery.
    pub delivery: Option<DeliveryFacts>,
    /// Whether it is connected.
    pub connection: Connection,
    /// When a newer connection of its last took the place of an older one.
    pub superseded_at: Option<Timestamp>,
    /// When its requests were refused for being too many.
    pub limited: Option<Limited>,
    /// A stop that holds for it in this room.
    pub stopped: Option<Stopped>,
    /// Its last sign of life in the room: a report of activity, or something that it posted.
    pub active_at: Option<Timestamp>,
    /// Another message of the room that it works on.
    pub busy_with: Option<MessageId>,
    /// A sign of life counts for so many microseconds.
    pub activity_ttl: i64,
}

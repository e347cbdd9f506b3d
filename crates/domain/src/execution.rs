//! An agent's work in one room, and the signals that stop it, let it go on, or interrupt it.

use bandstand_wire::ids::{ExecutionId, IdentityId, RoomId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::identity::Profile;
use crate::room::words;

words! {
    /// What a signal asks of an agent.
    ControlMode {
        /// Give up the turn that runs, and go on with the next message.
        Interrupt = "interrupt",
        /// Do nothing more until told to play.
        Stop = "stop",
        /// Go on, with what was missed first.
        Play = "play",
    }
}

/// An agent's work in one room: from when it joins until it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Which.
    pub id: ExecutionId,
    /// Whose.
    pub agent: IdentityId,
    /// Where.
    pub room: RoomId,
    /// When the agent joined.
    pub since: Timestamp,
    /// Set while it is stopped.
    pub stopped: Option<Stopped>,
}

/// A stop that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Since when.
    pub at: Timestamp,
    /// By whom.
    pub by: Profile,
}

/// A signal to agents, on its way to their control channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What it asks for.
    pub mode: ControlMode,
    /// Where; `None` means in every room of the agent.
    pub room: Option<RoomId>,
    /// New for each request: clients drop a signal whose id they have seen.
    pub correlation: Uuid,
}

/// An agent that a signal goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressee {
    /// Who.
    pub agent: IdentityId,
    /// The execution that is meant.
    pub execution: Option<ExecutionId>,
}

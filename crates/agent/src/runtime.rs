//! The runtime: an agent's life on the platform, from its start to an orderly stop.
//!
//! An [`Agent`] connects, reads the backlog of each room that it is in, and then works on what is pushed: one turn at a
//! time in a room, many rooms at once. What it owes the platform (claims, marks) and what it does about interruptions,
//! lost connections and its own failures is decided in one place, without I/O, and holds under any schedule of faults: no
//! message is lost, none is handled twice to completion by one process, and a room's order is kept.

mod agent;
mod briefing;
mod contacts;
mod desk;
mod history;
mod ledger;
mod lock;
mod room;
mod room_state;
mod rooms;
mod seen;
mod settings;
mod shared;
mod timing;
mod turn_run;

pub use agent::{Agent, AgentError, Stopped};
pub use contacts::{ContactEvent, ContactHandler, ContactSettings, ContactStrategy};
pub use history::readable;
pub use lock::LockError;
pub use settings::{RuntimeSettings, WorkingState};
pub use timing::IdlePauses;

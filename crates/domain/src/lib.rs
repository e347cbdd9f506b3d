//! The rules of rooms as pure functions over plain values: who may be mentioned, who sees what, who may add or remove
//! whom, how a delivery moves. No I/O, no async, no clock: the caller passes in what is needed.

pub mod clock;
pub mod content;
pub mod delivery;
pub mod event;
pub mod handle;
pub mod identity;
pub mod membership;
pub mod mention;
pub mod message;
pub mod room;

//! The rules of rooms as pure functions over plain values: who may be mentioned, who sees what, who may add or remove
//! whom, how a delivery moves. No I/O, no async, no clock: the caller passes in what is needed.

pub mod audit;
pub mod board;
pub mod bulk_deletion;
pub mod clock;
pub mod contact;
pub mod content;
pub mod dead_letter;
pub mod delivery;
pub mod event;
pub mod execution;
pub mod file;
pub mod handle;
pub mod identity;
pub mod lease;
pub mod ledger;
pub mod membership;
pub mod memory;
pub mod mention;
pub mod message;
pub mod organization;
pub mod room;
pub mod sign_in;
pub mod task;

//! The real-time side. The path of a push: the store announces a commit to the [hub](hub::Hub) → `fanout` puts each
//! room's commits in order → `audience` says who hears an event and serialises it once → each listener's `outbound`
//! queue → its `connection` writes. The path of a join: `upgrade` (who is it) → `connection` (frames) → `join` (may it
//! hear this) → `rooms` or `directory` (the subscription).
//!
//! Locks are plain mutexes, never held across an await, and taken in this order: a shard of `rooms`, then the
//! `directory`, then one socket's `outbound` queue.

mod activity;
mod audience;
mod channel;
mod closing;
mod connection;
mod directory;
mod fanout;
pub mod hub;
mod identify;
mod join;
mod outbound;
mod presence;
mod rooms;
mod sequencer;
#[cfg(test)]
mod tests;
mod throttle;
pub mod upgrade;

pub use activity::ActivityDetail;
pub use upgrade::routes;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock even if a thread panicked while it held it: what these locks guard is never left half changed for
/// longer than a statement, and a hub that refuses all work would be worse.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

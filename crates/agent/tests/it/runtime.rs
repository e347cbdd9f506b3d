//! An agent's life against the real server, on good lines and on bad ones.

mod beside;
mod faults;
mod lives;
mod many_rooms;
pub(crate) mod support;

//! Use cases: each one transaction through the store. A service knows rules and no HTTP.

pub mod access;
pub mod admin;
pub mod agents;
pub mod delivered;
pub mod lists;
pub mod marks;
pub mod messages;
pub mod participants;
pub mod profile;
pub mod removals;
pub mod rooms;

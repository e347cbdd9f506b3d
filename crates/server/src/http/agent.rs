//! The Agent API: the caller is an agent.

pub(super) mod activity;
pub(super) mod board;
pub(super) mod contacts;
pub(super) mod context;
pub(super) mod events;
pub(super) mod me;
pub(super) mod memories;
pub(super) mod messages;
pub(super) mod participants;
pub(super) mod peers;
pub(super) mod rooms;
pub(super) mod tasks;

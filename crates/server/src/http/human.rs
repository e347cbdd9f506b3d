//! The Human API: the caller is a person.

pub(super) mod agents;
pub(super) mod bulk_deletions;
pub(super) mod contacts;
pub(super) mod control;
pub(super) mod dead_letters;
pub(super) mod memories;
pub(super) mod messages;
pub(super) mod participants;
pub(super) mod peers;
pub(super) mod profile;
pub(super) mod rooms;

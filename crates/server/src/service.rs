//! Use cases: each one transaction through the store. A service knows rules and no HTTP.

pub mod access;
pub mod admin;
pub mod agents;
pub mod audit;
pub mod boards;
pub mod bulk_deletions;
pub mod contacts;
pub mod control;
pub mod delivered;
pub mod delivery_updates;
pub mod departures;
pub mod files;
pub mod ledger;
pub mod lists;
pub mod marks;
pub mod memories;
pub mod messages;
pub mod organizations;
pub mod participants;
pub mod profile;
pub mod removals;
pub mod rooms;
pub mod sightings;
mod sniff;
pub mod tasks;
pub mod users;

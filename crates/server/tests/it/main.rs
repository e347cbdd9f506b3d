//! Stories about the whole server, told through its public API: each on both engines, each reply held against the
//! contract.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

mod administration;
mod api_document;
mod api_requests;
mod authorization;
mod bulk_deletions;
mod connections;
mod contact_events;
mod contact_lists;
mod contact_races;
mod contacts;
mod context;
mod control;
mod control_races;
mod deletions;
mod delivery;
mod errors;
mod executions;
mod files;
mod golden;
mod history;
mod idempotency;
mod ledger;
mod limits;
mod memories;
mod memory_lists;
mod memory_privacy;
mod messages;
mod organizations;
mod participants;
mod people;
mod pushes;
mod rooms;
mod routing;
mod sign_in;
mod sign_in_keys;
mod sign_in_oidc;
mod sockets;
mod task_history;
mod task_pushes;
mod task_races;
mod tasks;

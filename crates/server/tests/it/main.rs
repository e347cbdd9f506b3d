//! Stories about the whole server, told through its public API: each on both engines, each reply held against the
//! contract.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

mod context;
mod delivery;
mod messages;
mod participants;

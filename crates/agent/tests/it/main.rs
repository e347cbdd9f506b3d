//! Stories about the SDK: against the real server in this process, and against a stand-in where the server must
//! misbehave.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

mod approvals;
mod client;
mod declines;
mod examples;
mod llm;
#[cfg(feature = "mcp")]
mod mcp;
mod retries;
mod runtime;
mod schemas;
mod sockets;
mod tools;
mod trace;
mod turn_vectors;

//! The SDK against the real server.

mod runtime;

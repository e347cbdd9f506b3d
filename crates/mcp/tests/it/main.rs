//! Stories of MCP clients against the real server in this process.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod http;
mod life;
mod support;

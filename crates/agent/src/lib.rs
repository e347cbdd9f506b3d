//! The SDK that agents are written with.
//!
//! - [`client`]: the typed REST client of the Agent API, and the socket.
//! - [`tools`]: what an agent can do in a room, for a model and for a program.
//! - [`turn`]: the rule by which a turn is judged.
//! - [`approval`]: tools that a person must allow.
//! - `mcp`: tools of external MCP servers (with the feature of that name).
//! - [`adapter`]: the one trait that an agent's own logic implements; with [`adapter::Llm`], a model is that logic.
//! - [`trace`]: what happened in a model's turns, on disk.
//!
//! It works against Bandstand's server and the hosted platform alike: only the address differs.

pub mod adapter;
pub mod approval;
pub mod client;
pub mod failure;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod roster;
pub mod runtime;
pub mod time;
pub mod tools;
pub mod trace;
pub mod turn;

pub use bandstand_llm as llm;
pub use bandstand_llm::registry;
pub use bandstand_wire as wire;

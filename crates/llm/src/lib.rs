//! Models and tools: the tool registry, clients of the three model APIs, and the loop between a model and its tools.
//!
//! [`run`](run::run) drives the [loop](tool_loop), which itself does no I/O, with a [`client::Model`] and a set of tools.

pub mod client;
pub mod registry;
pub mod run;
pub mod time;
pub mod tool_loop;

pub use bandstand_transcript as transcript;

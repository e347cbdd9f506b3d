//! The tool registry, and the loop between a model and its tools.

pub mod registry;
pub mod tool_loop;

//! The canonical tool registry: one authority for every tool's name, description, input schema, handler, effect on the
//! turn and approval policy.
//!
//! Platform tools, tools that the author of an agent writes and tools of external MCP servers all live in it. What a
//! provider or an MCP client is told are [views](view) of it; nothing about a tool is written down a second time.
//!
//! ```
//! use bandstand_llm::registry::{Effect, Registry, Tool, ToolError};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! /// Files a support ticket.
//! struct FileTicket {
//!     /// What it is about.
//!     title: String,
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let mut registry = Registry::<()>::default();
//! registry.add(Tool::new("file_ticket", |_: (), input: FileTicket| async move {
//!     Ok::<_, ToolError>(format!("filed: {}", input.title))
//! }).effect(Effect::Act)).unwrap();
//!
//! let outcome = registry.call((), "file_ticket", serde_json::json!({"title": "It broke"})).await.unwrap();
//! assert_eq!((outcome.text().as_str(), outcome.effect()), ("filed: It broke", Some(Effect::Act)));
//! let outcome = registry.call((), "file_ticket", serde_json::json!({})).await.unwrap();
//! assert_eq!(outcome.text(), "Invalid arguments for file_ticket: title: Field required");
//! # });
//! ```

mod arguments;
mod collection;
mod effect;
mod outcome;
mod schema;
mod tool;
pub mod view;

pub use arguments::{Fault, Faults, InvalidArguments, ToolInput};
pub use collection::{DuplicateTool, Filter, Registry};
pub use effect::{Effect, UnknownWord};
pub use outcome::{FailureKind, Stopped, ToolError, ToolOutcome};
pub use schema::{InputSchema, InvalidSchema};
pub use tool::{Approval, Handler, Spec, Tool};

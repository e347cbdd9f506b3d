//! The platform's tools for clients of the Model Context Protocol (MCP): an editor, a coding agent, a person's own model.
//!
//! [`serve_stdio`] serves one client over standard input and output, as `band-mcp` does; [`routes`] serves any number over
//! streamable HTTP. The agent's tools are those of `bandstand-agent`, with the same names, arguments and rules; a person's
//! tools are in `human`. Three tools are only here: with `band_wait_for_message` and `band_finish_message` a client that
//! has nothing but MCP lives in a room as an agent does, and `band_why` asks what became of a message.
//!
//! Whatever a tool does, it does over the server's public API with the client's own key.

mod agent;
mod catalogue;
mod choices;
mod door;
mod health;
mod http;
mod human;
mod life;
mod line;
mod results;
mod session;
mod why;

pub use choices::{Choices, Group, NoScope, Scope, Unknown};
pub use door::{Door, ServeError, serve, serve_stdio};
pub use http::{HttpOptions, routes};
pub use session::{Keys, Session, SessionOptions};

/// What the server calls itself, as `band-mcp` does: clients have it in their settings.
pub const SERVER_NAME: &str = "band-mcp-server";

//! The Agent API: a typed REST client, and the socket.
//!
//! ```no_run
//! # async fn example() -> Result<(), bandstand_agent::client::ClientError> {
//! use bandstand_agent::client::Client;
//!
//! let client = Client::new("http://localhost:4000", "band_a_…")?;
//! println!("I am {}", client.me().await?.name);
//! # Ok(())
//! # }
//! ```

mod call;
mod error;
mod human;
pub mod model;
mod options;
mod resources;
mod retry;
pub mod socket;

use std::fmt;
use std::sync::Arc;

use bandstand_wire::ids::RoomId;

pub use call::{tls_for, trusting_the_machine};
pub use error::{ClientError, MarkFate, Refusal};
pub use human::{HumanClient, HumanMemoryQuery, HumanMessageQuery, HumanPage, RequestAnswer};
pub use options::{ApiKey, ClientOptions, Idempotency};
pub use resources::{
    ContextPlace, DraftMention, EventDraft, MemoryDraft, MemoryQuery, MessageDraft, MessageQuery, RoomDraft,
    TaskChange, TaskDraft,
};

use call::Transport;

/// A connection to one server with one agent's key. Cheap to clone; all clones share the pool of connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<Transport>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base_url", &self.base_url()).finish_non_exhaustive()
    }
}

impl Client {
    /// With the usual options. See [`ClientOptions`].
    ///
    /// # Errors
    /// When the address is none, or the key cannot be sent.
    pub fn new(base_url: &str, key: impl Into<ApiKey>) -> Result<Self, ClientError> {
        ClientOptions::new(base_url, key).build()
    }

    /// The server's address, without a slash at the end.
    pub fn base_url(&self) -> &str {
        self.transport.base_url()
    }

    /// The options that it was made with.
    pub fn options(&self) -> &ClientOptions {
        self.transport.options()
    }

    fn room(room: RoomId, rest: &str) -> String {
        format!("/chats/{room}{rest}")
    }
}

//! Tools of external MCP servers, over stdio and streamable HTTP.
//!
//! [`McpServers::connect`] starts or reaches each server and asks what it has; the tools join an agent's own through
//! [`Toolbox::with_source`](crate::tools::Toolbox::with_source). A server that dies is started or reached again, with
//! growing pauses; meanwhile its tools fail, and the model is told. When a server says that its tools have changed, the
//! next turn has the new ones.
//!
//! A tool keeps the name that the server gives it (with the prefix, where one is set): what a provider cannot take in a
//! name is replaced on the wire only, and reversibly. A tool [observes](crate::registry::Effect::Observe) unless the
//! options declare another effect, whatever the server says of it.
//!
//! ```no_run
//! use bandstand_agent::adapter::Echo;
//! use bandstand_agent::client::Client;
//! use bandstand_agent::mcp::{McpServer, McpServers};
//! use bandstand_agent::registry::{Approval, Effect};
//! use bandstand_agent::runtime::Agent;
//! use bandstand_agent::tools::Toolbox;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut files = McpServer::stdio("files", "mcp-files", ["--root", "/srv/harbour"]);
//! files.prefix = "files/".to_owned();
//! let write = files.tools.entry("write".to_owned()).or_default();
//! write.effect = Some(Effect::Act);
//! write.approval = Some(Approval::Ask);
//! let mut tides = McpServer::http("tides", "https://tides.example/mcp");
//! tides.required = false;
//!
//! let servers = McpServers::connect([files, tides]).await?;
//! let toolbox = Toolbox::default().with_source(servers.clone())?;
//! let client = Client::new("http://localhost:4000", std::env::var("BANDSTAND_KEY")?)?;
//! Agent::new(client, Echo).toolbox(toolbox).run_until_signal().await?;
//! // Ends the programs that were started.
//! servers.close().await;
//! # Ok(())
//! # }
//! ```

mod keeper;
mod offer;
mod options;
mod results;
mod server;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::registry::{Spec, Tool};
use crate::tools::{AgentTools, ToolSource};

pub use options::{HttpServer, McpServer, McpTransport, Secret, StdioServer, ToolPolicy};
use server::Server;

/// Why servers could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The options make no server.
    #[error("the MCP server `{server}`: {reason}")]
    Options {
        /// Which.
        server: String,
        /// Why.
        reason: String,
    },
    /// Servers that are required cannot be used.
    #[error("{}", .0.iter().map(|(name, why)| format!("the MCP server `{name}` {why}")).collect::<Vec<_>>().join("\n"))]
    Unusable(
        /// Each with the reason. The last lines that a program wrote to its standard error are part of it.
        Vec<(String, String)>,
    ),
}

/// What is known of a server now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerReport {
    /// Its name in the options.
    pub name: String,
    /// How it is reached: the program, or the address without what may be secret.
    pub place: String,
    /// What it calls itself, with its version, once it was reached.
    pub says: Option<String>,
    /// Why there is no connection now.
    pub problem: Option<String>,
    /// The tools that it offers to the agent.
    pub tools: Vec<Spec>,
    /// Tools that are not offered although nothing in the options says so, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Names in the options that no tool of the server has.
    pub unknown: Vec<String>,
}

/// External MCP servers, connected. Cheap to clone.
///
/// [`close`](Self::close) ends them. Dropping the last clone does too, but nobody waits for it then: a program that has
/// not ended when the runtime does is killed.
#[derive(Clone)]
pub struct McpServers {
    inner: Arc<Inner>,
}

struct Inner {
    servers: Vec<Arc<Server>>,
    stop: CancellationToken,
    keepers: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.inner.servers.iter().map(|server| &server.options.name);
        f.debug_list().entries(names).finish()
    }
}

impl McpServers {
    /// Starts or reaches all of them, at the same time, and asks for their tools. Those that are not required may fail:
    /// they are tried again in the background.
    ///
    /// # Errors
    /// When the options are faulty, or a server that is required cannot be used. Nothing is left running then.
    pub async fn connect(servers: impl IntoIterator<Item = McpServer>) -> Result<Self, McpError> {
        let servers: Vec<McpServer> = servers.into_iter().collect();
        options::check(&servers)?;
        let stop = CancellationToken::new();
        let keepers = TaskTracker::new();
        let mut firsts = Vec::new();
        let mut kept = Vec::new();
        for options in servers {
            let server = Arc::new(Server::new(options));
            let (first, connected) = oneshot::channel();
            keepers.spawn(keeper::keep(Arc::clone(&server), stop.clone(), first));
            firsts.push(connected);
            kept.push(server);
        }
        keepers.close();
        let all = Self { inner: Arc::new(Inner { servers: kept, stop, keepers }) };
        let connected = join_all(firsts).await;
        let mut unusable = Vec::new();
        for (server, first) in all.inner.servers.iter().zip(connected) {
            let name = &server.options.name;
            match first {
                Ok(Ok(())) => {}
                Ok(Err(why)) if server.options.required => unusable.push((name.clone(), why)),
                Ok(Err(why)) => tracing::warn!(server = name, why, "an MCP server cannot be used yet"),
                Err(_) => unusable.push((name.clone(), "was given up".to_owned())),
            }
        }
        if unusable.is_empty() {
            return Ok(all);
        }
        all.close().await;
        Err(McpError::Unusable(unusable))
    }

    /// What is known of each now, in the order of the options.
    pub fn reports(&self) -> Vec<ServerReport> {
        self.inner.servers.iter().map(|server| server.report()).collect()
    }

    /// Ends all connections and programs: a program's input is closed, and it and what it started are told to end and
    /// killed, if it does not end by itself within 3 s each. Afterwards every call fails.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.keepers.wait().await;
    }
}

impl ToolSource for McpServers {
    fn tools(&self) -> Vec<Tool<AgentTools>> {
        self.inner.servers.iter().flat_map(|server| server.tools()).collect()
    }
}

/// A failed call waits so long for a connection that is being made again.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(2);

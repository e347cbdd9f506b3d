//! One server as its tools see it: connected or not, with the tools that it listed last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use super::offer::{self, Offer};
use super::options::McpServer;
use super::transport::{self, Listener};
use super::{RECONNECT_PATIENCE, ServerReport, results};
use crate::registry::{Tool, ToolError};
use crate::tools::AgentTools;

/// A connection; its number tells it from those before and after.
#[derive(Clone)]
struct Link {
    number: u64,
    peer: Peer<RoleClient>,
}

#[derive(Default)]
struct State {
    offer: Offer,
    says: Option<String>,
    problem: Option<String>,
    links: u64,
}

/// One server.
pub(super) struct Server {
    pub(super) options: McpServer,
    state: Mutex<State>,
    link: watch::Sender<Option<Link>>,
    changed: Arc<Notify>,
}

impl Server {
    pub(super) fn new(options: McpServer) -> Self {
        Self { options, state: Mutex::default(), link: watch::Sender::new(None), changed: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is notified when the server says that its tools have changed.
    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// A connection was made; its number.
    pub(super) fn connected(
        self: &Arc<Self>,
        service: &RunningService<RoleClient, Listener>,
        tools: Vec<rmcp::model::Tool>,
    ) -> u64 {
        self.list(tools);
        let number = {
            let mut state = self.state();
            state.problem = None;
            state.links += 1;
            let info = service.peer().peer_info().and_then(|info| info.server_info.clone());
            state.says = info.map(|info| format!("{} {}", info.name, info.version));
            state.links
        };
        self.link.send_replace(Some(Link { number, peer: service.peer().clone() }));
        number
    }

    /// The tools that the server lists now.
    pub(super) fn list(self: &Arc<Self>, tools: Vec<rmcp::model::Tool>) {
        let offer = offer::offer(self, tools);
        for (tool, why) in &offer.left_out {
            tracing::warn!(server = self.options.name, tool, why, "a tool of an MCP server is left out");
        }
        if !offer.unknown.is_empty() {
            let names = offer.unknown.join(", ");
            tracing::warn!(server = self.options.name, names, "the MCP server has no tools of these names");
        }
        tracing::debug!(server = self.options.name, tools = offer.tools.len(), "an MCP server's tools");
        self.state().offer = offer;
    }

    /// There is no connection, for this reason. What was listed last is still offered: a model that calls it is told why
    /// it does not work.
    pub(super) fn lost(&self, why: &str) {
        self.state().problem = Some(why.to_owned());
        self.link.send_replace(None);
    }

    /// A call found the connection of this number broken: no other call is made over it.
    fn broke(&self, number: u64) {
        let present = self.link.send_if_modified(|link| {
            let present = link.as_ref().is_some_and(|link| link.number == number);
            if present {
                *link = None;
            }
            present
        });
        if present {
            self.state().problem = Some("the connection was lost".to_owned());
        }
    }

    /// Resolves when the connection of this number is no longer used.
    pub(super) async fn is_broken(&self, number: u64) {
        let mut link = self.link.subscribe();
        let gone = link.wait_for(|link| link.as_ref().is_none_or(|link| link.number != number)).await.is_ok();
        if !gone {
            // The sender is `self`, so waiting cannot fail.
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn tools(&self) -> Vec<Tool<AgentTools>> {
        self.state().offer.tools.clone()
    }

    pub(super) fn report(&self) -> ServerReport {
        let state = self.state();
        ServerReport {
            name: self.options.name.clone(),
            place: self.options.place(),
            says: state.says.clone(),
            problem: state.problem.clone(),
            tools: state.offer.tools.iter().map(|tool| tool.spec().clone()).collect(),
            left_out: state.offer.left_out.clone(),
            unknown: state.offer.unknown.clone(),
        }
    }

    /// Calls a tool by the server's own name. Dropping the future tells the server that nobody waits any more.
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        let link = self.present().await?;
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match link.peer.call_tool(call).await {
            Ok(result) => Ok(results::value(result, self.options.result_chars)),
            Err(error) => {
                if matches!(error, ServiceError::TransportSend(_) | ServiceError::TransportClosed) {
                    self.broke(link.number);
                }
                Err(ToolError::failed(format!("the MCP server `{}`: {}", self.options.name, words(&error))))
            }
        }
    }

    /// The connection. One that is just being made again is waited for, a little.
    async fn present(&self) -> Result<Link, ToolError> {
        let mut link = self.link.subscribe();
        let found = tokio::time::timeout(RECONNECT_PATIENCE, link.wait_for(Option::is_some)).await;
        if let Ok(Ok(link)) = found
            && let Some(link) = link.as_ref()
        {
            return Ok(link.clone());
        }
        let why = self.state().problem.clone().unwrap_or_default();
        let name = &self.options.name;
        Err(ToolError::failed(format!("the MCP server `{name}` is not connected ({why}); it is tried again")))
    }
}

/// Why a request failed, in words for a model.
pub(super) fn words(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("{} ({})", results::shortened(&error.message), error.code.0),
        ServiceError::TransportSend(error) => transport::lost(error),
        ServiceError::TransportClosed => {
            "the connection was lost; whether the call did anything is not known".to_owned()
        }
        ServiceError::Cancelled { .. } => "the server gave the request up".to_owned(),
        ServiceError::Timeout { timeout } => format!("no answer within {} s", timeout.as_secs_f64()),
        _ => "the answer is of a kind that is not understood here".to_owned(),
    }
}

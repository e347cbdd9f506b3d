//! All tools of an agent: the platform's and its own.

use std::fmt;
use std::sync::Arc;

use bandstand_llm::registry::{DuplicateTool, Filter, Registry, Tool};

use super::source::{self, ToolConflict, ToolSource};
use super::{AgentTools, Capabilities, platform};
use crate::approval::Approvals;

/// All tools of an agent, which of them its model is offered, and whether it must ask.
///
/// The platform's tools are always in it: capabilities and filter only say what is offered.
#[derive(Clone)]
pub struct Toolbox {
    registry: Registry<AgentTools>,
    capabilities: Capabilities,
    filter: Filter,
    approvals: Approvals,
    sources: Vec<Arc<dyn ToolSource>>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("tools", &self.registry.len())
            .field("capabilities", &self.capabilities)
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

impl Default for Toolbox {
    fn default() -> Self {
        Self::new(Capabilities::none())
    }
}

impl Toolbox {
    /// The platform's tools, of which the chat tools and those of `capabilities` are offered.
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            registry: platform::registry().clone(),
            capabilities,
            filter: Filter::default(),
            approvals: Approvals::default(),
            sources: Vec::new(),
        }
    }

    /// One of the agent's own tools, or one of an external MCP server. It cannot take the name of a platform tool.
    ///
    /// # Errors
    /// [`DuplicateTool`].
    pub fn add(&mut self, tool: Tool<AgentTools>) -> Result<(), DuplicateTool> {
        if !tool.spec().declares_effect() {
            // A tool that plainly did work ends in a missing reply otherwise, and nobody sees why.
            tracing::info!(tool = tool.spec().name(), "the tool declares no effect and counts as observing");
        }
        self.registry.add(tool)
    }

    /// [`Self::add`], in a chain.
    ///
    /// # Errors
    /// [`DuplicateTool`].
    pub fn with(mut self, tool: Tool<AgentTools>) -> Result<Self, DuplicateTool> {
        self.add(tool)?;
        Ok(self)
    }

    /// Tools that may change while the agent runs. Each turn has those that there are when it begins, behind all others.
    ///
    /// # Errors
    /// [`ToolConflict`] when a tool that there is now has the name of another. One that comes later and has, is left out.
    pub fn with_source(mut self, source: impl ToolSource + 'static) -> Result<Self, ToolConflict> {
        self.sources.push(Arc::new(source));
        source::joined(&self.registry, &self.sources)?;
        Ok(self)
    }

    /// As it is now, with the tools that its sources have: what the runtime binds a turn to.
    pub fn for_turn(&self) -> Arc<Self> {
        let mut now = self.clone();
        now.registry = source::merged(&self.registry, &std::mem::take(&mut now.sources));
        Arc::new(now)
    }

    /// Whether its tools may change.
    pub(crate) fn changes(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Which tools are offered, of those that the capabilities leave. A name that no tool has does no harm and is
    /// logged. A tool that is filtered out cannot be called either.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        let unknown = filter.unknown_names(self.registry.specs());
        if !unknown.is_empty() {
            tracing::warn!(names = unknown.join(", "), "the filter of tools names tools that do not exist");
        }
        self.filter = filter;
        self
    }

    /// Other capabilities: those that the server supports, for example.
    #[must_use]
    pub fn capable_of(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Who may allow calls that must be allowed, and how long a question waits.
    #[must_use]
    pub fn approvals_by(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// The open questions about such calls, of all rooms.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Every tool.
    pub fn registry(&self) -> &Registry<AgentTools> {
        &self.registry
    }

    /// Which tools beyond the chat tools are offered.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// What narrows that.
    pub fn tool_filter(&self) -> &Filter {
        &self.filter
    }
}

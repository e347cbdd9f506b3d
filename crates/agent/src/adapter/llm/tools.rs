//! What a model may call in a room, for the tool loop.

use bandstand_llm::run::{Called, Toolset, to_output};
use bandstand_llm::tool_loop::Tools;
use bandstand_llm::transcript::{ToolCall, ToolName};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::registry::{FailureKind, Spec};
use crate::tools::{AgentTools, platform_name};

/// The tool that says that silence is the answer. It ends the turn if nothing beside it failed.
const NO_REPLY: &str = "band_no_reply";

/// The tools that are offered in one turn.
pub(super) struct RoomTools<'a> {
    tools: &'a AgentTools,
    offered: Vec<Spec>,
}

impl<'a> RoomTools<'a> {
    pub(super) fn new(tools: &'a AgentTools) -> Self {
        Self { tools, offered: tools.offered() }
    }

    /// By its own name, or by that of an MCP client.
    fn find(&self, name: &ToolName) -> Option<&Spec> {
        let by = |name: &str| self.offered.iter().find(|spec| spec.name() == name);
        by(name.as_str()).or_else(|| by(platform_name(name.as_str())?))
    }
}

impl Tools for RoomTools<'_> {
    fn names(&self) -> Vec<ToolName> {
        self.offered.iter().map(|spec| ToolName::new(spec.name())).collect()
    }

    fn has(&self, name: &ToolName) -> bool {
        self.find(name).is_some()
    }

    fn check(&self, name: &ToolName, arguments: &Map<String, Value>) -> Result<(), String> {
        let tool = self.find(name).and_then(|spec| self.tools.toolbox().registry().get(spec.name()));
        let Some(tool) = tool else { return Ok(()) };
        tool.validate(Value::Object(arguments.clone())).map(drop).map_err(|faults| {
            // The loop puts these words before the faults itself.
            let text = faults.to_string();
            let before = format!("Invalid arguments for {}: ", tool.spec().name());
            text.strip_prefix(&before).map(str::to_owned).unwrap_or(text)
        })
    }

    fn may_run_in_parallel(&self, name: &ToolName) -> bool {
        self.find(name).is_some_and(Spec::is_read_only)
    }

    fn is_terminal(&self, _name: &ToolName) -> bool {
        false
    }

    fn concludes(&self, name: &ToolName) -> bool {
        self.find(name).is_some_and(|spec| spec.name() == NO_REPLY)
    }
}

impl Toolset for RoomTools<'_> {
    fn specs(&self) -> Vec<Spec> {
        self.offered.clone()
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Called> {
        async move {
            let arguments = call.input.wire_object();
            match self.tools.execute_tool_call_structured(call.name.as_str(), arguments).await {
                Err(stopped) => Called::Stopped(stopped),
                Ok(outcome) if outcome.failure_kind() == Some(FailureKind::NotApproved) => {
                    Called::Denied(outcome.text())
                }
                Ok(outcome) => Called::Done(to_output(&outcome)),
            }
        }
        .boxed()
    }
}

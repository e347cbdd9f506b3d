//! Tools that come and go while an agent runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bandstand_llm::registry::{Registry, Spec, Tool};
use bandstand_llm::transcript::ids::wire_tool_name;

use super::{AgentTools, platform_name};

/// Tools that may change while the agent runs, such as those of external MCP servers.
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// Those that there are now. Asked at the beginning of each turn: it must not wait for anything.
    fn tools(&self) -> Vec<Tool<AgentTools>>;
}

/// Two tools of one name, or of names that are the same on the wire: which of them a model means could not be known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.says())]
pub struct ToolConflict {
    /// The tool that comes later.
    pub name: String,
    /// Its group: `mcp:<server>` for tools of MCP servers.
    pub group: String,
    /// The tool that has the name.
    pub with: String,
    /// Its group.
    pub with_group: String,
}

impl ToolConflict {
    fn says(&self) -> String {
        let Self { name, group, with, with_group } = self;
        if name == with {
            format!("the tool `{name}` ({group}) has the name of another ({with_group}): give it a prefix")
        } else {
            format!("the tool `{name}` ({group}) is the same to a model as `{with}` ({with_group}): give it a prefix")
        }
    }
}

/// The names of tools as providers get them.
struct Names<'a>(HashMap<String, &'a Spec>);

impl<'a> Names<'a> {
    /// Takes a name, unless it is taken.
    fn take(&mut self, spec: &'a Spec) -> Result<(), ToolConflict> {
        let conflict = |with: &str, with_group: &str| ToolConflict {
            name: spec.name().to_owned(),
            group: spec.group().to_owned(),
            with: with.to_owned(),
            with_group: with_group.to_owned(),
        };
        // The spelling of an MCP client means the platform's tool.
        if let Some(platform) = platform_name(spec.name()) {
            return Err(conflict(platform, "platform"));
        }
        let wire = wire_tool_name(spec.name());
        match self.0.get(&wire) {
            Some(with) => Err(conflict(with.name(), with.group())),
            None => {
                self.0.insert(wire, spec);
                Ok(())
            }
        }
    }
}

fn names(registry: &Registry<AgentTools>) -> Names<'_> {
    Names(registry.specs().map(|spec| (wire_tool_name(spec.name()), spec)).collect())
}

/// Whether the tools of all sources have names of their own.
pub(super) fn joined(registry: &Registry<AgentTools>, sources: &[Arc<dyn ToolSource>]) -> Result<(), ToolConflict> {
    let tools: Vec<Tool<AgentTools>> = sources.iter().flat_map(|source| source.tools()).collect();
    let mut names = names(registry);
    tools.iter().try_for_each(|tool| names.take(tool.spec()))
}

/// A registry with the tools of all sources behind its own. Those whose names are taken are left out.
pub(super) fn merged(registry: &Registry<AgentTools>, sources: &[Arc<dyn ToolSource>]) -> Registry<AgentTools> {
    let tools: Vec<Tool<AgentTools>> = sources.iter().flat_map(|source| source.tools()).collect();
    let mut names = names(registry);
    let mut merged = registry.clone();
    for tool in &tools {
        let added = names.take(tool.spec()).map_err(|conflict| conflict.to_string());
        if let Err(why) = added.and_then(|()| merged.add(tool.clone()).map_err(|error| error.to_string())) {
            tracing::warn!(tool = tool.spec().name(), why, "a tool is left out");
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Capabilities, Toolbox};
    use super::*;

    #[derive(Debug)]
    struct Fixed(Vec<(&'static str, &'static str)>);

    impl ToolSource for Fixed {
        fn tools(&self) -> Vec<Tool<AgentTools>> {
            let tool = |(group, name): &(&'static str, &'static str)| {
                let tool = Tool::dynamic(*name, "", json!({}), |_: AgentTools, _| async { Ok(json!(1)) });
                tool.unwrap().group(*group)
            };
            self.0.iter().map(tool).collect()
        }
    }

    #[test]
    fn names_that_a_model_could_not_tell_apart_are_refused() {
        let toolbox = || Toolbox::new(Capabilities::none());
        for (tools, expected) in [
            (vec![("mcp:a", "band_send_message")], "`band_send_message` (mcp:a)"),
            (vec![("mcp:a", "mcp__band__band_no_reply")], "the same to a model as `band_no_reply` (platform)"),
            (vec![("mcp:a", "band/send_message")], "the same to a model as `band_send_message` (chat)"),
            (vec![("mcp:a", "read"), ("mcp:b", "read")], "`read` (mcp:b) has the name of another (mcp:a)"),
            (vec![("mcp:a", "fs.read"), ("mcp:b", "fs/read")], "`fs/read` (mcp:b) is the same to a model as `fs.read`"),
        ] {
            let error = toolbox().with_source(Fixed(tools)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let good = Fixed(vec![("mcp:a", "fs.read"), ("mcp:b", "fs.write")]);
        let toolbox = toolbox().with_source(good).unwrap();
        assert!(toolbox.registry().get("fs.read").is_none());
        assert!(toolbox.for_turn().registry().get("fs.read").is_some());
        let later = merged(toolbox.registry(), &[Arc::new(Fixed(vec![("mcp:a", "x.y"), ("mcp:b", "x_y")]))]);
        assert_eq!((later.get("x.y").is_some(), later.get("x_y").is_some()), (true, false));
    }
}

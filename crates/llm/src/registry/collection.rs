//! All tools of an agent, under their names.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::{Approval, FailureKind, Spec, Stopped, Tool, ToolOutcome};

/// All tools of an agent, in the order in which they were added, which is the order in which they are advertised.
///
/// Cloning copies the list, not the tools' schemas and handlers.
#[derive(Clone, Debug)]
pub struct Registry<C> {
    tools: Vec<Tool<C>>,
    by_name: HashMap<String, usize>,
}

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self { tools: Vec::new(), by_name: HashMap::new() }
    }
}

/// A second tool of the same name: which of the two a model means could not be known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a tool named `{name}` already")]
pub struct DuplicateTool {
    /// The name.
    pub name: String,
}

impl<C: Send + 'static> Registry<C> {
    /// Adds a tool.
    ///
    /// # Errors
    /// [`DuplicateTool`]; the registry is as it was.
    pub fn add(&mut self, tool: Tool<C>) -> Result<(), DuplicateTool> {
        let name = tool.spec().name().to_owned();
        if self.by_name.contains_key(&name) {
            return Err(DuplicateTool { name });
        }
        self.by_name.insert(name, self.tools.len());
        self.tools.push(tool);
        Ok(())
    }

    /// The tool of a name.
    pub fn get(&self, name: &str) -> Option<&Tool<C>> {
        self.by_name.get(name).and_then(|at| self.tools.get(*at))
    }

    /// What is known of each tool, in order.
    pub fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.tools.iter().map(Tool::spec)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Calls a tool: looks it up, checks the arguments, runs it within its time limit. A tool that must be approved is
    /// refused here: asking needs a room, so that is up to whoever has one.
    ///
    /// # Errors
    /// [`Stopped`] when the turn must end.
    pub async fn call(&self, context: C, name: &str, arguments: Value) -> Result<ToolOutcome, Stopped> {
        let Some(tool) = self.get(name) else { return Ok(ToolOutcome::unknown(name)) };
        if tool.spec().approval() != Approval::Allow {
            return Ok(ToolOutcome::failure(FailureKind::NotApproved, format!("{name} was not approved")));
        }
        tool.call(context, arguments).await
    }
}

impl<C: Send + 'static> Tool<C> {
    /// Calls the tool, whatever its approval policy says: checks the arguments, runs it within its time limit, and
    /// tells how it ended. Dropping the future cancels the work.
    ///
    /// # Errors
    /// [`Stopped`] when the turn must end.
    pub async fn call(&self, context: C, arguments: Value) -> Result<ToolOutcome, Stopped> {
        let (name, effect) = (self.spec().name(), self.spec().effect());
        let work = match self.start(context, arguments) {
            Ok(work) => work,
            Err(faults) => return Ok(ToolOutcome::invalid(&faults)),
        };
        let result = match self.spec().time_limit() {
            None => work.await,
            Some(limit) => match tokio::time::timeout(limit, work).await {
                Ok(result) => result,
                Err(_) => {
                    let text = format!("Error executing {name}: timed out after {} s", limit.as_secs_f64());
                    return Ok(ToolOutcome::failure(FailureKind::TimedOut, text));
                }
            },
        };
        ToolOutcome::of(name, effect, result)
    }
}

/// Which tools are offered. Each part only narrows what the one before left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only tools of these groups.
    pub include_groups: Option<BTreeSet<String>>,
    /// Only these tools.
    pub include_tools: Option<BTreeSet<String>>,
    /// Not these tools.
    pub exclude_tools: BTreeSet<String>,
}

impl Filter {
    /// Whether a tool passes.
    pub fn passes(&self, spec: &Spec) -> bool {
        self.include_groups.as_ref().is_none_or(|groups| groups.contains(spec.group()))
            && self.include_tools.as_ref().is_none_or(|names| names.contains(spec.name()))
            && !self.exclude_tools.contains(spec.name())
    }

    /// Names that the filter mentions and none of these tools has. They do no harm, but are worth a warning.
    pub fn unknown_names<'a>(&'a self, specs: impl IntoIterator<Item = &'a Spec>) -> Vec<&'a str> {
        let known: BTreeSet<&str> = specs.into_iter().map(Spec::name).collect();
        let named = self.include_tools.iter().flatten().chain(&self.exclude_tools);
        named.map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

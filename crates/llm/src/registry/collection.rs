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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::{Effect, ToolError};
    use super::*;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    fn tool(name: &'static str) -> Tool<()> {
        Tool::new(name, |(), _: Nothing| async { Ok::<_, ToolError>("done") })
    }

    #[tokio::test]
    async fn a_name_is_given_once() {
        let mut registry = Registry::default();
        registry.add(tool("a")).unwrap();
        assert_eq!(
            registry.add(tool("a").effect(Effect::Act)).unwrap_err().to_string(),
            "there is a tool named `a` already"
        );
        assert_eq!(registry.call((), "a", json!({})).await.unwrap().effect(), Some(Effect::Observe));
        assert_eq!(registry.call((), "b", json!({})).await.unwrap().text(), "Unknown tool: b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_too_long_is_dropped() {
        let mut registry = Registry::default();
        let slow = Tool::new("slow", |(), _: Nothing| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok::<_, ToolError>("done")
        });
        registry.add(slow.effect(Effect::Act).time_limit(Duration::from_millis(1500))).unwrap();
        let outcome = registry.call((), "slow", json!({})).await.unwrap();
        assert_eq!(outcome.text(), "Error executing slow: timed out after 1.5 s");
        assert_eq!((outcome.failure_kind(), outcome.effect()), (Some(FailureKind::TimedOut), None));
    }

    #[tokio::test]
    async fn a_tool_that_must_be_approved_is_not_simply_called() {
        let mut registry = Registry::default();
        registry.add(tool("a").approval(Approval::Ask)).unwrap();
        registry.add(tool("b").approval(Approval::Deny)).unwrap();
        for name in ["a", "b"] {
            let outcome = registry.call((), name, json!({})).await.unwrap();
            assert_eq!(outcome.failure_kind(), Some(FailureKind::NotApproved));
        }
    }

    #[tokio::test]
    async fn a_tool_of_an_external_server_observes_and_is_held_to_its_own_schema() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let weather = Tool::dynamic("weather", "Tells the weather.", schema.clone(), |(), arguments| async move {
            Ok(json!({"asked": arguments["city"]}))
        });
        let mut registry = Registry::default();
        registry.add(weather.unwrap().group("mcp:weather")).unwrap();
        let outcome = registry.call((), "weather", json!({"city": "Rome"})).await.unwrap();
        assert_eq!((outcome.value(), outcome.effect()), (&json!({"asked": "Rome"}), Some(Effect::Observe)));
        let outcome = registry.call((), "weather", json!({"city": 7})).await.unwrap();
        assert_eq!(outcome.text(), "Invalid arguments for weather: city: Input should be a valid string");
        assert!(Tool::<()>::dynamic("x", "", json!([]), |(), _| async { Ok(json!(1)) }).is_err());
    }

    #[test]
    fn a_filter_only_narrows() {
        let chat = tool("say").group("chat");
        let own = tool("own");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let passes = |filter: &Filter| [filter.passes(chat.spec()), filter.passes(own.spec())];
        assert_eq!(passes(&Filter::default()), [true, true]);
        let groups = Filter { include_groups: Some(names(&["chat"])), ..Filter::default() };
        assert_eq!(passes(&groups), [true, false]);
        let contradiction = Filter { include_tools: Some(names(&["own"])), ..groups };
        assert_eq!(passes(&contradiction), [false, false]);
        let excluded = Filter { exclude_tools: names(&["own", "nothing"]), ..Filter::default() };
        assert_eq!(passes(&excluded), [true, false]);
        assert_eq!(excluded.unknown_names([chat.spec(), own.spec()]), ["nothing"]);
    }
}

//! The tools of a registry, for a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use bandstand_transcript::model::{Carried, ImagePart, ImageSource, TextPart};
use bandstand_transcript::{Content, ToolCall, ToolName, ToolOutput};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Map, Value};

use super::{Called, Toolset};
use crate::registry::{Approval, Registry, Spec, ToolOutcome};
use crate::tool_loop::Tools;

/// Decides about a call that must be allowed: yes, or why not in words for the model.
pub type Approve = Arc<dyn Fn(&Spec, &Value) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// All tools of a registry, each called with this context.
#[derive(Clone)]
pub struct RegisteredTools<C> {
    registry: Registry<C>,
    context: C,
    terminal: BTreeSet<String>,
    approve: Option<Approve>,
}

impl<C> std::fmt::Debug for RegisteredTools<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisteredTools").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

impl<C: Clone + Send + Sync + 'static> RegisteredTools<C> {
    /// The tools of `registry`. Those that must be allowed are denied, unless somebody [approves](Self::approved_by).
    pub fn new(registry: Registry<C>, context: C) -> Self {
        Self { registry, context, terminal: BTreeSet::new(), approve: None }
    }

    /// A successful call of this tool ends the run.
    #[must_use]
    pub fn ending_with(mut self, tool: impl Into<String>) -> Self {
        self.terminal.insert(tool.into());
        self
    }

    /// Who decides about calls that must be allowed.
    #[must_use]
    pub fn approved_by(mut self, approve: Approve) -> Self {
        self.approve = Some(approve);
        self
    }
}

impl<C: Clone + Send + Sync + 'static> Tools for RegisteredTools<C> {
    fn names(&self) -> Vec<ToolName> {
        self.specs().iter().map(|spec| ToolName::new(spec.name())).collect()
    }

    fn has(&self, name: &ToolName) -> bool {
        self.registry.get(name.as_str()).is_some_and(|tool| tool.spec().approval() != Approval::Deny)
    }

    fn check(&self, name: &ToolName, arguments: &Map<String, Value>) -> Result<(), String> {
        let Some(tool) = self.registry.get(name.as_str()) else { return Ok(()) };
        match tool.validate(Value::Object(arguments.clone())) {
            Ok(_) => Ok(()),
            Err(faults) => Err(faults_alone(&faults.to_string(), name)),
        }
    }

    fn may_run_in_parallel(&self, name: &ToolName) -> bool {
        self.registry.get(name.as_str()).is_some_and(|tool| tool.spec().is_read_only())
    }

    fn is_terminal(&self, name: &ToolName) -> bool {
        self.terminal.contains(name.as_str())
    }
}

impl<C: Clone + Send + Sync + 'static> Toolset for RegisteredTools<C> {
    fn specs(&self) -> Vec<Spec> {
        self.registry.specs().filter(|spec| spec.approval() != Approval::Deny).cloned().collect()
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Called> {
        async move {
            let Some(tool) = self.registry.get(call.name.as_str()) else {
                return Called::Done(to_output(&ToolOutcome::unknown(call.name.as_str())));
            };
            let arguments = call.input.wire_object();
            if tool.spec().approval() != Approval::Allow {
                let decided = match &self.approve {
                    Some(approve) if tool.spec().approval() == Approval::Ask => approve(tool.spec(), &arguments).await,
                    _ => Err(format!("{} was not approved", call.name)),
                };
                if let Err(reason) = decided {
                    return Called::Denied(reason);
                }
            }
            match tool.call(self.context.clone(), arguments).await {
                Ok(outcome) => Called::Done(to_output(&outcome)),
                Err(stopped) => Called::Stopped(stopped),
            }
        }
        .boxed()
    }
}

/// The faults of arguments without the words that the loop puts before them.
fn faults_alone(text: &str, name: &ToolName) -> String {
    let before = format!("Invalid arguments for {name}: ");
    text.strip_prefix(&before).unwrap_or(text).to_owned()
}

/// What a model is told of an outcome: pictures in the form of MCP become images, everything else is text.
pub fn to_output(outcome: &ToolOutcome) -> ToolOutput {
    let blocks = outcome.value().get("content").and_then(Value::as_array);
    let read = |blocks: &Vec<Value>| blocks.iter().map(content).collect::<Option<Vec<Content>>>();
    let mut output = match blocks.and_then(read) {
        Some(content) if !content.is_empty() => ToolOutput { content, is_error: false },
        _ => ToolOutput::text(outcome.text()),
    };
    output.is_error = !outcome.ok();
    output
}

fn content(block: &Value) -> Option<Content> {
    let text = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
    match block.get("type").and_then(Value::as_str)? {
        "text" => text("text").map(|text| Content::Text(TextPart::new(text))),
        "image" => {
            let source = ImageSource::Base64 { media_type: text("mimeType")?, data: text("data")? };
            Some(Content::Image(ImagePart { source, carried: Carried::default() }))
        }
        _ => None,
    }
}

//! Carries out what a model calls.

use bandstand_llm::registry::{Approval, FailureKind, Stopped, ToolOutcome};
use serde_json::Value;
use tracing::Instrument;

use super::{AgentTools, platform_name};
use crate::approval::Decision;

impl AgentTools {
    /// Carries out a call and tells how it ended: looks the tool up, checks the arguments, runs it, and records its effect
    /// if it succeeded. A name in the spelling of an MCP client counts as the platform tool that it means.
    ///
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    /// [`Stopped`] when the turn must end: a failure of the tool is an outcome.
    pub async fn execute_tool_call_structured(&self, name: &str, arguments: Value) -> Result<ToolOutcome, Stopped> {
        let span = tracing::info_span!(
            "tool",
            tool = name,
            room.id = %self.room(),
            message.id = self.message().map(tracing::field::display),
            ok = tracing::field::Empty,
            effect = tracing::field::Empty,
        );
        let outcome = self.execute(name, arguments).instrument(span.clone()).await?;
        span.record("ok", outcome.ok());
        if let Some(effect) = outcome.effect() {
            span.record("effect", effect.as_str());
            // The methods behind the platform's tools record by themselves: programs call them directly.
            if platform_name(name).is_none() {
                self.turn().record(effect);
            }
        }
        Ok(outcome)
    }

    /// [`Self::execute_tool_call_structured`], of which only the value is kept: the result, or the failure's text.
    ///
    /// # Errors
    /// [`Stopped`] when the turn must end.
    pub async fn execute_tool_call(&self, name: &str, arguments: Value) -> Result<Value, Stopped> {
        Ok(self.execute_tool_call_structured(name, arguments).await?.into_value())
    }

    async fn execute(&self, name: &str, arguments: Value) -> Result<ToolOutcome, Stopped> {
        let toolbox = self.toolbox();
        let found = toolbox.registry().get(name).or_else(|| toolbox.registry().get(platform_name(name)?));
        let Some(tool) = found.filter(|tool| toolbox.tool_filter().passes(tool.spec())) else {
            return Ok(ToolOutcome::unknown(name));
        };
        match tool.spec().approval() {
            Approval::Allow => tool.call(self.clone(), arguments).await,
            Approval::Deny => Ok(not_approved(tool.spec().name(), "its policy denies it")),
            Approval::Ask => {
                // Nobody is asked about a call that cannot be made.
                let arguments = match tool.validate(arguments) {
                    Ok(arguments) => arguments,
                    Err(faults) => return Ok(ToolOutcome::invalid(&faults)),
                };
                let name = tool.spec().name();
                match self.approvals().ask(self, name, &arguments).await {
                    Decision::Approved => tool.call(self.clone(), arguments).await,
                    Decision::Declined => Ok(not_approved(name, "a person declined it")),
                    Decision::TimedOut => Ok(not_approved(name, "nobody approved it in time")),
                    Decision::NotAsked(why) => Ok(not_approved(name, &why)),
                }
            }
        }
    }
}

fn not_approved(tool: &str, why: &str) -> ToolOutcome {
    ToolOutcome::failure(FailureKind::NotApproved, format!("{tool} was not called: {why}."))
}

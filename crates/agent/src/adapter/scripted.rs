//! Does what a script says: for tests and demonstrations.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Adapter, TurnError, TurnInput};
use crate::failure::AgentFailure;
use crate::tools::Capabilities;

/// One thing that a scripted turn does. In JSON it is `{"reply": "Hello"}`, `{"call": {"tool": "…", "arguments": {}}}`,
/// `"decline"` and so on; a wait is in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers the sender with this text.
    Reply(String),
    /// Posts a thought.
    Think(String),
    /// Posts an event of any kind.
    Event {
        /// `thought`, `tool_call`, `tool_result`, …
        message_type: String,
        /// Its content.
        content: String,
    },
    /// Calls a tool, as a model would. Its result is not looked at.
    Call {
        /// The tool.
        tool: String,
        /// What it is given.
        #[serde(default)]
        arguments: Value,
    },
    /// Declines, as `band_no_reply` does.
    Decline,
    /// Ends the turn as the adapter's own.
    Settle,
    /// Waits.
    Wait(#[serde(deserialize_with = "seconds")] Duration),
    /// Reports a failure to the room, and goes on.
    Report(String),
    /// Fails.
    Fail(String),
    /// Does not accept the message.
    Refuse(String),
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

impl Step {
    /// A call of a tool.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments }
    }
}

/// Plays one script after the other, a script for each turn; when none is left, the last one again.
pub struct Scripted {
    scripts: Mutex<VecDeque<Vec<Step>>>,
    capabilities: Capabilities,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

impl Scripted {
    /// One script for every turn.
    pub fn always(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::turns([steps.into_iter().collect::<Vec<_>>()])
    }

    /// A script for each turn.
    pub fn turns(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self { scripts: Mutex::new(scripts.into_iter().collect()), capabilities: Capabilities::all() }
    }

    /// With these tools beyond the chat tools. All of them otherwise.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    fn next(&self) -> Vec<Step> {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if scripts.len() > 1 { scripts.pop_front() } else { scripts.front().cloned() }.unwrap_or_default()
    }
}

#[async_trait]
impl Adapter for Scripted {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let tools = &input.tools;
        for step in self.next() {
            match step {
                Step::Reply(text) => {
                    let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
                    tools.send_message(&text, &[sender.as_str()]).await?;
                }
                Step::Think(text) => {
                    tools.send_event(crate::client::EventDraft::thought(text)).await?;
                }
                Step::Event { message_type, content } => {
                    tools.send_event(crate::client::EventDraft::new(message_type, content)).await?;
                }
                Step::Call { tool, arguments } => {
                    tools.execute_tool_call_structured(&tool, arguments).await?;
                }
                Step::Decline => {
                    tools.no_reply(None);
                }
                Step::Settle => tools.turn().settle(),
                Step::Wait(time) => tools.client().options().clock.sleep(time).await,
                Step::Report(text) => {
                    tools.send_failure(&AgentFailure::new("scripted", text)).await;
                }
                Step::Fail(text) => return Err(TurnError::failed(text)),
                Step::Refuse(text) => return Err(TurnError::NotAccepted(text)),
            }
        }
        Ok(())
    }
}

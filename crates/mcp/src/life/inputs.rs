//! The two tools of an agent that lives by MCP alone. Their documentation is what models read.

use std::sync::LazyLock;

use bandstand_agent::registry::{Effect, Faults, Tool, ToolInput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

fn usual() -> u64 {
    30
}

/// Waits for the next message to you, oldest first, and takes it: you are then seen to work on it. Answer with
/// band_send_message, with the message's chat_id and its sender_id as a mention; then call this again, which settles the
/// message as processed, or settle it with band_finish_message. `message` is null when none came in time: just call it
/// again. A message that is never settled is given to you again later, with a higher `attempt`; look then whether you have
/// answered it already.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// Longest wait in seconds.
    #[serde(default = "usual")]
    #[schemars(range(min = 0, max = 50))]
    pub(crate) timeout_s: u64,
    /// The id of the last message that you were given. With it, an answer that got lost on its way is given again
    /// instead of counting as done.
    pub(crate) handled: Option<String>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Processed,
    Declined,
    Failed,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Declined => "declined",
            Self::Failed => "failed",
        }
    }
}

/// Settles the message that band_wait_for_message gave you, without waiting for the next one. `processed`: done with it.
/// `declined`: it was not for you; the sender sees that, and your reason. `failed`: you could not do it; people see why.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Finish {
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// Why, in a few words; needed for `failed`, and of use for `declined`.
    pub(crate) reason: Option<String>,
    /// The message's id, to be sure that you mean the same.
    pub(crate) message_id: Option<String>,
}

impl ToolInput for Finish {
    fn check(&self, faults: &mut Faults) {
        if self.outcome == Outcome::Failed && self.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
            faults.at("reason", "is needed: people read why it failed");
        }
    }
}

/// Carried out by the session: only what it takes is said here.
pub(crate) fn wait_tool() -> &'static Tool<()> {
    static TOOL: LazyLock<Tool<()>> = LazyLock::new(|| {
        let tool = Tool::new("band_wait_for_message", |(), _: Wait| async move { Ok(Value::Null) });
        tool.group("chat").effect(Effect::Observe)
    });
    &TOOL
}

/// Carried out by the session: only what it takes is said here.
pub(crate) fn finish_tool() -> &'static Tool<()> {
    static TOOL: LazyLock<Tool<()>> = LazyLock::new(|| {
        let tool = Tool::new("band_finish_message", |(), _: Finish| async move { Ok(Value::Null) });
        tool.checked::<Finish>().group("chat").effect(Effect::Act)
    });
    &TOOL
}

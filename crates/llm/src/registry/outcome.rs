//! How a call of a tool ended.

use serde_json::Value;

use super::{Effect, InvalidArguments};

/// Why a handler did not do what it was asked. The split is by who has to know: the first two are told to the model,
/// which may try something else; the last ends the turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// It did not work. The model reads `Error executing <tool>: <text>`, so the text must hold no secret.
    #[error("{0}")]
    Failed(String),
    /// The request was understood and refused, with a text that is complete as it stands.
    #[error("{0}")]
    Refused(String),
    /// The turn must end: nothing more may be done in it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl ToolError {
    /// It did not work, for this reason.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }

    /// It was refused, with this text.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

/// The turn must end at once, without a failure: the room's execution was stopped, or the turn was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Stopped {
    /// Why, for logs.
    pub reason: String,
}

/// Which kind of failure a call ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no tool of that name, or it is not offered here.
    UnknownTool,
    /// The arguments do not fit the tool's input.
    InvalidArguments,
    /// The handler failed.
    Failed,
    /// The handler refused.
    Refused,
    /// The handler returned a value that says of itself that it is a failure: `{"ok": false}` or `Error: …`.
    Reported,
    /// It took longer than the tool's time limit.
    TimedOut,
    /// The approval policy says no, or nobody approved in time.
    NotApproved,
}

/// How a call ended: what the model is given, whether it worked, and what it did to the turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    value: Value,
    failure: Option<FailureKind>,
    effect: Option<Effect>,
}

impl ToolOutcome {
    /// It worked.
    pub fn success(value: Value, effect: Effect) -> Self {
        Self { value, failure: None, effect: Some(effect) }
    }

    /// It did not work; the model reads this text.
    pub fn failure(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { value: Value::String(text.into()), failure: Some(kind), effect: None }
    }

    /// There is no such tool.
    pub fn unknown(name: &str) -> Self {
        Self::failure(FailureKind::UnknownTool, format!("Unknown tool: {name}"))
    }

    /// The arguments do not fit.
    pub fn invalid(faults: &InvalidArguments) -> Self {
        Self::failure(FailureKind::InvalidArguments, faults.to_string())
    }

    /// What a handler gave, of a tool with this effect.
    ///
    /// A value may say of itself that it is a failure: an object whose `ok` is exactly `false`, or a text that starts,
    /// in any case, with `error:` or `error executing `. It then counts as one, records nothing, and is given to the
    /// model as it is. (`{"ok": 0}` and `{"ok": null}` are no failures.)
    ///
    /// # Errors
    /// [`Stopped`] when the turn must end.
    pub fn of(tool: &str, effect: Effect, result: Result<Value, ToolError>) -> Result<Self, Stopped> {
        Ok(match result {
            Ok(value) if says_failure(&value) => Self { value, failure: Some(FailureKind::Reported), effect: None },
            Ok(value) => Self::success(value, effect),
            Err(ToolError::Failed(text)) => {
                Self::failure(FailureKind::Failed, format!("Error executing {tool}: {text}"))
            }
            Err(ToolError::Refused(text)) => Self::failure(FailureKind::Refused, text),
            Err(ToolError::Stopped(stopped)) => return Err(stopped),
        })
    }

    /// What the model is given: the result, or the text of the failure.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The same, taken out.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// Whether it worked. The only thing to branch on: texts have no stable form.
    pub fn ok(&self) -> bool {
        self.failure.is_none()
    }

    /// Which kind of failure it was.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        self.failure
    }

    /// The failure's text.
    pub fn error_message(&self) -> Option<String> {
        self.failure.map(|_| self.text())
    }

    /// What the call did to the turn: nothing unless it worked.
    pub fn effect(&self) -> Option<Effect> {
        self.effect
    }

    /// The value as text: a string as it is, anything else as JSON.
    pub fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

fn says_failure(value: &Value) -> bool {
    let starts =
        |text: &str, prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    match value {
        Value::Object(map) => map.get("ok") == Some(&Value::Bool(false)),
        Value::String(text) => starts(text, "error:") || starts(text, "error executing "),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(value: Value) -> ToolOutcome {
        ToolOutcome::of("t", Effect::Act, Ok(value)).unwrap()
    }

    #[test]
    fn a_value_may_say_that_it_is_a_failure() {
        for value in [json!({"ok": false}), json!("Error: x"), json!("ERROR: x"), json!("error executing foo")] {
            assert_eq!(outcome(value.clone()).failure_kind(), Some(FailureKind::Reported), "{value}");
        }
        for value in
            [json!({"ok": 0}), json!({"ok": null}), json!([{"ok": false}]), json!(" error: x"), json!("Error x")]
        {
            assert_eq!(outcome(value.clone()).effect(), Some(Effect::Act), "{value}");
        }
        // Cutting a text inside a character must not panic.
        assert!(outcome(json!("erroré")).ok());
    }

    #[test]
    fn failures_carry_the_texts_of_the_contract() {
        let failed = ToolOutcome::of("t", Effect::Act, Err(ToolError::failed("no"))).unwrap();
        assert_eq!(failed.error_message().as_deref(), Some("Error executing t: no"));
        let refused = ToolOutcome::of("t", Effect::Act, Err(ToolError::refused("no"))).unwrap();
        assert_eq!((refused.error_message().as_deref(), refused.effect()), (Some("no"), None));
        let stopped = Stopped { reason: "stopped".into() };
        assert_eq!(ToolOutcome::of("t", Effect::Act, Err(stopped.clone().into())), Err(stopped));
    }
}

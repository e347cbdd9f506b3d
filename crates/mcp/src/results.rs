//! What a tool's outcome looks like to an MCP client: one block, and whether it worked.

use bandstand_agent::registry::{Stopped, ToolOutcome};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// A call that ended, or a turn that was stopped.
pub(crate) fn of(outcome: Result<ToolOutcome, Stopped>) -> CallToolResult {
    match outcome {
        Ok(outcome) if outcome.ok() => success(&outcome),
        Ok(outcome) => failure(outcome.text()),
        Err(stopped) => failure(stopped.to_string()),
    }
}

/// It did not work, for this reason, which the model reads.
pub(crate) fn failure(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// A text as it is, anything else as JSON; a picture as a picture.
fn success(outcome: &ToolOutcome) -> CallToolResult {
    let blocks = images(outcome.value()).unwrap_or_else(|| vec![ContentBlock::text(outcome.text())]);
    CallToolResult::success(blocks)
}

/// `{"content": [{"type": "image", "data", "mimeType"}]}`, which is what reading a picture gives.
fn images(value: &Value) -> Option<Vec<ContentBlock>> {
    let content = value.as_object().filter(|object| object.len() == 1)?.get("content")?.as_array()?;
    let image = |block: &Value| {
        let image = block["type"] == "image";
        let block = ContentBlock::image(block["data"].as_str()?, block["mimeType"].as_str()?);
        image.then_some(block)
    };
    content.iter().map(image).collect::<Option<Vec<_>>>().filter(|blocks| !blocks.is_empty())
}

#[cfg(test)]
mod tests {
    use bandstand_agent::registry::{Effect, FailureKind};
    use serde_json::json;

    use super::*;

    fn written(value: Value) -> Value {
        serde_json::to_value(of(Ok(ToolOutcome::success(value, Effect::Observe)))).unwrap()
    }

    #[test]
    fn a_text_is_itself_and_everything_else_is_json() {
        assert_eq!(written(json!("a room"))["content"], json!([{"type": "text", "text": "a room"}]));
        assert_eq!(written(json!({"b": 1, "a": [2]}))["content"][0]["text"], r#"{"b":1,"a":[2]}"#);
        assert_eq!(written(json!({"content": []}))["content"][0]["type"], "text");
    }

    #[test]
    fn a_picture_is_a_picture() {
        let value = json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]});
        assert_eq!(written(value)["content"], json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]));
    }

    #[test]
    fn a_failure_says_that_it_is_one() {
        let outcome = of(Ok(ToolOutcome::failure(FailureKind::Failed, "Error executing t: no")));
        let written = serde_json::to_value(outcome).unwrap();
        assert_eq!(
            (&written["isError"], &written["content"][0]["text"]),
            (&json!(true), &json!("Error executing t: no"))
        );
    }
}

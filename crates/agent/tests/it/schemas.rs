//! What providers are told of every platform tool, as a snapshot, and compared with what the Python SDK tells them.

use bandstand_agent::tools::{AgentTools, Binding, Capabilities};
use serde_json::Value;

use crate::support::client;
use crate::support::stand_in::ROOM;

fn tools() -> AgentTools {
    AgentTools::new(client("http://127.0.0.1:1", "k"), ROOM.parse().unwrap(), Binding::default())
}

#[tokio::test]
async fn openai() {
    insta::assert_json_snapshot!(tools().openai_tool_schemas(Some(&Capabilities::all())));
}

#[tokio::test]
async fn anthropic() {
    insta::assert_json_snapshot!(tools().anthropic_tool_schemas(Some(&Capabilities::all())));
}

/// `compat/sdk/test_schemas.py` holds the file against the real SDK; here our schemas are held against the file.
///
/// Intended differences: all descriptions, which are our own words.
#[tokio::test]
async fn the_same_as_those_of_the_python_sdk() {
    let theirs: Value = serde_json::from_str(include_str!("../../../../compat/sdk/tool_schemas.json")).unwrap();
    let ours: Vec<Value> = tools().openai_tool_schemas(Some(&Capabilities::all())).iter().map(undescribed).collect();
    let theirs: Vec<Value> = theirs.as_array().unwrap().iter().map(undescribed).collect();
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}", theirs["function"]["name"]);
    }
}

/// A schema without what describes it. No tool has an argument of that name.
fn undescribed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let rest = map.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            Value::Object(rest.map(|(name, value)| (name.clone(), undescribed(value))).collect())
        }
        Value::Array(items) => items.iter().map(undescribed).collect(),
        other => other.clone(),
    }
}

//! Every vector of the turn rule: the ledger alone, and whole turns with the real tools against a stand-in.

use bandstand_agent::client::EventDraft;
use bandstand_agent::failure::AgentFailure;
use bandstand_agent::registry::{Effect, Tool, ToolError};
use bandstand_agent::tools::{AgentTools, Binding, Toolbox};
use bandstand_agent::turn::{Conclusion, Ledger, RunEnd, Turn, judges};
use serde_json::{Value, json};

use crate::support::client;
use crate::support::stand_in::{AGENT, Fault, ROOM, StandIn, error};

fn vectors(level: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../turn-vectors.json")).unwrap();
    let all = all["vectors"].as_array().unwrap();
    assert_eq!(all.len(), 226);
    all.iter().filter(|vector| vector["level"] == level).cloned().collect()
}

#[test]
fn every_sequence_of_the_ledger() {
    let vectors = vectors("ledger");
    assert_eq!(vectors.len(), 134);
    for vector in vectors {
        let mut ledger = Ledger::default();
        for operation in vector["input"].as_array().unwrap() {
            match operation.as_str().unwrap() {
                "settle" => ledger.settle(),
                "failure" => ledger.note_reported(),
                effect => ledger.record(effect.parse::<Effect>().unwrap()),
            }
        }
        let found = json!({
            "replied": ledger.replied(),
            "complete": ledger.complete(),
            "verdict": ledger.verdict().as_str(),
        });
        assert_eq!(found, vector["expect"], "{}", vector["id"]);
    }
}

#[tokio::test]
async fn every_turn() {
    let vectors = vectors("turn");
    assert_eq!(vectors.len(), 92);
    for vector in vectors {
        play(&vector).await;
    }
}

/// Arguments with which a tool succeeds.
fn arguments(tool: &str) -> Value {
    match tool {
        "band_send_message" => json!({"content": "hi", "mentions": ["@ann"]}),
        "band_send_event" => json!({"content": "hm", "message_type": "thought"}),
        "band_add_participant" => json!({"identifier": "bob"}),
        "band_remove_participant" => json!({"identifier": "ann"}),
        "band_add_contact" | "band_remove_contact" => json!({"handle": "@bob"}),
        "band_respond_contact_request" => json!({"action": "approve", "handle": "bob"}),
        "band_store_memory" => json!({"content": "c", "thought": "t", "system": "working", "type": "semantic",
            "segment": "user", "scope": "agent"}),
        "band_get_memory" | "band_supersede_memory" | "band_archive_memory" => json!({"memory_id": "m1"}),
        "band_read_room_file" => json!({"file_id": "f1"}),
        "band_send_room_file" => json!({"content": "x", "filename": "a.txt", "mentions": ["ann"]}),
        "band_create_task" => json!({"subject": "s"}),
        "band_get_task" | "band_get_task_history" => json!({"id": "#1"}),
        "band_update_task" => json!({"id": "1", "comment": "x"}),
        "band_set_board" => json!({"goal_title": "g"}),
        _ => json!({}),
    }
}

/// How the run ended.
#[derive(Debug, PartialEq)]
enum Raised {
    Nothing,
    Error(&'static str),
    NotAccepted,
}

async fn play(vector: &Value) {
    let id = vector["id"].as_str().unwrap();
    let (config, input) = (&vector["config"], vector["input"].as_array().unwrap());
    let platform = StandIn::start(None).await;
    let mut toolbox = Toolbox::default();
    for operation in input.iter().filter(|operation| operation["op"] == "custom") {
        toolbox.add(custom(operation)).unwrap();
    }
    let binding = Binding {
        agent: Some(AGENT.parse().unwrap()),
        turn: Turn::new(config["report_turn_failures_to_room"] == true),
        toolbox: toolbox.into(),
        ..Binding::default()
    };
    let tools = AgentTools::new(client(&platform.url(), "key"), ROOM.parse().unwrap(), binding);
    tools.turn().begin(judges(config["judges_turns"] == true, config["sender"]["id"] == "contact-events"));

    let mut raised = Raised::Nothing;
    let mut conclusion = None;
    let refused = Fault::Body(422, error("validation_error", "no"));
    for operation in input {
        match operation["op"].as_str().unwrap() {
            "tool" => call(&tools, &platform, operation, &mut raised).await,
            "custom" => {
                let arguments = if operation["invalid_arguments"] == true { json!({}) } else { json!({"x": 1}) };
                tools.execute_tool_call_structured("custom", arguments).await.unwrap();
            }
            "send_notice" => assert!(tools.send_notice("wait", &["ann"]).await.unwrap().is_some()),
            "send_failure" => {
                let text = |name: &str| operation[name].as_str().map(str::to_owned);
                let mut failure = AgentFailure::new(text("provider").unwrap(), text("message").unwrap());
                failure.code = text("code");
                if operation["post"] == "refused" {
                    platform.break_all("/events", refused.clone());
                }
                tools.send_failure(&failure).await;
            }
            "settle" => tools.turn().settle(),
            "detach" => {
                tools.turn().detach();
                conclusion = Some(tools.conclude(RunEnd::Returned).await);
            }
            "detached_end" => conclusion = Some(tools.conclude_detached().await),
            "raise" if operation["error"] == "InputNotAccepted" => raised = Raised::NotAccepted,
            "raise" => raised = Raised::Error("RuntimeError"),
            "relay" => {
                let posted = tools.relay(operation["text"].as_str(), &["ann"]).await.unwrap();
                assert_eq!(json!(posted), operation["expect_posted"], "{id}");
            }
            "events_refused" => platform.break_all("/events", refused.clone()),
            other => panic!("{id}: {other}"),
        }
    }
    let conclusion = match (conclusion, &raised) {
        (Some(conclusion), _) => conclusion,
        (None, Raised::Nothing) => tools.conclude(RunEnd::Returned).await,
        (None, Raised::NotAccepted) => tools.conclude(RunEnd::NotAccepted).await,
        (None, Raised::Error(_)) => tools.conclude(RunEnd::Failed).await,
    };
    let mut expected = vector["expect"].clone();
    if let Some(diverge) = vector["diverge"].as_object() {
        for (name, value) in diverge {
            expected[name] = value.clone();
        }
    }
    let detached = input.iter().any(|operation| operation["op"] == "detach");
    let raises = match (conclusion, &raised) {
        (Conclusion::MissingReply, _) if !detached => json!("already_reported"),
        (_, Raised::Error(name)) => json!(name),
        (_, Raised::NotAccepted) => json!("InputNotAccepted"),
        _ => Value::Null,
    };
    let verdict = match conclusion {
        Conclusion::NotJudged | Conclusion::Deferred => "not_judged",
        Conclusion::Complete => "complete",
        Conclusion::Detached => "deferred",
        Conclusion::MissingReply => "missing_reply",
        Conclusion::Failed => "error",
    };
    let events = posted_events(&platform, &expected["events_posted"]);
    let found = json!({
        "replied": tools.turn().replied(),
        "verdict": verdict,
        "messages_posted": platform.count("/messages"),
        "events_posted": events,
        "raises": raises,
        "complete_after": tools.turn().complete(),
    });
    assert_eq!(found, expected, "{id}");
}

/// The events that reached the room, with the keys that the vector speaks of.
fn posted_events(platform: &StandIn, expected: &Value) -> Vec<Value> {
    let refused = platform.asked().iter().any(|asked| asked.path.ends_with("/events")) && expected == &json!([]);
    if refused {
        return Vec::new();
    }
    let events = platform.asked().into_iter().filter(|asked| asked.path.ends_with("/events"));
    let wanted = |at: usize| expected[at].as_object().cloned().unwrap_or_default();
    let events = events.enumerate().map(|(at, asked)| {
        let event = asked.body["event"].as_object().cloned().unwrap_or_default();
        let known = wanted(at);
        Value::Object(event.into_iter().filter(|(name, _)| known.contains_key(name)).collect())
    });
    events.collect()
}

async fn call(tools: &AgentTools, platform: &StandIn, operation: &Value, raised: &mut Raised) {
    let tool = operation["tool"].as_str().unwrap();
    let arguments = arguments(tool);
    if operation["raises"] == "BandToolError" {
        // An adapter that calls the method and lets its error escape.
        let error = tools.send_message("hi", &[] as &[&str]).await.unwrap_err();
        assert!(matches!(error, ToolError::Refused(_)), "{error:?}");
        *raised = Raised::Error("BandToolError");
        return;
    }
    if operation["kind"] == "unconfirmed_recipient" {
        let receipt = json!({"data": {"id": "not an id", "recipients": [{"id": null, "name": "n"}]}});
        platform.fault("/messages", Fault::Body(201, receipt));
        assert!(!tools.execute_tool_call_structured(tool, arguments).await.unwrap().ok());
        return;
    }
    if operation["outcome"] == "ok_false" {
        let outcome = tools.execute_tool_call_structured(tool, json!({"content": "hi", "mentions": ["x"]})).await;
        let text = outcome.unwrap().text();
        assert_eq!(text, "Error executing band_send_message: Unknown participant 'x'. Available handles: ['@ann']");
        return;
    }
    if tool == "band_send_message" && operation.get("result") == Some(&Value::Null) {
        assert!(tools.send_message(" \u{200b}", &["ann"]).await.unwrap().is_none());
        return;
    }
    let arguments = match operation["result"]["status"].as_str() {
        Some("already_in_room") => json!({"identifier": "ann"}),
        _ => arguments,
    };
    let ok = operation["ok"] == true;
    if !ok {
        for path in ["/messages", "/participants", "/chats", "/add", "/remove", "/respond", "/memories", "/supersede"] {
            platform.break_all(path, Fault::Body(422, error("validation_error", "no")));
        }
        for path in ["/archive", "/tasks", "/tasks/1", "/board"] {
            platform.break_all(path, Fault::Body(422, error("validation_error", "no")));
        }
    }
    let outcome = tools.execute_tool_call_structured(tool, arguments).await.unwrap();
    assert_eq!(outcome.ok(), ok, "{tool}: {}", outcome.text());
    platform.mend();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CustomInput {
    #[serde(rename = "x")]
    _x: i64,
}

fn custom(operation: &Value) -> Tool<AgentTools> {
    let (result, raises) = (operation["result"].clone(), operation["raise"].is_string());
    let tool = Tool::new("custom", move |_: AgentTools, _: CustomInput| {
        let result = if raises { Err(ToolError::failed("boom")) } else { Ok(result.clone()) };
        async move { result }
    });
    match operation["effect"].as_str() {
        Some(effect) => tool.effect(effect.parse().unwrap()),
        // The older mark of a handler that did real work.
        None if operation["band_terminal"] == true => tool.effect(Effect::Act),
        None => tool,
    }
}

#[tokio::test]
async fn an_event_of_any_type_only_observes() {
    let platform = StandIn::start(None).await;
    let tools = AgentTools::new(client(&platform.url(), "key"), ROOM.parse().unwrap(), Binding::default());
    let event = EventDraft::new("tool_call", "{}");
    assert!(tools.send_event(event).await.unwrap().is_some());
    assert!(!tools.turn().complete());
}

//! Whole runs: model, tools, history.

use std::sync::Arc;
use std::time::Duration;

use bandstand_llm::client::ModelClient;
use bandstand_llm::registry::{Approval, Registry, Tool, ToolError};
use bandstand_llm::run::{Finished, RegisteredTools, RunOptions, Unobserved, run};
use bandstand_llm::tool_loop::{OnDenied, Outcome, Policy};
use bandstand_llm::transcript::{Format, Message, Role, Transcript};
use bandstand_testkit::model::{Answer, ModelServer, calls, says};
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::Barrier;

use super::{client, options, ways};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Port {
    port: String,
}

fn tools() -> Registry<Arc<Barrier>> {
    let mut registry = Registry::default();
    let tide =
        Tool::new("tide", |_: Arc<Barrier>, it: Port| async move { Ok::<_, ToolError>(format!("{}: 5 m", it.port)) });
    // Two of these end only when both run.
    let both = |name: &'static str| {
        Tool::new(name, |barrier: Arc<Barrier>, _: Port| async move {
            barrier.wait().await;
            Ok::<_, ToolError>("met")
        })
        .read_only()
    };
    let fails =
        Tool::new("fails", |_: Arc<Barrier>, _: Port| async move { Err::<(), _>(ToolError::failed("no wind")) });
    let asks =
        Tool::new("asks", |_: Arc<Barrier>, _: Port| async move { Ok::<_, ToolError>("done") }).approval(Approval::Ask);
    for tool in [tide, both("one"), both("two"), fails, asks] {
        registry.add(tool).unwrap();
    }
    registry
}

fn asked() -> Transcript {
    Transcript::new(vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, "Tides?")])
}

async fn ran(server: &ModelServer, api: Format, stream: bool, options: RunOptions) -> Finished {
    let tools = RegisteredTools::new(tools(), Arc::new(Barrier::new(2)));
    run(&client(server, api, stream), &tools, asked(), options, &mut Unobserved).await
}

#[tokio::test]
async fn every_api_streamed_or_not_leaves_the_same_history() {
    let port = json!({"port": "K"});
    let script = [
        Answer::Reply(calls(&[("a1", "one", port.clone()), ("a2", "two", port.clone()), ("a3", "tide", port.clone())])),
        Answer::Reply(calls(&[("b1", "fails", port.clone()), ("b2", "nope", json!({})), ("b3", "tide", json!({}))])),
        Answer::Reply(says("5 m.")),
    ];
    for api in Format::ALL {
        let mut histories = Vec::new();
        for (stream, bytes) in [(false, usize::MAX), (true, usize::MAX), (true, 1)] {
            let server = ModelServer::start(script.clone()).await.in_pieces(bytes, Duration::ZERO);
            let finished = ran(&server, api, stream, RunOptions::default()).await;
            assert_eq!(finished.outcome, Outcome::Answer { text: "5 m.".into() }, "{api}");
            assert_eq!((finished.steps, finished.usage.input, server.asked().len()), (3, 30, 3));
            let results = finished.transcript.messages.iter().flat_map(Message::results);
            let results: Vec<(String, bool)> =
                results.map(|result| (result.output.all_text(), result.output.is_error)).collect();
            let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
            assert_eq!(texts[..4], ["met", "met", "K: 5 m", "Error executing fails: no wind"], "{api}");
            assert!(
                texts[4].starts_with("Unknown tool: nope") && texts[5].ends_with("tide: port: Field required"),
                "{texts:?}"
            );
            assert!(results[3..].iter().all(|(_, failed)| *failed));
            let bodies: Vec<_> = server.asked().into_iter().map(|asked| asked.body).collect();
            histories.push((finished.transcript, bodies));
        }
        for (transcript, bodies) in &histories[1..] {
            assert_eq!(*transcript, histories[0].0, "{api}");
            for (streamed, plain) in bodies.iter().zip(&histories[0].1) {
                for name in ["messages", "input", "system", "instructions", "tools"] {
                    assert_eq!(streamed.get(name), plain.get(name), "{api} {name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn approvals_are_asked_for_and_a_denial_is_told_or_ends_the_run() {
    let script = [Answer::Reply(calls(&[("a", "asks", json!({"port": "K"}))])), Answer::Reply(says("Pity."))];
    for (api, stream) in ways() {
        let server = ModelServer::start(script.clone()).await;
        let finished = ran(&server, api, stream, RunOptions::default()).await;
        assert!(matches!(finished.outcome, Outcome::ApprovalDenied { .. }), "{api}");
        assert!(finished.transcript.open_calls().is_empty());

        let server = ModelServer::start(script.clone()).await;
        let policy = Policy { on_denied: OnDenied::ReportError, ..Policy::default() };
        let finished = ran(&server, api, stream, RunOptions { policy, ..RunOptions::default() }).await;
        assert_eq!(finished.outcome, Outcome::Answer { text: "Pity.".into() });

        let server = ModelServer::start(script.clone()).await;
        let allowed = RegisteredTools::new(tools(), Arc::new(Barrier::new(2))).approved_by(Arc::new(|_, arguments| {
            std::future::ready(if arguments["port"] == "K" { Ok(()) } else { Err("no".into()) }).boxed()
        }));
        let finished =
            run(&client(&server, api, stream), &allowed, asked(), RunOptions::default(), &mut Unobserved).await;
        let result = finished.transcript.messages.iter().flat_map(Message::results).next().expect("a result");
        assert_eq!((result.output.all_text().as_str(), result.output.is_error), ("done", false));
    }
}

#[tokio::test]
async fn a_limit_of_time_a_cancellation_and_a_failure_leave_a_valid_history() {
    // Nobody else comes to the barrier.
    let waits = || Answer::Reply(calls(&[("a", "one", json!({"port": "K"}))]));
    for (api, stream) in ways() {
        let server = ModelServer::start([waits()]).await;
        let limit = RunOptions { time_limit: Some(Duration::from_millis(100)), ..RunOptions::default() };
        let finished = ran(&server, api, stream, limit).await;
        assert_eq!(finished.outcome, Outcome::TimeLimit);
        assert!(finished.transcript.open_calls().is_empty());

        let server = ModelServer::start([Answer::Silence]).await;
        let options = RunOptions::default();
        let cancel = options.cancel.clone();
        let (finished, ()) = tokio::join!(ran(&server, api, stream, options), async {
            server.asked_times(1).await;
            cancel.cancel();
        });
        assert_eq!(finished.outcome, Outcome::Cancelled);
        assert_eq!(finished.transcript, asked());

        let refusal = json!({"error": {"type": "invalid_request_error", "message": "too long"}});
        let server = ModelServer::start([Answer::Status(400, Vec::new(), refusal)]).await;
        let finished = ran(&server, api, stream, RunOptions::default()).await;
        assert!(matches!(&finished.outcome, Outcome::ModelFailed(error) if error.message == "too long"));
        assert_eq!(finished.failure.and_then(|error| error.status()), Some(400));
    }
}

/// The id of an item without the reasoning that it was made with is refused, and not every reply has reasoning.
#[tokio::test]
async fn a_model_that_reasons_does_not_have_to() {
    for stream in [false, true] {
        let script = [Answer::Reply(calls(&[("a", "tide", json!({"port": "K"}))])), Answer::Reply(says("5 m."))];
        let server = ModelServer::start(script).await;
        let mut options = options(&server, Format::OpenAiResponses, stream);
        options.reasoning = true;
        let client = ModelClient::new(options).expect("a client");
        let tools = RegisteredTools::new(tools(), Arc::new(Barrier::new(2)));
        let finished = run(&client, &tools, asked(), RunOptions::default(), &mut Unobserved).await;
        assert_eq!(finished.outcome, Outcome::Answer { text: "5 m.".into() });
        let sent = server.asked().pop().expect("a request").body;
        let call = sent["input"].as_array().and_then(|items| items.iter().find(|item| item["type"] == "function_call"));
        let call = call.expect("the call");
        assert_eq!((&call["call_id"], call.get("id")), (&json!("a"), None), "{sent}");
    }
}

//! Models as the brains of agents: a scripted model over real HTTP, in real rooms of a real server.

use std::time::Duration;

use bandstand_agent::adapter::{Llm, LlmSettings};
use bandstand_agent::client::ClientOptions;
use bandstand_agent::llm::client::{ModelClient, ModelOptions};
use bandstand_agent::llm::transcript::{Format, Reply};
use bandstand_agent::registry::{Effect, Tool, ToolError};
use bandstand_agent::runtime::Agent;
use bandstand_agent::tools::{AgentTools, Toolbox};
use bandstand_testkit::model::{Answer, ModelServer, calls, says};
use bandstand_testkit::{AgentSeat, TestServer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::runtime::support::{Running, settings};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Port {
    port: String,
}

pub(crate) fn toolbox() -> Toolbox {
    let tide =
        Tool::new("tide", |_: AgentTools, it: Port| async move { Ok::<_, ToolError>(format!("{}: 5 m", it.port)) });
    let wind =
        Tool::new("wind", |_: AgentTools, _: Port| async move { Err::<(), _>(ToolError::failed("no wind gauge")) });
    let tides = Toolbox::default().with(tide.read_only().effect(Effect::Observe)).expect("a new name");
    tides.with(wind.effect(Effect::Observe)).expect("a new name")
}

pub(crate) fn model(server: &ModelServer, api: Format, stream: bool) -> ModelClient {
    let mut options = ModelOptions::new(api, "scripted");
    options.base_url = server.url(api);
    options.key = Some("sk-secret-0123456789".into());
    options.stream = stream;
    options.proxies = false;
    options.retry_base = Duration::from_millis(1);
    ModelClient::new(options).expect("a client")
}

fn start(server: &TestServer, seat: &AgentSeat, model: ModelClient) -> Running {
    start_with(server, seat, model, toolbox())
}

pub(crate) fn start_with(server: &TestServer, seat: &AgentSeat, model: ModelClient, toolbox: Toolbox) -> Running {
    start_as(server, seat, model, toolbox, LlmSettings::default())
}

pub(crate) fn start_as(
    server: &TestServer,
    seat: &AgentSeat,
    model: ModelClient,
    toolbox: Toolbox,
    llm: LlmSettings,
) -> Running {
    let mut options = ClientOptions::new(&server.url(), seat.key.clone());
    options.proxies = false;
    let adapter = Llm::with(model, LlmSettings { instructions: "Speak like a harbour master.".into(), ..llm });
    let agent = Agent::new(options.build().expect("a client"), adapter).toolbox(toolbox).settings(settings());
    let stop = CancellationToken::new();
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { agent.run(stop).await }
    });
    Running::of(stop, task)
}

/// What a turn is made of, and what the room and the model get to see of it.
struct Case {
    name: &'static str,
    first: Vec<Reply>,
    /// What the model is shown with its last request of the first turn.
    shown: &'static [&'static str],
    /// What it is shown in the second turn, after a restart.
    remembered: &'static [&'static str],
    /// What the room reads at the end of the first turn.
    answer: &'static str,
    /// Tools whose results the room is told, and whether they failed.
    events: &'static [(&'static str, bool)],
    /// Bytes of a piece of a stream.
    piece: usize,
}

fn answer(id: &str, text: &str) -> Reply {
    calls(&[(id, "band_send_message", json!({"content": text, "mentions": ["@owner"]}))])
}

fn table() -> Vec<Case> {
    let kestrel = json!({"port": "Kestrel"});
    let case = |name, first| Case {
        name,
        first,
        shown: &[],
        remembered: &[],
        answer: "5 m",
        events: &[("tide", false), ("band_send_message", false)],
        piece: usize::MAX,
    };
    let tool_turn =
        || vec![calls(&[("c1", "tide", json!({"port": "Kestrel"}))]), answer("c2", "It is 5 m."), says("Done.")];
    vec![
        Case { remembered: &["Ahoy, 5 m!"], events: &[], ..case("plain text", vec![says("Ahoy, 5 m!")]) },
        case("first-turn tool call", tool_turn()),
        Case { shown: &["\"c1\"", "Kestrel: 5 m", "\"c2\""], ..case("tool-result replay", tool_turn()) },
        Case {
            remembered: &["\"c1\"", "Kestrel: 5 m", "\"c2\"", "It is 5 m."],
            ..case("resumed history", tool_turn())
        },
        Case {
            piece: 1,
            shown: &["Kestrel: 5 m"],
            remembered: &["Kestrel: 5 m"],
            ..case("streaming tool path", tool_turn())
        },
        Case {
            shown: &["Error executing wind: no wind gauge", "Unknown tool: nope", "port: Field required"],
            remembered: &["Error executing wind: no wind gauge", "Unknown tool: nope", "port: Field required"],
            events: &[("wind", true), ("nope", true), ("tide", true), ("band_send_message", false)],
            ..case(
                "tool error path",
                vec![
                    calls(&[("e1", "wind", kestrel.clone()), ("e2", "nope", json!({})), ("e3", "tide", json!({}))]),
                    answer("e4", "About 5 m."),
                    says(""),
                ],
            )
        },
        Case {
            shown: &["Kestrel: 5 m", "Heron: 5 m", "no wind gauge", "owner"],
            remembered: &["Kestrel: 5 m", "Heron: 5 m", "no wind gauge"],
            events: &[
                ("tide", false),
                ("band_get_participants", false),
                ("wind", true),
                ("tide", false),
                ("band_send_message", false),
            ],
            ..case(
                "multi-tool environment",
                vec![
                    calls(&[
                        ("m1", "tide", kestrel.clone()),
                        ("m2", "band_get_participants", json!({})),
                        ("m3", "wind", kestrel),
                        ("m4", "tide", json!({"port": "Heron"})),
                    ]),
                    answer("m5", "Both 5 m."),
                    says("Done."),
                ],
            )
        },
    ]
}

fn content(row: &Value) -> Value {
    serde_json::from_str(row["content"].as_str().expect("text")).expect("JSON")
}

async fn story(server: &TestServer, api: Format, stream: bool, case: Case) {
    let what = format!("{} over {api}, streamed: {stream}", case.name);
    let requests = case.first.len();
    let script = case.first.into_iter().map(Answer::Reply);
    let scripted = ModelServer::start(script).await.in_pieces(case.piece, Duration::ZERO);
    let seat = server.agent(&format!("keeper of {}", case.name)).await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let agent = start(server, &seat, model(&scripted, api, stream));
    let asked = room.says("How high is the water?", &[&seat]).await;
    watch.status(asked, &seat, "processed").await;
    agent.stop().await;

    let said = room.said_by(&seat).await;
    assert_eq!(said.len(), 1, "{what}: one answer, {said:?}");
    assert!(said[0].contains(case.answer), "{what}: {said:?}");
    let history = room.history().await;
    let of = |kind: &str| history.iter().filter(|row| row["message_type"] == kind).map(content).collect::<Vec<_>>();
    let (called, results) = (of("tool_call"), of("tool_result"));
    let told: Vec<(&str, bool)> =
        results.iter().map(|row| (row["name"].as_str().unwrap(), row["is_error"].as_bool().unwrap())).collect();
    assert_eq!(told, case.events, "{what}");
    let ids = |rows: &[Value]| rows.iter().map(|row| row["tool_call_id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&called), ids(&results), "{what}");
    let usage = history.iter().find(|row| row["message_type"] == "task").expect("the turn's tokens");
    assert_eq!(usage["metadata"]["band_usage"]["input_tokens"], 10 * requests, "{what}");
    let sent = scripted.asked();
    assert_eq!(sent.len(), requests, "{what}");
    assert!(sent.iter().all(|asked| asked.streamed() == stream && asked.api == api), "{what}");
    let first = sent[0].body.to_string();
    for part in
        ["Speak like a harbour master.", "You are keeper of", "How high is the water?", "band_send_message", "@owner"]
    {
        assert!(first.contains(part), "{what}: {part} in {first}");
    }
    let last = sent[requests - 1].body.to_string();
    for part in case.shown {
        assert!(last.contains(part), "{what}: {part} in {last}");
    }

    // Another process, with nothing but the room's history.
    scripted.then([Answer::Reply(says("As before."))]);
    let agent = start(server, &seat, model(&scripted, api, stream));
    let again = room.says("And now?", &[&seat]).await;
    watch.status(again, &seat, "processed").await;
    agent.stop().await;
    let resumed = scripted.asked().pop().expect("a request").body.to_string();
    for part in case.remembered.iter().chain(&["How high is the water?", "And now?"]) {
        assert!(resumed.contains(part), "{what}: {part} in {resumed}");
    }
    assert!(room.said_by(&seat).await.last().is_some_and(|text| text.contains("As before.")), "{what}");
}

async fn matrix(api: Format, stream: bool) {
    let server = TestServer::start().await;
    for case in table() {
        Box::pin(story(&server, api, stream, case)).await;
    }
}

#[tokio::test]
async fn chat_completions() {
    matrix(Format::OpenAiChat, false).await;
}

#[tokio::test]
async fn chat_completions_streamed() {
    matrix(Format::OpenAiChat, true).await;
}

#[tokio::test]
async fn responses() {
    matrix(Format::OpenAiResponses, false).await;
}

#[tokio::test]
async fn responses_streamed() {
    matrix(Format::OpenAiResponses, true).await;
}

#[tokio::test]
async fn anthropic_messages() {
    matrix(Format::Anthropic, false).await;
}

#[tokio::test]
async fn anthropic_messages_streamed() {
    matrix(Format::Anthropic, true).await;
}

#[tokio::test]
async fn silence_ends_the_turn_only_if_nothing_beside_it_failed() {
    let server = TestServer::start().await;
    let silent = |id: &str| (id.to_owned(), "band_no_reply", json!({"reason": "thanks"}));
    for (beside, requests) in [("tide", 1), ("wind", 2)] {
        let (id, name, arguments) = silent("n1");
        let reply = calls(&[(&id, name, arguments), ("n2", beside, json!({"port": "K"}))]);
        let scripted = ModelServer::start([Answer::Reply(reply), Answer::Reply(says(""))]).await;
        let seat = server.agent(&format!("quiet {beside}")).await;
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let agent = start(&server, &seat, model(&scripted, Format::Anthropic, true));
        let asked = room.says("Thanks!", &[&seat]).await;
        watch.status(asked, &seat, "processed").await;
        agent.stop().await;
        assert_eq!((scripted.asked().len(), room.said_by(&seat).await.len()), (requests, 0), "{beside}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_told_once_and_the_agent_lives_on() {
    let server = TestServer::start().await;
    for stream in [false, true] {
        let refusal = json!({"error": {"type": "invalid_request_error", "message": "no sk-secret-0123456789 here"}});
        let answers = [Answer::Status(400, Vec::new(), refusal), Answer::Reply(says("Better."))];
        let scripted = ModelServer::start(answers).await;
        let seat = server.agent(&format!("unlucky {stream}")).await;
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let agent = start(&server, &seat, model(&scripted, Format::OpenAiChat, stream));
        let asked = room.says("Well?", &[&seat]).await;
        watch.status(asked, &seat, "failed").await;
        let again = room.says("Better now?", &[&seat]).await;
        watch.status(again, &seat, "processed").await;
        agent.stop().await;
        let history = room.history().await;
        let errors: Vec<&Value> = history.iter().filter(|row| row["message_type"] == "error").collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        let failure = &errors[0]["metadata"]["failure"];
        assert_eq!((&failure["code"], &failure["detail"]), (&json!("400"), &json!("no [REDACTED] here")));
        assert!(!format!("{history:?}").contains("sk-secret"));
    }
}

#[tokio::test]
async fn calls_of_a_reply_at_its_limit_are_reported_and_an_endless_loop_ends() {
    let server = TestServer::start().await;
    let mut cut = calls(&[("t1", "tide", json!({"port": "K"}))]);
    cut.stop_reason = bandstand_agent::llm::transcript::StopReason::Length;
    let scripted = ModelServer::start([Answer::Reply(cut), Answer::Reply(says("Shorter."))]).await;
    let seat = server.agent("chatty").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let agent = start(&server, &seat, model(&scripted, Format::Anthropic, true));
    let asked = room.says("Well?", &[&seat]).await;
    watch.status(asked, &seat, "processed").await;
    assert!(scripted.asked()[1].body.to_string().contains("hit its token limit"));
    let same = || Answer::Reply(calls(&[("s", "nope", json!({}))]));
    scripted.then([same(), same(), same()]);
    let asked = room.says("And?", &[&seat]).await;
    watch.status(asked, &seat, "failed").await;
    let error = watch.wait_for("the report", |row| row["message_type"] == "error").await;
    assert!(error["content"].as_str().unwrap().contains("invalid call of nope"), "{error}");
    agent.stop().await;
}

#[tokio::test]
async fn a_turn_that_is_stopped_and_played_again_has_a_valid_history() {
    let server = TestServer::start().await;
    let scripted = ModelServer::start([
        Answer::Reply(calls(&[("p1", "tide", json!({"port": "K"}))])),
        Answer::Silence,
        Answer::Reply(says("5 m.")),
    ])
    .await;
    let seat = server.agent("patient").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let agent = start(&server, &seat, model(&scripted, Format::OpenAiResponses, true));
    let asked = room.says("Well?", &[&seat]).await;
    scripted.asked_times(2).await;
    server.owner().stops(&room).await;
    server.owner().plays(&room).await;
    watch.status(asked, &seat, "processed").await;
    agent.stop().await;
    let last = scripted.asked().pop().expect("a request").body.to_string();
    assert!(last.contains("K: 5 m") && last.matches("Well?").count() == 1, "{last}");
}

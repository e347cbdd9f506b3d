//! Tools of external MCP servers: a program, and a server over HTTP in this process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bandstand_agent::client::ClientOptions;
use bandstand_agent::mcp::{McpError, McpServer, McpServers, McpTransport};
use bandstand_agent::registry::{Approval, Effect, FailureKind, ToolOutcome};
use bandstand_agent::tools::{AgentTools, Binding, Capabilities, ToolSource as _, Toolbox};
use bandstand_testkit::{PATIENCE, TestServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::examples::example;
use crate::support::tides::Tides;

fn program(args: &[&str]) -> McpServer {
    let path = example("mcp_tides").to_string_lossy().into_owned();
    McpServer::stdio("tides", path, args.iter().copied())
}

/// Tools in some room, whose calls need no room.
fn tools(servers: &McpServers) -> AgentTools {
    let mut options = ClientOptions::new("http://127.0.0.1:1", "band_a_x");
    options.proxies = false;
    let client = options.build().expect("a client");
    let toolbox = Toolbox::new(Capabilities::none()).with_source(servers.clone()).expect("names of their own");
    let room = "00000000-0000-7000-8000-000000000001".parse().expect("an id");
    // As the runtime does at the beginning of a turn.
    AgentTools::new(client, room, Binding { toolbox: toolbox.for_turn(), ..Binding::default() })
}

async fn call(servers: &McpServers, name: &str, arguments: Value) -> ToolOutcome {
    let tools = tools(servers);
    let called = tools.execute_tool_call_structured(name, arguments);
    tokio::time::timeout(PATIENCE, called).await.expect("an answer").expect("no stop")
}

fn names(servers: &McpServers) -> Vec<String> {
    servers.tools().iter().map(|tool| tool.spec().name().to_owned()).collect()
}

/// Waits until something about the servers holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}

/// The tides over HTTP, on a port that is kept.
struct OverHttp {
    tides: Tides,
    url: String,
    address: std::net::SocketAddr,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

async fn over_http(tides: Tides, address: &str) -> OverHttp {
    let listener = TcpListener::bind(address).await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let stop = CancellationToken::new();
    let served = tides.clone();
    let service = StreamableHttpService::new(
        move || Ok(served.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_cancellation_token(stop.clone()),
    );
    let guarded = axum::middleware::from_fn(|request: axum::extract::Request, next: axum::middleware::Next| async {
        use axum::response::IntoResponse as _;
        match request.headers().get("x-key").and_then(|key| key.to_str().ok()) {
            Some("secret-of-tides") => next.run(request).await,
            _ => axum::http::StatusCode::UNAUTHORIZED.into_response(),
        }
    });
    let router = axum::Router::new().route_service("/mcp", service).layer(guarded);
    let ended = stop.clone();
    let serving = tokio::spawn(async move {
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move { ended.cancelled().await });
        serving.await.expect("it serves");
    });
    OverHttp { tides, url: format!("http://{address}/mcp"), address, stop, serving }
}

fn at(url: &str, key: &str) -> McpServer {
    let mut server = McpServer::http("tides", url);
    if let McpTransport::Http(http) = &mut server.transport {
        http.proxies = false;
        http.headers.push(("x-key".to_owned(), key.into()));
    }
    server
}

#[tokio::test]
async fn a_programs_tools_are_the_agents() {
    let mut options = program(&[]);
    options.deny.insert("grow".to_owned());
    options.prefix = "sea/".to_owned();
    options.defaults.time_limit = Some(Duration::from_secs(9));
    let fails = options.tools.entry("fails".to_owned()).or_default();
    fails.effect = Some(Effect::Act);
    fails.approval = Some(Approval::Ask);
    options.tools.entry("nothing".to_owned()).or_default();
    let servers = McpServers::connect([options]).await.unwrap();
    let report = servers.reports().remove(0);
    assert_eq!((report.says.as_deref(), report.problem), (Some("tides 1"), None));
    assert_eq!(report.unknown, ["nothing"]);
    assert_eq!(report.left_out[0].0, "odd");
    let expected = ["sea/tide.look/up", "sea/chart", "sea/fails", "sea/hangs", "sea/dies", "sea/environment"];
    assert_eq!(names(&servers), expected);
    let spec = |name: &str| report.tools.iter().find(|spec| spec.name() == name).expect("the tool").clone();
    let look = spec("sea/tide.look/up");
    assert_eq!((look.effect(), look.approval(), look.is_read_only()), (Effect::Observe, Approval::Allow, true));
    assert_eq!((look.group(), look.time_limit()), ("mcp:tides", Some(Duration::from_secs(9))));
    assert_eq!((spec("sea/fails").effect(), spec("sea/fails").approval()), (Effect::Act, Approval::Ask));

    let looked = call(&servers, "sea/tide.look/up", json!({"port": "Kestrel"})).await;
    assert_eq!((looked.value(), looked.effect()), (&json!("Kestrel: 5 m"), Some(Effect::Observe)));
    let invalid = call(&servers, "sea/tide.look/up", json!({})).await;
    assert_eq!(invalid.text(), "Invalid arguments for sea/tide.look/up: port: Field required");
    let chart = call(&servers, "sea/chart", json!({})).await;
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
    assert_eq!(chart.value()["content"][1], image);
    servers.close().await;
    assert!(call(&servers, "sea/chart", json!({})).await.text().contains("it was ended"));
}

#[tokio::test]
async fn a_failure_is_one_by_the_servers_flag_and_a_hanging_call_ends() {
    let mut options = program(&[]);
    options.tools.entry("hangs".to_owned()).or_default().time_limit = Some(Duration::from_millis(200));
    let servers = McpServers::connect([options]).await.unwrap();
    let failed = call(&servers, "fails", json!({})).await;
    assert_eq!((failed.failure_kind(), failed.effect()), (Some(FailureKind::Reported), None));
    assert_eq!(failed.value()["content"][0]["text"], "no gauge");
    let hung = call(&servers, "hangs", json!({})).await;
    assert_eq!(hung.text(), "Error executing hangs: timed out after 0.2 s");
    // The same connection goes on.
    assert_eq!(call(&servers, "tide.look/up", json!({"port": "K"})).await.text(), "K: 5 m");
    servers.close().await;
}

#[tokio::test]
async fn a_program_that_dies_is_an_error_of_its_call_and_is_started_again() {
    let servers = McpServers::connect([program(&[])]).await.unwrap();
    let died = call(&servers, "dies", json!({})).await;
    assert_eq!(died.failure_kind(), Some(FailureKind::Failed));
    assert!(died.text().starts_with("Error executing dies: the MCP server `tides`: "), "{}", died.text());
    // The next call waits for the connection that is being made.
    assert_eq!(call(&servers, "tide.look/up", json!({"port": "K"})).await.text(), "K: 5 m");
    servers.close().await;
}

#[tokio::test]
async fn a_program_gets_no_keys_and_ends_with_us() {
    let mut options = program(&[]);
    if let McpTransport::Stdio(program) = &mut options.transport {
        program.env.insert("TIDES_KEY".to_owned(), "secret".into());
    }
    let servers = McpServers::connect([options]).await.unwrap();
    let environment = call(&servers, "environment", json!({})).await.text();
    let given: Vec<&str> = environment.split(' ').collect();
    assert!(given.contains(&"PATH") && given.contains(&"TIDES_KEY"), "{given:?}");
    // Cargo sets it for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !given.contains(&"CARGO_MANIFEST_DIR"), "{given:?}");
    let children = children();
    assert_eq!(children.len(), 1, "{children:?}");
    servers.close().await;
    assert!(!std::path::Path::new(&format!("/proc/{}", children[0])).exists(), "the program has ended");
}

/// Processes that this one has started.
fn children() -> Vec<String> {
    let own = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).expect("this process");
    let read =
        |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.ok()?.path().join("children")).ok();
    let lists: Vec<String> = tasks.filter_map(read).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_cannot_be_used_is_said_at_the_start() {
    let missing = McpServer::stdio("missing", "/no/such/program", [""; 0]);
    let mut broken = program(&["--broken"]);
    broken.name = "broken".to_owned();
    let nobody = McpServer::http("nobody", "http://127.0.0.1:1/mcp?key=secret");
    let mut optional = McpServer::stdio("optional", "/no/such/program", [""; 0]);
    optional.required = false;
    let http = over_http(Tides::default(), "127.0.0.1:0").await;
    let mut keyless = at(&http.url, "wrong");
    keyless.name = "keyless".to_owned();
    let all = [missing, broken, nobody, optional.clone(), keyless];
    let error = McpServers::connect(all).await.unwrap_err();
    let McpError::Unusable(unusable) = &error else { panic!("{error:?}") };
    let why = |name: &str| unusable.iter().find(|(server, _)| server == name).map(|(_, why)| why.as_str());
    assert!(why("missing").unwrap().starts_with("cannot be started: /no/such/program: "), "{error}");
    assert!(why("broken").unwrap().contains("no gauge is configured"), "{error}");
    assert_eq!(why("nobody"), Some("cannot be reached: no connection"), "{error}");
    assert_eq!(why("keyless"), Some("cannot be reached: it answered 401"), "{error}");
    assert_eq!(why("optional"), None);
    assert!(!error.to_string().contains("secret"), "{error}");

    let servers = McpServers::connect([optional]).await.unwrap();
    assert!(servers.reports()[0].problem.as_deref().is_some_and(|why| why.starts_with("cannot be started")));
    assert!(names(&servers).is_empty());
    servers.close().await;
}

#[tokio::test]
async fn a_server_over_http_that_restarts_is_reached_again() {
    let http = over_http(Tides::default(), "127.0.0.1:0").await;
    let servers = McpServers::connect([at(&http.url, "secret-of-tides")]).await.unwrap();
    assert_eq!(call(&servers, "tide.look/up", json!({"port": "K"})).await.text(), "K: 5 m");
    assert_eq!(http.tides.greeted.load(Ordering::SeqCst), 1);
    let OverHttp { address, stop, serving, .. } = http;
    stop.cancel();
    serving.await.unwrap();
    let gone = call(&servers, "tide.look/up", json!({"port": "K"})).await;
    assert_eq!(gone.failure_kind(), Some(FailureKind::Failed), "{}", gone.text());
    let again = over_http(Tides::default(), &address.to_string()).await;
    until("it is reached again", || servers.reports()[0].problem.is_none()).await;
    assert_eq!(call(&servers, "tide.look/up", json!({"port": "K"})).await.text(), "K: 5 m");
    servers.close().await;
    again.stop.cancel();
}

#[tokio::test]
async fn tools_that_change_are_there_in_the_next_turn() {
    let http = over_http(Tides::default(), "127.0.0.1:0").await;
    for server in [program(&[]), at(&http.url, "secret-of-tides")] {
        let servers = McpServers::connect([server]).await.unwrap();
        assert!(!names(&servers).contains(&"wind".to_owned()));
        assert_eq!(call(&servers, "grow", json!({})).await.text(), "grown");
        until("the new tool is there", || names(&servers).contains(&"wind".to_owned())).await;
        assert_eq!(call(&servers, "wind", json!({})).await.text(), "a breeze");
        servers.close().await;
    }
}

#[tokio::test]
async fn names_that_clash_are_said_at_the_start() {
    let mut other = program(&[]);
    other.name = "other".to_owned();
    let servers = McpServers::connect([program(&[]), other]).await.unwrap();
    let clash = Toolbox::new(Capabilities::none()).with_source(servers.clone()).unwrap_err().to_string();
    assert!(clash.contains("`tide.look/up` (mcp:other) has the name of another (mcp:tides)"), "{clash}");
    servers.close().await;
}

#[tokio::test]
async fn a_model_uses_a_tool_under_a_name_that_its_provider_takes() {
    use bandstand_agent::llm::transcript::Format;
    use bandstand_testkit::model::{Answer, ModelServer, calls, says};

    let server = TestServer::start().await;
    for api in [Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic] {
        let scripted = ModelServer::start([
            // The name as it stands on the wire.
            Answer::Reply(calls(&[("c1", "tide_look_up", json!({"port": "Kestrel"})), ("c2", "fails", json!({}))])),
            Answer::Reply(says("It is 5 m.")),
        ])
        .await;
        let servers = McpServers::connect([program(&[])]).await.unwrap();
        let seat = server.agent(&format!("keeper over {api}")).await;
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let toolbox = Toolbox::new(Capabilities::none()).with_source(servers.clone()).unwrap();
        let agent = crate::llm::start_with(&server, &seat, crate::llm::model(&scripted, api, true), toolbox);
        let asked = room.says("How high is the water?", &[&seat]).await;
        watch.status(asked, &seat, "processed").await;
        agent.stop().await;
        servers.close().await;
        let history = room.history().await;
        let results: Vec<Value> = history
            .iter()
            .filter(|row| row["message_type"] == "tool_result")
            .map(|row| serde_json::from_str(row["content"].as_str().unwrap()).unwrap())
            .collect();
        // The registry's own names, and the failure as one.
        assert_eq!((&results[0]["name"], &results[0]["output"]), (&json!("tide.look/up"), &json!("Kestrel: 5 m")));
        assert_eq!((&results[1]["output"], &results[1]["is_error"]), (&json!("no gauge"), &json!(true)));
        let last = scripted.asked().pop().unwrap().body.to_string();
        assert!(last.contains("\"tide_look_up\"") && !last.contains("\"tide.look/up\""), "{last}");
    }
}

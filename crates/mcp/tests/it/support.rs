//! Clients of the tests: rmcp's own, over a pipe; bare HTTP where the protocol's edges are meant.

use std::time::Duration;

use bandstand_mcp::{Choices, HttpOptions, Keys, Session, SessionOptions, routes, serve};
use bandstand_testkit::{AgentSeat, PATIENCE, TestServer};
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An MCP client of an agent, and the server's end of its pipe.
pub(crate) struct Piped {
    pub(crate) client: RunningService<RoleClient, ()>,
    pub(crate) serving: JoinHandle<()>,
}

pub(crate) async fn piped(server: &TestServer, seat: &AgentSeat) -> Piped {
    piped_with(server, seat, Choices::default()).await
}

pub(crate) async fn piped_with(server: &TestServer, seat: &AgentSeat, choices: Choices) -> Piped {
    let options = SessionOptions { proxies: false, ..SessionOptions::new(&server.url()) };
    let keys = Keys { agent: Some(seat.key.as_str().into()), user: None };
    let session = Session::new(&options, &keys, &choices).unwrap();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move {
        serve(session, reader, writer, CancellationToken::new()).await.unwrap();
    });
    let client = tokio::time::timeout(PATIENCE, ().serve(tokio::io::split(ours))).await.unwrap().unwrap();
    Piped { client, serving }
}

impl Piped {
    pub(crate) async fn raw(&self, name: &str, arguments: Value) -> CallToolResult {
        let mut call = CallToolRequestParams::new(name.to_owned());
        call.arguments = arguments.as_object().cloned();
        let call = self.client.call_tool(call);
        tokio::time::timeout(Duration::from_secs(60), call).await.expect("the tool answers").unwrap()
    }

    /// What a call that must succeed gives.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let result = self.raw(name, arguments).await;
        let text = text(&result);
        assert_ne!(result.is_error, Some(true), "{name}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// The words of a call that must fail.
    pub(crate) async fn fails(&self, name: &str, arguments: Value) -> String {
        let result = self.raw(name, arguments).await;
        assert_eq!(result.is_error, Some(true), "{name}: {}", text(&result));
        text(&result)
    }

    /// The message that a wait gives.
    pub(crate) async fn waits(&self) -> Value {
        self.call("band_wait_for_message", json!({"timeout_s": 20})).await["message"].take()
    }

    /// Ends as a client that crashes.
    pub(crate) async fn drops(self) {
        drop(self.client);
        let _ = self.serving.await;
    }
}

pub(crate) fn text(result: &CallToolResult) -> String {
    let written = serde_json::to_value(result).unwrap();
    written["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// MCP over HTTP in front of a test's server.
pub(crate) struct Mounted {
    pub(crate) url: String,
    pub(crate) shutdown: CancellationToken,
    http: reqwest::Client,
}

pub(crate) async fn mounted(server: &TestServer, change: impl FnOnce(&mut HttpOptions)) -> Mounted {
    let shutdown = CancellationToken::new();
    let mut options = HttpOptions::new(&server.url(), shutdown.clone());
    options.proxies = false;
    change(&mut options);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = routes(options).unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    Mounted { url, shutdown, http }
}

impl Mounted {
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &Value) -> reqwest::RequestBuilder {
        let request = self.http.post(&self.url).body(body.to_string());
        let request =
            request.header("content-type", "application/json").header("accept", "application/json, text/event-stream");
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }

    /// Opens a session; its id.
    pub(crate) async fn opens(&self, key: &str) -> String {
        let reply = self.post(&[("x-api-key", key)], &hello()).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        let id = reply.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let noted = self.post(&[("x-api-key", key), ("mcp-session-id", &id)], &ready).send().await.unwrap();
        assert_eq!(noted.status(), 202);
        id
    }

    /// The status of a request within a session.
    pub(crate) async fn lists(&self, key: &str, id: &str) -> u16 {
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        self.post(&[("x-api-key", key), ("mcp-session-id", id)], &list).send().await.unwrap().status().as_u16()
    }
}

pub(crate) fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

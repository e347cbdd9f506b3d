//! The edges of streamable HTTP: keys, sessions that belong to them, limits, names and origins.

use std::time::Duration;

use bandstand_testkit::TestServer;
use serde_json::json;

use super::support::{hello, mounted};

#[tokio::test]
async fn only_a_key_that_the_server_knows_opens_a_session() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let mcp = mounted(&server, |_| {}).await;
    let wrong = format!("band_a_{}", "0".repeat(43));
    for headers in [vec![], vec![("x-api-key", wrong.as_str())], vec![("authorization", "Bearer nothing")]] {
        let reply = mcp.post(&headers, &hello()).send().await.unwrap();
        assert_eq!((reply.status().as_u16(), reply.headers().contains_key("www-authenticate")), (401, true));
        assert!(!reply.text().await.unwrap().contains("0000"));
    }
    let (agent, owner) = (format!("Bearer {}", seat.key), server.owner().key);
    for headers in [[("authorization", agent.as_str())], [("x-api-key", owner.as_str())]] {
        assert_eq!(mcp.post(&headers, &hello()).send().await.unwrap().status(), 200);
    }
    server.go_down().await;
    assert_eq!(mcp.post(&[("x-api-key", &owner)], &hello()).send().await.unwrap().status(), 503);
}

#[tokio::test]
async fn a_session_belongs_to_the_key_that_opened_it() {
    let server = TestServer::start().await;
    let (mine, other) = (server.agent("mine").await, server.agent("other").await);
    let mcp = mounted(&server, |_| {}).await;
    let id = mcp.opens(&mine.key).await;
    assert_eq!(mcp.lists(&mine.key, &id).await, 200);
    for key in [other.key.as_str(), "nothing"] {
        assert_eq!(mcp.lists(key, &id).await, 404);
    }
    assert_eq!(mcp.lists(&mine.key, "00000000-0000-4000-8000-000000000000").await, 404);
}

#[tokio::test]
async fn sessions_are_limited_in_all_and_for_each_key() {
    let server = TestServer::start().await;
    let (one, two) = (server.agent("one").await, server.agent("two").await);
    let mcp = mounted(&server, |options| (options.sessions, options.sessions_per_key) = (3, 2)).await;
    let first = mcp.opens(&one.key).await;
    let second = mcp.opens(&one.key).await;
    assert_eq!(mcp.lists(&one.key, &first).await, 200);
    // The one that was used least recently makes room.
    let third = mcp.opens(&one.key).await;
    let statuses =
        [mcp.lists(&one.key, &first).await, mcp.lists(&one.key, &second).await, mcp.lists(&one.key, &third).await];
    assert_eq!(statuses, [200, 404, 200]);
    mcp.opens(&two.key).await;
    let full = mcp.post(&[("x-api-key", &server.owner().key)], &hello()).send().await.unwrap();
    assert_eq!(full.status(), 503);
}

#[tokio::test]
async fn an_idle_session_is_closed() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let mcp = mounted(&server, |options| options.idle = Duration::from_millis(200)).await;
    let id = mcp.opens(&seat.key).await;
    let gone = async {
        while mcp.lists(&seat.key, &id).await != 404 {
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the session ends");
}

#[tokio::test]
async fn other_names_and_pages_of_elsewhere_are_refused() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let mcp = mounted(&server, |options| options.origins = vec!["https://app.example.org:443".into()]).await;
    for (name, value, status) in [
        ("host", "evil.example", 403),
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "https://app.example.org", 200),
    ] {
        let reply = mcp.post(&[("x-api-key", &seat.key), (name, value)], &hello()).send().await.unwrap();
        assert_eq!(reply.status(), status, "{name}: {value}");
    }
}

#[tokio::test]
async fn bodies_and_addresses_are_checked() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let mcp = mounted(&server, |options| options.body_bytes = 4096).await;
    let large = mcp.post(&[("x-api-key", &seat.key)], &json!("a".repeat(5000))).send().await.unwrap();
    assert_eq!(large.status(), 413);
    let wrong = mcp.post(&[("x-api-key", &seat.key)], &json!(1)).send().await.unwrap();
    assert!(wrong.status().is_client_error());
}

#[tokio::test]
async fn the_end_of_the_server_ends_all_sessions() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let mcp = mounted(&server, |_| {}).await;
    let id = mcp.opens(&seat.key).await;
    let wait = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "band_wait_for_message", "arguments": {"timeout_s": 50}}});
    let request = mcp.post(&[("x-api-key", &seat.key), ("mcp-session-id", &id)], &wait);
    let waiting = tokio::spawn(async move { request.send().await.unwrap().text().await });
    mcp.lists(&seat.key, &id).await;
    mcp.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the stream ends").unwrap().ok();
}

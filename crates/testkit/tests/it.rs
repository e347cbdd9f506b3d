//! The test kit against itself: a hand-written agent on a bad line.

use std::time::{Duration, Instant};

use bandstand_testkit::{AgentSeat, Held, Person, RequestFault, Room, TestServer};
use reqwest::Method;
use serde_json::json;

async fn setting() -> (TestServer, Person, AgentSeat, Room) {
    let server = TestServer::start().await;
    let agent = server.agent("worker").await;
    let person = server.person("mara").await;
    server.owner().befriends(&person).await;
    let room = server.owner().room(&[&agent, &person]).await;
    (server, person, agent, room)
}

#[tokio::test]
async fn a_message_is_seen_by_whom_it_names_and_its_fate_by_people() {
    let (_server, _, agent, room) = setting().await;
    let mut watch = room.watch().await;
    let message = room.says("Please look.", &[&agent]).await;
    let (status, next) = agent.request(Method::GET, &format!("/chats/{}/messages/next", room.id), None).await;
    assert_eq!((status, next["data"]["id"].as_str()), (200, Some(message.to_string().as_str())));
    for mark in ["processing", "processed"] {
        let (status, reply) =
            agent.request(Method::POST, &format!("/chats/{}/messages/{message}/{mark}", room.id), None).await;
        assert_eq!(status, 200, "{reply}");
        watch.status(message, &agent, mark).await;
    }
}

#[tokio::test]
async fn a_lost_reply_is_lost_after_the_server_did_what_was_asked() {
    let (server, _, agent, room) = setting().await;
    server.faults().on_request(Method::POST, "/messages", 1, RequestFault::LoseReply);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let body = json!({ "message": { "content": "Once.", "mentions": [{ "id": agent.id }] } });
    let sent = http
        .post(format!("{}/api/v1/me/chats/{}/messages", server.url(), room.id))
        .header("x-api-key", &server.owner().key)
        .json(&body)
        .send()
        .await;
    assert!(sent.is_err(), "{sent:?}");
    assert_eq!(room.said_by(&server.owner()).await.len(), 1);
}

#[tokio::test]
async fn refusals_are_answered_in_the_servers_shape_and_end() {
    let (server, ..) = setting().await;
    let refused = RequestFault::Answer { status: 429, retry_after: Some(2) };
    server.faults().on_request(Method::GET, "/profile", 1, refused);
    let (status, body) = server.owner().request(Method::GET, "/profile", None).await;
    assert_eq!((status, body["error"]["code"].as_str()), (429, Some("rate_limited")));
    let (status, _) = server.owner().request(Method::GET, "/profile", None).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn what_waits_at_a_gate_goes_on_after_a_restart() {
    let (server, _, agent, room) = setting().await;
    let gate = Held::new();
    server.faults().on_request(Method::GET, "/next", 1, RequestFault::Hold(gate.clone()));
    room.says("Before the restart.", &[&agent]).await;
    let asking = tokio::spawn({
        let (agent, path) = (agent.clone(), format!("/chats/{}/messages/next", room.id));
        async move { agent.request(Method::GET, &path, None).await }
    });
    gate.arrived().await;
    server.crash().await;
    server.come_back().await;
    gate.release();
    let (status, next) = asking.await.expect("no panic");
    assert_eq!(status, 200, "{next}");
}

#[tokio::test]
async fn the_clock_is_the_tests() {
    let (server, _, agent, room) = setting().await;
    server.clock().advance(Duration::from_secs(24 * 60 * 60));
    room.says("A day later.", &[&agent]).await;
    let history = room.history().await;
    let when = history[0]["inserted_at"].as_str().expect("a time");
    assert!(when.starts_with("2026-01-02T"), "{when}");
}

#[tokio::test]
async fn a_server_takes_no_time_to_start() {
    // One start is warm-up: the first test pays for what the process loads.
    drop(TestServer::start().await);
    let before = Instant::now();
    drop(TestServer::start().await);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

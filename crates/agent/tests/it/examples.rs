//! The examples, as processes of their own against a real server.

use std::path::PathBuf;
use std::process::Stdio;

use bandstand_testkit::{PATIENCE, TestServer};
use tokio::process::{Child, Command};

/// Where cargo puts examples: beside the folder of this test's program.
pub(crate) fn example(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let folder = program.parent().and_then(|deps| deps.parent()).expect("the target folder");
    let path = folder.join("examples").join(name);
    assert!(path.exists(), "{} is missing: build the examples as well (cargo build --examples)", path.display());
    path
}

fn start(name: &str, server: &TestServer, environment: &[(&str, &str)]) -> Child {
    Command::new(example(name))
        .env("BANDSTAND_URL", server.url())
        // Agents of two tests have the same id, and each locks out another of its id on the machine.
        .env("TMPDIR", server.folder())
        .envs(environment.iter().copied())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the example starts")
}

/// Ends it as a service manager does; it must end in order.
async fn stop(mut child: Child) {
    let pid = child.id().expect("it runs").to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill");
    assert!(killed.success());
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.expect("it ends").expect("a status");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn echo_says_back_what_it_is_told() {
    let server = TestServer::start().await;
    let seat = server.agent("echo").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let child = start("echo", &server, &[("BANDSTAND_KEY", &seat.key)]);
    room.says("Hello?", &[&seat]).await;
    assert!(watch.message_from(&seat).await.ends_with("Hello?"));
    stop(child).await;
}

#[tokio::test]
async fn the_doorkeeper_lets_in_who_knows_the_word() {
    let server = TestServer::start().await;
    let seat = server.agent("doorkeeper").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let child = start("contact_callback", &server, &[("BANDSTAND_KEY", &seat.key)]);
    // It listens once it answers.
    room.says("Awake?", &[&seat]).await;
    watch.message_from(&seat).await;
    for (handle, word, outcome) in [("eve", "please", "rejected"), ("ada", "swordfish", "approved")] {
        let person = server.person(handle).await;
        let body = serde_json::json!({ "contact_request": { "recipient_handle": seat.handle, "message": word } });
        let (status, reply) = person.request(reqwest::Method::POST, "/contacts/requests", Some(body)).await;
        assert_eq!(status, 201, "{reply}");
        // Nothing is pushed to a plain HTTP client: it asks until there is an answer.
        let answered = async {
            loop {
                let (_, sent) = person.request(reqwest::Method::GET, "/contacts/requests/sent", None).await;
                match sent["data"][0]["status"].as_str() {
                    Some("pending") | None => tokio::task::yield_now().await,
                    Some(status) => return status.to_owned(),
                }
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answered).await.expect("an answer");
        assert_eq!(answer, outcome);
    }
    stop(child).await;
}

#[tokio::test]
async fn a_planner_recruits_a_worker_and_tells_the_result() {
    let server = TestServer::start().await;
    let planner = server.agent("planner").await;
    let worker = server.agent("worker").await;
    let room = server.owner().room(&[&planner]).await;
    let mut watch = room.watch().await;
    let child = start("delegate", &server, &[("PLANNER_KEY", &planner.key), ("WORKER_KEY", &worker.key)]);
    room.says("How long is this?", &[&planner]).await;
    let done = watch
        .wait_for("the result", |row| row["content"].as_str().is_some_and(|text| text.contains("Done. 13 letters")))
        .await;
    assert_eq!(done["sender_id"], planner.id.to_string().as_str());
    stop(child).await;
}

#[tokio::test]
async fn the_clerk_asks_before_it_pays() {
    let server = TestServer::start().await;
    let seat = server.agent("clerk").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let child = start("custom_tool", &server, &[("BANDSTAND_KEY", &seat.key)]);
    let filed = room.says("The lamp is broken", &[&seat]).await;
    watch.status(filed, &seat, "processed").await;
    let pay = room.says("pay 5", &[&seat]).await;
    let question = watch.message_from(&seat).await;
    assert!(question.contains("/approve"), "{question}");
    let answer = room.says("/approve", &[&seat]).await;
    for message in [pay, answer] {
        watch.status(message, &seat, "processed").await;
    }
    stop(child).await;
}

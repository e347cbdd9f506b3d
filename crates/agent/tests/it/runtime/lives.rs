//! Start, backlog, live work, interventions, contacts, end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bandstand_agent::adapter::{Echo, Scripted, Step};
use bandstand_agent::runtime::{
    AgentError, ContactEvent, ContactHandler, ContactSettings, ContactStrategy, RuntimeSettings, Stopped,
};
use bandstand_agent::tools::ContactTools;
use bandstand_testkit::{Member, TestServer};
use tokio::sync::mpsc;

use super::support::{Recorder, bare, run, run_with, settings};

#[tokio::test]
async fn the_backlog_comes_first_and_then_what_is_said_live_in_order() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    for number in 1..=3 {
        room.says(&format!("before {number}"), &[&seat]).await;
    }
    let adapter = Recorder::default();
    let agent = run(&server, &seat, adapter.clone());
    let last = room.says("live", &[&seat]).await;
    watch.status(last, &seat, "processed").await;
    assert_eq!(adapter.finished(), ["before 1", "before 2", "before 3", "live"]);
    assert_eq!(room.said_by(&seat).await.len(), 4);
    assert_eq!(agent.stop().await, Stopped { clean: true });
}

#[tokio::test]
async fn the_first_turn_is_given_the_rooms_past_up_to_its_message_and_who_is_there() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let agent = run(&server, &seat, Echo);
    for number in 0..120 {
        room.says(&format!("old {number}"), &[&seat]).await;
    }
    let last = room.says("the last of the old", &[&seat]).await;
    watch.status(last, &seat, "processed").await;
    agent.stop().await;

    let adapter = Recorder::default();
    let few = RuntimeSettings { history_rows: 30, ..settings() };
    let agent = run_with(&server, &seat, adapter.clone(), few);
    let trigger = room.says("new", &[&seat]).await;
    watch.status(trigger, &seat, "processed").await;
    let again = room.says("newer", &[&seat]).await;
    watch.status(again, &seat, "processed").await;
    agent.stop().await;

    let given = adapter.given();
    let history = &given[0].history;
    assert_eq!(history.len(), 30, "the newest rows, not the first page");
    let last = history.last().expect("rows");
    assert!(last.own && last.content.contains("the last of the old"), "{last:?}");
    assert!(history[28].content.contains(&format!("@{}", seat.handle)), "{:?}", history[28]);
    let told = given[0].participants.as_deref().expect("who is there");
    assert!(told.contains("- @owner") && told.contains(&format!("- @{}", seat.handle)), "{told}");
    assert_eq!((given[1].history.len(), given[1].participants.is_none()), (0, true), "once a session");
}

#[tokio::test]
async fn a_turn_without_an_answer_is_reported_and_its_message_fails() {
    let server = TestServer::start().await;
    let seat = server.agent("silent").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let agent = run(&server, &seat, Scripted::always([Step::Think("Hm.".to_owned())]));
    let message = room.says("Well?", &[&seat]).await;
    watch.status(message, &seat, "failed").await;
    let error = watch.wait_for("the report", |row| row["message_type"] == "error").await;
    assert!(error["content"].as_str().expect("text").contains("without replying"), "{error}");
    assert_eq!(agent.stop().await, Stopped { clean: true });
}

#[tokio::test]
async fn an_adapter_that_fails_or_panics_costs_one_message_and_says_no_secret() {
    struct Panics;
    #[async_trait]
    impl bandstand_agent::adapter::Adapter for Panics {
        async fn on_message(
            &self,
            input: bandstand_agent::adapter::TurnInput,
        ) -> Result<(), bandstand_agent::adapter::TurnError> {
            match bare(&input.message.content) {
                "panic" => panic!("the secret is 42"),
                "fail" => Err(bandstand_agent::adapter::TurnError::failed("the secret is 42")),
                _ => {
                    input.tools.no_reply(None);
                    Ok(())
                }
            }
        }
    }
    let server = TestServer::start().await;
    let seat = server.agent("brittle").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let agent = run(&server, &seat, Panics);
    for (text, status) in [("panic", "failed"), ("fail", "failed"), ("fine", "processed")] {
        let message = room.says(text, &[&seat]).await;
        watch.status(message, &seat, status).await;
    }
    let history = room.history().await;
    assert_eq!(history.iter().filter(|row| row["message_type"] == "error").count(), 2);
    assert!(!format!("{history:?}").contains("42"), "{history:?}");
    agent.stop().await;
}

#[tokio::test]
async fn stop_gives_the_turn_up_without_a_mark_and_play_runs_it_again() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let adapter = Recorder::default();
    adapter.close();
    let agent = run(&server, &seat, adapter.clone());
    let message = room.says("slowly", &[&seat]).await;
    adapter.begun(1).await;
    server.owner().stops(&room).await;
    adapter.open();
    server.owner().plays(&room).await;
    watch.status(message, &seat, "processed").await;
    assert_eq!(adapter.finished(), ["slowly"]);
    agent.stop().await;
}

#[tokio::test]
async fn a_newer_instance_takes_over_and_the_older_ends_with_a_reason() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let older = run(&server, &seat, Echo);
    let first = room.says("one", &[&seat]).await;
    watch.status(first, &seat, "processed").await;
    let newer = run(&server, &seat, Echo);
    let ended = older.ended().await;
    assert!(matches!(ended, Err(AgentError::Superseded { .. })), "{ended:?}");
    let second = room.says("two", &[&seat]).await;
    watch.status(second, &seat, "processed").await;
    newer.stop().await;
    assert_eq!(room.said_by(&seat).await.len(), 2);
}

#[tokio::test]
async fn rooms_are_entered_and_left_while_the_agent_lives() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let agent = run(&server, &seat, Echo);
    for _ in 0..3 {
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let message = room.says("here?", &[&seat]).await;
        watch.status(message, &seat, "processed").await;
        server.owner().removes(&room, &seat).await;
        server.owner().adds(&room, &seat).await;
        let message = room.says("and again?", &[&seat]).await;
        watch.status(message, &seat, "processed").await;
    }
    assert_eq!(agent.stop().await, Stopped { clean: true });
}

#[tokio::test]
async fn a_second_process_on_the_machine_is_refused() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let folder = tempfile::tempdir().expect("a folder");
    let alone = RuntimeSettings { single_instance: true, lock_folder: Some(folder.path().to_owned()), ..settings() };
    let first = run_with(&server, &seat, Echo, alone.clone());
    let message = room.says("hello", &[&seat]).await;
    watch.status(message, &seat, "processed").await;
    let second = run_with(&server, &seat, Echo, alone).ended().await;
    assert!(matches!(second, Err(AgentError::Lock(_))), "{second:?}");
    first.stop().await;
}

#[tokio::test]
async fn a_turn_that_takes_too_long_fails() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let adapter = Recorder::default();
    adapter.close();
    let limited = RuntimeSettings { turn_limit: Some(Duration::from_millis(50)), ..settings() };
    let agent = run_with(&server, &seat, adapter, limited);
    let message = room.says("for ever", &[&seat]).await;
    watch.status(message, &seat, "failed").await;
    agent.stop().await;
}

#[tokio::test]
async fn a_stop_that_cannot_wait_cuts_the_turn_and_the_next_process_runs_it() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let adapter = Recorder::default();
    adapter.close();
    let hasty = RuntimeSettings { stop_timeout: Duration::from_millis(50), ..settings() };
    let agent = run_with(&server, &seat, adapter.clone(), hasty);
    let message = room.says("again", &[&seat]).await;
    adapter.begun(1).await;
    assert_eq!(agent.stop().await, Stopped { clean: false });
    let agent = run(&server, &seat, Echo);
    watch.status(message, &seat, "processed").await;
    agent.stop().await;
    assert_eq!(room.said_by(&seat).await.len(), 1);
}

/// Passes on what it hears.
struct Listener(mpsc::UnboundedSender<ContactEvent>);

#[async_trait]
impl ContactHandler for Listener {
    async fn on_event(
        &self,
        event: &ContactEvent,
        tools: &ContactTools,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if let ContactEvent::RequestReceived(request) = event {
            tools.respond_contact_request("approve", None, Some(&request.id)).await?;
        }
        self.0.send(event.clone())?;
        Ok(())
    }
}

#[tokio::test]
async fn a_program_deals_with_contact_requests_and_every_room_is_told() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let (heard, mut events) = mpsc::unbounded_channel();
    let contacts = ContactSettings { strategy: ContactStrategy::Callback(Arc::new(Listener(heard))), broadcast: true };
    let adapter = Recorder::default();
    let agent = run_with(&server, &seat, adapter.clone(), RuntimeSettings { contacts, ..settings() });
    let first = room.says("hello", &[&seat]).await;
    watch.status(first, &seat, "processed").await;

    let eve = server.person("eve").await;
    let body = serde_json::json!({ "contact_request": { "recipient_handle": seat.handle } });
    let (status, reply) = eve.request(reqwest::Method::POST, "/contacts/requests", Some(body)).await;
    assert_eq!(status, 201, "{reply}");
    let mut names = Vec::new();
    while names.len() < 3 {
        let event = tokio::time::timeout(bandstand_testkit::PATIENCE, events.recv()).await.expect("events come");
        names.push(event.expect("the agent runs").name());
    }
    names.sort_unstable();
    assert_eq!(names, ["contact_added", "contact_request_received", "contact_request_updated"]);
    let second = room.says("who asked?", &[&seat]).await;
    watch.status(second, &seat, "processed").await;
    let told = adapter.given()[1].contacts.clone().expect("news");
    assert!(told.contains("[Contacts]: [Contact Request]") && told.contains("@eve"), "{told}");
    agent.stop().await;
}

#[tokio::test]
async fn a_hub_room_lets_the_model_deal_with_contact_requests() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let contacts = ContactSettings { strategy: ContactStrategy::HubRoom { task_id: None }, broadcast: false };
    let adapter = Recorder::default();
    let agent = run_with(&server, &seat, adapter.clone(), RuntimeSettings { contacts, ..settings() });
    // Live once it answers.
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let first = room.says("hello", &[&seat]).await;
    watch.status(first, &seat, "processed").await;

    let eve = server.person("eve").await;
    let body = serde_json::json!({ "contact_request": { "recipient_handle": seat.handle } });
    let (status, reply) = eve.request(reqwest::Method::POST, "/contacts/requests", Some(body)).await;
    assert_eq!(status, 201, "{reply}");
    adapter.begun(2).await;
    let event = adapter.given()[1].content.clone();
    assert!(event.contains("hub for contact events") && event.contains("[Contact Request]"), "{event}");
    assert_eq!(agent.stop().await, Stopped { clean: true });
    assert_ne!(seat.id(), eve.id());
}

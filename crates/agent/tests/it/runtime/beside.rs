//! What happens beside a running turn: answers to what it asked, interrupts, turns that are let go of, lost marks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, IncomingMessage, TurnError, TurnInput};
use bandstand_agent::client::socket::Mode;
use bandstand_agent::registry::ToolError;
use bandstand_agent::runtime::{RuntimeSettings, Stopped};
use bandstand_agent::tools::AgentTools;
use bandstand_agent::turn::Conclusion;
use bandstand_agent::wire::ids::RoomId;
use bandstand_testkit::{PATIENCE, PushFault, RequestFault, TestServer};
use reqwest::Method;
use tokio::sync::{mpsc, oneshot, watch};

use super::support::{Recorder, bare, run, run_with, settings};

/// Asks before it answers, and takes the answer as a control reply.
#[derive(Clone, Default)]
struct Asking {
    waiting: Arc<Mutex<Option<oneshot::Sender<String>>>>,
    turns: Arc<AtomicUsize>,
}

#[async_trait]
impl Adapter for Asking {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        self.turns.fetch_add(1, Ordering::SeqCst);
        let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
        let (answer, answered) = oneshot::channel();
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        input.tools.send_message("Which colour?", &[sender.as_str()]).await?;
        let colour = answered.await.map_err(TurnError::failed)?;
        input.tools.send_message(&format!("Painted it {colour}."), &[sender.as_str()]).await?;
        Ok(())
    }

    async fn try_handle_control(&self, message: &IncomingMessage, _: &AgentTools) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.is_some_and(|answer| answer.send(bare(&message.content).to_owned()).is_ok())
    }
}

#[tokio::test]
async fn an_answer_to_a_running_turn_is_taken_beside_it_and_marked_as_done() {
    let server = TestServer::start().await;
    let seat = server.agent("painter").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let adapter = Asking::default();
    let agent = run(&server, &seat, adapter.clone());
    let order = room.says("Paint it.", &[&seat]).await;
    watch.wait_for("the question", |row| row["content"].as_str().is_some_and(|text| text.contains("colour?"))).await;
    let answer = room.says("blue", &[&seat]).await;
    watch.status(order, &seat, "processed").await;
    watch.status(answer, &seat, "processed").await;
    assert_eq!(agent.stop().await, Stopped { clean: true });
    assert_eq!(adapter.turns.load(Ordering::SeqCst), 1, "the answer is no turn of its own");
    let said = room.said_by(&seat).await;
    assert!(said.len() == 2 && said[1].ends_with("Painted it blue."), "{said:?}");
}

/// Notes how its turns were given up.
#[derive(Clone)]
struct Hooked(Recorder, mpsc::UnboundedSender<Mode>);

#[async_trait]
impl Adapter for Hooked {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        self.0.on_message(input).await
    }

    async fn on_interrupt(&self, _: RoomId, mode: Mode) {
        self.1.send(mode).expect("the test listens");
    }
}

#[tokio::test]
async fn an_interrupted_turn_says_nothing_more_and_its_message_is_done() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let (told, mut modes) = mpsc::unbounded_channel();
    let adapter = Recorder::default();
    adapter.close();
    let agent = run(&server, &seat, Hooked(adapter.clone(), told));
    let message = room.says("at length", &[&seat]).await;
    adapter.begun(1).await;
    server.owner().interrupts(&room, &seat).await;
    watch.status(message, &seat, "processed").await;
    assert_eq!(modes.recv().await, Some(Mode::Interrupt));
    assert_eq!(room.said_by(&seat).await.len(), 0);
    adapter.open();
    let next = room.says("in short", &[&seat]).await;
    watch.status(next, &seat, "processed").await;
    assert_eq!(agent.stop().await, Stopped { clean: true });
    assert_eq!(adapter.finished(), ["in short"]);
}

#[tokio::test]
async fn what_is_pushed_again_while_it_runs_does_not_run_twice() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let adapter = Recorder::default();
    let agent = run(&server, &seat, adapter.clone());
    let live = room.says("live?", &[&seat]).await;
    watch.status(live, &seat, "processed").await;
    adapter.close();
    // On both sockets, the watch's too: the first push of each comes behind the second.
    server.faults().on_push("message_created", 2, PushFault::Swap);
    room.says("first", &[&seat]).await;
    // Found by looking, since the push is held.
    adapter.begun(2).await;
    server.faults().on_push("message_created", 2, PushFault::Double);
    let second = room.says("second", &[&seat]).await;
    watch.wait_for("the push", |row| row["content"].as_str().is_some_and(|text| text.ends_with("second"))).await;
    adapter.open();
    watch.status(second, &seat, "processed").await;
    assert_eq!(agent.stop().await, Stopped { clean: true });
    assert_eq!(adapter.finished(), ["live?", "first", "second"]);
    assert_eq!(room.said_by(&seat).await.len(), 3);
}

/// Fails on `fail`, answers everything else.
#[derive(Clone, Default)]
struct Brittle(Arc<AtomicUsize>);

#[async_trait]
impl Adapter for Brittle {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if bare(&input.message.content) == "fail" {
            return Err(TurnError::failed("on purpose"));
        }
        input.tools.no_reply(None);
        Ok(())
    }
}

#[tokio::test]
async fn a_failed_mark_whose_answer_is_lost_is_sent_again_and_the_turn_is_not() {
    for attempts in [1, 2] {
        let server = TestServer::start().await;
        let seat = server.agent("brittle").await;
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let adapter = Brittle::default();
        server.faults().on_request(Method::POST, "/failed", 1, RequestFault::Cut);
        server.faults().on_request(Method::POST, "/failed", 1, RequestFault::LoseReply);
        let agent = run_with(&server, &seat, adapter.clone(), RuntimeSettings { max_attempts: attempts, ..settings() });
        let message = room.says("fail", &[&seat]).await;
        let next = room.says("and on", &[&seat]).await;
        watch.status(message, &seat, "failed").await;
        watch.status(next, &seat, "processed").await;
        assert_eq!(agent.stop().await, Stopped { clean: true });
        let turns = usize::try_from(attempts).expect("few") + 1;
        assert_eq!(adapter.0.load(Ordering::SeqCst), turns, "as many attempts as were set, and the other message");
        let errors = room.history().await.iter().filter(|row| row["message_type"] == "error").count();
        assert_eq!(errors, 1, "the room is told once, after the last attempt");
    }
}

/// Lets go of its turn and goes on beside it, as an adapter does that has a queue of its own.
#[derive(Clone)]
struct LettingGo {
    go_on: watch::Sender<bool>,
    ends: mpsc::UnboundedSender<Conclusion>,
}

#[async_trait]
impl Adapter for LettingGo {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let tools = input.tools.clone();
        tools.turn().detach();
        let (mut go_on, ends) = (self.go_on.subscribe(), self.ends.clone());
        tokio::spawn(async move {
            go_on.wait_for(|go_on| *go_on).await.expect("the test lives");
            if bare(&input.message.content) == "answer me" {
                let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
                tools.send_message("Later.", &[sender.as_str()]).await?;
            }
            let _ = ends.send(tools.conclude_detached().await);
            Ok::<_, ToolError>(())
        });
        Ok(())
    }
}

#[tokio::test]
async fn a_turn_that_is_let_go_of_is_marked_at_once_and_judged_at_its_real_end() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watched = room.watch().await;
    let (ends, mut ended) = mpsc::unbounded_channel();
    let adapter = LettingGo { go_on: watch::Sender::new(false), ends };
    let agent = run(&server, &seat, adapter.clone());
    let answered = room.says("answer me", &[&seat]).await;
    let ignored = room.says("ignore me", &[&seat]).await;
    watched.status(answered, &seat, "processed").await;
    watched.status(ignored, &seat, "processed").await;
    assert_eq!(room.said_by(&seat).await.len(), 0);
    adapter.go_on.send_replace(true);
    let mut conclusions = Vec::new();
    for _ in 0..2 {
        let one = tokio::time::timeout(PATIENCE, ended.recv()).await.expect("both end");
        conclusions.push(format!("{:?}", one.expect("the adapter lives")));
    }
    conclusions.sort_unstable();
    assert_eq!(conclusions, ["Complete", "MissingReply"]);
    assert_eq!(agent.stop().await, Stopped { clean: true });
    assert_eq!(room.said_by(&seat).await.len(), 1);
    let errors = room.history().await.iter().filter(|row| row["message_type"] == "error").count();
    assert_eq!(errors, 1, "the room is told of the other");
}

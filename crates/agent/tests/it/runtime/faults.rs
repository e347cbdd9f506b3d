//! Bad lines: no message is lost, none is handled twice to completion, and the room's order is kept.

use bandstand_agent::adapter::Echo;
use bandstand_agent::runtime::Stopped;
use bandstand_testkit::{AgentSeat, Held, PushFault, RequestFault, Room, TestServer, Watch};
use proptest::prelude::*;
use reqwest::Method;

use super::support::{Recorder, Running, run};

struct Setting {
    server: TestServer,
    seat: AgentSeat,
    room: Room,
    watch: Watch,
    adapter: Recorder,
    agent: Running,
}

impl Setting {
    /// An agent that is live.
    async fn new() -> Self {
        let server = TestServer::start().await;
        let seat = server.agent("worker").await;
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let adapter = Recorder::default();
        let agent = run(&server, &seat, adapter.clone());
        let message = room.says("live?", &[&seat]).await;
        watch.status(message, &seat, "processed").await;
        Self { server, seat, room, watch, adapter, agent }
    }

    /// Says these and waits until the last is dealt with.
    async fn says(&mut self, texts: &[&str]) {
        let mut last = None;
        for text in texts {
            last = Some(self.room.says(text, &[&self.seat]).await);
        }
        if let Some(last) = last {
            self.watch.status(last, &self.seat, "processed").await;
        }
    }

    /// Everything was dealt with once and in order, and said once.
    async fn ends_well(self, texts: &[&str]) {
        assert_eq!(self.agent.stop().await, Stopped { clean: true });
        let wanted: Vec<&str> = std::iter::once("live?").chain(texts.iter().copied()).collect();
        assert_eq!(self.adapter.finished(), wanted);
        assert_eq!(self.room.said_by(&self.seat).await.len(), wanted.len());
    }
}

#[tokio::test]
async fn pushes_that_are_lost_doubled_or_swapped_change_nothing() {
    let mut setting = Setting::new().await;
    for fault in [PushFault::Drop, PushFault::Double, PushFault::Swap] {
        setting.server.faults().on_push("message_created", 2, fault);
    }
    let texts = ["1", "2", "3", "4", "5", "6", "7", "8"];
    setting.says(&texts).await;
    setting.ends_well(&texts).await;
}

#[tokio::test]
async fn a_mark_whose_answer_is_lost_is_sent_again_and_the_turn_is_not() {
    let mut setting = Setting::new().await;
    setting.server.faults().on_request(Method::POST, "/processed", 1, RequestFault::LoseReply);
    setting.server.faults().on_request(Method::POST, "/processed", 1, RequestFault::Cut);
    setting.says(&["once", "and on"]).await;
    setting.ends_well(&["once", "and on"]).await;
}

#[tokio::test]
async fn a_claim_whose_answer_is_lost_runs_one_turn() {
    let mut setting = Setting::new().await;
    setting.server.faults().on_request(Method::POST, "/processing", 5, RequestFault::LoseReply);
    setting.says(&["once", "and on"]).await;
    setting.ends_well(&["once", "and on"]).await;
}

#[tokio::test]
async fn a_server_that_is_too_busy_is_asked_again() {
    let mut setting = Setting::new().await;
    for (path, method) in [("/next", Method::GET), ("/processing", Method::POST), ("/processed", Method::POST)] {
        let busy = RequestFault::Answer { status: 429, retry_after: Some(0) };
        setting.server.faults().on_request(method.clone(), path, 2, busy);
        let down = RequestFault::Answer { status: 503, retry_after: None };
        setting.server.faults().on_request(method, path, 2, down);
    }
    setting.says(&["a", "b"]).await;
    setting.ends_well(&["a", "b"]).await;
}

#[tokio::test]
async fn a_socket_that_is_cut_in_the_middle_of_a_turn_does_not_end_the_turn() {
    let mut setting = Setting::new().await;
    setting.adapter.close();
    let message = setting.room.says("through it", &[&setting.seat]).await;
    setting.adapter.begun(2).await;
    setting.server.faults().cut_sockets();
    setting.adapter.open();
    // The watch was cut as well.
    setting.watch = setting.room.watch().await;
    setting.says(&["after it"]).await;
    let _ = message;
    setting.ends_well(&["through it", "after it"]).await;
}

#[tokio::test]
async fn a_server_that_dies_during_a_claim_comes_back_to_the_same_agent() {
    let mut setting = Setting::new().await;
    let gate = Held::new();
    setting.server.faults().on_request(Method::POST, "/processing", 1, RequestFault::Hold(gate.clone()));
    setting.room.says("held", &[&setting.seat]).await;
    gate.arrived().await;
    setting.server.crash().await;
    gate.release();
    setting.server.come_back().await;
    setting.watch = setting.room.watch().await;
    setting.says(&["after"]).await;
    setting.ends_well(&["held", "after"]).await;
}

#[tokio::test]
async fn a_process_that_dies_in_the_middle_of_a_turn_leaves_it_to_the_next() {
    let server = TestServer::start().await;
    let seat = server.agent("worker").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let adapter = Recorder::default();
    adapter.close();
    let agent = run(&server, &seat, adapter.clone());
    let message = room.says("half done", &[&seat]).await;
    adapter.begun(1).await;
    agent.kill().await;
    let agent = run(&server, &seat, Echo);
    watch.status(message, &seat, "processed").await;
    agent.stop().await;
    assert_eq!(room.said_by(&seat).await.len(), 1);
}

/// Something that goes wrong while messages are posted.
#[derive(Clone, Debug)]
enum Trouble {
    Push(PushFault),
    Request(u8, bool),
    CutSockets,
    Restart,
}

fn troubles() -> impl Strategy<Value = Vec<Trouble>> {
    let one = prop_oneof![
        3 => prop_oneof![Just(PushFault::Drop), Just(PushFault::Double), Just(PushFault::Swap)].prop_map(Trouble::Push),
        4 => (0u8..4, any::<bool>()).prop_map(|(path, lose)| Trouble::Request(path, lose)),
        1 => Just(Trouble::CutSockets),
        1 => Just(Trouble::Restart),
    ];
    prop::collection::vec(one, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_goes_wrong_each_message_is_dealt_with_once_and_in_order(troubles in troubles()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut setting = Setting::new().await;
            let mut texts = Vec::new();
            for (number, trouble) in troubles.iter().enumerate() {
                let faults = setting.server.faults();
                match trouble {
                    Trouble::Push(fault) => {
                        faults.on_push("message_created", 1, *fault);
                    }
                    Trouble::Request(path, lose) => {
                        let (method, path) = match path {
                            0 => (Method::GET, "/next"),
                            1 => (Method::POST, "/processing"),
                            2 => (Method::POST, "/processed"),
                            _ => (Method::GET, "/participants"),
                        };
                        let fault = if *lose { RequestFault::LoseReply } else { RequestFault::Cut };
                        faults.on_request(method, path, 1, fault);
                    }
                    Trouble::CutSockets => {
                        faults.cut_sockets();
                    }
                    Trouble::Restart => setting.server.restart().await,
                }
                let text = format!("message {number}");
                setting.room.says(&text, &[&setting.seat]).await;
                texts.push(text);
            }
            setting.server.faults().clear();
            setting.watch = setting.room.watch().await;
            texts.push("the end".to_owned());
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            setting.says(&["the end"]).await;
            setting.ends_well(&texts).await;
        });
    }
}

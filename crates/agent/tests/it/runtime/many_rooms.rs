//! One agent in a thousand rooms.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, TurnError, TurnInput};
use bandstand_agent::runtime::{IdlePauses, RuntimeSettings, Stopped, WorkingState};
use bandstand_agent::wire::ids::RoomId;
use bandstand_testkit::TestServer;
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;

use super::support::{bare, run_with, settings};

const ROOMS: usize = 1_000;
/// Rooms with much to do, which must not keep the others waiting.
const BUSY: usize = 3;
const BACKLOG: usize = 12;
const AT_ONCE: usize = 8;

/// Declines everything, and notes where, what and how many at a time.
#[derive(Clone, Default)]
struct Counting(Arc<Counts>);

#[derive(Default)]
struct Counts {
    running: AtomicUsize,
    most: AtomicUsize,
    done: Mutex<Vec<(RoomId, String)>>,
    count: watch::Sender<usize>,
}

impl Counting {
    async fn reached(&self, count: usize) {
        // Far more than a busy machine takes.
        let waiting = tokio::time::timeout(Duration::from_secs(150), async {
            self.0.count.subscribe().wait_for(|done| *done >= count).await.map(|_| ())
        });
        let reached = waiting.await.unwrap_or_else(|_| panic!("{count} turns, not {}", *self.0.count.borrow()));
        reached.expect("the sender lives");
    }
}

#[async_trait]
impl Adapter for Counting {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let running = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(running, Ordering::SeqCst);
        // Others get a chance to overtake.
        tokio::task::yield_now().await;
        input.tools.no_reply(None);
        let text = bare(&input.message.content).to_owned();
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner).push((input.message.room, text));
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.count.send_modify(|done| *done += 1);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_rooms_are_worked_off_in_order_with_bounds_and_no_room_starves() {
    let server = TestServer::start().await;
    let seat = server.agent("everywhere").await;
    let owner = server.owner();
    let rooms: Vec<_> = stream::iter(0..ROOMS)
        .map(|number| {
            let (owner, seat) = (owner.clone(), seat.clone());
            async move {
                let room = owner.room(&[&seat]).await;
                for text in 0..if number < BUSY { BACKLOG } else { 1 } {
                    room.says(&text.to_string(), &[&seat]).await;
                }
                room
            }
        })
        .buffered(16)
        .collect()
        .await;

    let adapter = Counting::default();
    let pause = Duration::from_secs(600);
    let quiet = RuntimeSettings {
        concurrent_turns: AT_ONCE,
        history_rows: 0,
        working_state: WorkingState { reported: false, ..WorkingState::default() },
        // Whatever is done is done because of the backlog or a push.
        idle: IdlePauses { first: pause, longest: pause, stopped: pause },
        ..settings()
    };
    let agent = run_with(&server, &seat, adapter.clone(), quiet);
    let backlog = ROOMS - BUSY + BUSY * BACKLOG;
    adapter.reached(backlog).await;
    // And live, here and there.
    for room in rooms.iter().step_by(100) {
        room.says("live", &[&seat]).await;
    }
    adapter.reached(backlog + ROOMS / 100).await;
    assert_eq!(agent.stop().await, Stopped { clean: true });

    let most = adapter.0.most.load(Ordering::SeqCst);
    assert!(most <= AT_ONCE, "{most} turns at a time");
    let done = adapter.0.done.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut by_room: HashMap<RoomId, Vec<&str>> = HashMap::new();
    for (room, text) in &done {
        by_room.entry(*room).or_default().push(text);
    }
    let numbers: Vec<String> = (0..BACKLOG).map(|number| number.to_string()).collect();
    for (number, room) in rooms.iter().enumerate() {
        let mut wanted: Vec<&str> =
            numbers.iter().map(String::as_str).take(if number < BUSY { BACKLOG } else { 1 }).collect();
        if number % 100 == 0 {
            wanted.push("live");
        }
        assert_eq!(by_room.remove(&room.id), Some(wanted), "room {number}: each once, and in order");
    }
    // Who waits for a place is served in the order of coming, so a room with much to do takes its turn among the others.
    let others = done.iter().rposition(|(_, text)| text == "0").expect("the last first message");
    let busy = done.iter().position(|(_, text)| *text == numbers[BACKLOG - 1]).expect("the last of a busy room");
    assert!(busy > others / 2, "a busy room was done at {busy}, when others had waited until {others}");
}

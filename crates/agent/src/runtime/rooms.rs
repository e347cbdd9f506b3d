//! The rooms an agent is in, each with its worker.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bandstand_wire::ids::RoomId;
use bandstand_wire::phoenix::Topic;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::room::{RoomInput, RoomWorker};
use super::shared::Shared;
use super::timing;
use crate::client::socket::Socket;
use crate::client::{Client, ClientError};

/// The platform's largest page of rooms.
const PAGE: i64 = 100;
/// Pages of rooms that are read at most.
const PAGES: i64 = 50;
/// Tries to join a room's topics before it is left to the next reconnect.
const JOINS: u32 = 5;

struct Seat {
    inputs: mpsc::UnboundedSender<RoomInput>,
    /// Cancelled when the room is to end: nothing is waited for any more that is not a turn.
    ending: CancellationToken,
    task: Id,
}

/// Every room has one worker, and one only.
pub(super) struct Rooms {
    shared: Arc<Shared>,
    socket: Arc<Socket>,
    seats: HashMap<RoomId, Seat>,
    workers: JoinSet<RoomId>,
    of_task: HashMap<Id, RoomId>,
    /// Topics that are being left.
    leaving: JoinSet<()>,
}

impl Rooms {
    pub(super) fn new(shared: Arc<Shared>, socket: Arc<Socket>) -> Self {
        Self {
            shared,
            socket,
            seats: HashMap::new(),
            workers: JoinSet::new(),
            of_task: HashMap::new(),
            leaving: JoinSet::new(),
        }
    }

    /// The agent is in a room. Doing it twice does nothing.
    pub(super) fn enter(&mut self, room: RoomId) {
        if self.seats.contains_key(&room) {
            return;
        }
        let (inputs, told) = mpsc::unbounded_channel();
        let (shared, socket) = (Arc::clone(&self.shared), Arc::clone(&self.socket));
        let ending = CancellationToken::new();
        let task = self.workers.spawn({
            let ending = ending.clone();
            async move {
                // First the topics and then the backlog, so that nothing falls between the two. What is done once is
                // boxed: the task that stays is no larger for it.
                let joined = tokio::select! {
                    biased;
                    () = ending.cancelled() => true,
                    joined = Box::pin(join(&socket, room)) => joined,
                };
                let mut worker = Box::pin(RoomWorker::new(Arc::clone(&shared), room).run(told));
                if !joined {
                    tokio::select! {
                        () = &mut worker => return room,
                        () = Box::pin(join_later(&shared, &socket, room, &ending)) => {}
                    }
                }
                worker.await;
                room
            }
        });
        self.of_task.insert(task.id(), room);
        self.seats.insert(room, Seat { inputs, ending, task: task.id() });
    }

    /// The agent is no more in a room.
    pub(super) fn leave(&mut self, room: RoomId) {
        if let Some(seat) = self.seats.remove(&room) {
            // Whatever runs there can reach nobody any more.
            let _ = seat.inputs.send(RoomInput::Cut);
            seat.ending.cancel();
        }
    }

    /// Tells a room; false when the agent is not in it.
    pub(super) fn tell(&self, room: RoomId, input: RoomInput) -> bool {
        self.seats.get(&room).is_some_and(|seat| seat.inputs.send(input).is_ok())
    }

    /// Tells every room.
    pub(super) fn tell_all(&self, input: impl Fn() -> RoomInput) -> usize {
        self.seats.values().filter(|seat| seat.inputs.send(input()).is_ok()).count()
    }

    /// The platform's list is the truth: what is not in it is left, what is new is entered. Returns the rooms that were
    /// there before and still are.
    pub(super) fn settle(&mut self, list: &[RoomId]) {
        let wanted: HashSet<RoomId> = list.iter().copied().collect();
        let gone: Vec<RoomId> = self.seats.keys().filter(|room| !wanted.contains(room)).copied().collect();
        for room in gone {
            self.leave(room);
        }
        for room in list {
            self.enter(*room);
        }
    }

    /// Waits until a worker ended. One that panicked while the agent is still in its room is replaced.
    pub(super) async fn ended(&mut self) {
        let Some(ended) = self.workers.join_next_with_id().await else { return std::future::pending().await };
        let (task, panicked) = match &ended {
            Ok((task, _)) => (*task, false),
            Err(error) => (error.id(), JoinError::is_panic(error)),
        };
        let Some(room) = self.of_task.remove(&task) else { return };
        if self.seats.get(&room).is_some_and(|seat| seat.task == task) {
            self.seats.remove(&room);
            if panicked {
                tracing::error!(%room, "a room's worker panicked; another takes its place");
                self.enter(room);
            }
        }
        while self.leaving.try_join_next().is_some() {}
        // A room that was entered again meanwhile needs its topics.
        if !self.seats.contains_key(&room) {
            let socket = Arc::clone(&self.socket);
            self.leaving.spawn(async move {
                socket.leave(Topic::ChatRoom(room)).await;
                socket.leave(Topic::RoomParticipants(room)).await;
            });
        }
    }

    /// Lets every room finish what it is at, and cuts what has not ended in time. True when nothing had to be cut.
    pub(super) async fn close(mut self, within: Duration) -> bool {
        self.tell_all(|| RoomInput::Close);
        self.seats.values().for_each(|seat| seat.ending.cancel());
        let in_time = tokio::time::timeout(within, async { while self.workers.join_next().await.is_some() {} }).await;
        if in_time.is_ok() {
            return true;
        }
        tracing::warn!(rooms = self.workers.len(), "turns are cut");
        self.cut().await;
        false
    }

    /// Cuts every turn. Its message stays claimed and is served again.
    pub(super) async fn cut(mut self) {
        self.tell_all(|| RoomInput::Cut);
        self.seats.values().for_each(|seat| seat.ending.cancel());
        let grace = self.shared.settings.turn_grace + Duration::from_secs(1);
        let in_time = tokio::time::timeout(grace, async { while self.workers.join_next().await.is_some() {} }).await;
        if in_time.is_err() {
            self.workers.shutdown().await;
        }
    }
}

/// Tries to join a room's topics; true when both are joined.
async fn join(socket: &Socket, room: RoomId) -> bool {
    let (said, present) =
        futures_util::future::join(socket.join(Topic::ChatRoom(room)), socket.join(Topic::RoomParticipants(room)))
            .await;
    for why in [&said, &present].into_iter().filter_map(|joined| joined.as_ref().err()) {
        tracing::warn!(%room, %why, "a topic is not joined");
    }
    said.is_ok() && present.is_ok()
}

/// Tries again, less and less often. When that fails for good, the room lives on `/messages/next` until the next
/// reconnect.
async fn join_later(shared: &Shared, socket: &Socket, room: RoomId, ending: &CancellationToken) {
    let trying = async {
        for attempt in 2..=JOINS {
            let options = shared.client.options();
            options.clock.sleep(timing::backoff(attempt, options.randomness.as_ref())).await;
            if !socket.is_open() || join(socket, room).await {
                return;
            }
        }
        tracing::error!(%room, "a room's topics are not joined; it is looked at from time to time");
    };
    tokio::select! {
        () = ending.cancelled() => {}
        () = trying => {}
    }
}

/// The rooms that the agent is in now, each once.
pub(super) async fn list(client: &Client) -> Result<Vec<RoomId>, ClientError> {
    let mut rooms = Vec::new();
    let mut known = HashSet::new();
    for page in 1..=PAGES {
        let listed = client.rooms(page, PAGE).await?;
        let more = listed.metadata.has_next(page);
        rooms.extend(listed.data.into_iter().map(|room| room.id).filter(|room| known.insert(*room)));
        if !more {
            return Ok(rooms);
        }
    }
    tracing::warn!(rooms = rooms.len(), "the agent is in more rooms than are looked at");
    Ok(rooms)
}

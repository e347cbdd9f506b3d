//! The socket against the real server: pushes, signals, lost connections, a newer connection, a key that is gone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bandstand_agent::client::Client;
use bandstand_agent::client::socket::{
    ConnectError, Incoming, JoinError, Mode, OnConflict, Push, Socket, SocketEvent, SocketOptions, Terminal,
};
use bandstand_agent::time::{Clock, SystemClock};
use bandstand_agent::wire::ids::RoomId;
use bandstand_agent::wire::phoenix::Topic;
use bandstand_agent::wire::time::Timestamp;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use uuid::Uuid;

use crate::support::{PATIENCE, TestAgent, World, options};

async fn next(incoming: &mut Incoming) -> SocketEvent {
    tokio::time::timeout(PATIENCE, incoming.events.recv()).await.expect("an event").expect("the socket runs")
}

async fn connected(agent: &TestAgent) -> (Socket, Incoming) {
    agent.client.connect(SocketOptions::new(agent.me.id)).await.expect("a socket")
}

/// Time whose waits are over at once: reconnects need no patience.
#[derive(Debug)]
struct HastyClock;

impl Clock for HastyClock {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Heartbeats and the like stay as they are.
        let wait = if duration < Duration::from_secs(20) { Duration::from_millis(1) } else { duration };
        SystemClock.sleep(wait)
    }
}

/// A way to the server that can be cut.
struct Wire {
    address: SocketAddr,
    cut: watch::Sender<u32>,
}

impl Wire {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, cuts) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut cuts = cuts.clone();
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { address, cut }
    }

    fn cut(&self) {
        self.cut.send_modify(|number| *number += 1);
    }

    fn client(&self, agent: &TestAgent) -> Client {
        let mut options = options(&format!("http://{}", self.address), &agent.key);
        options.clock = Arc::new(HastyClock);
        options.build().unwrap()
    }
}

#[tokio::test]
async fn what_is_said_to_the_agent_is_pushed() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let (socket, mut incoming) = connected(&bob).await;
    socket.join(Topic::AgentRooms(bob.me.id)).await.unwrap();
    let room = world.room(&[&bob]).await;
    let SocketEvent::Push { push: Push::RoomAdded(added), .. } = next(&mut incoming).await else { panic!() };
    assert_eq!(added.id, room);
    socket.join(Topic::ChatRoom(room)).await.unwrap();
    // Joining twice is joining once.
    socket.join(Topic::ChatRoom(room)).await.unwrap();
    world.says(room, "hello", &[&bob]).await;
    let SocketEvent::Push { push: Push::MessageCreated(message), topic } = next(&mut incoming).await else { panic!() };
    assert_eq!((topic, message.sender_id), (Topic::ChatRoom(room), world.owner));

    let elsewhere = Topic::ChatRoom(RoomId(Uuid::from_u128(1)));
    assert_eq!(socket.join(elsewhere).await, Err(JoinError::Refused("unauthorized".into())));
    world.person("POST", &format!("chats/{room}/agents/stop"), Value::Null).await;
    let signal = tokio::time::timeout(PATIENCE, incoming.signals.recv()).await.unwrap().unwrap();
    assert_eq!((signal.mode, signal.room_id), (Mode::Stop, Some(room)));
    socket.leave(Topic::ChatRoom(room)).await;
    socket.close().await;
    assert_eq!(next(&mut incoming).await, SocketEvent::Ended(Terminal::Closed));
    world.end().await;
}

#[tokio::test]
async fn a_lost_connection_comes_back_with_every_topic() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let wire = Wire::to(world.address).await;
    let (socket, mut incoming) = wire.client(&bob).connect(SocketOptions::new(bob.me.id)).await.unwrap();
    socket.join(Topic::ChatRoom(room)).await.unwrap();
    // Not more often: a connection that never holds is held down for longer.
    for round in 0..2 {
        wire.cut();
        assert_eq!(next(&mut incoming).await, SocketEvent::Disconnected { code: None });
        assert_eq!(next(&mut incoming).await, SocketEvent::Reconnected, "round {round}");
        world.says(room, "still there?", &[&bob]).await;
        let SocketEvent::Push { push: Push::MessageCreated(_), .. } = next(&mut incoming).await else { panic!() };
    }
    // A room that the agent was taken out of meanwhile is lost, and says so.
    world.person("DELETE", &format!("chats/{room}/participants/{}", bob.me.id), Value::Null).await;
    wire.cut();
    assert_eq!(next(&mut incoming).await, SocketEvent::Disconnected { code: None });
    let lost = SocketEvent::TopicLost { topic: Topic::ChatRoom(room), reason: "unauthorized".into() };
    assert_eq!(next(&mut incoming).await, lost);
    assert_eq!(next(&mut incoming).await, SocketEvent::Reconnected);
    socket.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_newer_connection_takes_over_or_is_refused() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let (_first, mut incoming) = connected(&bob).await;
    let reject = SocketOptions { on_conflict: OnConflict::Reject, ..SocketOptions::new(bob.me.id) };
    let refused = bob.client.connect(reject).await.map(|_| ()).unwrap_err();
    assert_eq!(refused, ConnectError::Terminal(Terminal::Conflict));
    let (second, _incoming) = connected(&bob).await;
    let SocketEvent::Ended(Terminal::Superseded { reason, .. }) = next(&mut incoming).await else { panic!() };
    assert_eq!(reason, "session.already_connected");
    assert!(incoming.events.recv().await.is_none());
    second.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_key_that_is_not_valid_ends_it() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let wrong = crate::support::client(&world.url(), "band_a_wrong");
    let refused = wrong.connect(SocketOptions::new(bob.me.id)).await.map(|_| ()).unwrap_err();
    assert_eq!(refused, ConnectError::Terminal(Terminal::Refused { status: 403, code: String::new() }));

    let wire = Wire::to(world.address).await;
    let (socket, mut incoming) = wire.client(&bob).connect(SocketOptions::new(bob.me.id)).await.unwrap();
    world.app.state().services.revoke_key(&bob.me.id.to_string()).await.unwrap();
    assert_eq!(next(&mut incoming).await, SocketEvent::Disconnected { code: Some(1001) });
    let ended = SocketEvent::Ended(Terminal::Refused { status: 403, code: String::new() });
    assert_eq!(next(&mut incoming).await, ended);
    assert_eq!(socket.join(Topic::AgentRooms(bob.me.id)).await, Err(JoinError::Ended));
    world.end().await;
}

#[tokio::test]
async fn a_listener_that_does_not_keep_up_is_told_what_it_missed() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let options = SocketOptions { events: 2, ..SocketOptions::new(bob.me.id) };
    let (socket, mut incoming) = bob.client.connect(options).await.unwrap();
    socket.join(Topic::ChatRoom(room)).await.unwrap();
    for number in 0..4 {
        world.says(room, &format!("message {number}"), &[&bob]).await;
    }
    // An answer after the pushes: they were all seen by then.
    socket.join(Topic::RoomParticipants(room)).await.unwrap();
    for _ in 0..2 {
        assert!(matches!(next(&mut incoming).await, SocketEvent::Push { .. }));
    }
    world.says(room, "one more", &[&bob]).await;
    assert_eq!(next(&mut incoming).await, SocketEvent::Overflow);
    socket.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_as_often_as_allowed() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let mut nowhere = options("http://127.0.0.1:1", &bob.key);
    nowhere.clock = Arc::new(HastyClock);
    let options = SocketOptions { connect_attempts: Some(3), ..SocketOptions::new(bob.me.id) };
    let failed = nowhere.build().unwrap().connect(options).await.map(|_| ()).unwrap_err();
    assert_eq!(failed, ConnectError::Unreachable("no connection".into()));
    world.end().await;
}

#[tokio::test]
async fn everything_is_encrypted_where_the_address_says_so() {
    let world = World::start_encrypted().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let (socket, mut incoming) = connected(&bob).await;
    socket.join(Topic::ChatRoom(room)).await.unwrap();
    world.says(room, "psst", &[&bob]).await;
    assert!(matches!(next(&mut incoming).await, SocketEvent::Push { push: Push::MessageCreated(_), .. }));
    socket.close().await;

    // The machine itself does not trust the certificate of the tests.
    let mut strict = options(&world.url(), &bob.key);
    strict.tls = None;
    strict.retries = 0;
    let strict = strict.build().unwrap();
    assert!(strict.me().await.is_err());
    let once = SocketOptions { connect_attempts: Some(1), ..SocketOptions::new(bob.me.id) };
    let refused = strict.connect(once).await.map(|_| ()).unwrap_err();
    assert!(refused.to_string().starts_with("no connection: TLS: "), "{refused}");
    world.end().await;
}

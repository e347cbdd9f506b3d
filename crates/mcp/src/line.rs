//! The open line of an agent: its socket, and which of its rooms may have something for it.
//!
//! A push only says where to look. `/messages/next` of that room says what there is, also after a reconnect, when pushes
//! were missed.

use std::collections::{HashMap, HashSet};

use bandstand_agent::client::model::ChatMessage;
use bandstand_agent::client::socket::{
    ConnectError, Incoming, JoinError, Mode, Push, Scope, Signal, Socket, SocketEvent, SocketOptions, Terminal,
};
use bandstand_agent::client::{Client, ClientError};
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::phoenix::Topic;
use futures_util::StreamExt;
use futures_util::stream;

/// Rows of a page of rooms.
const PAGE: i64 = 100;

/// Rooms that are joined, or asked for their next message, at once.
const AT_ONCE: usize = 8;

/// Why waiting cannot go on just now, or at all.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It may pass by itself.
    Passing(String),
    /// It will not.
    Final(String),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match error.status() {
            Some(status @ 400..500) if status != 408 && status != 429 => Self::Final(error.to_string()),
            _ => Self::Passing(error.to_string()),
        }
    }
}

/// The open line.
pub(crate) struct Line {
    socket: Socket,
    incoming: Incoming,
    pinned: Option<RoomId>,
    joined: HashSet<RoomId>,
    /// Rooms to be asked for their next message.
    unsure: HashSet<RoomId>,
    /// The next message of each room that has one.
    heads: HashMap<RoomId, ChatMessage>,
    /// Whether rooms may have come that were not announced.
    relist: bool,
}

impl Line {
    /// Connects. An older connection of the same agent is superseded: whoever waits is the live one.
    pub(crate) async fn open(client: &Client, agent: IdentityId, pinned: Option<RoomId>) -> Result<Self, Trouble> {
        let options = SocketOptions { connect_attempts: Some(1), ..SocketOptions::new(agent) };
        let (socket, incoming) = client.connect(options).await.map_err(|error| match error {
            ConnectError::Terminal(why) => Trouble::Final(ended(&why)),
            error => Trouble::Passing(error.to_string()),
        })?;
        if pinned.is_none() {
            // Before the rooms are listed, so that none falls between.
            socket.join(Topic::AgentRooms(agent)).await.map_err(not_joined)?;
        }
        Ok(Self {
            socket,
            incoming,
            pinned,
            joined: HashSet::new(),
            unsure: HashSet::new(),
            heads: HashMap::new(),
            relist: true,
        })
    }

    /// Whether it can still tell something.
    pub(crate) fn is_open(&self) -> bool {
        self.socket.is_open()
    }

    /// The oldest message that waits in any room, as the server says now.
    pub(crate) async fn oldest(&mut self, client: &Client) -> Result<Option<ChatMessage>, Trouble> {
        while let Ok(event) = self.incoming.events.try_recv() {
            self.take(event)?;
        }
        while let Ok(signal) = self.incoming.signals.try_recv() {
            self.heed(&signal);
        }
        if self.relist {
            self.list_rooms(client).await?;
        }
        self.join_all().await?;
        self.ask(client).await?;
        let first = self.heads.iter().min_by_key(|(_, head)| (head.inserted_at.clone(), head.id));
        Ok(first.map(|(room, head)| ChatMessage { chat_room_id: Some(*room), ..head.clone() }))
    }

    /// Something was done about the message that a room served: what comes next there is not known.
    pub(crate) fn look_again(&mut self, room: RoomId) {
        self.heads.remove(&room);
        self.unsure.insert(room);
    }

    /// The room serves nothing until somebody lets the agent go on, which is announced.
    pub(crate) fn hold(&mut self, room: RoomId) {
        self.heads.remove(&room);
    }

    /// Waits until there may be something new.
    pub(crate) async fn news(&mut self) -> Result<(), Trouble> {
        while !self.relist && self.unsure.is_empty() {
            tokio::select! {
                event = self.incoming.events.recv() => match event {
                    Some(event) => self.take(event)?,
                    None => return Err(Trouble::Passing("the connection has ended".to_owned())),
                },
                Some(signal) = self.incoming.signals.recv() => self.heed(&signal),
            }
        }
        Ok(())
    }

    fn take(&mut self, event: SocketEvent) -> Result<(), Trouble> {
        match event {
            SocketEvent::Push { topic, push } => self.pushed(topic, push),
            SocketEvent::Unreadable { topic: Topic::ChatRoom(room), .. }
            | SocketEvent::TopicRejoined { topic: Topic::ChatRoom(room) } => {
                self.unsure.insert(room);
            }
            SocketEvent::TopicLost { topic: Topic::ChatRoom(room), reason } => {
                tracing::warn!(room.id = %room, reason, "a room's topic is lost");
                self.joined.remove(&room);
                self.relist = true;
            }
            SocketEvent::Unreadable { .. }
            | SocketEvent::TopicRejoined { .. }
            | SocketEvent::TopicLost { .. }
            | SocketEvent::Reconnected
            | SocketEvent::Overflow => self.relist = true,
            SocketEvent::Disconnected { .. } => {}
            SocketEvent::Ended(why) => return Err(Trouble::Final(ended(&why))),
        }
        Ok(())
    }

    fn pushed(&mut self, topic: Topic, push: Push) {
        match (topic, push) {
            (Topic::ChatRoom(room), Push::MessageCreated(_)) => {
                self.unsure.insert(room);
            }
            (_, Push::RoomAdded(room)) if self.pinned.is_none_or(|pinned| pinned == room.id) => {
                self.joined.remove(&room.id);
                self.unsure.insert(room.id);
            }
            (_, Push::RoomRemoved(room)) => self.forget(room.id),
            (_, Push::RoomDeleted { room }) => self.forget(room),
            _ => {}
        }
    }

    fn heed(&mut self, signal: &Signal) {
        if signal.mode != Mode::Play {
            return;
        }
        match (signal.scope, signal.room_id) {
            (_, Some(room)) if self.joined.contains(&room) => {
                self.unsure.insert(room);
            }
            (Scope::Agent, None) => self.unsure.extend(&self.joined),
            _ => {}
        }
    }

    fn forget(&mut self, room: RoomId) {
        self.joined.remove(&room);
        self.unsure.remove(&room);
        self.heads.remove(&room);
    }

    async fn list_rooms(&mut self, client: &Client) -> Result<(), Trouble> {
        let mut rooms = HashSet::new();
        match self.pinned {
            Some(room) => {
                rooms.insert(room);
            }
            None => {
                let mut page = 1;
                loop {
                    let found = client.rooms(page, PAGE).await?;
                    rooms.extend(found.data.iter().map(|room| room.id));
                    if !found.metadata.has_next(page) {
                        break;
                    }
                    page += 1;
                }
            }
        }
        self.joined.retain(|room| rooms.contains(room));
        self.heads.retain(|room, _| rooms.contains(room));
        self.unsure = rooms;
        self.relist = false;
        Ok(())
    }

    /// First the topic, then the question: nothing falls between the two.
    async fn join_all(&mut self) -> Result<(), Trouble> {
        let missing: Vec<RoomId> = self.unsure.difference(&self.joined).copied().collect();
        let socket = &self.socket;
        let joins = missing.into_iter().map(|room| async move { (room, socket.join(Topic::ChatRoom(room)).await) });
        let joined: Vec<_> = stream::iter(joins).buffer_unordered(AT_ONCE).collect().await;
        for (room, joined) in joined {
            match joined {
                Ok(()) => {
                    self.joined.insert(room);
                }
                // Not, or no more, a room of the agent; or it has more rooms than one socket may join.
                Err(JoinError::Refused(reason)) if self.pinned.is_none() => {
                    tracing::warn!(room.id = %room, reason, "a room cannot be joined");
                    self.forget(room);
                }
                Err(JoinError::Refused(reason)) => {
                    return Err(Trouble::Final(format!("the agent is not in the room {room} ({reason})")));
                }
                Err(error) => return Err(Trouble::Passing(error.to_string())),
            }
        }
        Ok(())
    }

    async fn ask(&mut self, client: &Client) -> Result<(), Trouble> {
        let asked: Vec<RoomId> = self.unsure.iter().copied().collect();
        let answers = asked.into_iter().map(|room| async move { (room, client.next_message(room).await) });
        let answers: Vec<_> = stream::iter(answers).buffer_unordered(AT_ONCE).collect().await;
        let mut trouble = None;
        for (room, answer) in answers {
            match answer {
                Ok(Some(message)) => {
                    self.unsure.remove(&room);
                    self.heads.insert(room, message);
                }
                Ok(None) | Err(ClientError::Stopped { .. }) => {
                    self.unsure.remove(&room);
                    self.heads.remove(&room);
                }
                Err(error) if matches!(error.status(), Some(403 | 404)) => self.forget(room),
                Err(error) => trouble = Some(error.into()),
            }
        }
        trouble.map_or(Ok(()), Err)
    }
}

fn not_joined(error: JoinError) -> Trouble {
    match error {
        JoinError::Refused(reason) => Trouble::Final(format!("the server refuses: {reason}")),
        error => Trouble::Passing(error.to_string()),
    }
}

fn ended(why: &Terminal) -> String {
    match why {
        Terminal::Superseded { .. } => {
            "another connection of this agent took over (another program runs with the same \
                                        key). Calling band_wait_for_message again takes it back."
                .to_owned()
        }
        Terminal::Refused { status: status @ (401 | 403), .. } => {
            format!("the server refuses the connection ({status}): the key is not, or no longer, valid")
        }
        why => why.to_string(),
    }
}

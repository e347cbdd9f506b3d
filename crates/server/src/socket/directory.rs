//! Who is connected: every identity's connections, the channels about itself, and an agent's live connection.

use std::collections::HashMap;
use std::sync::Arc;

use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};
use bandstand_wire::phoenix::Topic;
use bandstand_wire::time::Timestamp;

use super::channel::{SocketHandle, Subscriber};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    entries: HashMap<IdentityId, Entry>,
    sockets: usize,
    /// Connections whose credential ends by itself, by their id.
    ending: HashMap<u64, (Timestamp, Arc<SocketHandle>)>,
    /// None of them ends before.
    next_end: Option<Timestamp>,
    /// Channels on which people hear of their rooms.
    people: usize,
}

/// Whether it is a channel on which a person hears of its rooms.
fn is_persons(subscriber: &Subscriber) -> bool {
    matches!(subscriber.channel.topic, Topic::UserRooms(_))
}

#[derive(Debug, Default)]
struct Entry {
    sockets: Vec<Arc<SocketHandle>>,
    /// Channels about the identity itself: its rooms, contacts, control.
    own: Vec<Subscriber>,
}

impl Entry {
    /// The `agent_control` channel of the agent's live connection. Without that channel a connection is only a
    /// visitor: an error probe, or a client that knows no control.
    fn live(&self) -> Option<&Subscriber> {
        self.own.iter().find(|subscriber| matches!(subscriber.channel.topic, Topic::AgentControl(_)))
    }
}

impl Directory {
    /// A connection begins; whether it is the identity's first.
    pub(crate) fn add(&mut self, socket: Arc<SocketHandle>) -> bool {
        let entry = self.entries.entry(socket.caller.identity).or_default();
        let first = entry.sockets.is_empty();
        entry.sockets.push(socket);
        self.sockets += 1;
        first
    }

    /// A connection ends, with all its channels about itself; whether it was the identity's last.
    pub(crate) fn remove(&mut self, socket: &SocketHandle) -> bool {
        self.ending.remove(&socket.id);
        let Some(entry) = self.entries.get_mut(&socket.caller.identity) else { return false };
        let before = entry.sockets.len();
        entry.sockets.retain(|other| other.id != socket.id);
        entry.own.retain(|subscriber| {
            let ends = subscriber.socket.id == socket.id;
            self.people -= usize::from(ends && is_persons(subscriber));
            !ends
        });
        self.sockets -= before - entry.sockets.len();
        let last = entry.sockets.is_empty();
        if last {
            self.entries.remove(&socket.caller.identity);
        }
        last
    }

    /// The connection's credential ends then, unless it was to end before.
    pub(crate) fn ends(&mut self, socket: &Arc<SocketHandle>, at: Timestamp) {
        let ending = self.ending.entry(socket.id).or_insert_with(|| (at, Arc::clone(socket)));
        ending.0 = at.min(ending.0);
        self.next_end = Some(self.next_end.map_or(at, |next| next.min(at)));
    }

    /// The connections opened with this key end then.
    pub(crate) fn key_ends(&mut self, key: KeyId, at: Timestamp) {
        let sockets: Vec<_> = self.with_key(key).cloned().collect();
        sockets.iter().for_each(|socket| self.ends(socket, at));
    }

    /// Takes the connections whose credential has ended. Looks at nothing while none has.
    pub(crate) fn take_ended(&mut self, now: Timestamp) -> Vec<Arc<SocketHandle>> {
        if self.next_end.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let ended = self.ending.extract_if(|_, (end, _)| *end <= now).map(|(_, (_, socket))| socket).collect();
        self.next_end = self.ending.values().map(|(end, _)| *end).min();
        ended
    }

    /// Connections, of everybody.
    pub(crate) fn len(&self) -> usize {
        self.sockets
    }

    /// Whether somebody is connected.
    pub(crate) fn is_online(&self, id: IdentityId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Whether an agent has a live connection, one that `on_conflict=reject` gives way to.
    pub(crate) fn is_live(&self, agent: IdentityId) -> bool {
        self.entries.get(&agent).is_some_and(|entry| entry.live().is_some())
    }

    /// A channel about the connection's own identity begins.
    pub(crate) fn subscribe(&mut self, subscriber: Subscriber) {
        self.people += usize::from(is_persons(&subscriber));
        self.entries.entry(subscriber.socket.caller.identity).or_default().own.push(subscriber);
    }

    /// Such a channel ends.
    pub(crate) fn unsubscribe(&mut self, subscriber: &Subscriber) {
        if let Some(entry) = self.entries.get_mut(&subscriber.socket.caller.identity) {
            entry.own.retain(|other| {
                let ends = other.channel.id == subscriber.channel.id;
                self.people -= usize::from(ends && is_persons(other));
                !ends
            });
        }
    }

    /// How many channels there are on which people hear of their rooms.
    pub(crate) fn people(&self) -> usize {
        self.people
    }

    /// Whether somebody hears of its rooms.
    pub(crate) fn hears_of_rooms(&self, id: IdentityId) -> bool {
        self.rooms_channels(id).next().is_some()
    }

    /// Makes the connection the agent's live one by its `agent_control` channel, and returns the channel that it takes
    /// the place of. With `give_way` it does nothing when there is another one.
    ///
    /// # Errors
    /// [`Conflict`]: there is another one, and `give_way` was asked for.
    pub(crate) fn take_over(&mut self, newer: Subscriber, give_way: bool) -> Result<Option<Subscriber>, Conflict> {
        let entry = self.entries.entry(newer.socket.caller.identity).or_default();
        let older = entry.live().filter(|older| older.socket.id != newer.socket.id).cloned();
        if older.is_some() && give_way {
            return Err(Conflict);
        }
        entry.own.retain(|other| !matches!(other.channel.topic, Topic::AgentControl(_)));
        entry.own.push(newer);
        Ok(older)
    }

    /// The channels on which somebody hears of the rooms that it enters and leaves.
    pub(crate) fn rooms_channels(&self, id: IdentityId) -> impl Iterator<Item = &Subscriber> {
        let own = self.entries.get(&id).map(|entry| entry.own.as_slice()).unwrap_or_default();
        own.iter().filter(|subscriber| matches!(subscriber.channel.topic, Topic::AgentRooms(_) | Topic::UserRooms(_)))
    }

    /// The control channel of an agent's live connection.
    pub(crate) fn control_channel(&self, agent: IdentityId) -> Option<&Subscriber> {
        self.entries.get(&agent)?.live()
    }

    /// The channels on which somebody hears of its contacts.
    pub(crate) fn contacts_channels(&self, id: IdentityId) -> impl Iterator<Item = &Subscriber> {
        let own = self.entries.get(&id).map(|entry| entry.own.as_slice()).unwrap_or_default();
        let about_contacts = |topic: &Topic| matches!(topic, Topic::AgentContacts(_) | Topic::UserContacts(_));
        own.iter().filter(move |subscriber| about_contacts(&subscriber.channel.topic))
    }

    /// Every connection.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<SocketHandle>> {
        self.entries.values().flat_map(|entry| &entry.sockets)
    }

    /// Somebody's connections.
    pub(crate) fn of(&self, id: IdentityId) -> impl Iterator<Item = &Arc<SocketHandle>> {
        self.entries.get(&id).into_iter().flat_map(|entry| &entry.sockets)
    }

    /// Connections that were opened with this key. A walk over all: revoking is rare, and an index would cost every
    /// connection.
    pub(crate) fn with_key(&self, key: KeyId) -> impl Iterator<Item = &Arc<SocketHandle>> {
        self.all().filter(move |socket| socket.caller.key == key)
    }
}

/// Another connection of the agent is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

/// Whether a topic about an identity is about this one.
pub(crate) fn is_own(topic: &Topic, identity: IdentityId, kind: IdentityKind) -> bool {
    match *topic {
        Topic::AgentControl(id) | Topic::AgentRooms(id) | Topic::AgentContacts(id) => {
            kind == IdentityKind::Agent && id == identity
        }
        Topic::UserRooms(id) | Topic::UserContacts(id) | Topic::Tasks(id) => {
            kind == IdentityKind::User && id == identity
        }
        Topic::ChatRoom(_) | Topic::RoomParticipants(_) | Topic::RoomActivity(_) | Topic::RoomTasks(_) => false,
    }
}

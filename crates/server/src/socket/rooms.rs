//! Who hears which room.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bandstand_wire::ids::{IdentityId, IdentityKind, RoomId};
use bandstand_wire::phoenix::Topic;

use super::activity::Working;
use super::channel::Subscriber;
use super::locked;

/// Locks that share the rooms, so that a fan-out to a thousand does not stop the joins of other rooms.
const SHARDS: usize = 64;

/// A subscription to a topic of a room.
#[derive(Debug)]
struct Seat {
    identity: IdentityId,
    /// Its identity left the room: it hears nothing until it is back, but the client's leave is still to come.
    silent: bool,
    subscriber: Subscriber,
}

impl Seat {
    fn key(&self) -> (IdentityId, u64) {
        (self.identity, self.subscriber.socket.id)
    }
}

/// Subscriptions sorted by identity, then connection: a vector takes a tenth of the memory of a map for the one or two
/// that most rooms have, and is quick to walk for the thousand that some have.
#[derive(Debug, Default)]
struct Seats(Vec<Seat>);

impl Seats {
    fn insert(&mut self, seat: Seat) {
        let at = self.0.partition_point(|other| other.key() < seat.key());
        self.0.insert(at, seat);
    }

    fn remove(&mut self, identity: IdentityId, socket: u64, channel: u64) -> bool {
        let Ok(at) = self.0.binary_search_by_key(&(identity, socket), Seat::key) else { return false };
        let found = self.0.get(at).is_some_and(|seat| seat.subscriber.channel.id == channel);
        if found {
            self.0.remove(at);
        }
        found
    }

    fn of(&self, identity: IdentityId) -> impl Iterator<Item = &Seat> {
        let start = self.0.partition_point(|seat| seat.identity < identity);
        self.0.iter().skip(start).take_while(move |seat| seat.identity == identity)
    }

    fn of_mut(&mut self, identity: IdentityId) -> impl Iterator<Item = &mut Seat> {
        let start = self.0.partition_point(|seat| seat.identity < identity);
        self.0.iter_mut().skip(start).take_while(move |seat| seat.identity == identity)
    }
}

/// The subscriptions to one topic of one room.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    agents: Seats,
    users: Seats,
}

impl Listeners {
    fn seats_mut(&mut self, kind: IdentityKind) -> &mut Seats {
        match kind {
            IdentityKind::Agent => &mut self.agents,
            IdentityKind::User => &mut self.users,
        }
    }

    /// Whether nobody is subscribed, not even silently.
    pub(crate) fn is_empty(&self) -> bool {
        self.agents.0.is_empty() && self.users.0.is_empty()
    }

    /// The people who hear it.
    pub(crate) fn users(&self) -> impl Iterator<Item = &Subscriber> {
        self.users.0.iter().filter(|seat| !seat.silent).map(|seat| &seat.subscriber)
    }

    /// Everybody who hears it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Subscriber> {
        self.users().chain(self.agents.0.iter().filter(|seat| !seat.silent).map(|seat| &seat.subscriber))
    }

    /// One agent's connections that hear it.
    pub(crate) fn agent(&self, id: IdentityId) -> impl Iterator<Item = &Subscriber> {
        self.agents.of(id).filter(|seat| !seat.silent).map(|seat| &seat.subscriber)
    }
}

/// What is known of one room.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// `chat_room`.
    pub(crate) chat: Listeners,
    /// `room_participants`.
    pub(crate) participants: Listeners,
    /// `room_activity`.
    pub(crate) activity: Listeners,
    /// `room_tasks`.
    pub(crate) tasks: Listeners,
    /// Who works in it.
    pub(crate) working: Vec<Working>,
}

impl Room {
    fn listeners_mut(&mut self, topic: &Topic) -> Option<&mut Listeners> {
        match topic {
            Topic::ChatRoom(_) => Some(&mut self.chat),
            Topic::RoomParticipants(_) => Some(&mut self.participants),
            Topic::RoomActivity(_) => Some(&mut self.activity),
            Topic::RoomTasks(_) => Some(&mut self.tasks),
            Topic::AgentControl(_)
            | Topic::AgentRooms(_)
            | Topic::AgentContacts(_)
            | Topic::UserRooms(_)
            | Topic::UserContacts(_)
            | Topic::Tasks(_) => None,
        }
    }

    fn topics_mut(&mut self) -> [&mut Listeners; 4] {
        [&mut self.chat, &mut self.participants, &mut self.activity, &mut self.tasks]
    }

    fn is_empty(&self) -> bool {
        self.working.is_empty()
            && [&self.chat, &self.participants, &self.activity, &self.tasks].into_iter().all(Listeners::is_empty)
    }

    /// Somebody's channels of this room fall silent, or are heard again.
    pub(crate) fn silence(&mut self, identity: IdentityId, kind: IdentityKind, silent: bool) {
        for topic in self.topics_mut() {
            topic.seats_mut(kind).of_mut(identity).for_each(|seat| seat.silent = silent);
        }
    }

    /// A user's channels of the room's board fall silent: it reads the room only because of its agents now, and the
    /// board is for those who take part.
    pub(crate) fn silence_tasks(&mut self, user: IdentityId) {
        self.tasks.users.of_mut(user).for_each(|seat| seat.silent = true);
    }

    /// Everybody's channels of this room fall silent.
    pub(crate) fn silence_all(&mut self) {
        for topic in self.topics_mut() {
            topic.agents.0.iter_mut().chain(&mut topic.users.0).for_each(|seat| seat.silent = true);
        }
    }

    /// A user's channels of this room are no longer silent; returns them, for whoever holds them back until it is known
    /// whether the user may hear them.
    pub(crate) fn reopen(&mut self, user: IdentityId) -> Vec<Subscriber> {
        let mut found = Vec::new();
        for topic in self.topics_mut() {
            for seat in topic.users.of_mut(user) {
                seat.silent = false;
                found.push(seat.subscriber.clone());
            }
        }
        found
    }
}

/// All rooms that somebody hears or works in.
#[derive(Debug)]
pub(crate) struct Rooms {
    shards: Vec<Mutex<HashMap<RoomId, Room>>>,
    hasher: std::hash::RandomState,
    /// People's subscriptions to `room_participants`: without any, presence need not be announced.
    watchers: AtomicUsize,
}

impl Rooms {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: std::hash::RandomState::new(),
            watchers: AtomicUsize::new(0),
        }
    }

    fn shard(&self, room: RoomId) -> &Mutex<HashMap<RoomId, Room>> {
        // The remainder is below the length, which is not zero.
        &self.shards[self.hasher.hash_one(room) as usize % self.shards.len()]
    }

    /// Works with a room if anybody hears it or works in it. Keep it short: the shard is locked meanwhile.
    pub(crate) fn with<T>(&self, room: RoomId, work: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let mut shard = locked(self.shard(room));
        let found = shard.get_mut(&room)?;
        let result = work(found);
        if found.is_empty() {
            shard.remove(&room);
        }
        Some(result)
    }

    /// Works with a room, whether or not anybody hears it.
    pub(crate) fn with_any<T>(&self, room: RoomId, work: impl FnOnce(&mut Room) -> T) -> T {
        let mut shard = locked(self.shard(room));
        let found = shard.entry(room).or_default();
        let result = work(found);
        if found.is_empty() {
            shard.remove(&room);
        }
        result
    }

    /// Every room in turn, one shard locked at a time.
    pub(crate) fn for_each(&self, mut work: impl FnMut(RoomId, &mut Room)) {
        for shard in &self.shards {
            locked(shard).retain(|id, room| {
                work(*id, room);
                !room.is_empty()
            });
        }
    }

    /// Whether anybody hears this room or works in it.
    pub(crate) fn contains(&self, room: RoomId) -> bool {
        locked(self.shard(room)).contains_key(&room)
    }

    /// From now on the channel hears its topic, which must be one of a room.
    pub(crate) fn subscribe(&self, room: RoomId, subscriber: Subscriber) {
        let (caller, topic) = (subscriber.socket.caller, subscriber.channel.topic);
        self.with_any(room, |state| {
            if let Some(listeners) = state.listeners_mut(&topic) {
                listeners.seats_mut(caller.kind).insert(Seat { identity: caller.identity, silent: false, subscriber });
                if watches(&topic, caller.kind) {
                    self.watchers.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }

    /// The channel no longer hears its topic.
    pub(crate) fn unsubscribe(&self, room: RoomId, subscriber: &Subscriber) {
        let (socket, topic) = (&subscriber.socket, subscriber.channel.topic);
        let (id, kind) = (socket.caller.identity, socket.caller.kind);
        self.with(room, |state| {
            let removed = state
                .listeners_mut(&topic)
                .is_some_and(|listeners| listeners.seats_mut(kind).remove(id, socket.id, subscriber.channel.id));
            if removed && watches(&topic, kind) {
                self.watchers.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }

    /// One channel falls silent.
    pub(crate) fn silence_channel(&self, room: RoomId, subscriber: &Subscriber) {
        let (caller, channel) = (subscriber.socket.caller, &subscriber.channel);
        self.with(room, |state| {
            if let Some(listeners) = state.listeners_mut(&channel.topic) {
                let seats = listeners.seats_mut(caller.kind).of_mut(caller.identity);
                seats.filter(|seat| seat.subscriber.channel.id == channel.id).for_each(|seat| seat.silent = true);
            }
        });
    }

    /// Whether any person watches who is in any room.
    pub(crate) fn are_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }
}

fn watches(topic: &Topic, kind: IdentityKind) -> bool {
    kind == IdentityKind::User && matches!(topic, Topic::RoomParticipants(_))
}

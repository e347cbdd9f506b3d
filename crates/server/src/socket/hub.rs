//! The handle to everything live: connections, subscriptions, presence, activity. The store announces commits to it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bandstand_domain::clock::Clock;
use bandstand_domain::identity::Profile;
use bandstand_store::{Commit, CommitSink, Store};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId, RoomId};
use bandstand_wire::phoenix::{Ref, Topic, close_code};
use bandstand_wire::push::{Supersede, WorkingAgent, event};
use bandstand_wire::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::activity::{self, ActivityDetail};
use super::audience;
use super::channel::{Channel, SocketHandle, Subscriber};
use super::closing::Closing;
use super::directory::{Conflict, Directory};
use super::fanout::{self, Notice};
use super::locked;
use super::outbound::{Item, Outbound};
use super::rooms::Rooms;
use super::throttle::Throttle;
use crate::auth::Authenticated;
use crate::service::sightings::Sightings;
use crate::settings::Limits;
use crate::signs::Observed;

/// Why a connection is closed when the server stops.
const RESTART: Closing = Closing { code: close_code::RESTART, reason: "service restart" };

/// Why a connection is closed when its token, or its key, has expired: its client comes back with a fresh one.
const CREDENTIAL_EXPIRED: Closing = Closing { code: close_code::GOING_AWAY, reason: "credential expired" };

/// Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
    /// To the fan-out task, which ends when the last of these is gone.
    notices: mpsc::UnboundedSender<Notice>,
}

/// What the hub and its fan-out task share.
pub(crate) struct Shared {
    pub(crate) limits: Arc<Limits>,
    pub(crate) clock: Arc<dyn Clock>,
    observed: Observed,
    /// Where missing rows are read from, once the store is open.
    pub(crate) store: OnceLock<Store>,
    pub(crate) rooms: Rooms,
    pub(crate) directory: Mutex<Directory>,
    throttle: Mutex<Throttle>,
    sightings: Sightings,
    /// How many channels people listen on for their rooms: without any, nobody need be told what became of messages.
    people: AtomicUsize,
    /// Whether any agent may be at work, so that an idle server need not look for reports that expire.
    working: AtomicBool,
    draining: AtomicBool,
    /// Numbers connections and channels.
    numbers: AtomicU64,
    connections: TaskTracker,
}

impl Shared {
    /// Ends what lasts only for a while.
    pub(crate) fn expire(&self, now: Instant) {
        locked(&self.throttle).tidy(now);
        let ended = locked(&self.directory).take_ended(self.clock.now());
        for socket in ended {
            socket.outbound.close_now(CREDENTIAL_EXPIRED);
        }
        if !self.working.swap(false, Ordering::Relaxed) {
            return;
        }
        self.rooms.for_each(|_, room| {
            if activity::expire(&mut room.working, now) {
                activity::announce(room);
            }
            if !room.working.is_empty() {
                self.working.store(true, Ordering::Relaxed);
            }
        });
    }
}

impl CommitSink for Hub {
    fn publish(&self, commits: Vec<Commit>) {
        // The task is gone only with the runtime, and then nobody is connected.
        let _ = self.notices.send(Notice::Commits(commits));
    }

    fn uncertain(&self, commits: Vec<Commit>) {
        let _ = self.notices.send(Notice::Uncertain(commits));
    }
}

impl Hub {
    /// Starts the fan-out task, so it must be called within a Tokio runtime. The task ends with the last clone.
    pub fn new(limits: Arc<Limits>, clock: Arc<dyn Clock>) -> Self {
        let shared = Arc::new(Shared {
            limits,
            sightings: Sightings::new(Arc::clone(&clock)),
            clock,
            observed: Observed::default(),
            store: OnceLock::new(),
            rooms: Rooms::new(),
            directory: Mutex::default(),
            throttle: Mutex::default(),
            people: AtomicUsize::new(0),
            working: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            numbers: AtomicU64::new(1),
            connections: TaskTracker::new(),
        });
        let (notices, taken) = mpsc::unbounded_channel();
        tokio::spawn(fanout::run(Arc::clone(&shared), taken, notices.downgrade()));
        Self { shared, notices }
    }

    /// What is seen of agents here.
    pub fn sightings(&self) -> &Sightings {
        &self.shared.sightings
    }

    /// Whether rooms have a task board.
    pub(crate) fn has_tasks(&self) -> bool {
        self.shared.limits.tasks
    }

    /// Rows of rooms whose commits do not arrive are read from this store from now on.
    pub fn reads_from(&self, store: Store) {
        if self.shared.store.set(store).is_err() {
            tracing::error!("the hub reads from a store already");
        }
    }

    /// Signs of life that agents give.
    pub fn observed(&self) -> &Observed {
        &self.shared.observed
    }

    /// Whether somebody has a live connection.
    pub fn is_online(&self, id: IdentityId) -> bool {
        locked(&self.shared.directory).is_online(id)
    }

    /// Whether any person listens for its rooms.
    pub(crate) fn do_people_listen(&self) -> bool {
        self.shared.people.load(Ordering::Relaxed) > 0
    }

    /// Those among them who listen for their rooms.
    pub(crate) fn who_listens(&self, among: Vec<IdentityId>) -> Vec<IdentityId> {
        let directory = locked(&self.shared.directory);
        among.into_iter().filter(|id| directory.hears_of_rooms(*id)).collect()
    }

    /// Tells people on the channels on which they hear of their rooms.
    pub(crate) fn tell_people(&self, people: &[IdentityId], event: &'static str, payload: &impl serde::Serialize) {
        let directory = locked(&self.shared.directory);
        audience::tell(people.iter().flat_map(|id| directory.rooms_channels(*id)), event, || payload);
    }

    /// How many connections there are.
    pub fn sockets(&self) -> usize {
        locked(&self.shared.directory).len()
    }

    /// An agent says that it works in a room, or no longer does. A report that is not repeated expires.
    pub fn report_activity(&self, room: RoomId, agent: &Profile, working: bool, detail: Option<ActivityDetail>) {
        self.shared.sightings.active(room, agent.id, working);
        self.shared.observed.reported(agent.id, room);
        let report = |state: &mut super::rooms::Room| {
            let changed = if working {
                let expires = Instant::now() + self.shared.limits.activity_ttl;
                activity::begin(&mut state.working, agent, detail, self.shared.clock.now(), expires)
            } else {
                activity::end(&mut state.working, agent.id)
            };
            if changed {
                activity::announce(state);
            }
        };
        if working {
            self.shared.rooms.with_any(room, report);
            self.shared.working.store(true, Ordering::Relaxed);
        } else {
            self.shared.rooms.with(room, report);
        }
    }

    /// Who works in a room just now.
    pub fn activity(&self, room: RoomId) -> Vec<WorkingAgent> {
        let now = Instant::now();
        let rows = self.shared.rooms.with(room, |state| {
            if activity::expire(&mut state.working, now) {
                activity::announce(state);
            }
            activity::rows(&state.working)
        });
        rows.unwrap_or_default()
    }

    /// Announces what was committed, writes what is queued and closes every connection with 1012; returns when all are
    /// gone, or at the deadline. New connections are refused from now on.
    pub async fn shutdown(&self, deadline: Duration) {
        let shared = &self.shared;
        shared.draining.store(true, Ordering::SeqCst);
        let gone = async {
            self.announced().await;
            locked(&shared.directory).all().for_each(|socket| socket.outbound.close(RESTART));
            shared.connections.close();
            shared.connections.wait().await;
        };
        if tokio::time::timeout(deadline, gone).await.is_err() {
            tracing::warn!(sockets = self.sockets(), "connections were still open at the deadline");
        }
    }

    /// Waits until all that was published before is in the queues of those who hear it.
    pub(crate) async fn announced(&self) {
        let (done, announced) = oneshot::channel();
        if self.notices.send(Notice::Flush(done)).is_ok() {
            // An error means that the task is gone, and with it whatever it would have announced.
            let _ = announced.await;
        }
    }

    /// Whether the server is stopping.
    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }

    /// Counts a connection as open until the token is dropped; [`Self::shutdown`] waits for it.
    pub(crate) fn track(&self) -> TaskTrackerToken {
        self.shared.connections.token()
    }

    /// Whether a key may open another connection just now.
    ///
    /// # Errors
    /// Whole seconds to wait.
    pub(crate) fn admit(&self, key: KeyId) -> Result<(), u64> {
        locked(&self.shared.throttle).take(key, self.shared.limits.upgrades_per_second, Instant::now())
    }

    /// Whether an agent has a live connection, one that `on_conflict=reject` gives way to.
    pub(crate) fn is_live(&self, agent: IdentityId) -> bool {
        locked(&self.shared.directory).is_live(agent)
    }

    /// A connection begins; also says whether its identity came online by it.
    pub(crate) fn register(&self, who: Authenticated) -> (Arc<SocketHandle>, bool) {
        let outbound = Outbound::new(&self.shared.limits);
        let Authenticated { caller, method, until } = who;
        let socket = Arc::new(SocketHandle { id: self.number(), caller, method, outbound });
        let mut directory = locked(&self.shared.directory);
        let first = directory.add(Arc::clone(&socket));
        if let Some(until) = until {
            directory.ends(&socket, until);
        }
        if first && caller.kind == IdentityKind::Agent {
            // While the directory is locked, so that of two connections that race the later is seen later.
            self.shared.sightings.connected(caller.identity);
        }
        drop(directory);
        metrics::gauge!("socket_connections").increment(1);
        if self.is_draining() {
            // It may have come after the shutdown went through the list.
            socket.outbound.close(RESTART);
        }
        (socket, first)
    }

    /// The connection's credential ends then, as it turned out after it was registered.
    pub(crate) fn ends(&self, socket: &Arc<SocketHandle>, at: Timestamp) {
        locked(&self.shared.directory).ends(socket, at);
    }

    /// A connection ended; whether its identity went offline by it. Its room channels must be unsubscribed before.
    pub(crate) fn deregister(&self, socket: &SocketHandle) -> bool {
        metrics::gauge!("socket_connections").decrement(1);
        let mut directory = locked(&self.shared.directory);
        let last = directory.remove(socket);
        if last && socket.caller.kind == IdentityKind::Agent {
            self.shared.sightings.gone(socket.caller.identity);
            self.shared.observed.left(socket.caller.identity);
        }
        self.shared.people.store(directory.people(), Ordering::Relaxed);
        last
    }

    /// A new channel, not yet subscribed.
    pub(crate) fn channel(&self, topic: Topic, name: &str, join_ref: Ref) -> Arc<Channel> {
        Arc::new(Channel { id: self.number(), topic, name: name.into(), join_ref })
    }

    /// From now on the channel hears its topic.
    pub(crate) fn subscribe(&self, subscriber: Subscriber) {
        match subscriber.channel.topic.room() {
            Some(room) => self.shared.rooms.subscribe(room, subscriber),
            None => {
                let mut directory = locked(&self.shared.directory);
                directory.subscribe(subscriber);
                self.shared.people.store(directory.people(), Ordering::Relaxed);
            }
        }
    }

    /// The channel hears nothing more.
    pub(crate) fn unsubscribe(&self, subscriber: &Subscriber) {
        match subscriber.channel.topic.room() {
            Some(room) => self.shared.rooms.unsubscribe(room, subscriber),
            None => {
                let mut directory = locked(&self.shared.directory);
                directory.unsubscribe(subscriber);
                self.shared.people.store(directory.people(), Ordering::Relaxed);
            }
        }
    }

    /// The channel of a room stays, but hears nothing until its identity is added to the room.
    pub(crate) fn silence(&self, room: RoomId, subscriber: &Subscriber) {
        self.shared.rooms.silence_channel(room, subscriber);
    }

    /// Makes a connection the agent's live one by its `agent_control` channel. The older one is told and closed.
    ///
    /// # Errors
    /// [`Conflict`] when there is another one and `give_way` was asked for.
    pub(crate) fn take_over(&self, newer: Subscriber, give_way: bool) -> Result<(), Conflict> {
        let agent = newer.socket.caller.identity;
        let older = locked(&self.shared.directory).take_over(newer, give_way)?;
        if let Some(Subscriber { socket, channel }) = older {
            self.shared.sightings.superseded(agent);
            if let Some(payload) = audience::json(&Supersede::new(agent)) {
                socket.outbound.push(Item::Push { channel, event: event::SUPERSEDE, payload, mark: None });
            }
            socket.outbound.close(Closing { code: close_code::NORMAL, reason: "superseded" });
        }
        Ok(())
    }

    /// Tells the fan-out where a room stood when somebody joined it.
    pub(crate) fn joined(&self, room: RoomId, sequence: i64) {
        let _ = self.notices.send(Notice::Joined(room, sequence));
    }

    /// What the parts of this folder share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn number(&self) -> u64 {
        self.shared.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

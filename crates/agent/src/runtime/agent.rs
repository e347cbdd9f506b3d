//! An agent's life: start, work, end.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bandstand_wire::ids::RoomId;
use bandstand_wire::phoenix::Topic;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::contacts::ContactEvent;
use super::desk::{self, DeskOrder};
use super::lock::{InstanceLock, LockError};
use super::room::{HubEvent, RoomInput};
use super::room_state::Control;
use super::rooms::{self, Rooms};
use super::seen::Seen;
use super::settings::RuntimeSettings;
use super::shared::{LOOKS, Shared};
use super::timing;
use crate::adapter::Adapter;
use crate::client::socket::{
    ConnectError, Incoming, Mode, Push, Scope, Signal, Socket, SocketEvent, SocketOptions, Terminal,
};
use crate::client::{Client, ClientError};
use crate::roster::Member;
use crate::tools::{Capabilities, Toolbox};

/// Signals that are remembered by their correlation id.
const SIGNALS: usize = 256;

/// An agent, ready to run.
///
/// ```no_run
/// use bandstand_agent::adapter::Echo;
/// use bandstand_agent::client::Client;
/// use bandstand_agent::runtime::Agent;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new("http://localhost:4000", std::env::var("BANDSTAND_KEY")?)?;
/// Agent::new(client, Echo::default()).run_until_signal().await?;
/// # Ok(())
/// # }
/// ```
pub struct Agent {
    client: Client,
    adapter: Arc<dyn Adapter>,
    toolbox: Toolbox,
    settings: RuntimeSettings,
}

/// How an agent that was told to stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Whether every turn came to its end. Otherwise some were cut; their messages are served again.
    pub clean: bool,
}

/// Why an agent did not start, or ended without being told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The platform cannot be asked.
    #[error("{what}: {source}")]
    Client {
        /// For what.
        what: &'static str,
        /// Why.
        #[source]
        source: ClientError,
    },
    /// The agent has no description, which the platform and other agents need.
    #[error("agent {0} has no description")]
    NoDescription(bandstand_wire::ids::IdentityId),
    /// Another process of the agent runs on this machine.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The adapter does not start.
    #[error("the adapter does not start: {0}")]
    Adapter(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A topic without which no agent works was refused.
    #[error("the agent's rooms cannot be listened to: {0}")]
    Join(#[from] crate::client::socket::JoinError),
    /// Another process of the same agent took over. It is not to be restarted by itself: the two would take turns.
    #[error("superseded by a newer connection of the same agent ({reason}): {message}")]
    Superseded {
        /// The platform's word.
        reason: String,
        /// For people.
        message: String,
    },
    /// The connection ended for good.
    #[error("the connection ended for good: {0}")]
    Ended(Terminal),
}

impl AgentError {
    fn ended(terminal: Terminal) -> Self {
        match terminal {
            Terminal::Superseded { reason, message } => Self::Superseded { reason, message },
            other => Self::Ended(other),
        }
    }
}

impl Agent {
    /// An agent with the usual settings.
    pub fn new(client: Client, adapter: impl Adapter + 'static) -> Self {
        Self { client, adapter: Arc::new(adapter), toolbox: Toolbox::default(), settings: RuntimeSettings::default() }
    }

    /// With tools of its own. Of the platform's tools, those of its capabilities are offered and those that the adapter
    /// wants, as far as the server has them.
    #[must_use]
    pub fn toolbox(mut self, toolbox: Toolbox) -> Self {
        self.toolbox = toolbox;
        self
    }

    /// With other settings.
    #[must_use]
    pub fn settings(mut self, settings: RuntimeSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Runs until SIGINT or SIGTERM, then lets running turns end.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_until_signal(self) -> Result<Stopped, AgentError> {
        let stop = CancellationToken::new();
        let signalled = {
            let stop = stop.clone();
            tokio::spawn(async move {
                signal().await;
                stop.cancel();
            })
        };
        let result = self.run(stop).await;
        signalled.abort();
        result
    }

    /// Runs until `stop` is cancelled, then lets running turns end, for [`RuntimeSettings::stop_timeout`] at most.
    ///
    /// # Errors
    /// When the agent cannot start, another instance takes over, or the platform will have no connection of it any more.
    pub async fn run(self, stop: CancellationToken) -> Result<Stopped, AgentError> {
        let client = self.client.clone();
        let me = client.me().await.map_err(|source| AgentError::Client { what: "who the agent is", source })?;
        if me.description.as_deref().is_none_or(|description| description.trim().is_empty()) {
            return Err(AgentError::NoDescription(me.id));
        }
        let _lock = match self.settings.single_instance {
            true => {
                let folder = self.settings.lock_folder.clone().unwrap_or_else(std::env::temp_dir);
                Some(InstanceLock::take(&folder, me.id)?)
            }
            false => None,
        };
        let wanted = self.adapter.capabilities();
        let wanted = Capabilities::of(wanted.iter().chain(self.toolbox.capabilities().iter()));
        let capabilities = wanted.supported_by(Some(&me.feature_flags));
        self.adapter.on_started(&me, &capabilities).await.map_err(AgentError::Adapter)?;
        let shared = Arc::new(Shared {
            client,
            me,
            adapter: self.adapter,
            toolbox: Arc::new(self.toolbox.capable_of(capabilities)),
            places: Arc::new(Semaphore::new(self.settings.concurrent_turns.clamp(1, Semaphore::MAX_PERMITS))),
            settings: self.settings,
            looks: Semaphore::new(LOOKS),
            hub: OnceLock::new(),
        });
        let result = Box::pin(live(&shared, stop)).await;
        shared.adapter.on_stopped().await;
        result
    }
}

async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
            }
        }
    }
    // Without a handler the process ends in the system's own way, which loses nothing either.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Connects and works until told to stop, or until the connection ends for good.
async fn live(shared: &Arc<Shared>, stop: CancellationToken) -> Result<Stopped, AgentError> {
    let options = SocketOptions { on_conflict: shared.settings.on_conflict, ..SocketOptions::new(shared.id()) };
    let connecting = shared.client.connect(options);
    let (socket, incoming) = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(Stopped { clean: true }),
        connected = connecting => connected?,
    };
    let socket = Arc::new(socket);
    socket.join(Topic::AgentRooms(shared.id())).await?;
    if shared.settings.contacts.listens()
        && let Err(why) = socket.join(Topic::AgentContacts(shared.id())).await
    {
        tracing::error!(%why, "the agent's contacts are not listened to");
    }
    let mut agent = Live::new(Arc::clone(shared), Arc::clone(&socket));
    tracing::info!(agent = %shared.id(), "the agent is live");
    let ended = agent.work(incoming, &stop).await;
    let result = match ended {
        None => {
            let clean = agent.rooms.close(shared.settings.stop_timeout).await;
            Ok(Stopped { clean })
        }
        Some(terminal) => {
            // Nothing more is said in the agent's name: somebody else speaks for it now, or nobody may.
            agent.rooms.cut().await;
            Err(AgentError::ended(terminal))
        }
    };
    drop(agent.contacts);
    if let Some(socket) = Arc::into_inner(socket) {
        socket.close().await;
    }
    result
}

type Listing = Pin<Box<dyn Future<Output = Result<Vec<RoomId>, ClientError>> + Send>>;

/// A connected agent.
struct Live {
    shared: Arc<Shared>,
    rooms: Rooms,
    /// The list of rooms is being read.
    listing: Option<Listing>,
    /// It must be read again when it has been.
    list_again: bool,
    /// Failures in a row.
    failures: u32,
    signals: Seen,
    contacts: Option<mpsc::UnboundedSender<ContactEvent>>,
    orders: mpsc::UnboundedReceiver<DeskOrder>,
}

impl Live {
    fn new(shared: Arc<Shared>, socket: Arc<Socket>) -> Self {
        let rooms = Rooms::new(Arc::clone(&shared), socket);
        let (orders_in, orders) = mpsc::unbounded_channel();
        let contacts = shared.settings.contacts.listens().then(|| {
            let (contacts, events) = mpsc::unbounded_channel();
            // It ends with the sender.
            tokio::spawn(desk::run(Arc::clone(&shared), events, orders_in));
            contacts
        });
        let mut live = Self {
            shared,
            rooms,
            listing: None,
            list_again: false,
            failures: 0,
            signals: Seen::new(SIGNALS),
            contacts,
            orders,
        };
        live.list();
        live
    }

    /// Works until told to stop (`None`) or until the connection ends for good.
    async fn work(&mut self, mut incoming: Incoming, stop: &CancellationToken) -> Option<Terminal> {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                // Signals overtake everything else.
                Some(signal) = incoming.signals.recv() => self.signal(&signal),
                event = incoming.events.recv() => match event {
                    Some(SocketEvent::Ended(terminal)) => return Some(terminal),
                    Some(event) => self.event(event),
                    None => return Some(Terminal::Closed),
                },
                Some(order) = self.orders.recv() => self.order(order),
                listed = async {
                    match &mut self.listing {
                        Some(listing) => listing.await,
                        None => std::future::pending().await,
                    }
                } => self.listed(listed),
                () = self.rooms.ended() => {}
            }
        }
    }

    /// Reads the list of rooms, now or as soon as the reading under way is over.
    fn list(&mut self) {
        if self.listing.is_some() {
            self.list_again = true;
            return;
        }
        let (client, failures) = (self.shared.client.clone(), self.failures);
        self.listing = Some(Box::pin(async move {
            if failures > 0 {
                let options = client.options();
                options.clock.sleep(timing::backoff(failures, options.randomness.as_ref())).await;
            }
            rooms::list(&client).await
        }));
    }

    fn listed(&mut self, listed: Result<Vec<RoomId>, ClientError>) {
        self.listing = None;
        match listed {
            Ok(list) => {
                self.failures = 0;
                // A list that is read anew anyway may lack a room that was entered meanwhile.
                if !std::mem::take(&mut self.list_again) {
                    return self.rooms.settle(&list);
                }
            }
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                self.list_again = false;
                tracing::warn!(%why, "the agent's rooms cannot be listed");
            }
        }
        self.list();
    }

    /// Everything may have been missed.
    fn resync(&mut self) {
        self.rooms.tell_all(|| RoomInput::Resync);
        self.list();
    }

    fn event(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Push { topic, push } => self.push(topic, push),
            SocketEvent::Unreadable { topic: Topic::ChatRoom(room) | Topic::RoomParticipants(room), event }
            | SocketEvent::TopicLost { topic: Topic::RoomParticipants(room), reason: event } => {
                tracing::warn!(%room, event, "a push cannot be read, or a topic is lost; the room is looked at");
                self.rooms.tell(room, RoomInput::Resync);
            }
            SocketEvent::TopicRejoined { topic: Topic::ChatRoom(room) | Topic::RoomParticipants(room) } => {
                self.rooms.tell(room, RoomInput::Resync);
            }
            SocketEvent::Disconnected { code } => tracing::warn!(code, "the connection is lost"),
            SocketEvent::Reconnected => {
                tracing::info!("the connection is back");
                self.resync();
            }
            SocketEvent::Overflow => {
                tracing::warn!("events were dropped; everything is looked at");
                self.resync();
            }
            SocketEvent::TopicLost { topic: Topic::ChatRoom(room), reason } => {
                tracing::warn!(%room, reason, "a room's topic is lost");
                // Still in it? Then it is entered anew.
                self.rooms.leave(room);
                self.list();
            }
            SocketEvent::Unreadable { .. } | SocketEvent::TopicRejoined { .. } | SocketEvent::TopicLost { .. } => {
                self.list();
            }
            // Taken by the caller.
            SocketEvent::Ended(_) => {}
        }
    }

    fn push(&mut self, topic: Topic, push: Push) {
        match (topic, push) {
            (Topic::ChatRoom(room), Push::MessageCreated(message)) => {
                self.rooms.tell(room, RoomInput::Pushed(message));
            }
            (_, Push::RoomAdded(room)) => {
                self.list_again |= self.listing.is_some();
                self.rooms.enter(room.id);
            }
            (_, Push::RoomRemoved(room)) => self.left(room.id),
            (_, Push::RoomDeleted { room }) => self.left(room),
            (Topic::RoomParticipants(room), Push::ParticipantAdded(member)) => {
                self.rooms.tell(room, RoomInput::ParticipantAdded(Box::new(Member::from(member))));
            }
            (Topic::RoomParticipants(room), Push::ParticipantRemoved(member)) => {
                self.rooms.tell(room, RoomInput::ParticipantRemoved(Box::new(member.id)));
            }
            (Topic::AgentContacts(_), push) => {
                if let (Some(contacts), Some(event)) = (&self.contacts, ContactEvent::of(push)) {
                    // The desk ends only after this side.
                    let _ = contacts.send(event);
                }
            }
            (topic, push) => tracing::trace!(?topic, ?push, "a push that means nothing here"),
        }
    }

    fn left(&mut self, room: RoomId) {
        self.list_again |= self.listing.is_some();
        self.rooms.leave(room);
    }

    fn signal(&mut self, signal: &Signal) {
        if self.signals.contains(&signal.correlation_id) {
            return;
        }
        let control = || match signal.mode {
            Mode::Interrupt => Control::Interrupt,
            Mode::Stop => Control::Stop,
            Mode::Play => Control::Play,
        };
        let told = match (signal.scope, signal.room_id) {
            (_, Some(room)) => self.rooms.tell(room, RoomInput::Control(control())),
            (Scope::Agent, None) => self.rooms.tell_all(|| RoomInput::Control(control())) > 0,
            (Scope::Room, None) => false,
        };
        tracing::info!(mode = ?signal.mode, room = ?signal.room_id, told, "a control signal");
        // One that met no room may come again for a room that the agent is about to enter.
        if told {
            self.signals.note(&signal.correlation_id);
        }
    }

    fn order(&mut self, order: DeskOrder) {
        match order {
            DeskOrder::Hub { room, event, text } => {
                self.rooms.enter(room);
                self.rooms.tell(room, RoomInput::HubEvent(Box::new(HubEvent { event, text })));
            }
            DeskOrder::Broadcast(text) => {
                let text = Arc::new(text);
                self.rooms.tell_all(|| RoomInput::ContactNews(Arc::clone(&text)));
            }
        }
    }
}

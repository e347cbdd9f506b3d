//! One task for each connection: it reads frames, answers them, and writes what its queue holds.
//!
//! Questions to the store are asked on the side, so that a slow one delays neither heartbeats nor other joins. Five
//! thousand of these tasks sleep most of the time, so what they keep is small: a map of joined topics and a queue that
//! gives its memory back.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use bandstand_wire::phoenix::{self, ClientFrame, Ref, Status, Topic, TopicError, Version, close_code, event, reason};
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite;

use super::channel::{Channel, SocketHandle, Subscriber};
use super::closing::{self, Closing, End};
use super::identify::Claim;
use super::join::{self, Asked, Gate, NOTHING, Settled};
use super::outbound::{Item, Work};
use super::presence;
use crate::auth::Authenticated;
use crate::rates::Allowance;
use crate::state::AppState;

/// Questions that one connection may ask at a time; with more on their way it reads no further frames. A client that
/// joins everything at once still has its joins answered side by side, and cannot fill the server with them.
const QUESTIONS: usize = 32;

/// Who was let in, and how it wants to be served.
pub(crate) struct Welcome {
    /// Who, and until when that holds.
    pub(crate) who: Authenticated,
    /// How it showed that.
    pub(crate) claim: Claim,
    /// Its serializer.
    pub(crate) version: Version,
    /// Whether it gives way to a live connection of the same agent.
    pub(crate) gives_way: bool,
}

/// Serves a connection until it ends.
pub(crate) async fn run(mut socket: WebSocket, state: AppState, welcome: Welcome) {
    let caller = welcome.who.caller;
    let mut connection = Connection::begin(state.clone(), welcome);
    let end = connection.serve(&mut socket).await;
    let went_offline = connection.depart();
    drop(connection);
    tracing::debug!(identity.id = %caller.identity, ?end, "socket ends");
    let announced = async {
        if went_offline {
            presence::announce(&state.hub, &state.store, caller).await;
        }
    };
    // Boxed, so that all the while before the end this takes no room in the task.
    Box::pin(async { tokio::join!(closing::finish(socket, end), announced) }).await;
}

struct Connection {
    state: AppState,
    handle: Arc<SocketHandle>,
    version: Version,
    gives_way: bool,
    departed: bool,
    /// Joined topics, and those whose join is not answered yet.
    channels: HashMap<Topic, Arc<Channel>>,
    /// Questions on their way.
    asked: FuturesUnordered<Asked>,
    last_seen: Instant,
    /// When it may send as many frames again as at first, in microseconds since it began.
    frames_full_at: i64,
    began: Instant,
}

impl Connection {
    fn begin(state: AppState, welcome: Welcome) -> Self {
        let Welcome { who, claim, version, gives_way } = welcome;
        let caller = who.caller;
        let (handle, came_online) = state.hub.register(who);
        let asked: FuturesUnordered<Asked> = FuturesUnordered::new();
        asked.push(still_valid(state.clone(), claim, Arc::clone(&handle)));
        if came_online {
            let (hub, store) = (state.hub.clone(), state.store.clone());
            asked.push(Box::pin(async move {
                presence::announce(&hub, &store, caller).await;
                Settled::Done
            }));
        }
        Self {
            state,
            handle,
            version,
            gives_way,
            departed: false,
            channels: HashMap::new(),
            asked,
            last_seen: Instant::now(),
            frames_full_at: 0,
            began: Instant::now(),
        }
    }

    async fn serve(&mut self, socket: &mut WebSocket) -> End {
        let patience = self.state.limits.socket_idle;
        // Moved on only when it runs out: a timer that every frame resets would cost more than the frame.
        let mut idle = std::pin::pin!(tokio::time::sleep(patience));
        loop {
            tokio::select! {
                message = socket.next(), if self.asked.len() < QUESTIONS => {
                    if let Some(end) = self.message(message) {
                        return end;
                    }
                }
                work = poll_fn(|cx| self.handle.outbound.poll_work(cx)) => {
                    if let Err(end) = self.work(socket, work).await {
                        return end;
                    }
                }
                Some(settled) = self.asked.next(), if !self.asked.is_empty() => self.settle(settled),
                () = &mut idle => {
                    let until = self.last_seen + patience;
                    if until <= Instant::now() {
                        return End::Server(Closing { code: close_code::GOING_AWAY, reason: "idle" });
                    }
                    idle.as_mut().reset(until);
                }
            }
        }
    }

    /// Writes a batch, flushed once. A client that does not take it is given up when its queue overflows, and at the
    /// latest after the idle limit.
    async fn work(&mut self, socket: &mut WebSocket, work: Work) -> Result<(), End> {
        let (items, frames, bytes) = match work {
            Work::CloseNow(closing) => return Err(End::Server(closing)),
            Work::Batch { items, frames, bytes } => (items, frames, bytes),
        };
        let (version, patience) = (self.version, self.state.limits.socket_idle);
        let closing = tokio::select! {
            biased;
            written = tokio::time::timeout(patience, write(socket, version, &items)) => match written {
                Ok(Ok(closing)) => closing,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "cannot write to a socket");
                    return Err(End::Lost);
                }
                Err(_) => return Err(End::Server(Closing { code: close_code::RESTART, reason: "client too slow" })),
            },
            closing = poll_fn(|cx| self.handle.outbound.poll_close_now(cx)) => return Err(End::Server(closing)),
        };
        self.handle.outbound.written(frames, bytes);
        for item in items {
            match item {
                Item::Push { mark: Some(mark), .. } => {
                    self.state.delivered.push(mark.room, mark.sequence, self.handle.caller.identity);
                }
                Item::Recheck(channel) => self.recheck(channel),
                Item::Frame(_) | Item::Push { mark: None, .. } | Item::Close(_) => {}
            }
        }
        closing.map_or(Ok(()), |closing| Err(End::Server(closing)))
    }

    /// What a client sent; the end, if it is that.
    fn message(&mut self, message: Option<Result<Message, axum::Error>>) -> Option<End> {
        self.last_seen = Instant::now();
        match message {
            Some(Ok(Message::Text(text))) => match phoenix::parse(self.version, text.as_str()) {
                Ok(frame) => {
                    self.frame(&frame);
                    None
                }
                Err(error) => {
                    let (code, reason) = (error.close_code(), "not a frame of this protocol version");
                    Some(End::Server(Closing { code, reason }))
                }
            },
            Some(Ok(Message::Binary(_))) => {
                let reason = "binary frames are not understood";
                Some(End::Server(Closing { code: close_code::UNSUPPORTED, reason }))
            }
            // The library answers a ping; both count as a sign of life.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
            Some(Ok(Message::Close(_))) => Some(End::Client),
            Some(Err(error)) => Some(broken(error)),
            None => Some(End::Lost),
        }
    }

    fn frame(&mut self, frame: &ClientFrame<'_>) {
        match (frame.topic.as_str(), frame.event.as_str()) {
            (event::HEARTBEAT_TOPIC, event::HEARTBEAT) => self.reply(frame, NOTHING),
            _ if !self.may_send() => self.refuse(frame, reason::RATE_LIMITED),
            (_, event::JOIN) => self.join(frame),
            (_, event::LEAVE) => self.leave(frame),
            _ => match self.joined(&frame.topic) {
                Some(_) => self.refuse(frame, reason::UNMATCHED_EVENT),
                None => self.refuse(frame, reason::UNMATCHED_TOPIC),
            },
        }
    }

    /// Counts a frame; false when it is one too many.
    fn may_send(&mut self) -> bool {
        let limit = self.state.limits.socket_frames_per_second.max(1);
        let now = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let allowance = Allowance::new(limit.saturating_mul(10), 10);
        let taken = allowance.take(&mut self.frames_full_at, now, false).is_ok();
        if !taken {
            metrics::counter!("requests_limited_total", "limit" => "socket_frames").increment(1);
        }
        taken
    }

    fn join(&mut self, frame: &ClientFrame<'_>) {
        let topic = match Topic::parse(&frame.topic) {
            Ok(topic) => topic,
            Err(TopicError::Malformed) => return self.refuse(frame, reason::UNAUTHORIZED),
            Err(TopicError::Unknown) => return self.refuse(frame, reason::UNMATCHED_TOPIC),
        };
        if let Some(old) = self.channels.remove(&topic) {
            self.end(&old);
        }
        if self.channels.len() >= self.state.limits.socket_topics {
            return self.refuse(frame, reason::TOO_MANY_CHANNELS);
        }
        // Version 1 has no join_ref; there the join's ref stands for it.
        let join_ref = match self.version {
            Version::V1 => frame.reference.clone(),
            Version::V2 => frame.join_ref.clone(),
        };
        let channel = self.state.hub.channel(topic, &frame.topic, join_ref);
        match join::gate(&topic, self.handle.caller) {
            Gate::Closed => self.refuse(frame, reason::UNAUTHORIZED),
            Gate::Own => {
                self.handle.outbound.hold(channel.id);
                self.state.hub.subscribe(self.subscriber(&channel));
                self.admit(channel, &frame.reference, NOTHING);
            }
            Gate::Control => {
                self.handle.outbound.hold(channel.id);
                match self.state.hub.take_over(self.subscriber(&channel), self.gives_way) {
                    Ok(()) => self.admit(channel, &frame.reference, NOTHING),
                    Err(_) => self.turn_away(&channel, &frame.reference, reason::CONNECTION_CONFLICT),
                }
            }
            Gate::Room(room) => {
                // Subscribed before the question, and held: what is committed between the answer and the reply is
                // heard after the reply.
                self.handle.outbound.hold(channel.id);
                self.state.hub.subscribe(self.subscriber(&channel));
                self.channels.insert(topic, Arc::clone(&channel));
                let (hub, store) = (self.state.hub.clone(), self.state.store.clone());
                let reference = frame.reference.clone();
                self.asked.push(join::ask(hub, store, self.handle.caller, channel, room, reference));
            }
        }
    }

    /// Always answered, whether or not there is anything to leave: clients wait for it when they stop. Except when the
    /// leave belongs to an older join of the topic, as in Phoenix.
    fn leave(&mut self, frame: &ClientFrame<'_>) {
        let Some(channel) = self.joined(&frame.topic).cloned() else { return self.reply(frame, NOTHING) };
        if frame.join_ref.is_none() || frame.join_ref == channel.join_ref {
            self.channels.remove(&channel.topic);
            self.state.hub.unsubscribe(&self.subscriber(&channel));
            self.handle.outbound.refuse(channel.id, None);
            self.reply(frame, NOTHING);
            self.close(&channel);
        }
    }

    fn settle(&mut self, settled: Settled) {
        match settled {
            Settled::Join { channel, reference, verdict } => {
                if !self.is_current(&channel) {
                    return;
                }
                match verdict {
                    Ok(Some(response)) => self.admit(channel, &reference, &response),
                    Ok(None) => self.turn_away(&channel, &reference, reason::UNAUTHORIZED),
                    Err(error) => {
                        tracing::warn!(%error, "cannot find out whether a topic may be joined");
                        self.turn_away(&channel, &reference, reason::JOIN_CRASHED);
                    }
                }
            }
            Settled::Recheck { channel, verdict } => {
                if !self.is_current(&channel) {
                    return;
                }
                match verdict {
                    Ok(true) => self.handle.outbound.open(channel.id, None),
                    Ok(false) => self.silence(&channel),
                    Err(error) => {
                        tracing::warn!(%error, "cannot find out whether a topic may still be heard");
                        // The client joins again, and is asked again then.
                        self.channels.remove(&channel.topic);
                        self.state.hub.unsubscribe(&self.subscriber(&channel));
                        let crash = phoenix::error(self.version, &channel.join_ref, &channel.name);
                        self.handle.outbound.refuse(channel.id, Some(crash));
                    }
                }
            }
            Settled::Done => {}
        }
    }

    fn recheck(&mut self, channel: Arc<Channel>) {
        if let Some(room) = channel.topic.room().filter(|_| self.is_current(&channel)) {
            let store = self.state.store.clone();
            self.asked.push(join::ask_again(store, self.handle.caller, channel, room));
        }
    }

    fn admit(&mut self, channel: Arc<Channel>, reference: &Ref, response: &str) {
        let Channel { id, topic, name, .. } = &*channel;
        let reply = phoenix::reply(self.version, &channel.join_ref, reference, name, Status::Ok, response);
        self.handle.outbound.open(*id, Some(reply));
        self.channels.insert(*topic, channel);
    }

    fn turn_away(&mut self, channel: &Arc<Channel>, reference: &Ref, reason: &str) {
        self.channels.remove(&channel.topic);
        self.state.hub.unsubscribe(&self.subscriber(channel));
        let reply = phoenix::refusal(self.version, &channel.join_ref, reference, &channel.name, reason);
        self.handle.outbound.refuse(channel.id, Some(reply));
    }

    fn silence(&self, channel: &Arc<Channel>) {
        if let Some(room) = channel.topic.room() {
            self.state.hub.silence(room, &self.subscriber(channel));
            self.handle.outbound.refuse(channel.id, None);
        }
    }

    /// A newer join takes the place of this one.
    fn end(&self, channel: &Arc<Channel>) {
        self.state.hub.unsubscribe(&self.subscriber(channel));
        self.handle.outbound.refuse(channel.id, None);
        self.close(channel);
    }

    fn close(&self, channel: &Channel) {
        self.send(phoenix::close(self.version, &channel.join_ref, &channel.name));
    }

    fn reply(&self, frame: &ClientFrame<'_>, response: &str) {
        let ClientFrame { join_ref, reference, topic, .. } = frame;
        self.send(phoenix::reply(self.version, join_ref, reference, topic, Status::Ok, response));
    }

    fn refuse(&self, frame: &ClientFrame<'_>, reason: &str) {
        let ClientFrame { join_ref, reference, topic, .. } = frame;
        self.send(phoenix::refusal(self.version, join_ref, reference, topic, reason));
    }

    fn send(&self, frame: String) {
        self.handle.outbound.push(Item::Frame(frame));
    }

    fn joined(&self, topic: &str) -> Option<&Arc<Channel>> {
        self.channels.get(&Topic::parse(topic).ok()?)
    }

    /// Whether the channel was neither left nor replaced by a newer join.
    fn is_current(&self, channel: &Channel) -> bool {
        self.channels.get(&channel.topic).is_some_and(|current| current.id == channel.id)
    }

    fn subscriber(&self, channel: &Arc<Channel>) -> Subscriber {
        Subscriber { socket: Arc::clone(&self.handle), channel: Arc::clone(channel) }
    }

    /// Takes the connection out of the hub; whether its identity went offline by it.
    fn depart(&mut self) -> bool {
        if std::mem::replace(&mut self.departed, true) {
            return false;
        }
        for channel in std::mem::take(&mut self.channels).into_values() {
            self.state.hub.unsubscribe(&self.subscriber(&channel));
        }
        self.state.hub.deregister(&self.handle)
    }
}

/// Also when the task panics or is cut: a subscription that stays behind would fill its queue for nobody.
impl Drop for Connection {
    fn drop(&mut self) {
        self.depart();
    }
}

/// Looks once more whether the credential holds, now that the connection is registered: a key that was revoked between
/// the handshake and the registration was announced while nobody here could hear it. So was one that will expire.
fn still_valid(state: AppState, claim: Claim, handle: Arc<SocketHandle>) -> Asked {
    Box::pin(async move {
        match claim.resolve(&state.auth).await {
            Ok(Some(who)) if who.caller == handle.caller => {
                if let Some(until) = who.until {
                    state.hub.ends(&handle, until);
                }
            }
            Ok(_) => handle.outbound.close_now(Closing { code: close_code::GOING_AWAY, reason: "key revoked" }),
            Err(error) => tracing::warn!(%error, "cannot look up a key again"),
        }
        Settled::Done
    })
}

/// Writes and flushes frames; the closing, if one of them is that.
async fn write(socket: &mut WebSocket, version: Version, items: &[Item]) -> Result<Option<Closing>, axum::Error> {
    let mut end = None;
    for item in items {
        match item {
            Item::Frame(text) => socket.feed(Message::Text(text.as_str().into())).await?,
            Item::Push { channel, event, payload, .. } => {
                let text = phoenix::push(version, &channel.join_ref, &channel.name, event, payload);
                socket.feed(Message::Text(text.into())).await?;
            }
            Item::Recheck(_) => {}
            Item::Close(closing) => {
                end = Some(*closing);
                break;
            }
        }
    }
    socket.flush().await?;
    Ok(end)
}

/// What a read that failed means.
fn broken(error: axum::Error) -> End {
    use tungstenite::Error;
    let closing = |code, reason| End::Server(Closing { code, reason });
    match error.into_inner().downcast::<Error>().map(|error| *error) {
        Ok(Error::Capacity(_)) => closing(close_code::TOO_BIG, "frame too big"),
        Ok(Error::Utf8(_)) => closing(close_code::INVALID_PAYLOAD, "not UTF-8"),
        Ok(Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)) => End::Lost,
        Ok(Error::Protocol(_)) => closing(close_code::PROTOCOL_ERROR, "not WebSocket"),
        Ok(_) | Err(_) => End::Lost,
    }
}

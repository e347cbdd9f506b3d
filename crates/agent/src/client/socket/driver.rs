//! Owns the connection: reads, writes, beats, reconnects.

use std::time::Duration;

use bandstand_wire::phoenix::{Topic, Version, close_code, parse, reason};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::backoff::Backoff;
use super::channels::{Channels, JoinAnswer, Meaning};
use super::dial::{Dialer, Refused, Stream};
use super::push::{self, Signal, Supersede};
use super::{SocketEvent, SocketOptions, Terminal};

/// A close for policy: the server will not have this client.
const POLICY: u16 = 1008;

/// What the other side of a [`super::Socket`] is asked.
#[derive(Debug)]
pub(super) enum Command {
    /// Join and say how it went.
    Join { topic: Topic, answer: JoinAnswer },
    /// Leave and say when it is done.
    Leave { topic: Topic, answer: oneshot::Sender<()> },
    /// Leave without a word: the join was not answered in time.
    Forget { topic: Topic },
    /// End.
    Close,
}

/// Why a connection ended.
enum Ended {
    /// For good.
    Terminal(Terminal),
    /// Lost, with this close code.
    Lost(Option<u16>),
}

pub(super) struct Driver {
    dialer: Dialer,
    options: SocketOptions,
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<SocketEvent>,
    signals: mpsc::UnboundedSender<Signal>,
    channels: Channels,
    /// Broken topics that wait a moment before they are joined again.
    broken: FuturesUnordered<BoxFuture<'static, Topic>>,
    /// Events were dropped, and nobody knows yet.
    overflow: bool,
}

impl Driver {
    pub(super) fn new(
        dialer: Dialer,
        options: SocketOptions,
        commands: mpsc::Receiver<Command>,
        events: mpsc::Sender<SocketEvent>,
        signals: mpsc::UnboundedSender<Signal>,
    ) -> Self {
        let (channels, broken) = (Channels::default(), FuturesUnordered::new());
        Self { dialer, options, commands, events, signals, channels, broken, overflow: false }
    }

    /// Runs until the socket ends for good.
    pub(super) async fn run(mut self, stream: Stream) {
        let mut backoff = Backoff::default();
        let mut stream = stream;
        let terminal = loop {
            let clock = self.dialer.client.options().clock.clone();
            let since = clock.now();
            let ended = self.connected(stream).await;
            let up = micros(clock.now().as_micros() - since.as_micros());
            self.channels.lost();
            let code = match ended {
                Ended::Terminal(terminal) => break terminal,
                Ended::Lost(Some(POLICY)) => break Terminal::Policy,
                Ended::Lost(code) => code,
            };
            self.tell(SocketEvent::Disconnected { code });
            let wait = backoff.after_loss(code, up, self.fraction());
            tracing::info!(close_code = code, wait_ms = wait.as_millis(), "the socket is lost");
            match self.reconnect(&mut backoff, wait).await {
                Ok(back) => stream = back,
                Err(terminal) => break terminal,
            }
        };
        tracing::info!(reason = %terminal, "the socket has ended");
        // The last word may not be dropped; whoever does not listen any more does not need it.
        if self.overflow {
            let _ = self.events.send(SocketEvent::Overflow).await;
        }
        let _ = self.events.send(SocketEvent::Ended(terminal)).await;
    }

    fn fraction(&self) -> f64 {
        self.dialer.client.options().randomness.fraction()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.dialer.client.options().clock.sleep(duration)
    }

    /// Tries until there is a connection, serving commands meanwhile.
    async fn reconnect(&mut self, backoff: &mut Backoff, first_wait: Duration) -> Result<Stream, Terminal> {
        let mut wait = self.sleep(first_wait);
        loop {
            loop {
                tokio::select! {
                    () = &mut wait => break,
                    command = self.commands.recv() => match command {
                        None | Some(Command::Close) => return Err(Terminal::Closed),
                        Some(command) => { self.command(command, false); }
                    },
                }
            }
            // Whoever lost its connection may take its place again, whatever was asked at the first connect.
            match self.dialer.dial(false).await {
                Ok(stream) => return Ok(stream),
                Err(Refused::Terminal(terminal)) => return Err(terminal),
                Err(Refused::Later(why, asked)) => {
                    let next =
                        asked.unwrap_or_else(|| backoff.next(self.dialer.client.options().randomness.fraction()));
                    tracing::warn!(reason = why, wait_ms = next.as_millis(), "no socket yet");
                    wait = self.sleep(next);
                }
            }
        }
    }

    /// One connection, from the joins to its end.
    async fn connected(&mut self, mut stream: Stream) -> Ended {
        for frame in self.channels.rejoin_all() {
            if stream.send(Message::text(frame)).await.is_err() {
                return Ended::Lost(None);
            }
        }
        // With nothing to join, the connection is back at once; at the first connect nobody waits for that.
        let mut beat = self.sleep(self.options.heartbeat);
        let mut missed = Duration::ZERO;
        loop {
            self.admit_overflow();
            let frames = tokio::select! {
                message = stream.next() => match self.message(message) {
                    Ok(()) => Vec::new(),
                    Err(ended) => {
                        let _ = stream.close(None).await;
                        return ended;
                    }
                },
                command = self.commands.recv() => match command {
                    None | Some(Command::Close) => {
                        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
                        let _ = stream.close(Some(frame)).await;
                        return Ended::Terminal(Terminal::Closed);
                    }
                    Some(command) => self.command(command, true).into_iter().collect(),
                },
                Some(topic) = self.broken.next() => self.channels.rejoin(topic).into_iter().collect(),
                () = &mut beat => {
                    beat = self.sleep(self.options.heartbeat);
                    match self.channels.beat() {
                        Some(frames) => {
                            missed = Duration::ZERO;
                            frames
                        }
                        None => {
                            missed += self.options.heartbeat;
                            if missed + self.options.heartbeat >= self.options.dead_after {
                                return Ended::Lost(None);
                            }
                            Vec::new()
                        }
                    }
                }
            };
            for frame in frames {
                // A server that does not read for so long is as good as gone.
                let sent = tokio::time::timeout(self.options.dead_after, stream.send(Message::text(frame))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return Ended::Lost(None);
                }
            }
        }
    }

    fn command(&mut self, command: Command, connected: bool) -> Option<String> {
        match command {
            Command::Join { topic, answer } => self.channels.join(topic, answer, connected),
            Command::Leave { topic, answer } => self.channels.leave(topic, Some(answer), connected),
            Command::Forget { topic } => self.channels.leave(topic, None, connected),
            Command::Close => None,
        }
    }

    /// What the connection gave.
    fn message(
        &mut self,
        message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
    ) -> Result<(), Ended> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => return Err(Ended::Lost(frame.map(|frame| frame.code.into()))),
            Some(Ok(_)) => return Ok(()),
            Some(Err(_)) | None => return Err(Ended::Lost(None)),
        };
        let Ok(frame) = parse(Version::V2, text.as_str()) else {
            tracing::warn!("a frame of the server cannot be read");
            return Ok(());
        };
        match self.channels.read(&frame) {
            Meaning::Nothing | Meaning::Alive => {}
            Meaning::Back => self.tell(SocketEvent::Reconnected),
            Meaning::Push(topic) => return self.pushed(topic, &frame.event, frame.payload.get()),
            Meaning::Rejoined(topic) => self.tell(SocketEvent::TopicRejoined { topic }),
            Meaning::Broken(topic) => {
                let wait = Duration::from_millis(250).mul_f64(1.0 + self.fraction());
                self.broken.push(self.sleep(wait).map(move |()| topic).boxed());
            }
            Meaning::Lost(topic, why) => {
                if matches!(topic, Topic::AgentControl(_)) && why == reason::CONNECTION_CONFLICT {
                    return Err(Ended::Terminal(Terminal::Conflict));
                }
                self.tell(SocketEvent::TopicLost { topic, reason: why });
                if self.channels.back() == Meaning::Back {
                    self.tell(SocketEvent::Reconnected);
                }
            }
        }
        Ok(())
    }

    fn pushed(&mut self, topic: Topic, event: &str, payload: &str) -> Result<(), Ended> {
        match event {
            "agent.control" => match push::from::<Signal>(payload) {
                Some(signal) => {
                    let _ = self.signals.send(signal);
                    return Ok(());
                }
                None => self.tell(SocketEvent::Unreadable { topic, event: event.to_owned() }),
            },
            "supersede" => {
                let Some(end) = push::from::<Supersede>(payload) else {
                    return Err(Ended::Lost(Some(close_code::NORMAL)));
                };
                if end.retryable == serde_json::Value::Bool(true) {
                    return Err(Ended::Lost(Some(close_code::NORMAL)));
                }
                return Err(Ended::Terminal(Terminal::Superseded { reason: end.reason, message: end.message }));
            }
            _ => match push::read(event, payload) {
                Some(push) => self.tell(SocketEvent::Push { topic, push }),
                None => {
                    tracing::warn!(%topic, event, "a push cannot be read");
                    self.tell(SocketEvent::Unreadable { topic, event: event.to_owned() });
                }
            },
        }
        Ok(())
    }

    /// Never waits: a slow listener must not keep heartbeats and signals back.
    fn tell(&mut self, event: SocketEvent) {
        self.admit_overflow();
        if self.overflow {
            return;
        }
        if let Err(TrySendError::Full(_)) = self.events.try_send(event) {
            tracing::warn!("events are not taken in time; some are dropped");
            self.overflow = true;
        }
    }

    fn admit_overflow(&mut self) {
        if self.overflow && self.events.try_send(SocketEvent::Overflow).is_ok() {
            self.overflow = false;
        }
    }
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

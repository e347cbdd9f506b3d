//! The socket: Phoenix channels over a WebSocket, kept alive.
//!
//! A [`Socket`] reconnects by itself, joins again what was joined, and tells about it, because a push is only a hint:
//! after [`SocketEvent::Reconnected`] and its like, what was missed is found through REST. It ends for good only with a
//! [`Terminal`].
//!
//! ```no_run
//! # async fn example(client: bandstand_agent::client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use bandstand_agent::client::socket::{SocketEvent, SocketOptions};
//! use bandstand_wire::phoenix::Topic;
//!
//! let me = client.me().await?;
//! let (socket, mut incoming) = client.connect(SocketOptions::new(me.id)).await?;
//! socket.join(Topic::AgentRooms(me.id)).await?;
//! while let Some(event) = incoming.events.recv().await {
//!     if let SocketEvent::Ended(why) = event {
//!         println!("ended: {why}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod backoff;
mod channels;
mod dial;
mod driver;
mod push;

use std::time::Duration;

use bandstand_wire::ids::IdentityId;
use bandstand_wire::phoenix::Topic;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use push::{Mode, Push, RoomPush, Scope, Signal};

use super::Client;
use driver::Command;

/// What happens when the agent is connected already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// This connection takes over, and the older one ends.
    #[default]
    Supersede,
    /// This connection is refused. Only at the first connect: whoever lost its connection may come back.
    Reject,
}

/// How a socket is kept.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Whose it is.
    pub agent: IdentityId,
    /// When the agent is connected already.
    pub on_conflict: OnConflict,
    /// How often the server is told that this end is alive. 30 s.
    pub heartbeat: Duration,
    /// After so long without an answer to it the connection is given up. 60 s.
    pub dead_after: Duration,
    /// How long an answer to a join or a leave is waited for. 10 s.
    pub reply_timeout: Duration,
    /// How many events may wait. When there are more, some are dropped and [`SocketEvent::Overflow`] says so. 4096.
    pub events: usize,
    /// How many tries the first connect has; without a number, as many as it takes.
    pub connect_attempts: Option<u32>,
}

impl SocketOptions {
    /// The usual options.
    pub fn new(agent: IdentityId) -> Self {
        Self {
            agent,
            on_conflict: OnConflict::default(),
            heartbeat: Duration::from_secs(30),
            dead_after: Duration::from_secs(60),
            reply_timeout: Duration::from_secs(10),
            events: 4096,
            connect_attempts: None,
        }
    }
}

/// Something that a socket tells.
#[derive(Clone, Debug, PartialEq)]
pub enum SocketEvent {
    /// The server pushed something.
    Push {
        /// On which topic.
        topic: Topic,
        /// What.
        push: Push,
    },
    /// A push that cannot be understood. What it meant is found through REST.
    Unreadable {
        /// On which topic.
        topic: Topic,
        /// Its event.
        event: String,
    },
    /// The connection is lost; the socket is trying to get it back.
    Disconnected {
        /// The close code, when the server gave one.
        code: Option<u16>,
    },
    /// The connection is back, and every topic is joined again or reported as [`Self::TopicLost`]. What was pushed
    /// meanwhile was missed.
    Reconnected,
    /// One topic broke and is joined again. What was pushed on it meanwhile was missed.
    TopicRejoined {
        /// Which.
        topic: Topic,
    },
    /// A topic could not be joined again. It is forgotten.
    TopicLost {
        /// Which.
        topic: Topic,
        /// What the server says.
        reason: String,
    },
    /// Events were dropped because nobody took them in time. Everything must be looked up.
    Overflow,
    /// It is over. Nothing comes after this.
    Ended(Terminal),
}

/// Why a socket ended for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Terminal {
    /// It was closed from this side.
    #[error("closed")]
    Closed,
    /// A newer connection of the same agent took over.
    #[error("superseded by a newer connection of the same agent ({reason}): {message}")]
    Superseded {
        /// The server's word.
        reason: String,
        /// For people.
        message: String,
    },
    /// The agent is connected already, and this connection was not to replace it.
    #[error("the agent is connected already")]
    Conflict,
    /// The server will not have this connection, however often it is tried: the key is not (or no longer) valid, or the
    /// request is wrong.
    #[error("the server refuses the connection ({status} {code})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's word; empty when it gave none.
        code: String,
    },
    /// The server closed the connection because of what this end did.
    #[error("the server closed the connection for a violation of its policy")]
    Policy,
}

/// Why there is no socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// There will be none.
    #[error(transparent)]
    Terminal(#[from] Terminal),
    /// The control topic, without which no agent runs, was refused.
    #[error("the control channel was refused: {0}")]
    Control(JoinError),
    /// As many tries as allowed failed.
    #[error("no connection: {0}")]
    Unreachable(String),
}

/// Why a topic is not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The server refuses.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// No answer came in time. It may be joined or not.
    #[error("no answer came in time")]
    TimedOut,
    /// The socket has ended.
    #[error("the socket has ended")]
    Ended,
}

/// What comes from a socket.
#[derive(Debug)]
pub struct Incoming {
    /// What was pushed and what became of the connection, in order.
    pub events: mpsc::Receiver<SocketEvent>,
    /// Control signals, which overtake everything else. The same signal may come twice; its correlation id tells.
    pub signals: mpsc::UnboundedReceiver<Signal>,
}

/// A connection that is kept alive. Dropping it closes the connection at once.
#[derive(Debug)]
pub struct Socket {
    commands: mpsc::Sender<Command>,
    reply_timeout: Duration,
    task: Option<JoinHandle<()>>,
}

impl Client {
    /// Opens the socket and joins the agent's control topic, which makes this its live connection.
    ///
    /// What may pass by itself (no network, 429, 5xx) is tried again with growing delays.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, options: SocketOptions) -> Result<(Socket, Incoming), ConnectError> {
        let control = Topic::AgentControl(options.agent);
        let (events_in, events) = mpsc::channel(options.events.max(1));
        let (signals_in, signals) = mpsc::unbounded_channel();
        let (commands, commands_out) = mpsc::channel(64);
        let reply_timeout = options.reply_timeout;
        let dialer = dial::Dialer::new(self, &options);
        let stream = dialer.first(options.connect_attempts).await?;
        // Known before it matters: a server that is restarting cannot be asked.
        self.transport.is_ours().await;
        let driver = driver::Driver::new(dialer, options, commands_out, events_in, signals_in);
        let task = tokio::spawn(driver.run(stream));
        let socket = Socket { commands, reply_timeout, task: Some(task) };
        match socket.join(control).await {
            Ok(()) => Ok((socket, Incoming { events, signals })),
            Err(JoinError::Refused(reason)) if reason == bandstand_wire::phoenix::reason::CONNECTION_CONFLICT => {
                Err(Terminal::Conflict.into())
            }
            Err(error) => Err(ConnectError::Control(error)),
        }
    }
}

impl Socket {
    /// Joins a topic. It stays joined, over every reconnect, until it is left or reported as lost.
    ///
    /// # Errors
    /// [`JoinError`].
    pub async fn join(&self, topic: Topic) -> Result<(), JoinError> {
        let (answer, answered) = oneshot::channel();
        let asked = self.commands.send(Command::Join { topic, answer });
        let wait = async {
            asked.await.map_err(|_| JoinError::Ended)?;
            answered.await.map_err(|_| JoinError::Ended)?
        };
        match tokio::time::timeout(self.reply_timeout, wait).await {
            Ok(result) => result,
            Err(_) => {
                // Whether it was joined is not known; it shall not be.
                let _ = self.commands.try_send(Command::Forget { topic });
                Err(JoinError::TimedOut)
            }
        }
    }

    /// Leaves a topic, and waits a little until the server has noticed. Leaving what is not joined does nothing.
    pub async fn leave(&self, topic: Topic) {
        let (answer, answered) = oneshot::channel();
        let wait = async {
            if self.commands.send(Command::Leave { topic, answer }).await.is_ok() {
                let _ = answered.await;
            }
        };
        let _ = tokio::time::timeout(self.reply_timeout, wait).await;
    }

    /// Whether the socket has not ended.
    pub fn is_open(&self) -> bool {
        !self.commands.is_closed()
    }

    /// Closes the connection in order, with code 1000.
    pub async fn close(mut self) {
        let _ = self.commands.send(Command::Close).await;
        if let Some(mut task) = self.task.take()
            && tokio::time::timeout(self.reply_timeout, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

//! What the hub knows of a connection and of one of its joined topics.

use std::sync::Arc;

use bandstand_wire::phoenix::{Ref, Topic};

use super::outbound::{Item, Mark, Outbound};
use crate::auth::{Caller, Method};

/// One join of one topic by one connection. A later join of the same topic is another channel.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Never used twice while the server runs, so that what concerns an old join cannot hit a newer one.
    pub(crate) id: u64,
    /// Which topic.
    pub(crate) topic: Topic,
    /// The topic as the client wrote it: clients find their channel by this text.
    pub(crate) name: Box<str>,
    /// The join's own ref; every push repeats it.
    pub(crate) join_ref: Ref,
}

/// A connection as others see it: who it is, and the queue into it.
#[derive(Debug)]
pub(crate) struct SocketHandle {
    /// Never used twice while the server runs.
    pub(crate) id: u64,
    /// Who is connected.
    pub(crate) caller: Caller,
    /// How it showed that.
    pub(crate) method: Method,
    /// What waits to be written.
    pub(crate) outbound: Outbound,
}

/// A subscription: this channel of this connection hears something.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    /// The connection.
    pub(crate) socket: Arc<SocketHandle>,
    /// The channel.
    pub(crate) channel: Arc<Channel>,
}

impl Subscriber {
    /// Queues an event for it.
    pub(crate) fn push(&self, event: &'static str, payload: &Arc<str>, mark: Option<Mark>) {
        let item = Item::Push { channel: Arc::clone(&self.channel), event, payload: Arc::clone(payload), mark };
        self.socket.outbound.push(item);
    }
}

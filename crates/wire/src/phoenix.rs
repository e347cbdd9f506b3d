//! Phoenix Channels on the wire: frames of both serializers and the names of topics. No I/O.
//!
//! ```
//! use bandstand_wire::phoenix::{self, Version};
//!
//! let frame = phoenix::parse(Version::V2, r#"["1","1","agent_control:a","phx_join",{}]"#).unwrap();
//! assert_eq!(frame.event, "phx_join");
//! let reply = phoenix::reply(Version::V2, &frame.join_ref, &frame.reference, &frame.topic, phoenix::Status::Ok, "{}");
//! assert_eq!(reply, r#"["1","1","agent_control:a","phx_reply",{"status":"ok","response":{}}]"#);
//! ```

mod encode;
mod frame;
mod topic;

pub use encode::{Status, close, error, push, refusal, reply, request};
pub use frame::{ClientFrame, FrameError, Ref, Version, parse};
pub use topic::{Topic, TopicError};

/// Names of the events that belong to the protocol itself.
pub mod event {
    /// A client joins a topic.
    pub const JOIN: &str = "phx_join";
    /// A client leaves a topic.
    pub const LEAVE: &str = "phx_leave";
    /// The server answers.
    pub const REPLY: &str = "phx_reply";
    /// A channel ended for good.
    pub const CLOSE: &str = "phx_close";
    /// A channel broke; the client joins again.
    pub const ERROR: &str = "phx_error";
    /// A client is alive; only on [`HEARTBEAT_TOPIC`].
    pub const HEARTBEAT: &str = "heartbeat";
    /// Where heartbeats are sent.
    pub const HEARTBEAT_TOPIC: &str = "phoenix";
}

/// Reasons of a refusal that clients know.
pub mod reason {
    /// More frames than the server takes from one connection.
    pub const RATE_LIMITED: &str = "rate_limited";
    /// The identity may not join this topic (or there is no such room: not told apart).
    pub const UNAUTHORIZED: &str = "unauthorized";
    /// No such family of topics, or an event on a topic that was not joined.
    pub const UNMATCHED_TOPIC: &str = "unmatched topic";
    /// The channel is one-way: it takes no events.
    pub const UNMATCHED_EVENT: &str = "unmatched event";
    /// The socket has joined as many topics as it may.
    pub const TOO_MANY_CHANNELS: &str = "too many channels joined";
    /// The server could not find out; try again.
    pub const JOIN_CRASHED: &str = "join crashed";
    /// The agent is connected already, and this connection asked not to replace it.
    pub const CONNECTION_CONFLICT: &str = "connection_conflict";
}

/// Close codes that the server uses. 1008 and 1013 are not among them: the first stops a Python client for good, the
/// second for a minute.
pub mod close_code {
    /// Superseded by a newer connection, after the `supersede` push.
    pub const NORMAL: u16 = 1000;
    /// Idle too long, or the key or identity is gone.
    pub const GOING_AWAY: u16 = 1001;
    /// The client broke the WebSocket protocol itself.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// A binary frame.
    pub const UNSUPPORTED: u16 = 1003;
    /// Not a frame of the negotiated version.
    pub const INVALID_PAYLOAD: u16 = 1007;
    /// A frame above the limit.
    pub const TOO_BIG: u16 = 1009;
    /// Restart, or the client does not keep up: reconnect and catch up through REST.
    pub const RESTART: u16 = 1012;
}

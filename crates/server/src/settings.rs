//! Limits that an operator may change. The command line fills them from flags, environment and file.

use std::time::Duration;

use crate::sign_in::SignIn;
use bandstand_domain::lease::LeaseTimes;

/// What is refused for being too large, too many or too slow. Each field's default is [`Limits::default`].
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Largest request body, in bytes.
    pub body_bytes: usize,
    /// Replies to requests with an idempotency key are remembered for so long.
    pub idempotency_retention: Duration,
    /// What became of a bulk deletion can be asked for so long after its end.
    pub bulk_deletion_retention: Duration,
    /// Requests a minute that read, for each key of an agent; no limit when `None`.
    pub agent_reads_per_minute: Option<u32>,
    /// Requests a minute that write, for each key of an agent; no limit when `None`.
    pub agent_writes_per_minute: Option<u32>,
    /// Requests a minute that read, for each key of a user; no limit when `None`.
    pub user_reads_per_minute: Option<u32>,
    /// Requests a minute that write, for each key of a user; no limit when `None`.
    pub user_writes_per_minute: Option<u32>,
    /// Unknown keys a minute that one address may show; no limit when 0.
    pub auth_failures_per_minute: u32,
    /// The header in which a proxy says whose request it passes on; its last address counts. Without it, the address of
    /// the connection.
    pub client_address_header: Option<String>,
    /// Agents that a user may have, unless it has a quota of its own; no limit when `None`.
    pub quota_agents: Option<u32>,
    /// Rooms that an identity may have created, unless it has a quota of its own; no limit when `None`.
    pub quota_rooms: Option<u32>,
    /// Text messages that an identity may post in a day (UTC), unless it has a quota of its own; no limit when `None`.
    pub quota_messages_per_day: Option<u32>,
    /// Longest time for one request, from its last header to its reply.
    pub request_timeout: Duration,
    /// Shortest description of an agent, in characters.
    pub description_min: usize,
    /// Longest description of an agent, in characters.
    pub description_max: usize,
    /// Longest name of an agent, in characters.
    pub name_max: usize,
    /// Participants a room may have.
    pub room_participants: usize,
    /// Whether rooms have a task board.
    pub tasks: bool,
    /// Largest file of a room, in bytes.
    pub file_bytes: usize,
    /// Longest time for one upload, from its last header to its reply.
    pub upload_timeout: Duration,
    /// Files are removed after so long; never when `None`.
    pub file_retention: Option<Duration>,
    /// Types of files that are taken, comma-separated, each the start of a content type (`image/`); all when `None`.
    pub file_types: Option<String>,
    /// Whether agents may store memories, and anybody read them.
    pub memories: bool,
    /// Largest frame that a client may send on a socket, in bytes.
    pub frame_bytes: usize,
    /// Frames a second that a client may send on a socket, ten seconds' worth at once; more are refused.
    pub socket_frames_per_second: u32,
    /// A socket that sends nothing for so long is closed with 1001.
    pub socket_idle: Duration,
    /// Topics that one socket may join.
    pub socket_topics: usize,
    /// Frames that may wait for one socket; one more closes it with 1012, and the client recovers by `/next`.
    pub socket_queue: usize,
    /// Bytes that may wait for one socket; one more closes it with 1012.
    pub socket_queue_bytes: usize,
    /// Refused or accepted upgrades a second for one key; more get 429 with `retry_after`.
    pub upgrades_per_second: u32,
    /// An activity report counts for so long.
    pub activity_ttl: Duration,
    /// An agent without a connection loses the lease of its attempt after so long; never when `None`.
    pub lease_gone: Option<Duration>,
    /// An agent that reported what it does, and no longer does, loses it after so long; never when `None`.
    pub lease_silent: Option<Duration>,
    /// A message is given up for an agent after so many attempts that failed or ended their agent; never when `None`.
    pub dead_letter_attempts: Option<u32>,
    /// A message is given up for an agent that has not processed it after so long; never when `None`.
    pub dead_letter_age: Option<Duration>,
    /// `delivered` marks are written at least so often while there are any.
    pub delivered_every: Duration,
    /// How people sign in.
    pub sign_in: SignIn,
}

impl Limits {
    /// When attempts lapse.
    pub fn lease(&self) -> LeaseTimes {
        LeaseTimes { gone: self.lease_gone, silent: self.lease_silent }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            idempotency_retention: Duration::from_secs(24 * 60 * 60),
            bulk_deletion_retention: Duration::from_secs(7 * 24 * 60 * 60),
            agent_reads_per_minute: None,
            agent_writes_per_minute: None,
            user_reads_per_minute: None,
            user_writes_per_minute: None,
            auth_failures_per_minute: 600,
            client_address_header: None,
            quota_agents: None,
            quota_rooms: None,
            quota_messages_per_day: None,
            request_timeout: Duration::from_secs(30),
            description_min: 10,
            description_max: 2000,
            name_max: 100,
            room_participants: 1000,
            tasks: true,
            file_bytes: 32 * 1024 * 1024,
            upload_timeout: Duration::from_secs(600),
            file_retention: None,
            file_types: None,
            memories: true,
            frame_bytes: 64 * 1024,
            socket_frames_per_second: 1000,
            socket_idle: Duration::from_secs(60),
            socket_topics: 10_000,
            socket_queue: 1024,
            socket_queue_bytes: 8 * 1024 * 1024,
            upgrades_per_second: 50,
            activity_ttl: Duration::from_secs(10),
            lease_gone: Some(Duration::from_secs(60)),
            lease_silent: Some(Duration::from_secs(60)),
            dead_letter_attempts: None,
            dead_letter_age: None,
            delivered_every: Duration::from_millis(50),
            sign_in: SignIn::default(),
        }
    }
}

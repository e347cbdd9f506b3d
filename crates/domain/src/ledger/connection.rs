//! Whether an agent is connected, worked out from what servers wrote down while they ran.

use bandstand_wire::time::Timestamp;

use super::Missing;

/// Whether an agent is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It never was.
    Never {
        /// When it was registered.
        since: Timestamp,
    },
    /// It is.
    Online {
        /// Since when.
        since: Timestamp,
    },
    /// It is not.
    Offline {
        /// Since when; the earliest moment, if it is not exactly known.
        since: Timestamp,
        /// The latest moment, where nobody saw when.
        latest: Option<Timestamp>,
    },
    /// Nobody knows.
    Unknown {
        /// Why not.
        missing: Missing,
        /// When it was certainly connected.
        last_at: Option<Timestamp>,
    },
}

impl Connection {
    /// The newest moment that it tells of the agent.
    pub fn moment(&self) -> Option<Timestamp> {
        match *self {
            Self::Never { .. } => None,
            Self::Online { since } => Some(since),
            Self::Offline { since, latest } => Some(latest.unwrap_or(since)),
            Self::Unknown { last_at, .. } => last_at,
        }
    }
}

/// A run of a server on the data, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it last wrote that it runs.
    pub alive_at: Timestamp,
    /// When it said that it ends, with all its connections closed.
    pub ended_at: Option<Timestamp>,
    /// When a later run found that it had ended without a word: it crashed in between.
    pub found_at: Option<Timestamp>,
}

/// What is written down of an agent's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// When the agent was registered.
    pub registered_at: Timestamp,
    /// Since when connections are written down on this data.
    pub recorded_since: Timestamp,
    /// When its newest time of being connected began, and when that ended as far as its run knew.
    pub newest: Option<(Timestamp, Option<Timestamp>)>,
    /// The run that knew.
    pub run: Option<Run>,
}

/// Works out whether an agent is connected. `live` is what this server itself sees, if it has seen the agent in this
/// run: since when it is connected, or else since when it is not.
pub fn connection(live: Option<Result<Timestamp, Timestamp>>, known: Known) -> Connection {
    match live {
        Some(Ok(since)) => return Connection::Online { since },
        Some(Err(since)) => return Connection::Offline { since, latest: None },
        None => {}
    }
    match (known.newest, known.run) {
        (None, _) if known.registered_at >= known.recorded_since => Connection::Never { since: known.registered_at },
        (None, _) => Connection::Unknown { missing: Missing::Record, last_at: None },
        (Some((_, Some(since))), _) => Connection::Offline { since, latest: None },
        (Some((_, None)), Some(Run { ended_at: Some(since), .. })) => Connection::Offline { since, latest: None },
        // The clock of the later run may be behind.
        (Some((begun, None)), Some(Run { alive_at, found_at: Some(found), .. })) => {
            let since = alive_at.max(begun);
            Connection::Offline { since, latest: Some(found.max(since)) }
        }
        (Some((begun, None)), Some(run)) => {
            Connection::Unknown { missing: Missing::Connection, last_at: Some(begun.max(run.alive_at)) }
        }
        (Some((begun, None)), None) => Connection::Unknown { missing: Missing::Connection, last_at: Some(begun) },
    }
}

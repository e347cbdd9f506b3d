//! What a transaction announces, and who hears it.

use bandstand_domain::event::Event;
use bandstand_wire::ids::RoomId;

/// One group of a committed transaction: the events that carry one sequence number of one room.
///
/// A group is handed over even when it holds no events: whoever puts a room's groups in order must see no holes.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The room and the sequence number that the transaction took there; none for events outside a room.
    pub room: Option<(RoomId, i64)>,
    /// What happened, in the order of the calls to [`Writer::emit`](crate::Writer::emit).
    pub events: Vec<Event>,
}

/// Receives the groups of committed transactions.
///
/// The store calls [`Self::publish`] after COMMIT, never before and never for a transaction that rolled back, and before it answers
/// the operation. It runs on the writer's thread (SQLite) or in the operation's task (PostgreSQL), so it must be quick.
pub trait CommitSink: Send + Sync + 'static {
    /// Takes the groups, in the order in which their transactions were committed.
    fn publish(&self, commits: Vec<Commit>);

    /// Takes the groups of a transaction of which nobody can say whether it was committed: the connection was lost
    /// during COMMIT, and the database does not answer. What must not be missed is looked up later, or assumed where
    /// that does no harm.
    fn uncertain(&self, commits: Vec<Commit>) {
        drop(commits);
    }
}

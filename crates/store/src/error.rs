//! The ways in which storage can fail.

use std::path::PathBuf;

/// Why an operation on the store failed. Except where a variant says so, nothing of the operation was committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Too many operations are waiting. Try again later.
    #[error("the store is busy: too many operations are waiting")]
    Busy,
    /// The database cannot do it just now: disk full, read-only file system, connection lost, deadlock. When the
    /// connection was lost during COMMIT and the database cannot be asked what became of it, the outcome is unknown,
    /// and the text says so.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Another server owns the data folder.
    #[error("the data folder {} is in use by another server ({holder})", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// What is known about the owner, e.g. `pid 4711`.
        holder: String,
    },
    /// Another server owns the PostgreSQL database.
    #[error("the database {database} is in use by another server ({holder})")]
    DatabaseLocked {
        /// The database's name.
        database: String,
        /// What is known about the owner: its process on the database server and its address.
        holder: String,
    },
    /// The database cannot be used as it is set up; the text says what to change. Only from opening the store.
    #[error("the database cannot be used: {0}")]
    Setup(String),
    /// A stored value is not what the query expected.
    #[error("cannot read a stored value: {0}")]
    Decode(String),
    /// The database is damaged.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// The schema could not be brought up to date.
    #[error("migration failed: {0}")]
    Migration(String),
    /// A UNIQUE constraint was violated. Queries decide by `ON CONFLICT` instead, so this is usually a bug as well.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The request's idempotency key is taken: it, or another with the same key, was carried out before.
    #[error("a request with this idempotency key was carried out before")]
    Repeated,
    /// A mistake in this program: wrong SQL, a panic, or an operation that waited for something else than its
    /// transaction.
    #[error("bug in a store operation: {0}")]
    Bug(String),
}

impl StoreError {
    /// Whether the same request may succeed later, without anybody mending the program: a server answers 503.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Busy | Self::Unavailable(_) | Self::Closed => true,
            Self::Locked { .. }
            | Self::DatabaseLocked { .. }
            | Self::Setup(_)
            | Self::Decode(_)
            | Self::Corrupt(_)
            | Self::Migration(_)
            | Self::Conflict(_)
            | Self::Repeated
            | Self::Bug(_) => false,
        }
    }
}

//! Durable state: one set of queries over SQLite and PostgreSQL.

mod columns;
mod commit;
pub mod deliveries;
mod dialect;
mod engine;
mod error;
pub mod identities;
pub mod keys;
mod lock;
pub mod messages;
mod migrate;
pub mod participants;
pub mod rooms;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod value;
pub mod walk;

pub use commit::{Commit, CommitSink};
pub use dialect::Dialect;
pub use error::StoreError;
pub use lock::DataLock;
pub use migrate::Migration;
pub use store::{BoxFuture, Database, Reader, Store, StoreOptions, Writer};
pub use value::{Param, Row, Value};

/// The schema, oldest step first. Only ever added to.
pub const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    name: "rooms",
    sqlite: include_str!("../migrations/sqlite/0001_rooms.sql"),
    postgres: include_str!("../migrations/postgres/0001_rooms.sql"),
}];

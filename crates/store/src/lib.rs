//! Durable state: one set of queries over SQLite and PostgreSQL.

pub mod archive;
pub mod audit;
pub mod boards;
pub mod bulk_deletions;
mod chunks;
mod columns;
mod commit;
pub mod contact_requests;
pub mod contacts;
pub mod dead_letters;
pub mod deliveries;
mod dialect;
mod engine;
mod error;
pub mod examine;
pub mod executions;
pub mod files;
pub mod idempotency;
pub mod identities;
pub mod identity_links;
pub mod keys;
pub mod leases;
pub mod ledger;
mod lock;
pub mod memories;
pub mod messages;
mod migrate;
pub mod organizations;
pub mod participants;
pub mod peers;
pub mod quotas;
pub mod rooms;
pub mod search;
pub mod sightings;
pub mod signing_keys;
mod store;
pub mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
mod value;
pub mod walk;

pub use commit::{Commit, CommitSink};
pub use dialect::Dialect;
pub use error::StoreError;
pub use lock::DataLock;
pub use migrate::Migration;
pub use store::{BoxFuture, Database, Reader, Store, StoreOptions, Writer, look};
pub use value::{Param, Row, Value};

/// A step of the schema, from the file of the same name in each engine's folder.
macro_rules! migration {
    ($number:literal, $name:literal, $file:literal) => {
        Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file)),
            postgres: include_str!(concat!("../migrations/postgres/", $file)),
        }
    };
}

/// The schema, oldest step first. Only ever added to.
pub const MIGRATIONS: &[Migration] = &[
    migration!(1, "rooms", "0001_rooms.sql"),
    migration!(2, "contacts", "0002_contacts.sql"),
    migration!(3, "memories", "0003_memories.sql"),
    migration!(4, "tasks", "0004_tasks.sql"),
    migration!(5, "files", "0005_files.sql"),
    migration!(6, "control", "0006_control.sql"),
    migration!(7, "ledger", "0007_ledger.sql"),
    migration!(8, "dead_letters", "0008_dead_letters.sql"),
    migration!(9, "idempotency", "0009_idempotency.sql"),
    migration!(10, "sign_in", "0010_sign_in.sql"),
    migration!(11, "administration", "0011_administration.sql"),
];

//! How the server is started for a measurement, and how a store is opened without one.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use bandstand_store::{Commit, CommitSink, Database, Store, StoreError, StoreOptions};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::bench::Bench;
use crate::process::Process;

/// The owner's key of every server that is measured.
pub(crate) const OWNER_KEY: &str = "band_u_benchmarkbenchmarkbenchmarkbenchmark";

/// Starts the server on the data folder `name`, with its default settings but for `flags`.
pub(crate) fn start_server(bench: &Bench, name: &str, flags: &[&str]) -> Result<Process> {
    let data = bench.folder(name);
    fs::create_dir_all(&data)?;
    let mut command = Command::new(&bench.server);
    command
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .args(flags)
        .env("BANDSTAND_OWNER_KEY", OWNER_KEY);
    Process::start(&mut command, &bench.folder(&format!("{name}.log")))
}

struct Silence;

impl CommitSink for Silence {
    fn publish(&self, _: Vec<Commit>) {}
}

/// Opens a store in which nobody hears what is committed.
pub(crate) async fn open_store(database: Database) -> Result<Store, StoreError> {
    Store::open(StoreOptions::new(database, now().as_micros()), Arc::new(Silence)).await
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures with the machine's own clock")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Hands out ids that rise, as the server's do.
#[derive(Default)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn next(&self) -> Uuid {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(number))
    }
}

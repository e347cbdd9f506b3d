//! Moves the write-ahead log into the database beside the writer, so that no operation waits for it.
//!
//! The log starts over only when all of it was moved and nobody reads it. Under steady load a checkpoint beside the
//! writer never gets there, since the writer appends meanwhile; so once the log is large, the writer is held between two
//! batches for the short rest.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::sqlite::convert;
use crate::error::StoreError;

/// Pages in the log that were not moved yet, from which on they are: 4 MiB.
const DUE: i64 = 1024;
/// Pages in the log from which on the writer is held until it can start over: 16 MiB.
const HOLD: i64 = 4096;
/// How long the writer is held at most for readers that still use the log.
const PATIENCE: Duration = Duration::from_millis(25);
/// The same when closing, where nobody waits for us.
const PATIENCE_AT_END: Duration = Duration::from_secs(5);
/// How long to leave it alone after it failed: the disk may be full for a while, or one reader slow.
const PAUSE: Duration = Duration::from_millis(500);

/// The length of the log in pages, and how many of them were moved.
pub(super) struct Log {
    /// Somebody was in the way.
    busy: bool,
    length: i64,
    moved: i64,
}

impl Log {
    /// Looks without locking or changing anything.
    pub(super) fn look(connection: &Connection) -> Result<Self, StoreError> {
        Self::pragma(connection, "PRAGMA wal_checkpoint(NOOP)")
    }

    fn pragma(connection: &Connection, sql: &'static str) -> Result<Self, StoreError> {
        let mut statement = connection.prepare_cached(sql).map_err(convert)?;
        statement
            .query_row([], |row| Ok(Self { busy: row.get(0)?, length: row.get(1)?, moved: row.get(2)? }))
            .map_err(convert)
    }

    pub(super) fn is_due(&self) -> bool {
        self.length - self.moved >= DUE || self.length >= HOLD
    }
}

/// Between the writer and the thread that moves the log.
pub(super) struct Checkpoint {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The log should be moved.
    due: bool,
    /// No more writer: move all and end.
    stop: bool,
    /// The writer is in a batch.
    writing: bool,
    /// The writer must not begin one.
    held: bool,
}

impl Checkpoint {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), changed: Condvar::new() }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.wait_while(state, condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the log to be moved.
    pub(super) fn ask(&self) {
        self.change(|state| state.due = true);
    }

    /// Asks the thread to move all that is left, and to end.
    pub(super) fn stop(&self) {
        self.change(|state| state.stop = true);
    }

    /// Brackets one batch of the writer; waits while it is held.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.wait_while(|state| state.held).writing = true;
        Turn { checkpoint: self }
    }

    fn hold(&self) -> Held<'_> {
        self.change(|state| state.held = true);
        drop(self.wait_while(|state| state.writing));
        Held { checkpoint: self }
    }

    /// The thread: until it is stopped.
    pub(super) fn run(&self, connection: &Connection) {
        loop {
            {
                let mut state = self.wait_while(|state| !state.due && !state.stop);
                if state.stop {
                    break;
                }
                state.due = false;
            }
            match self.step(connection) {
                Ok(true) => {}
                // Holding the writer at once again would cost it more than a longer log does.
                Ok(false) => self.pause(),
                Err(error) => {
                    tracing::warn!(%error, "could not move the write-ahead log into the database; trying again later");
                    self.pause();
                }
            }
        }
        let end = connection.busy_timeout(PATIENCE_AT_END).map_err(convert);
        if let Err(error) = end.and_then(|()| Log::pragma(connection, "PRAGMA wal_checkpoint(TRUNCATE)")) {
            // Nothing is lost: the next start reads the log.
            tracing::warn!(%error, "could not move the write-ahead log into the database when closing");
        }
    }

    fn pause(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(state, PAUSE, |state| !state.stop));
    }

    /// Says whether the log could start over, if it had to.
    fn step(&self, connection: &Connection) -> Result<bool, StoreError> {
        let log = Log::pragma(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        if log.length < HOLD {
            return Ok(true);
        }
        connection.busy_timeout(PATIENCE).map_err(convert)?;
        let _held = self.hold();
        Ok(!Log::pragma(connection, "PRAGMA wal_checkpoint(RESTART)")?.busy)
    }
}

pub(super) struct Turn<'c> {
    checkpoint: &'c Checkpoint,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.checkpoint.change(|state| state.writing = false);
    }
}

struct Held<'c> {
    checkpoint: &'c Checkpoint,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.checkpoint.change(|state| state.held = false);
    }
}

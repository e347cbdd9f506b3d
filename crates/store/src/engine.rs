//! The two engines. Nothing outside of this module and `dialect` knows which database runs.

mod checkpoint;
mod owner;
pub(crate) mod postgres;
mod queue;
pub(crate) mod sqlite;

use std::any::Any;
use std::time::Duration;

use crate::commit::{Commit, CommitSink};
use crate::error::StoreError;

/// How an operation ended, as a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Its closure returned `Ok`.
    Done,
    /// Its closure returned an error of its own: the request was refused.
    Refused,
    /// A statement failed.
    Failed,
    /// It panicked, or awaited something else than its transaction.
    Bug,
    /// The transaction around it was lost.
    Unavailable,
    /// The queue was full.
    Busy,
}

impl Outcome {
    fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Bug => "bug",
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
        }
    }
}

fn count(name: &'static str, outcome: Outcome) {
    metrics::counter!("store_operations_total", "name" => name, "outcome" => outcome.label()).increment(1);
}

fn note_duration(name: &'static str, took: Duration, limit: Duration) {
    if took > limit {
        let duration_ms = took.as_millis();
        tracing::warn!(operation.name = name, duration_ms, "store operation was slow");
    }
}

/// Decides what an operation's result is worth: a panic is a bug of that operation alone, and `Ok` after a failed
/// statement would commit half of what was meant.
fn judge<T, E: From<StoreError>>(
    name: &'static str,
    returned: Result<Result<T, E>, StoreError>,
    failed: Option<StoreError>,
) -> (Outcome, Result<T, E>) {
    match (returned, failed) {
        (Err(bug), _) => {
            tracing::error!(operation.name = name, error = %bug, "store operation rolled back");
            (Outcome::Bug, Err(E::from(bug)))
        }
        (Ok(Ok(_)), Some(cause)) => {
            tracing::error!(operation.name = name, error = %cause, "store operation went on after a failed statement");
            // What made the statement fail may well be the disk, and then the answer is "later", not "never".
            let error = if cause.is_unavailable() {
                cause
            } else {
                StoreError::Bug(format!("{name} went on after a failed statement: {cause}"))
            };
            (Outcome::Failed, Err(E::from(error)))
        }
        (Ok(Err(error)), Some(_)) => (Outcome::Failed, Err(error)),
        (Ok(Err(error)), None) => (Outcome::Refused, Err(error)),
        (Ok(Ok(value)), None) => (Outcome::Done, Ok(value)),
    }
}

/// A caught panic as an error.
fn panicked(name: &'static str, panic: &(dyn Any + Send)) -> StoreError {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    StoreError::Bug(format!("{name} panicked: {text}"))
}

/// Hands committed groups over. The data is safe by now, so a panic in the sink is logged and ends there.
fn publish(sink: &dyn CommitSink, commits: Vec<Commit>) {
    if commits.is_empty() {
        return;
    }
    let published = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sink.publish(commits)));
    if let Err(panic) = published {
        tracing::error!(error = %panicked("publish", &*panic), "announcing committed events failed");
    }
}

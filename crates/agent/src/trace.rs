//! What happened in a model's turns, on disk: for each of its replies the seven stages that one looks at in order when
//! a conversation goes wrong.
//!
//! ```text
//! <folder>/<room>/<time>_<message>/<step>/1-client-history.json    what the room and the memory gave
//!                                         2-normalised.json        the transcript that the runtime keeps
//!                                         3-payload.json           the body that went to the provider
//!                                         4-reply.json, .sse       what came back, as it came
//!                                         5-parsed.json            the reply as it was understood
//!                                         6-replayed-payload.json  the body in which it went back, or would
//!                                         7-output.json            results of tools, and what the room was told
//!                                         step.json                API, model, names on the wire
//! ```
//!
//! Folders and files are their owner's alone. They hold what was said in the room; headers and keys are not in them. The
//! oldest steps are removed when there are too many ([`TraceLimits`]). A trace that cannot be written is logged and
//! breaks nothing.

mod turn;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use turn::{Begun, Ended, TurnTrace};
use writer::Writer;

/// One of the seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// What the client's side gave: rows of the room, what is remembered, the message.
    ClientHistory,
    /// The transcript as the runtime keeps it, system text included.
    Normalised,
    /// The request's body.
    Payload,
    /// What came back, as it came.
    Reply,
    /// The reply as it was understood.
    Parsed,
    /// The body of the next request, in which the reply and its results go back; after the last reply, as it would be.
    ReplayedPayload,
    /// The results of tools, and what the room was told.
    Output,
}

impl Stage {
    /// In order.
    pub const ALL: [Self; 7] = [
        Self::ClientHistory,
        Self::Normalised,
        Self::Payload,
        Self::Reply,
        Self::Parsed,
        Self::ReplayedPayload,
        Self::Output,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientHistory => "client history",
            Self::Normalised => "normalised",
            Self::Payload => "payload",
            Self::Reply => "reply",
            Self::Parsed => "parsed",
            Self::ReplayedPayload => "replayed payload",
            Self::Output => "output",
        }
    }

    /// Its file in a step's folder. A reply that was streamed is in [`REPLY_STREAM`] instead.
    pub fn file(self) -> &'static str {
        match self {
            Self::ClientHistory => "1-client-history.json",
            Self::Normalised => "2-normalised.json",
            Self::Payload => "3-payload.json",
            Self::Reply => "4-reply.json",
            Self::Parsed => "5-parsed.json",
            Self::ReplayedPayload => "6-replayed-payload.json",
            Self::Output => "7-output.json",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The file of a reply that was streamed.
pub const REPLY_STREAM: &str = "4-reply.sse";

/// The file that says what a step's payloads are written in: `api`, `profile`, `mid_system`, `reasoning_model`, `model`,
/// `names` (pairs of a tool's name and its name on the wire), `arguments` (of a tool, a key on the wire and the key of its
/// schema), `status` (of HTTP), `replayed` (`sent` or `prepared`) and `replayed_names`.
pub const ABOUT: &str = "step.json";

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLimits {
    /// Steps, of all rooms together. 1,000.
    pub steps: usize,
    /// Bytes of all files together. 256 MiB.
    pub bytes: u64,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self { steps: 1_000, bytes: 256 << 20 }
    }
}

/// A folder that turns are traced in. Cheap to clone. What is waiting is written before the last clone is gone.
#[derive(Clone)]
pub struct Trace {
    writer: Arc<Writer>,
    folder: PathBuf,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Trace {
    /// Traces in this folder, which is made unless it is there. Steps that are in it already count towards the limits:
    /// one folder is for one process at a time.
    ///
    /// The newest step is kept whatever it takes. `secrets` are replaced wherever they stand: keys that a tool or a
    /// provider may repeat.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn open(
        folder: impl AsRef<Path>,
        limits: TraceLimits,
        secrets: impl IntoIterator<Item = String>,
    ) -> io::Result<Self> {
        let folder = folder.as_ref().to_owned();
        // What is short is no secret, and would be replaced everywhere.
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= 8).collect();
        Ok(Self { writer: Arc::new(Writer::start(folder.clone(), limits, secrets)?), folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits until everything so far is written.
    pub async fn written(&self) {
        self.writer.written().await;
    }
}

//! Backups: all data as one file that restores into either engine, taken while the server runs.
//!
//! A backup is a tar archive of parts: the rows of each table as lines of JSON, the files of rooms, and last a manifest
//! with the hash of every part and the hash of the manifest. `docs/decisions/` says why it is made so.

use std::sync::Arc;

mod archive;
mod format;
mod restore;
mod take;

pub use archive::{Archive, ArchiveError};
pub use format::{FilesInManifest, Manifest, Part};
pub use restore::{RestoreError, RestoreOptions, Restored, restore, sweep};
pub use take::{BackupError, Chunk, stream};

/// Is told while something long is done: what, how far it is, and how far it goes.
pub type Progress<'p> = &'p (dyn Fn(&str, u64, u64) + Send + Sync);

/// The same for what goes on elsewhere.
pub type SharedProgress = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

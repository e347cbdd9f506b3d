//! What a backup says of itself.

use std::collections::BTreeMap;

use bandstand_domain::audit::Head;
use bandstand_wire::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The form of a backup. A program that knows a form reads it for ever; another one is refused.
pub(super) const FORM: u32 = 1;

/// The part that holds the manifest.
pub(super) const MANIFEST: &str = "manifest.json";

/// The last part: the manifest's hash.
pub(super) const MANIFEST_HASH: &str = "manifest.sha256";

/// Where the rows of a table are: `tables/messages/000001.jsonl`.
pub(super) const TABLES: &str = "tables/";

/// Where files of rooms are: `files/<room>/<file>`.
pub(super) const FILES: &str = "files/";

/// The longest name of a part, which is what a tar header takes.
pub(super) const NAME_MAX: usize = 100;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form: 1.
    pub form: u32,
    /// The version of the program that took it.
    pub version: String,
    /// The schema's version.
    pub schema_version: i64,
    /// `sqlite` or `postgres`; it restores into either.
    pub engine: String,
    /// When the snapshot was taken.
    pub taken_at: Timestamp,
    /// How far the audit log reached.
    pub audit_head: Head,
    /// Rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// The files of rooms.
    pub files: FilesInManifest,
    /// Every part before this manifest, in order.
    pub parts: Vec<Part>,
}

/// What a backup has of the files of rooms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesInManifest {
    /// Whether they are in the backup; those in a bucket are not.
    pub included: bool,
    /// The bucket that holds them.
    pub bucket: Option<String>,
    /// How many.
    pub count: u64,
    /// Their length in all.
    pub bytes: u64,
    /// Files that the database knows and that were not there.
    pub missing: Vec<String>,
}

/// A part of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name in the archive.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

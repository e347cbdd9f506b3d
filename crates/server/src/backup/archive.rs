//! A backup that lies somewhere: checked as a whole before anything of it is used.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Progress;
use super::format::{FORM, MANIFEST, MANIFEST_HASH, Manifest, Part, hex};

/// The longest manifest that is read.
const MANIFEST_MAX: u64 = 1 << 30;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// A part is not what it was.
    #[error("the part {name} is damaged: {what}")]
    Damaged {
        /// The part.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// It ends too early, or is something else.
    #[error("it is no whole backup: {0}")]
    Incomplete(String),
    /// A newer program took it.
    #[error("it is of form {found}, and this program knows only {FORM}; install the newest version of bandstand")]
    Form {
        /// The form that it says.
        found: u32,
    },
}

/// A backup whose every part was found to be what the manifest says.
#[derive(Clone, Debug)]
pub struct Archive {
    path: PathBuf,
    manifest: Manifest,
    manifest_hash: String,
}

impl Archive {
    /// Opens a backup and checks all of it.
    ///
    /// # Errors
    /// [`ArchiveError`], which names the part that is damaged.
    pub fn open(path: &Path, progress: Progress<'_>) -> Result<Self, ArchiveError> {
        let total = std::fs::metadata(path).map_err(|why| read_error(path, why))?.len();
        let mut found: Vec<Part> = Vec::new();
        let (mut manifest, mut hash) = (Vec::new(), String::new());
        let mut seen = 0;
        each_part(path, |name, entry| {
            let mut hasher = Sha256::new();
            let mut bytes = 0;
            let mut buffer = vec![0; 1 << 16];
            loop {
                let read = entry.read(&mut buffer).map_err(|why| damaged(name, &why.to_string()))?;
                let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
                hasher.update(piece);
                bytes += piece.len() as u64;
                match name {
                    MANIFEST if bytes <= MANIFEST_MAX => manifest.extend_from_slice(piece),
                    MANIFEST_HASH if bytes <= 128 => hash.push_str(&String::from_utf8_lossy(piece)),
                    MANIFEST | MANIFEST_HASH => return Err(damaged(name, "it is too long")),
                    _ => {}
                }
            }
            seen += bytes;
            progress("checking", seen, total);
            found.push(Part { name: name.to_owned(), bytes, sha256: hex(&hasher.finalize()) });
            Ok(())
        })?;
        // Without its end nothing tells what should have been there.
        let [parts @ .., is, says] = found.as_slice() else {
            return Err(ArchiveError::Incomplete("it has no manifest".to_owned()));
        };
        if is.name != MANIFEST || says.name != MANIFEST_HASH {
            return Err(ArchiveError::Incomplete(format!("it ends with {}, not with its manifest", says.name)));
        }
        if hash.trim_end() != is.sha256 {
            return Err(damaged(MANIFEST, "its hash is another one than was written"));
        }
        let manifest: Manifest = read_manifest(&manifest)?;
        compare(&manifest.parts, parts)?;
        let manifest_hash = is.sha256.clone();
        Ok(Self { path: path.to_owned(), manifest, manifest_hash })
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The hash of its manifest, by which it is known.
    pub fn hash(&self) -> &str {
        &self.manifest_hash
    }

    /// Hands over each part but the manifest, in order.
    pub(super) fn parts<E: From<ArchiveError>>(
        &self,
        mut take: impl FnMut(&str, &mut dyn Read) -> Result<(), E>,
    ) -> Result<(), E> {
        each_part(&self.path, |name, entry| match name {
            MANIFEST | MANIFEST_HASH => Ok(()),
            _ => take(name, entry),
        })
    }
}

fn read_manifest(text: &[u8]) -> Result<Manifest, ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Form {
        form: u32,
    }
    let wrong = |why: serde_json::Error| damaged(MANIFEST, &why.to_string());
    let Form { form } = serde_json::from_slice(text).map_err(wrong)?;
    if form != FORM {
        return Err(ArchiveError::Form { found: form });
    }
    serde_json::from_slice(text).map_err(wrong)
}

fn compare(wanted: &[Part], found: &[Part]) -> Result<(), ArchiveError> {
    let known: HashMap<&str, &Part> = found.iter().map(|part| (part.name.as_str(), part)).collect();
    for part in wanted {
        match known.get(part.name.as_str()) {
            None => return Err(damaged(&part.name, "it is not in the archive, or its header is damaged")),
            Some(found) if found.bytes != part.bytes => {
                return Err(damaged(&part.name, &format!("it has {} bytes instead of {}", found.bytes, part.bytes)));
            }
            Some(found) if found.sha256 != part.sha256 => {
                return Err(damaged(&part.name, "its bytes are others than were written"));
            }
            Some(_) => {}
        }
    }
    let order = |parts: &[Part]| parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
    if order(wanted) != order(found) {
        return Err(ArchiveError::Incomplete("its parts are others than its manifest says".to_owned()));
    }
    Ok(())
}

fn each_part<E: From<ArchiveError>>(
    path: &Path,
    mut take: impl FnMut(&str, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let file = File::open(path).map_err(|why| read_error(path, why))?;
    let mut archive = tar::Archive::new(BufReader::new(file));
    let mut before = String::new();
    for entry in archive.entries().map_err(|why| read_error(path, why))? {
        // A damaged header hides the name of its own part: the one before it is what can be named.
        let mut entry = entry.map_err(|why| match before.as_str() {
            "" => ArchiveError::Incomplete(why.to_string()),
            before => damaged(&format!("after {before}"), &why.to_string()),
        })?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        take(&name, &mut entry)?;
        before = name;
    }
    Ok(())
}

fn damaged(name: &str, what: &str) -> ArchiveError {
    ArchiveError::Damaged { name: name.to_owned(), what: what.to_owned() }
}

fn read_error(path: &Path, why: std::io::Error) -> ArchiveError {
    ArchiveError::Read { path: path.to_owned(), why }
}

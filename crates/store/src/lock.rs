//! One owner of a data folder: two servers on one folder would each publish only half of what happens.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::StoreError;

/// The name of the lock file inside the data folder.
const FILE_NAME: &str = "bandstand.lock";

/// An exclusive lock on a data folder, held until it is dropped. The operating system releases it when the process
/// ends, however it ends; the file itself stays.
///
/// [`Store::open`](crate::Store::open) takes it for SQLite, so a caller must not: the second lock would be refused
/// inside one process as well.
#[derive(Debug)]
pub struct DataLock {
    _file: File,
}

impl DataLock {
    /// Locks `folder`, or says which process holds it.
    pub fn acquire(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        let cannot = |error: std::io::Error| StoreError::Setup(format!("cannot lock {}: {error}", path.display()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {
                note_pid(&mut file);
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let known = file.read_to_string(&mut pid).is_ok() && !pid.trim().is_empty();
                let holder = if known { format!("pid {}", pid.trim()) } else { "pid unknown".to_owned() };
                Err(StoreError::Locked { folder: folder.to_owned(), holder })
            }
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }
}

/// Writes our process id for the message of the next one. A full disk must not keep a server from starting, so failing
/// is no error: the lock is what counts.
fn note_pid(file: &mut File) {
    let noted = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(std::process::id().to_string().as_bytes()));
    if let Err(error) = noted {
        tracing::debug!(%error, "could not note the process id in the lock file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_and_told_who_holds_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = DataLock::acquire(folder.path()).expect("nobody holds it");
        let refused = DataLock::acquire(folder.path()).expect_err("it is held");
        let text = refused.to_string();
        assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");
        assert!(text.contains(&folder.path().display().to_string()), "{text}");
        drop(first);
        DataLock::acquire(folder.path()).expect("released");
    }
}

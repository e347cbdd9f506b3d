//! One process of an agent on a machine.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use bandstand_wire::ids::IdentityId;

/// Held as long as the agent runs; the system releases it when the process dies.
#[derive(Debug)]
pub(super) struct InstanceLock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("agent {agent} already runs on this machine (lock file {})", path.display())]
    Held {
        /// Which agent.
        agent: IdentityId,
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be used.
    #[error("the lock file {} cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl InstanceLock {
    /// Takes the lock.
    pub(super) fn take(folder: &Path, agent: IdentityId) -> Result<Self, LockError> {
        let path = folder.join(format!("bandstand-agent-{agent}.lock"));
        // The file stays when the agent stops: removing it would let two processes lock two files of one name.
        match OpenOptions::new().create(true).truncate(false).write(true).open(&path) {
            Err(source) => Err(LockError::File { path, source }),
            Ok(file) => match file.try_lock() {
                Ok(()) => Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => Err(LockError::Held { agent, path }),
                Err(TryLockError::Error(source)) => Err(LockError::File { path, source }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let agent = IdentityId(uuid::Uuid::from_u128(7));
        let first = InstanceLock::take(folder.path(), agent).expect("the first");
        let second = InstanceLock::take(folder.path(), agent).expect_err("the second");
        assert!(matches!(second, LockError::Held { .. }), "{second:?}");
        drop(first);
        InstanceLock::take(folder.path(), agent).expect("after the first");
    }
}

//! Which session belongs to which key, and how many there may be.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use sha2::{Digest, Sha256};

/// A key as it is kept here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct KeyHash([u8; 32]);

impl KeyHash {
    pub(super) fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }
}

struct Bound {
    key: KeyHash,
    /// Grows with every request of any session.
    used: u64,
}

/// The open sessions.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    bound: Mutex<Table>,
    opening: tokio::sync::Mutex<()>,
    total: usize,
    per_key: usize,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Bound>,
    uses: u64,
}

impl Table {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }
}

impl Sessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>, total: usize, per_key: usize) -> Self {
        Self { manager, bound: Mutex::default(), opening: tokio::sync::Mutex::default(), total, per_key }
    }

    /// Held while a session is opened.
    pub(super) async fn opening(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.opening.lock().await
    }

    /// Whether a session is the key's; if so, it was used just now.
    pub(super) fn use_of(&self, id: &str, key: KeyHash) -> bool {
        let mut table = self.table();
        let now = table.next_use();
        match table.sessions.get_mut(id) {
            Some(bound) if bound.key == key => {
                bound.used = now;
                true
            }
            _ => false,
        }
    }

    pub(super) fn remember(&self, id: &str, key: KeyHash) {
        let mut table = self.table();
        let used = table.next_use();
        table.sessions.insert(id.to_owned(), Bound { key, used });
    }

    pub(super) fn forget(&self, id: &str) {
        self.table().sessions.remove(id);
    }

    /// Makes room for one more session of a key, if need be by closing the one of its sessions that was used least
    /// recently: a client that went away without a word leaves its session behind. False when the server is full.
    pub(super) async fn make_room(&self, key: KeyHash) -> bool {
        // Those that ended by themselves: idle, or broken.
        let alive: HashSet<String> =
            self.manager.sessions.read().await.keys().map(|id| id.as_ref().to_owned()).collect();
        let close = {
            let mut table = self.table();
            table.sessions.retain(|id, _| alive.contains(id));
            let own = table.sessions.iter().filter(|(_, bound)| bound.key == key);
            let mut own: Vec<(u64, String)> = own.map(|(id, bound)| (bound.used, id.clone())).collect();
            own.sort_unstable();
            let close: Vec<String> =
                own.into_iter().rev().skip(self.per_key.saturating_sub(1)).map(|(_, id)| id).collect();
            for id in &close {
                table.sessions.remove(id);
            }
            close
        };
        for id in close {
            let closed = self.manager.close_session(&id.clone().into()).await;
            if let Err(error) = closed {
                tracing::debug!(%error, "a session could not be closed");
            }
        }
        self.manager.sessions.read().await.len() < self.total
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

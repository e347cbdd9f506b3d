//! Who a key belongs to: the same answer for REST and for the socket.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bandstand_domain::event::Event;
use bandstand_store::{Store, StoreError, keys};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};

use crate::secret::ApiKey;

/// Somebody who showed a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who.
    pub identity: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// With which key.
    pub key: KeyId,
}

/// Resolves keys to callers. Valid keys are remembered by their hash until the store announces a revocation or
/// removal, so that a request costs no read of the key table. Unknown keys are never remembered: there is no end of
/// them.
#[derive(Clone)]
pub struct Authenticator {
    store: Store,
    known: Arc<Known>,
}

/// The remembered keys; a sink of its own so that the store can be opened before the authenticator exists.
#[derive(Default)]
pub struct Known {
    state: Mutex<KnownState>,
}

#[derive(Default)]
struct KnownState {
    callers: HashMap<[u8; 32], Caller>,
    /// Counts what was forgotten: a lookup that began before a revocation must not put its answer back after it.
    forgotten: u64,
}

/// Most keys remembered; beyond it the memory starts over.
const REMEMBERED: usize = 100_000;

impl Known {
    /// Takes notice of what happened.
    pub fn observe(&self, event: &Event) {
        let (key, identity) = match event {
            Event::KeyRevoked { key } => (Some(*key), None),
            Event::IdentityRemoved { id } => (None, Some(*id)),
            Event::MessageCreated { .. }
            | Event::MessageReplayed { .. }
            | Event::MessageUpdated { .. }
            | Event::DeliveriesEnded { .. }
            | Event::AgentsSignalled { .. }
            | Event::EventCreated { .. }
            | Event::RoomAdded { .. }
            | Event::RoomRemoved { .. }
            | Event::RoomUpdated { .. }
            | Event::RoomDeleted { .. }
            | Event::ParticipantAdded { .. }
            | Event::ParticipantRemoved { .. }
            | Event::ContactRequestReceived { .. }
            | Event::ContactRequestUpdated { .. }
            | Event::ContactAdded { .. }
            | Event::ContactRemoved { .. }
            | Event::TaskCreated { .. }
            | Event::TaskUpdated { .. }
            | Event::BoardUpdated { .. }
            | Event::IdentityChanged { .. } => return,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forgotten += 1;
        state.callers.retain(|_, caller| Some(caller.key) != key && Some(caller.identity) != identity);
    }
}

impl Authenticator {
    /// Over this store; `known` must be told every committed event.
    pub fn new(store: Store, known: Arc<Known>) -> Self {
        Self { store, known }
    }

    /// Who shows this key, if it was shown before and is valid still; nothing is looked up.
    pub fn remembered(&self, key: &str) -> Option<Caller> {
        let state = self.known.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.callers.get(&ApiKey::hash_of(key)).copied()
    }

    /// Who shows this key, or `None` when it opens nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn authenticate(&self, key: &str) -> Result<Option<Caller>, StoreError> {
        let hash = ApiKey::hash_of(key);
        let forgotten = {
            let state = self.known.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(caller) = state.callers.get(&hash) {
                return Ok(Some(*caller));
            }
            state.forgotten
        };
        let found = self.store.read("authenticate", move |tx| Box::pin(keys::by_hash(tx, hash))).await;
        let found: Option<keys::KeyHolder> = found?;
        let caller = found.map(|holder| Caller { identity: holder.identity, kind: holder.kind, key: holder.key });
        if let Some(caller) = caller {
            let mut state = self.known.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.forgotten == forgotten {
                if state.callers.len() >= REMEMBERED {
                    state.callers.clear();
                }
                state.callers.insert(hash, caller);
            }
        }
        Ok(caller)
    }

    /// Whether `owner` registered `agent`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn owned_agent(&self, owner: IdentityId, agent: IdentityId) -> Result<bool, StoreError> {
        let found =
            self.store.read("owned_agent", move |tx| Box::pin(bandstand_store::identities::agent(tx, agent))).await;
        let found: Option<bandstand_domain::identity::Agent> = found?;
        Ok(found.is_some_and(|agent| agent.owner == owner))
    }
}

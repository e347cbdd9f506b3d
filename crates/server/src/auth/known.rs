//! Credentials that were valid when they were looked up, and are until something is announced or they expire.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bandstand_domain::event::Event;
use bandstand_wire::time::Timestamp;
use sha2::{Digest, Sha256};

use super::{Authenticated, Credential, Method};
use crate::secret::ApiKey;
use crate::service::key_uses::PRECISION_MICROS;
use crate::sign_in::tokens::Tokens;

/// Most credentials remembered; beyond it the memory starts over.
const REMEMBERED: usize = 100_000;

/// A credential as it is looked up. A token and a key never stand for one another, whatever their texts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shown {
    Key([u8; 32]),
    Token([u8; 32]),
}

impl Shown {
    pub(super) fn of(credential: &Credential) -> Self {
        match credential {
            Credential::Key(key) => Self::Key(ApiKey::hash_of(key)),
            Credential::Token(token) => Self::Token(Sha256::digest(token).into()),
        }
    }
}

/// The remembered credentials; a sink of its own so that the store can be opened before the authenticator exists.
#[derive(Default)]
pub struct Known {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Shown, Entry>,
    /// Counts what was forgotten: a lookup that began before a revocation must not put its answer back after it.
    forgotten: u64,
    /// The verifying keys of this server's tokens, which are forgotten along with them.
    tokens: Option<Tokens>,
}

struct Entry {
    who: Authenticated,
    /// When its use was noted last.
    noted: Timestamp,
}

/// A remembered caller.
pub(super) struct Hit {
    pub(super) who: Authenticated,
    /// Whether it is time to note that its key is in use.
    pub(super) note_use: bool,
}

impl Known {
    /// Also forgets the verifying keys when tokens are revoked.
    pub(crate) fn attach(&self, tokens: Tokens) {
        self.state().tokens = Some(tokens);
    }

    /// The caller, or how much was forgotten before it was asked.
    pub(super) fn get(&self, shown: &Shown, now: Timestamp) -> Result<Hit, u64> {
        let mut state = self.state();
        let forgotten = state.forgotten;
        let Some(entry) = state.entries.get_mut(shown) else { return Err(forgotten) };
        if entry.who.until.is_some_and(|until| until <= now) {
            state.entries.remove(shown);
            return Err(forgotten);
        }
        let note_use = now >= entry.noted.plus_micros(PRECISION_MICROS);
        if note_use {
            entry.noted = now;
        }
        Ok(Hit { who: entry.who, note_use })
    }

    /// The caller, if it is remembered. That is no use of its key.
    pub(super) fn peek(&self, shown: &Shown, now: Timestamp) -> Option<Authenticated> {
        let who = self.state().entries.get(shown)?.who;
        who.until.is_none_or(|until| until > now).then_some(who)
    }

    /// Remembers a caller, unless something was forgotten since it was looked up.
    pub(super) fn put(&self, shown: Shown, who: Authenticated, now: Timestamp, forgotten: u64) {
        let mut state = self.state();
        if state.forgotten != forgotten {
            return;
        }
        if state.entries.len() >= REMEMBERED {
            state.entries.clear();
        }
        state.entries.insert(shown, Entry { who, noted: now });
    }

    /// Takes notice of what happened.
    pub fn observe(&self, event: &Event) {
        let mut state = self.state();
        match event {
            Event::KeyRevoked { key } | Event::KeyExpires { key, .. } => {
                state.forget(|who| who.caller.key == *key);
            }
            Event::IdentityRemoved { id } => state.forget(|who| who.caller.identity == *id),
            Event::TokensRevoked => {
                state.forget(|who| who.method == Method::Token);
                if let Some(tokens) = &state.tokens {
                    tokens.forget();
                }
            }
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
            | Event::IdentityChanged { .. } => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget(&mut self, is: impl Fn(&Authenticated) -> bool) {
        self.forgotten += 1;
        self.entries.retain(|_, entry| !is(&entry.who));
    }
}

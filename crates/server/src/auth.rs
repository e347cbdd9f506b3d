//! Who shows a credential: the same answer for REST and for the socket.

mod known;

use std::fmt;
use std::sync::Arc;

use bandstand_domain::clock::Clock;
use bandstand_store::{Store, StoreError, keys};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};
use bandstand_wire::time::Timestamp;

pub use self::known::Known;
use crate::secret::ApiKey;
use crate::service::key_uses::KeyUses;
use crate::sign_in::People;

/// Somebody who showed a valid credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who.
    pub identity: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// With which key: the one that was shown, the one that the shown token was issued for, or the link to the issuer's
    /// account that the token is of.
    pub key: KeyId,
}

/// What somebody shows. It prints as `[REDACTED]`.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key.
    Key(String),
    /// A token, which only people have.
    Token(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

/// How somebody showed who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By an API key.
    Key,
    /// By a token that this server issued for a key.
    Token,
    /// By a token of the configured issuer.
    Issuer,
}

/// A caller, and for how long that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// Who.
    pub caller: Caller,
    /// How it showed that.
    pub method: Method,
    /// From then on the credential opens nothing, unless it ends before.
    pub until: Option<Timestamp>,
}

/// Resolves credentials to callers. Valid ones are remembered by their hash until the store announces a revocation or
/// removal, or they expire, so that a request costs no read of the key table and no signature. Unknown ones are never
/// remembered: there is no end of them.
#[derive(Clone)]
pub struct Authenticator {
    store: Store,
    clock: Arc<dyn Clock>,
    known: Arc<Known>,
    people: People,
    uses: KeyUses,
}

impl Authenticator {
    /// Over this store; `known` must be told every committed event.
    pub fn new(store: Store, clock: Arc<dyn Clock>, known: Arc<Known>, people: People, uses: KeyUses) -> Self {
        Self { store, clock, known, people, uses }
    }

    /// Who shows this credential, if it was shown before and is valid still; nothing is looked up.
    pub fn remembered(&self, credential: &Credential) -> Option<Authenticated> {
        self.known.peek(&known::Shown::of(credential), self.clock.now())
    }

    /// Who shows this credential, or `None` when it opens nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn authenticate(&self, credential: &Credential) -> Result<Option<Authenticated>, StoreError> {
        let now = self.clock.now();
        let shown = known::Shown::of(credential);
        let forgotten = match self.known.get(&shown, now) {
            Ok(hit) => {
                if hit.note_use {
                    self.uses.note(hit.who.caller.key, now);
                }
                return Ok(Some(hit.who));
            }
            Err(forgotten) => forgotten,
        };
        let found = match credential {
            Credential::Key(key) => self.holder(ApiKey::hash_of(key), now).await?,
            // Boxed: it is rare, and a request's future should not have room for it.
            Credential::Token(token) => Box::pin(self.people.authenticate(token)).await?,
        };
        if let Some(who) = found {
            self.uses.note(who.caller.key, now);
            self.known.put(shown, who, now, forgotten);
        }
        Ok(found)
    }

    async fn holder(&self, hash: [u8; 32], now: Timestamp) -> Result<Option<Authenticated>, StoreError> {
        let found: Option<keys::KeyHolder> =
            self.store.read("authenticate", move |tx| Box::pin(keys::by_hash(tx, hash, now))).await?;
        Ok(found.map(|holder| Authenticated {
            caller: Caller { identity: holder.identity, kind: holder.kind, key: holder.key },
            method: Method::Key,
            until: holder.expires_at,
        }))
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

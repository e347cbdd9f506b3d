//! Administration of keys: rotation with an overlap, and of the key that tokens are signed with.

use std::time::Duration;

use bandstand_domain::identity::Profile;
use bandstand_store::{Reader, Writer, identities, keys, signing_keys};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};
use bandstand_wire::time::Timestamp;
use serde_json::json;

use crate::secret::{ApiKey, KeyKind};
use crate::service::admin::AdminError;
use crate::sign_in::micros;
use crate::sign_in::tokens::{SigningKeyError, generate};
use crate::state::Services;

/// A key that takes the place of others.
#[derive(Clone, Debug)]
pub struct Rotated {
    /// Whose.
    pub holder: Profile,
    /// The new key. It is shown once.
    pub key: ApiKey,
    /// Until when the old ones go on opening what they opened.
    pub old_until: Timestamp,
}

/// What is rotated: every key of somebody, or one.
enum Old {
    All,
    One(KeyId),
}

impl Services {
    /// Gives somebody a new key, and lets the old ones go on for `overlap`, so that nothing has to be restarted at once.
    /// `what` is an id or handle of a user or agent, whose keys are all old from now on; or a key's id, which alone is.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn rotate_key_with_overlap(&self, what: &str, overlap: Duration) -> Result<Rotated, AdminError> {
        let not_found = || AdminError::NotFound { what: "key, user or agent", name: what.to_owned() };
        let (holder, old) = match self.find(what.to_owned()).await? {
            Some(holder) => (holder, Old::All),
            None => {
                let key: KeyId = what.trim().parse().map_err(|_| not_found())?;
                (self.key_holder(key).await?.ok_or_else(not_found)?, Old::One(key))
            }
        };
        let kind = match holder.kind {
            IdentityKind::User => KeyKind::User,
            IdentityKind::Agent => KeyKind::Agent,
        };
        let key = ApiKey::generate(kind, getrandom::fill).map_err(AdminError::Randomness)?;
        let (id, key_id, now) = (holder.id, self.ids.key(), self.clock.now());
        let until = now.plus_micros(micros(overlap));
        let (hash, hint, name) = (key.hash(), key.hint(), what.to_owned());
        let (noting, handle) = (self.noting("key.rotate"), holder.handle.clone());
        self.store
            .write("rotate_key_with_overlap", move |tx: &mut Writer| {
                Box::pin(async move {
                    end_old(tx, &old, id, now, until).await?;
                    if !keys::insert(tx, key_id, id, hash, &hint, now).await? {
                        return Err(AdminError::NotFound { what: "key, user or agent", name });
                    }
                    let replaced = match old {
                        Old::All => None,
                        Old::One(key) => Some(key),
                    };
                    let details = json!({ "id": id, "key_id": key_id, "replaces": replaced, "old_until": until });
                    Ok(noting.note(tx, handle, details).await?)
                })
            })
            .await?;
        Ok(Rotated { holder, key, old_until: until })
    }

    /// Whose key this is, unless it opens nothing.
    async fn key_holder(&self, key: KeyId) -> Result<Option<Profile>, AdminError> {
        let now = self.clock.now();
        self.store
            .read("key_holder", move |tx: &mut Reader| {
                Box::pin(async move {
                    let Some(held) = keys::by_id(tx, key, now).await? else { return Ok(None) };
                    identities::by_id(tx, held.identity).await
                })
            })
            .await
            .map_err(AdminError::Store)
    }

    /// Signs people's tokens with a new key from now on; its public name. Tokens that are out go on counting until they
    /// expire; with `revoke` none does, and their sockets close.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn rotate_signing_key(&self, revoke: bool) -> Result<String, AdminError> {
        let (new, public) = generate(getrandom::fill).map_err(|why| match why {
            SigningKeyError::Randomness(why) => AdminError::Randomness(why),
            SigningKeyError::Unusable => AdminError::SigningKey,
        })?;
        let now = self.clock.now();
        let sign_in = &self.limits.sign_in;
        // The newest token that the old key signed is valid for a lifetime yet, and for the skew twice: by the clock of
        // the node that issued it, and of the one that checks it.
        let overlap = micros(sign_in.token_lifetime).saturating_add(sign_in.skew_micros().saturating_mul(2));
        let until = now.plus_micros(overlap);
        let noting = self.noting("signing_key.rotate");
        self.store
            .write("rotate_signing_key", move |tx: &mut Writer| {
                Box::pin(async move {
                    if revoke {
                        signing_keys::revoke_all(tx).await?;
                    } else {
                        signing_keys::retire(tx, now, until).await?;
                    }
                    if signing_keys::insert(tx, &new, public, now).await? {
                        noting.note(tx, &new.name, json!({ "revoke": revoke })).await?;
                        return Ok(new.name);
                    }
                    // Somebody else rotated it at the same moment.
                    signing_keys::signing(tx).await?.map(|key| key.name).ok_or(AdminError::SigningKey)
                })
            })
            .await
    }
}

async fn end_old(
    tx: &mut Writer,
    old: &Old,
    holder: IdentityId,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), AdminError> {
    match old {
        Old::All if until <= now => drop(keys::revoke_all(tx, holder, now).await?),
        Old::All => drop(keys::expire_all(tx, holder, until).await?),
        Old::One(key) if until <= now => drop(keys::revoke(tx, *key, now).await?),
        Old::One(key) => keys::expire(tx, *key, until).await?,
    }
    Ok(())
}

//! Whose a token is.

use bandstand_store::StoreError;
use bandstand_store::identity_links::{self, Account as LinkedAccount};
use bandstand_store::keys;
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};

use super::issuer::{Account, Issuer};
use super::jwt::{Refused, Unverified};
use super::tokens::{Bearer, Tokens};
use crate::auth::{Authenticated, Caller, Method};
use crate::service::sign_in::NewcomerError;
use crate::state::Services;

/// Resolves tokens to users. Cheap to clone.
#[derive(Clone)]
pub struct People {
    services: Services,
    tokens: Tokens,
    issuer: Issuer,
}

impl People {
    /// With the server's own keys and the configured issuer's.
    pub fn new(services: Services, tokens: Tokens, issuer: Issuer) -> Self {
        Self { services, tokens, issuer }
    }

    /// The server's own tokens and their keys.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Whose token this is; `None` when it opens nothing, and the caller learns no more than that.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn authenticate(&self, token: &str) -> Result<Option<Authenticated>, StoreError> {
        let refused = match self.verify(token).await? {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        tracing::debug!(why = %refused, "a token was refused");
        metrics::counter!("tokens_refused_total").increment(1);
        Ok(None)
    }

    async fn verify(&self, token: &str) -> Result<Result<Option<Authenticated>, Refused>, StoreError> {
        let unverified = match Unverified::read(token) {
            Ok(unverified) => unverified,
            Err(why) => return Ok(Err(why)),
        };
        // What it says of its issuer chooses the keys that are tried; that it was true is what they prove.
        if unverified.issuer == self.services.limits.sign_in.token_issuer {
            return Ok(match self.tokens.verify(token, &unverified).await? {
                Ok(bearer) => Ok(self.key_holder(bearer).await?),
                Err(why) => Err(why),
            });
        }
        if self.issuer.is(&unverified.issuer) {
            return Ok(match self.issuer.verify(token, &unverified).await {
                Ok(account) => Ok(self.account_holder(account).await?),
                Err(why) => Err(why),
            });
        }
        Ok(Err(Refused::NoKey))
    }

    /// A token counts as long as the key that it was issued for.
    async fn key_holder(&self, bearer: Bearer) -> Result<Option<Authenticated>, StoreError> {
        let now = self.services.clock.now();
        let holder: Option<keys::KeyHolder> =
            self.services.store.read("token_key", move |tx| Box::pin(keys::by_id(tx, bearer.key, now))).await?;
        let holder = holder.filter(|holder| holder.identity == bearer.user && holder.kind == IdentityKind::User);
        Ok(holder.map(|holder| Authenticated {
            caller: Caller { identity: holder.identity, kind: holder.kind, key: holder.key },
            method: Method::Token,
            until: Some(holder.expires_at.map_or(bearer.until, |end| end.min(bearer.until))),
        }))
    }

    async fn account_holder(&self, account: Account) -> Result<Option<Authenticated>, StoreError> {
        let until = account.until;
        let found = self.linked(&account).await?;
        let linked = match found {
            LinkedAccount::Linked(link, user) => Some((link, user)),
            LinkedAccount::Unknown if self.services.limits.sign_in.oidc.create_users => self.newcomer(&account).await?,
            LinkedAccount::Unknown | LinkedAccount::Closed => None,
        };
        Ok(linked.map(|(key, identity)| Authenticated {
            caller: Caller { identity, kind: IdentityKind::User, key },
            method: Method::Issuer,
            until: Some(until),
        }))
    }

    async fn linked(&self, account: &Account) -> Result<LinkedAccount, StoreError> {
        let (issuer, subject) = (account.issuer.clone(), account.subject.clone());
        self.services
            .store
            .read("linked_account", move |tx| {
                Box::pin(async move { identity_links::account(tx, &issuer, &subject).await })
            })
            .await
    }

    async fn newcomer(&self, account: &Account) -> Result<Option<(KeyId, IdentityId)>, StoreError> {
        match self.services.add_linked_user(account).await {
            Ok(made) => {
                tracing::info!(user.id = %made.1, "a new user signed in for the first time");
                Ok(Some(made))
            }
            // Another request of the same person was first.
            Err(NewcomerError::Linked) => Ok(match self.linked(account).await? {
                LinkedAccount::Linked(link, user) => Some((link, user)),
                LinkedAccount::Unknown | LinkedAccount::Closed => None,
            }),
            Err(NewcomerError::NoHandle) => {
                tracing::warn!("a new user cannot sign in: every handle that would fit is taken");
                Ok(None)
            }
            Err(NewcomerError::Store(error)) => Err(error),
        }
    }
}

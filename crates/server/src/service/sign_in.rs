//! Signing in: a token for a key, a user for an issuer's account, and the key that tokens are signed with.

use bandstand_domain::identity::{Profile, User, UserRole, user_name};
use bandstand_domain::sign_in;
use bandstand_store::{StoreError, identities, identity_links, signing_keys};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};
use serde_json::{Map, Value};

use crate::sign_in::issuer::Account;
use crate::sign_in::tokens::{SigningKeyError, generate};
use crate::state::Services;

/// How many handles are tried for a new user.
const HANDLE_CHOICES: usize = 100;

/// Longest name or address that is taken from a token, in characters.
const CLAIM_MAX_CHARACTERS: usize = 200;

/// Why an issuer's account does not become a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NewcomerError {
    /// It is one already.
    #[error("the account is linked already")]
    Linked,
    /// All handles that fit are taken.
    #[error("every handle that fits is taken")]
    NoHandle,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why there is no signing key.
#[derive(Debug, thiserror::Error)]
pub enum FirstKeyError {
    /// It cannot be made.
    #[error(transparent)]
    Key(#[from] SigningKeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Services {
    /// Makes the key that tokens are signed with, unless there is one.
    ///
    /// # Errors
    /// [`FirstKeyError`].
    pub async fn ensure_signing_key(&self) -> Result<(), FirstKeyError> {
        let found: Option<signing_keys::SigningKey> =
            self.store.read("signing_key", |tx| Box::pin(signing_keys::signing(tx))).await?;
        if found.is_some() {
            return Ok(());
        }
        let (new, public) = generate(getrandom::fill)?;
        let now = self.clock.now();
        // Another server may make one at the same time; one of them wins.
        let made: Result<bool, StoreError> = self
            .store
            .write("add_signing_key", move |tx| {
                Box::pin(async move { signing_keys::insert(tx, &new, public, now).await })
            })
            .await;
        made?;
        Ok(())
    }

    /// Makes a user of an issuer's account: its link, and the user.
    pub(crate) async fn add_linked_user(&self, account: &Account) -> Result<(KeyId, IdentityId), NewcomerError> {
        let (id, link, now) = (self.ids.identity(), self.ids.key(), self.clock.now());
        let claims = &account.claims;
        let (first_name, last_name) = (text(claims, "given_name"), text(claims, "family_name"));
        let email = verified_email(claims);
        let wanted = sign_in::username(&text(claims, &self.limits.sign_in.oidc.handle_claim));
        let (issuer, subject) = (account.issuer.clone(), account.subject.clone());
        self.store
            .write("add_linked_user", move |tx| {
                Box::pin(async move {
                    for attempt in 1..=HANDLE_CHOICES {
                        let handle = sign_in::username_choice(&wanted, attempt);
                        let user = User {
                            profile: Profile {
                                id,
                                kind: IdentityKind::User,
                                name: user_name(&first_name, &last_name, &handle),
                                description: None,
                                handle: handle.clone(),
                            },
                            email: email.clone().unwrap_or_else(|| format!("{handle}@localhost")),
                            first_name: first_name.clone(),
                            last_name: last_name.clone(),
                            role: UserRole::User,
                            listed_in_directory: false,
                            inserted_at: now,
                            updated_at: now,
                            disabled_at: None,
                        };
                        if !identities::insert_user(tx, &user).await? {
                            continue;
                        }
                        return if identity_links::insert(tx, link, id, &issuer, &subject, now).await? {
                            Ok((link, id))
                        } else {
                            // The user that was just made goes with the transaction.
                            Err(NewcomerError::Linked)
                        };
                    }
                    Err(NewcomerError::NoHandle)
                })
            })
            .await
    }
}

/// A claim that is text, without what cannot be shown or stored, and no longer than a name is.
fn text(claims: &Map<String, Value>, name: &str) -> String {
    let text = claims.get(name).and_then(Value::as_str).unwrap_or_default();
    text.trim().chars().filter(|c| !c.is_control()).take(CLAIM_MAX_CHARACTERS).collect()
}

/// An address that the issuer has verified; what somebody merely typed in there says nothing.
fn verified_email(claims: &Map<String, Value>) -> Option<String> {
    let verified = claims.get("email_verified").and_then(Value::as_bool).unwrap_or_default();
    Some(text(claims, "email")).filter(|email| verified && email.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_verified_address_counts() {
        let email = |claims: Value| verified_email(claims.as_object().unwrap());
        assert_eq!(email(json!({"email": "a@x.org", "email_verified": true})), Some("a@x.org".into()));
        for claims in [
            json!({"email": "a@x.org"}),
            json!({"email": "a@x.org", "email_verified": false}),
            json!({"email": "a@x.org", "email_verified": "true"}),
            json!({"email": 5, "email_verified": true}),
            json!({"email_verified": true}),
        ] {
            assert_eq!(email(claims.clone()), None, "{claims}");
        }
    }

    #[test]
    fn what_cannot_be_stored_is_left_out() {
        let claims = json!({"given_name": "A\0na\n", "family_name": "x".repeat(1000)});
        let claims = claims.as_object().unwrap();
        assert_eq!(text(claims, "given_name"), "Ana");
        assert_eq!(text(claims, "family_name").len(), CLAIM_MAX_CHARACTERS);
        assert_eq!(text(claims, "nothing"), "");
    }
}

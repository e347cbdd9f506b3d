//! Administration of who an issuer's accounts are.

use bandstand_domain::identity::Profile;
use bandstand_domain::sign_in::{ISSUER_MAX_BYTES, SUBJECT_MAX_BYTES};
use bandstand_store::StoreError;
use bandstand_store::identity_links::{self, Link};
use bandstand_wire::ids::{IdentityId, IdentityKind};
use serde_json::json;

use crate::service::admin::AdminError;
use crate::state::Services;

impl Services {
    /// Lets an issuer's account sign in as a user, named by id or handle.
    ///
    /// # Errors
    /// [`AdminError`]; an account is one user's at most.
    pub async fn link_user(&self, who: &str, issuer: &str, subject: &str) -> Result<Profile, AdminError> {
        for (what, text, most) in [("issuer", issuer, ISSUER_MAX_BYTES), ("subject", subject, SUBJECT_MAX_BYTES)] {
            if text.trim().is_empty() || text.contains(char::is_control) || text.len() > most {
                return Err(AdminError::Account { what, most });
            }
        }
        let found = self.find(who.to_owned()).await?.filter(|profile| profile.kind == IdentityKind::User);
        let user = found.ok_or_else(|| AdminError::NotFound { what: "user", name: who.to_owned() })?;
        let (link, id, now) = (self.ids.key(), user.id, self.clock.now());
        let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
        let noting = self.noting("user.link");
        self.store
            .write("link_user", move |tx| {
                Box::pin(async move {
                    if !identity_links::insert(tx, link, id, &issuer, &subject, now).await? {
                        return Err(AdminError::AccountTaken { issuer, subject });
                    }
                    let details = json!({ "id": id, "issuer": issuer, "subject": subject });
                    noting.note(tx, &user.handle, details).await?;
                    Ok(user)
                })
            })
            .await
    }

    /// Lets an issuer's account sign in no longer; its sockets close.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn unlink_user(&self, issuer: &str, subject: &str) -> Result<(), AdminError> {
        let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
        let noting = self.noting("user.unlink");
        self.store
            .write("unlink_user", move |tx| {
                Box::pin(async move {
                    if !identity_links::remove(tx, &issuer, &subject).await? {
                        return Err(AdminError::NotFound { what: "linked account", name: subject });
                    }
                    noting.note(tx, &subject, json!({ "issuer": issuer })).await?;
                    Ok(())
                })
            })
            .await
    }

    /// All linked accounts, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_links(&self) -> Result<Vec<Link>, AdminError> {
        self.store.read("list_links", |tx| Box::pin(identity_links::list(tx))).await.map_err(AdminError::Store)
    }

    /// A page of them, or of one user's, oldest first: those after a key, each with its own.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn links_after(
        &self,
        user: Option<IdentityId>,
        key: i64,
        limit: i64,
    ) -> Result<Vec<(Link, i64)>, StoreError> {
        self.store.read("links_after", move |tx| Box::pin(identity_links::list_after(tx, user, key, limit))).await
    }
}

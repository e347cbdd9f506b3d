//! Administration of who an issuer's accounts are.

use bandstand_domain::identity::Profile;
use bandstand_domain::sign_in::SUBJECT_MAX_BYTES;
use bandstand_store::identity_links::{self, Link};
use bandstand_wire::ids::IdentityKind;
use serde_json::json;

use crate::service::admin::AdminError;
use crate::state::Services;

impl Services {
    /// Lets an issuer's account sign in as a user, named by id or handle.
    ///
    /// # Errors
    /// [`AdminError`]; an account is one user's at most.
    pub async fn link_user(&self, who: &str, issuer: &str, subject: &str) -> Result<Profile, AdminError> {
        let fits = |text: &str| !text.trim().is_empty() && !text.contains(char::is_control);
        if !fits(issuer) || !fits(subject) || subject.len() > SUBJECT_MAX_BYTES {
            return Err(AdminError::Account);
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
}

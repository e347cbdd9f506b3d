//! Who the caller is.

use bandstand_domain::identity::{Agent, User, user_name};
use bandstand_store::{StoreError, identities};
use bandstand_wire::ids::IdentityId;

use crate::state::Services;

/// Longest first or last name, in characters.
pub const NAME_PART_MAX: usize = 100;

impl Services {
    /// An agent; `None` when it was deleted meanwhile.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn agent(&self, id: IdentityId) -> Result<Option<Agent>, StoreError> {
        self.store.read("agent", move |tx| Box::pin(identities::agent(tx, id))).await
    }

    /// A user; `None` when it was deleted meanwhile.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn user(&self, id: IdentityId) -> Result<Option<User>, StoreError> {
        self.store.read("user", move |tx| Box::pin(identities::user(tx, id))).await
    }

    /// Changes a user's first name, last name or both; what is `None` stays. `None` when there is no such user.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rename_user(
        &self,
        id: IdentityId,
        first_name: Option<String>,
        last_name: Option<String>,
    ) -> Result<Option<User>, StoreError> {
        let now = self.clock.now();
        self.store
            .write("rename_user", move |tx| {
                Box::pin(async move {
                    let Some(user) = identities::user(tx, id).await? else { return Ok(None) };
                    let first = first_name.unwrap_or(user.first_name);
                    let last = last_name.unwrap_or(user.last_name);
                    let name = user_name(&first, &last, &user.profile.handle);
                    identities::rename_user(tx, id, &first, &last, &name, now).await?;
                    identities::user(tx, id).await
                })
            })
            .await
    }
}

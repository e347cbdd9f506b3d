//! What an administrator does to users beyond adding them: promote, demote, disable, enable, delete.

use bandstand_domain::identity::{Agent, Profile, User, UserRole};
use bandstand_store::keys::KeyInfo;
use bandstand_store::quotas::{Quota, Resource};
use bandstand_store::{StoreError, Writer, audit, contacts, identities, keys, organizations, participants};
use bandstand_wire::ids::IdentityId;
use serde_json::json;

use crate::service::admin::AdminError;
use crate::state::Services;

/// A user's agents that are removed together with it, in one go of the loop.
const AGENTS_AT_ONCE: i64 = 100;

/// Somebody and its own quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnQuotas {
    /// Who.
    pub holder: Profile,
    /// Only those that differ from the settings.
    pub quotas: Vec<(Resource, Quota)>,
}

impl Services {
    /// What somebody, named by id or handle, may have where that differs from the settings.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn quotas_of(&self, who: &str) -> Result<OwnQuotas, AdminError> {
        let not_found = || AdminError::NotFound { what: "user or agent", name: who.to_owned() };
        let holder = self.find(who.to_owned()).await?.ok_or_else(not_found)?;
        let mut quotas = Vec::new();
        for resource in Resource::ALL {
            quotas.extend(self.quota(holder.id, resource).await?.map(|quota| (resource, quota)));
        }
        Ok(OwnQuotas { holder, quotas })
    }

    /// Gives somebody, named by id or handle, a quota of its own; with `None` the settings count again.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn give_quota(&self, who: &str, resource: &str, quota: Option<Quota>) -> Result<OwnQuotas, AdminError> {
        let unknown = || AdminError::NotFound { what: "resource with a quota", name: resource.to_owned() };
        let not_found = || AdminError::NotFound { what: "user or agent", name: who.to_owned() };
        let resource = Resource::parse(resource).ok_or_else(unknown)?;
        let holder = self.find(who.to_owned()).await?.ok_or_else(not_found)?;
        if !self.set_quota(holder.id, resource, quota).await? {
            return Err(not_found());
        }
        self.quotas_of(who).await
    }

    /// A user, named by id or handle.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn show_user(&self, who: &str) -> Result<User, AdminError> {
        let id = self.user_named(who).await?.id;
        let not_found = AdminError::NotFound { what: "user", name: who.to_owned() };
        let found: Option<User> = self
            .store
            .read("show_user", move |tx| Box::pin(identities::user(tx, id)))
            .await
            .map_err(AdminError::Store)?;
        found.ok_or(not_found)
    }

    /// A page of all users, oldest first: those after a key, each with its own.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn users_after(&self, key: i64, limit: i64) -> Result<Vec<(User, i64)>, StoreError> {
        self.store.read("users_after", move |tx| Box::pin(identities::users_after(tx, key, limit))).await
    }

    /// A page of all agents, or of one owner's, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn agents_after(
        &self,
        owner: Option<IdentityId>,
        only_global: bool,
        key: i64,
        limit: i64,
    ) -> Result<Vec<(Agent, i64)>, StoreError> {
        self.store
            .read("agents_after", move |tx| Box::pin(identities::agents_after(tx, owner, only_global, key, limit)))
            .await
    }

    /// A page of all keys, or of one holder's, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keys_after(
        &self,
        holder: Option<IdentityId>,
        key: i64,
        limit: i64,
    ) -> Result<Vec<(KeyInfo, i64)>, StoreError> {
        self.store.read("keys_after", move |tx| Box::pin(keys::list_after(tx, holder, key, limit))).await
    }

    /// An agent, named by id or handle.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn show_agent(&self, who: &str) -> Result<Agent, AdminError> {
        let not_found = || AdminError::NotFound { what: "agent", name: who.to_owned() };
        let id = self.find(who.to_owned()).await?.ok_or_else(not_found)?.id;
        let found: Option<Agent> = self
            .store
            .read("show_agent", move |tx| Box::pin(identities::agent(tx, id)))
            .await
            .map_err(AdminError::Store)?;
        found.ok_or_else(not_found)
    }

    /// Makes a user an administrator, or no longer one. The last administrator stays one.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn set_role(&self, who: &str, role: UserRole) -> Result<User, AdminError> {
        let id = self.user_named(who).await?.id;
        let now = self.clock.now();
        let noting = self.noting(match role {
            UserRole::Admin => "user.promote",
            UserRole::User => "user.demote",
        });
        let who = who.to_owned();
        self.store
            .write("set_role", move |tx| {
                Box::pin(async move {
                    audit::lock(tx).await?;
                    let user = one(tx, id, &who).await?;
                    if user.role == role {
                        return Ok(user);
                    }
                    if role == UserRole::User {
                        keep_one(tx, &user).await?;
                    }
                    identities::set_role(tx, id, role, now).await?;
                    noting.note(tx, &user.profile.handle, json!({ "id": id })).await?;
                    Ok(User { role, updated_at: now, ..user })
                })
            })
            .await
    }

    /// Refuses a user and its agents from now on, or takes them again. What they have stays; the last administrator
    /// cannot be disabled.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn disable_user(&self, who: &str, disabled: bool) -> Result<User, AdminError> {
        let id = self.user_named(who).await?.id;
        let now = self.clock.now();
        let noting = self.noting(if disabled { "user.disable" } else { "user.enable" });
        let who = who.to_owned();
        self.store
            .write("disable_user", move |tx| {
                Box::pin(async move {
                    audit::lock(tx).await?;
                    let user = one(tx, id, &who).await?;
                    if user.disabled_at.is_some() == disabled {
                        return Ok(user);
                    }
                    if disabled {
                        keep_one(tx, &user).await?;
                        keys::suspend(tx, id).await?;
                    }
                    let disabled_at = disabled.then_some(now);
                    identities::set_disabled(tx, id, disabled_at, now).await?;
                    noting.note(tx, &user.profile.handle, json!({ "id": id })).await?;
                    Ok(User { disabled_at, updated_at: now, ..user })
                })
            })
            .await
    }

    /// Deletes a user: its keys stop working at once, it leaves its organization, its rooms and its contacts. What it
    /// said stays. A user with agents is refused unless `force`, which deletes them as well; the last administrator is
    /// always refused.
    ///
    /// # Errors
    /// [`AdminError`]; then some of its agents may be deleted already.
    pub async fn delete_user(&self, who: &str, force: bool) -> Result<User, AdminError> {
        let user = self.show_user(who).await?;
        let id = user.profile.id;
        if force {
            let spare = user.role == UserRole::Admin && !self.has_other_administrator(id).await?;
            if spare {
                return Err(AdminError::LastAdministrator(user.profile.handle));
            }
            self.remove_agents_of(id).await?;
        }
        let (now, noting, who) = (self.clock.now(), self.noting("user.delete"), who.to_owned());
        let deleted = self
            .store
            .write("delete_user", move |tx: &mut Writer| {
                Box::pin(async move {
                    audit::lock(tx).await?;
                    let user = one(tx, id, &who).await?;
                    keep_one(tx, &user).await?;
                    if !identities::agents_after(tx, Some(id), false, 0, 1).await?.is_empty() {
                        return Err(AdminError::HasAgents(user.profile.handle));
                    }
                    // From here on nobody becomes its contact or asks it.
                    if let Some(key) = participants::member_key(tx, id).await? {
                        contacts::lock(tx, &[key]).await?;
                    }
                    organizations::leave(tx, id).await?;
                    let revoked = keys::revoke_all(tx, id, now).await?;
                    identities::delete(tx, id, now).await?;
                    noting
                        .note(tx, &user.profile.handle, json!({ "id": id, "keys": revoked, "forced": force }))
                        .await?;
                    Ok(user)
                })
            })
            .await?;
        self.finish_deletion(id).await;
        Ok(deleted)
    }

    async fn has_other_administrator(&self, id: IdentityId) -> Result<bool, AdminError> {
        let other =
            self.store.read("other_administrator", move |tx| Box::pin(identities::has_other_administrator(tx, id)));
        other.await.map_err(AdminError::Store)
    }

    async fn remove_agents_of(&self, owner: IdentityId) -> Result<(), AdminError> {
        loop {
            let agents: Vec<_> = self
                .store
                .read("agents_of_user", move |tx| {
                    Box::pin(identities::agents_after(tx, Some(owner), false, 0, AGENTS_AT_ONCE))
                })
                .await
                .map_err(AdminError::Store)?;
            if agents.is_empty() {
                return Ok(());
            }
            for (agent, _) in agents {
                match self.remove_agent(&agent.profile.id.to_string(), true).await {
                    // Somebody else was quicker.
                    Ok(_) | Err(AdminError::NotFound { .. }) => {}
                    Err(why) => return Err(why),
                }
            }
        }
    }
}

async fn one(tx: &mut Writer, id: IdentityId, who: &str) -> Result<User, AdminError> {
    let found = identities::user(tx, id).await?;
    found.ok_or_else(|| AdminError::NotFound { what: "user", name: who.to_owned() })
}

/// Refuses what would leave nobody to administer the server. The caller holds the lock of administration.
async fn keep_one(tx: &mut Writer, user: &User) -> Result<(), AdminError> {
    let counts = user.role == UserRole::Admin && user.disabled_at.is_none();
    if counts && !identities::has_other_administrator(tx, user.profile.id).await? {
        return Err(AdminError::LastAdministrator(user.profile.handle.clone()));
    }
    Ok(())
}

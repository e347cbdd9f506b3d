//! Organizations: an administrator makes them and puts users into them.

use bandstand_domain::identity::{Agent, Profile};
use bandstand_domain::organization::Organization;
use bandstand_store::organizations::Listed;
use bandstand_store::{StoreError, Writer, identities, organizations};
use bandstand_wire::ids::{IdentityKind, OrganizationId};
use serde_json::{Value, json};

use crate::service::admin::{AdminError, check_agent_name};
use crate::state::Services;

/// Longest name of an organization, in characters.
const NAME_MAX_CHARACTERS: usize = 100;

/// A user who was put into an organization or taken out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The organization.
    pub organization: OrganizationId,
    /// Its name.
    pub organization_name: String,
    /// The user.
    pub user: Profile,
}

impl Member {
    /// What the audit log says of it.
    fn details(&self) -> Value {
        json!({ "id": self.organization, "user": self.user.handle, "user_id": self.user.id })
    }
}

impl Services {
    /// Makes an organization, empty at first.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn add_organization(&self, name: &str) -> Result<Organization, AdminError> {
        let name = check_agent_name(name, NAME_MAX_CHARACTERS).map_err(AdminError::Name)?;
        let (id, now, noting) = (self.ids.organization(), self.clock.now(), self.noting("organization.add"));
        self.store
            .write("add_organization", move |tx| {
                Box::pin(async move {
                    if !organizations::insert(tx, id, &name, now).await? {
                        return Err(AdminError::OrganizationTaken(name));
                    }
                    noting.note(tx, &name, json!({ "id": id })).await?;
                    Ok(Organization { id, name, members: Vec::new(), inserted_at: now })
                })
            })
            .await
    }

    /// All organizations by name, each with its users.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_organizations(&self) -> Result<Vec<Organization>, AdminError> {
        self.store.read("list_organizations", |tx| Box::pin(organizations::list(tx))).await.map_err(AdminError::Store)
    }

    /// A page of all organizations, oldest first: those after a key.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn organizations_after(&self, key: i64, limit: i64) -> Result<Vec<(Listed, i64)>, StoreError> {
        self.store.read("organizations_after", move |tx| Box::pin(organizations::list_after(tx, key, limit))).await
    }

    /// A page of the users in an organization, named by id or name.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn organization_members_after(
        &self,
        organization: &str,
        key: i64,
        limit: i64,
    ) -> Result<Vec<(Profile, i64)>, AdminError> {
        let wanted = organization.to_owned();
        self.store
            .read("organization_members", move |tx| {
                Box::pin(async move {
                    let Some((id, _)) = organizations::find(tx, &wanted).await? else {
                        return Err(AdminError::NotFound { what: "organization", name: wanted });
                    };
                    Ok(organizations::members_after(tx, id, key, limit).await?)
                })
            })
            .await
    }

    /// Puts a user, named by id or handle, into an organization, named by id or name. A user is in one at most.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn add_organization_member(&self, organization: &str, user: &str) -> Result<Member, AdminError> {
        let (now, noting) = (self.clock.now(), self.noting("organization.member.add"));
        let user = self.user_named(user).await?;
        let wanted = organization.to_owned();
        self.store
            .write("add_organization_member", move |tx| {
                Box::pin(async move {
                    let member = member(tx, &wanted, user).await?;
                    if organizations::add_member(tx, member.organization, member.user.id, now).await? {
                        noting.note(tx, &member.organization_name, member.details()).await?;
                        return Ok(member);
                    }
                    Err(match organizations::of_user(tx, member.user.id).await? {
                        Some((_, organization)) => {
                            AdminError::HasOrganization { user: member.user.handle, organization }
                        }
                        None => AdminError::NotFound { what: "user", name: member.user.handle },
                    })
                })
            })
            .await
    }

    /// Takes a user, named by id or handle, out of an organization, named by id or name.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn remove_organization_member(&self, organization: &str, user: &str) -> Result<Member, AdminError> {
        let noting = self.noting("organization.member.remove");
        let user = self.user_named(user).await?;
        let wanted = organization.to_owned();
        self.store
            .write("remove_organization_member", move |tx| {
                Box::pin(async move {
                    let member = member(tx, &wanted, user).await?;
                    if organizations::remove_member(tx, member.organization, member.user.id).await? {
                        noting.note(tx, &member.organization_name, member.details()).await?;
                        return Ok(member);
                    }
                    let (user, organization) = (member.user.handle, member.organization_name);
                    Err(AdminError::NotInOrganization { user, organization })
                })
            })
            .await
    }

    /// Lets the organization of an agent's owner find the agent and recruit it, or no longer. The agent is named by id
    /// or handle.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn share_agent(&self, who: &str, shared: bool) -> Result<Agent, AdminError> {
        let (now, noting) = (self.clock.now(), self.noting(if shared { "agent.share" } else { "agent.unshare" }));
        let profile = self.find(who.to_owned()).await?.filter(|profile| profile.kind == IdentityKind::Agent);
        let not_found = AdminError::NotFound { what: "agent", name: who.to_owned() };
        let Some(profile) = profile else { return Err(not_found) };
        self.store
            .write("share_agent", move |tx| {
                Box::pin(async move {
                    if identities::share_agent(tx, profile.id, shared, now).await? {
                        noting.note(tx, &profile.handle, json!({ "id": profile.id })).await?;
                    }
                    identities::agent(tx, profile.id).await?.ok_or(not_found)
                })
            })
            .await
    }

    /// Shows an agent, named by id or handle, to every user of the server, or no longer.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn globalize_agent(&self, who: &str, is_global: bool) -> Result<Agent, AdminError> {
        let (now, noting) =
            (self.clock.now(), self.noting(if is_global { "agent.globalize" } else { "agent.localize" }));
        let profile = self.find(who.to_owned()).await?.filter(|profile| profile.kind == IdentityKind::Agent);
        let not_found = AdminError::NotFound { what: "agent", name: who.to_owned() };
        let Some(profile) = profile else { return Err(not_found) };
        self.store
            .write("globalize_agent", move |tx| {
                Box::pin(async move {
                    if identities::globalize_agent(tx, profile.id, is_global, now).await? {
                        noting.note(tx, &profile.handle, json!({ "id": profile.id })).await?;
                    }
                    identities::agent(tx, profile.id).await?.ok_or(not_found)
                })
            })
            .await
    }

    pub(super) async fn user_named(&self, user: &str) -> Result<Profile, AdminError> {
        let found = self.find(user.to_owned()).await?.filter(|profile| profile.kind == IdentityKind::User);
        found.ok_or_else(|| AdminError::NotFound { what: "user", name: user.to_owned() })
    }
}

async fn member(tx: &mut Writer, organization: &str, user: Profile) -> Result<Member, AdminError> {
    let found = organizations::find(tx, organization).await?;
    let not_found = || AdminError::NotFound { what: "organization", name: organization.to_owned() };
    let (organization, organization_name) = found.ok_or_else(not_found)?;
    Ok(Member { organization, organization_name, user })
}

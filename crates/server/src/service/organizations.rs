//! Organizations: an administrator makes them and puts users into them.

use bandstand_domain::identity::{Agent, Profile};
use bandstand_domain::organization::Organization;
use bandstand_store::{Writer, identities, organizations};
use bandstand_wire::ids::{IdentityKind, OrganizationId};

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

impl Services {
    /// Makes an organization, empty at first.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn add_organization(&self, name: &str) -> Result<Organization, AdminError> {
        let name = check_agent_name(name, NAME_MAX_CHARACTERS).map_err(AdminError::Name)?;
        let (id, now) = (self.ids.organization(), self.clock.now());
        self.store
            .write("add_organization", move |tx| {
                Box::pin(async move {
                    if !organizations::insert(tx, id, &name, now).await? {
                        return Err(AdminError::OrganizationTaken(name));
                    }
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

    /// Puts a user, named by id or handle, into an organization, named by id or name. A user is in one at most.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn add_organization_member(&self, organization: &str, user: &str) -> Result<Member, AdminError> {
        let now = self.clock.now();
        let user = self.user_named(user).await?;
        let wanted = organization.to_owned();
        self.store
            .write("add_organization_member", move |tx| {
                Box::pin(async move {
                    let member = member(tx, &wanted, user).await?;
                    if organizations::add_member(tx, member.organization, member.user.id, now).await? {
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
        let user = self.user_named(user).await?;
        let wanted = organization.to_owned();
        self.store
            .write("remove_organization_member", move |tx| {
                Box::pin(async move {
                    let member = member(tx, &wanted, user).await?;
                    if organizations::remove_member(tx, member.organization, member.user.id).await? {
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
        let now = self.clock.now();
        let profile = self.find(who.to_owned()).await?.filter(|profile| profile.kind == IdentityKind::Agent);
        let not_found = AdminError::NotFound { what: "agent", name: who.to_owned() };
        let Some(profile) = profile else { return Err(not_found) };
        self.store
            .write("share_agent", move |tx| {
                Box::pin(async move {
                    identities::share_agent(tx, profile.id, shared, now).await?;
                    identities::agent(tx, profile.id).await?.ok_or(not_found)
                })
            })
            .await
    }

    async fn user_named(&self, user: &str) -> Result<Profile, AdminError> {
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

//! What administration answers: rows for people and programs, never a key that is stored.

use bandstand_domain::audit::{Entry, Head};
use bandstand_domain::identity::{Agent, Profile, User};
use bandstand_domain::organization::Organization;
use bandstand_store::identity_links::Link;
use bandstand_store::keys::KeyInfo;
use bandstand_store::organizations::Listed;
use bandstand_store::quotas::{Quota, Resource};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId, OrganizationId};
use bandstand_wire::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::ApiKey;
use crate::service::agents::DeletedAgent;
use crate::service::organizations::Member;
use crate::service::users::OwnQuotas;

/// Somebody together with a fresh key.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}WithKey")]
pub struct WithKey<T> {
    /// Who.
    #[serde(flatten)]
    pub who: T,
    /// The key in clear.
    pub api_key: String,
}

impl<T> WithKey<T> {
    pub(crate) fn new(who: T, key: &ApiKey) -> Self {
        Self { who, api_key: key.reveal().to_owned() }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for WithKey<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithKey").field("who", &self.who).field("api_key", &"[REDACTED]").finish()
    }
}

/// A person in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserRow {
    /// Its id.
    pub id: IdentityId,
    /// Its username.
    pub handle: String,
    /// First and last name, or the handle.
    pub name: String,
    /// E-mail address.
    pub email: String,
    /// `user` or `admin`.
    pub role: String,
    /// Since when the user and its agents are refused.
    pub disabled_at: Option<Timestamp>,
    /// When it was added.
    pub inserted_at: Timestamp,
}

/// An agent in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRow {
    /// Its id.
    pub id: IdentityId,
    /// `<owner>/<slug>`
    pub handle: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Who registered it.
    pub owner_id: IdentityId,
    /// Visible to every user of the server.
    pub is_global: bool,
    /// Visible to its owner's organization.
    pub shared_with_organization: bool,
    /// When it was registered.
    pub inserted_at: Timestamp,
}

/// An organization in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationRow {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Who is in it.
    pub members: Vec<HolderRow>,
    /// When it was made.
    pub inserted_at: Timestamp,
}

/// An organization as pages show it; who is in it is a list of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationLine {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub inserted_at: Timestamp,
}

/// A key that was made just now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedRow {
    /// The key's own id.
    pub key_id: KeyId,
    /// Whose it is.
    #[serde(flatten)]
    pub holder: HolderRow,
}

/// Keys that open nothing any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RevokedRow {
    /// How many.
    pub revoked: usize,
}

/// A quota of somebody's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaRow {
    /// Of what: `agents`, `chats`, `participants` or `messages`.
    pub resource: String,
    /// How many; null without end.
    pub most: Option<i64>,
}

/// Somebody's own quotas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaRows {
    /// Whose.
    pub holder: HolderRow,
    /// Only those that differ from the settings.
    pub quotas: Vec<QuotaRow>,
}

impl From<OwnQuotas> for QuotaRows {
    fn from(own: OwnQuotas) -> Self {
        let row = |(resource, quota): (Resource, Quota)| QuotaRow {
            resource: resource.as_str().to_owned(),
            most: quota.most(),
        };
        Self { holder: HolderRow::from(&own.holder), quotas: own.quotas.into_iter().map(row).collect() }
    }
}

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRows {
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// How far the log reaches.
    pub head: Head,
}

/// A user in an organization, or no longer in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MembershipRow {
    /// The organization's id.
    pub organization_id: OrganizationId,
    /// Its name.
    pub organization: String,
    /// The user.
    pub user: HolderRow,
}

/// An agent that is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedRow {
    /// Its id.
    pub id: IdentityId,
    /// Its handle.
    pub handle: String,
    /// Its name.
    pub name: String,
    /// Rooms where it had worked.
    pub executions: i64,
}

/// Whose key it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HolderRow {
    /// Its id.
    pub id: IdentityId,
    /// Person or program.
    pub r#type: IdentityKind,
    /// Its handle.
    pub handle: String,
    /// Its name.
    pub name: String,
}

/// A key in lists; the key itself is known to its holder alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRow {
    /// The key's own id.
    pub id: KeyId,
    /// Its first characters.
    pub hint: String,
    /// Whose it is.
    pub holder: HolderRow,
    /// When it was made.
    pub inserted_at: Timestamp,
    /// Since when it opens nothing.
    pub revoked_at: Option<Timestamp>,
    /// From when it opens nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Whose keys were rotated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RotatedRow {
    /// Who has the new key.
    #[serde(flatten)]
    pub holder: HolderRow,
    /// Until when the old keys work.
    pub old_until: Timestamp,
}

/// The key that tokens are signed with from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKeyRow {
    /// Its name, the tokens' `kid`.
    pub kid: String,
}

/// An issuer's account that signs in no longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnlinkedRow {
    /// `iss` of its tokens.
    pub issuer: String,
    /// `sub` of its tokens.
    pub subject: String,
}

/// An issuer's account and its user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkRow {
    /// Whose.
    pub user: HolderRow,
    /// `iss` of its tokens.
    pub issuer: String,
    /// `sub` of its tokens.
    pub subject: String,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl LinkRow {
    /// An account that was linked just now.
    pub fn new(user: &Profile, issuer: String, subject: String) -> Self {
        Self { user: HolderRow::from(user), issuer, subject, last_used_at: None }
    }
}

impl From<&Link> for LinkRow {
    fn from(link: &Link) -> Self {
        Self {
            user: HolderRow::from(&link.user),
            issuer: link.issuer.clone(),
            subject: link.subject.clone(),
            last_used_at: link.last_used_at,
        }
    }
}

impl From<&User> for UserRow {
    fn from(user: &User) -> Self {
        Self {
            id: user.profile.id,
            handle: user.profile.handle.clone(),
            name: user.profile.name.clone(),
            email: user.email.clone(),
            role: user.role.as_str().to_owned(),
            disabled_at: user.disabled_at,
            inserted_at: user.inserted_at,
        }
    }
}

impl From<DeletedAgent> for RemovedRow {
    fn from(removed: DeletedAgent) -> Self {
        let Profile { id, handle, name, .. } = removed.agent.profile;
        Self { id, handle, name, executions: removed.executions }
    }
}

impl From<&Agent> for AgentRow {
    fn from(agent: &Agent) -> Self {
        Self {
            id: agent.profile.id,
            handle: agent.profile.handle.clone(),
            name: agent.profile.name.clone(),
            description: agent.profile.description.clone(),
            owner_id: agent.owner,
            is_global: agent.is_global,
            shared_with_organization: agent.shared_with_organization,
            inserted_at: agent.inserted_at,
        }
    }
}

impl From<&Organization> for OrganizationRow {
    fn from(organization: &Organization) -> Self {
        Self {
            id: organization.id,
            name: organization.name.clone(),
            members: organization.members.iter().map(HolderRow::from).collect(),
            inserted_at: organization.inserted_at,
        }
    }
}

impl From<&Listed> for OrganizationLine {
    fn from(organization: &Listed) -> Self {
        let Listed { id, name, inserted_at } = organization;
        Self { id: *id, name: name.clone(), inserted_at: *inserted_at }
    }
}

impl From<&Member> for MembershipRow {
    fn from(member: &Member) -> Self {
        Self {
            organization_id: member.organization,
            organization: member.organization_name.clone(),
            user: HolderRow::from(&member.user),
        }
    }
}

impl From<&Profile> for HolderRow {
    fn from(profile: &Profile) -> Self {
        Self { id: profile.id, r#type: profile.kind, handle: profile.handle.clone(), name: profile.name.clone() }
    }
}

impl From<&KeyInfo> for KeyRow {
    fn from(key: &KeyInfo) -> Self {
        Self {
            id: key.id,
            hint: key.hint.clone(),
            holder: HolderRow::from(&key.holder),
            inserted_at: key.inserted_at,
            revoked_at: key.revoked_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
        }
    }
}

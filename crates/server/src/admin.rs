//! Administration: one set of operations, over the admin socket while the server runs and directly while it does not.

mod rows;

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bandstand_domain::audit::Door;
use bandstand_domain::identity::UserRole;
use bandstand_store::quotas::Quota;
use serde::{Deserialize, Serialize};
use tokio::net::{UnixListener, UnixSocket};

use crate::backup;
use crate::health::{Draining, readiness};
use crate::service::admin::{AdminError, NewAgent, NewUser};
use crate::service::audit::Actor;
use crate::state::Services;

pub use self::rows::{
    AgentRow, AuditRows, HolderRow, IssuedRow, KeyRow, LinkRow, MembershipRow, OrganizationLine, OrganizationRow,
    QuotaRow, QuotaRows, RemovedRow, RevokedRow, RotatedRow, SigningKeyRow, UnlinkedRow, UserRow, WithKey,
};

/// Where operations are posted on the admin socket.
pub const OPERATIONS: &str = "/operations";

/// Where a backup is read from the admin socket.
pub const BACKUP: &str = "/backup";

/// Where the admin socket tells about its server.
pub const ABOUT: &str = "/about";

/// Most entries of the audit log in one answer.
pub const AUDIT_MAX: i64 = 500;

/// Connections that may wait for the admin socket.
const BACKLOG: u32 = 64;

/// Something an administrator asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum Operation {
    /// Adds a person.
    AddUser {
        /// Its username.
        handle: String,
        /// May be empty.
        first_name: String,
        /// May be empty.
        last_name: String,
        /// E-mail address.
        email: Option<String>,
        /// May administer.
        admin: bool,
    },
    /// All people.
    ListUsers,
    /// One person.
    ShowUser {
        /// Its id or handle.
        who: String,
    },
    /// Makes a person an administrator, or no longer one.
    SetRole {
        /// Its id or handle.
        who: String,
        /// Whether it may administer.
        admin: bool,
    },
    /// Refuses a person and its agents, or takes them again.
    DisableUser {
        /// Its id or handle.
        who: String,
        /// Whether they are refused.
        disabled: bool,
    },
    /// Deletes a person.
    DeleteUser {
        /// Its id or handle.
        who: String,
        /// With its agents.
        force: bool,
    },
    /// Registers an agent.
    AddAgent {
        /// Its owner's handle; the first owner unless given.
        owner: Option<String>,
        /// Its name.
        name: String,
        /// What it does; a plain sentence unless given.
        description: Option<String>,
        /// Visible to every user of the server.
        is_global: bool,
    },
    /// All agents.
    ListAgents,
    /// Removes an agent.
    RemoveAgent {
        /// Its id or handle.
        who: String,
        /// Even when it takes part in rooms.
        force: bool,
    },
    /// Lets an agent's owner's organization find the agent, or no longer.
    ShareAgent {
        /// Its id or handle.
        who: String,
        /// Whether it can be found.
        shared: bool,
    },
    /// Shows an agent to every user of the server, or no longer.
    GlobalizeAgent {
        /// Its id or handle.
        who: String,
        /// Whether everybody sees it.
        is_global: bool,
    },
    /// Makes an organization.
    AddOrganization {
        /// Its name.
        name: String,
    },
    /// All organizations and who is in them.
    ListOrganizations,
    /// Puts a user into an organization.
    AddOrganizationMember {
        /// The organization's id or name.
        organization: String,
        /// The user's id or handle.
        user: String,
    },
    /// Takes a user out of an organization.
    RemoveOrganizationMember {
        /// The organization's id or name.
        organization: String,
        /// The user's id or handle.
        user: String,
    },
    /// All keys.
    ListKeys,
    /// Gives somebody one more key.
    IssueKey {
        /// Id or handle.
        who: String,
    },
    /// Gives somebody a new key and revokes the old ones, or lets them end after a while.
    RotateKey {
        /// Id or handle; or a key's id, and then that one alone is old.
        who: String,
        /// The old ones go on for so long.
        #[serde(default)]
        overlap_seconds: u64,
    },
    /// Signs people's tokens with a new key.
    RotateSigningKey {
        /// The tokens that are out count no longer.
        revoke: bool,
    },
    /// Lets an issuer's account sign in as a user.
    LinkUser {
        /// Id or handle.
        who: String,
        /// `iss` of the account's tokens.
        issuer: String,
        /// `sub` of the account's tokens.
        subject: String,
    },
    /// Lets an issuer's account sign in no longer.
    UnlinkUser {
        /// `iss` of the account's tokens.
        issuer: String,
        /// `sub` of the account's tokens.
        subject: String,
    },
    /// All accounts that are linked to users.
    ListLinks,
    /// Revokes a key, or all keys of somebody.
    RevokeKey {
        /// A key's id, or somebody's id or handle.
        what: String,
    },
    /// What somebody may have where that differs from the settings.
    ShowQuotas {
        /// Id or handle.
        who: String,
    },
    /// Gives somebody a quota of its own, or none.
    SetQuota {
        /// Id or handle.
        who: String,
        /// Of what.
        resource: String,
        /// How many.
        quota: QuotaWish,
    },
    /// A part of the audit log.
    Audit {
        /// After this entry; 0 from the first.
        after: i64,
        /// Most entries.
        limit: i64,
    },
}

/// What is to become of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotaWish {
    /// So many and no more.
    Most(i64),
    /// Without end.
    Unlimited,
    /// The settings count.
    AsSettings,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A person was added; the key is shown now and never again.
    UserAdded(WithKey<UserRow>),
    /// All people.
    Users(Vec<UserRow>),
    /// A person as it is, or is now.
    User(UserRow),
    /// A person is gone.
    UserDeleted(UserRow),
    /// An agent was registered; the key is shown now and never again.
    AgentAdded(WithKey<AgentRow>),
    /// All agents.
    Agents(Vec<AgentRow>),
    /// An agent is gone.
    AgentRemoved(RemovedRow),
    /// An agent is shared with its owner's organization, or no longer.
    AgentShared(AgentRow),
    /// An agent is visible to everybody, or no longer.
    AgentGlobalized(AgentRow),
    /// An organization was made.
    OrganizationAdded(OrganizationRow),
    /// All organizations.
    Organizations(Vec<OrganizationRow>),
    /// A user is in an organization now.
    OrganizationMemberAdded(MembershipRow),
    /// A user is no longer in an organization.
    OrganizationMemberRemoved(MembershipRow),
    /// All keys.
    Keys(Vec<KeyRow>),
    /// Somebody has one more key.
    KeyIssued(WithKey<IssuedRow>),
    /// Somebody has a new key; the old ones are revoked, or end in a while.
    KeyRotated(WithKey<RotatedRow>),
    /// Tokens are signed with another key.
    SigningKeyRotated(SigningKeyRow),
    /// An account is linked to a user.
    UserLinked(LinkRow),
    /// An account is linked no longer.
    UserUnlinked(UnlinkedRow),
    /// All linked accounts.
    Links(Vec<LinkRow>),
    /// So many keys were revoked.
    KeysRevoked(RevokedRow),
    /// Somebody's own quotas as they are now.
    Quotas(QuotaRows),
    /// A part of the audit log.
    Audit(AuditRows),
}

impl Operation {
    /// Does it.
    ///
    /// # Errors
    /// [`AdminError`], worded for the administrator.
    pub async fn perform(self, services: &Services) -> Result<Outcome, AdminError> {
        match self {
            Self::AddUser { handle, first_name, last_name, email, admin } => {
                let role = if admin { UserRole::Admin } else { UserRole::User };
                let (user, key) = services.add_user(NewUser { handle, first_name, last_name, email, role }).await?;
                Ok(Outcome::UserAdded(WithKey::new(UserRow::from(&user), &key)))
            }
            Self::ListUsers => Ok(Outcome::Users(services.list_users().await?.iter().map(UserRow::from).collect())),
            Self::ShowUser { who } => Ok(Outcome::User(UserRow::from(&services.show_user(&who).await?))),
            Self::SetRole { who, admin } => {
                let role = if admin { UserRole::Admin } else { UserRole::User };
                Ok(Outcome::User(UserRow::from(&services.set_role(&who, role).await?)))
            }
            Self::DisableUser { who, disabled } => {
                Ok(Outcome::User(UserRow::from(&services.disable_user(&who, disabled).await?)))
            }
            Self::DeleteUser { who, force } => {
                Ok(Outcome::UserDeleted(UserRow::from(&services.delete_user(&who, force).await?)))
            }
            Self::AddAgent { owner, name, description, is_global } => {
                let (agent, key) = services.add_agent(NewAgent { owner, name, description, is_global }).await?;
                Ok(Outcome::AgentAdded(WithKey::new(AgentRow::from(&agent), &key)))
            }
            Self::ListAgents => Ok(Outcome::Agents(services.list_agents().await?.iter().map(AgentRow::from).collect())),
            Self::RemoveAgent { who, force } => {
                Ok(Outcome::AgentRemoved(services.remove_agent(&who, force).await?.into()))
            }
            Self::ShareAgent { who, shared } => {
                Ok(Outcome::AgentShared(AgentRow::from(&services.share_agent(&who, shared).await?)))
            }
            Self::GlobalizeAgent { who, is_global } => {
                Ok(Outcome::AgentGlobalized(AgentRow::from(&services.globalize_agent(&who, is_global).await?)))
            }
            Self::AddOrganization { name } => {
                Ok(Outcome::OrganizationAdded(OrganizationRow::from(&services.add_organization(&name).await?)))
            }
            Self::ListOrganizations => {
                let organizations = services.list_organizations().await?;
                Ok(Outcome::Organizations(organizations.iter().map(OrganizationRow::from).collect()))
            }
            Self::AddOrganizationMember { organization, user } => {
                let member = services.add_organization_member(&organization, &user).await?;
                Ok(Outcome::OrganizationMemberAdded(MembershipRow::from(&member)))
            }
            Self::RemoveOrganizationMember { organization, user } => {
                let member = services.remove_organization_member(&organization, &user).await?;
                Ok(Outcome::OrganizationMemberRemoved(MembershipRow::from(&member)))
            }
            Self::ListKeys => Ok(Outcome::Keys(services.list_keys().await?.iter().map(KeyRow::from).collect())),
            Self::RotateKey { who, overlap_seconds } => {
                let rotated = services.rotate_key_with_overlap(&who, Duration::from_secs(overlap_seconds)).await?;
                let holder = HolderRow::from(&rotated.holder);
                Ok(Outcome::KeyRotated(WithKey::new(RotatedRow { holder, old_until: rotated.old_until }, &rotated.key)))
            }
            Self::RotateSigningKey { revoke } => {
                let kid = services.rotate_signing_key(revoke).await?;
                Ok(Outcome::SigningKeyRotated(SigningKeyRow { kid }))
            }
            Self::LinkUser { who, issuer, subject } => {
                let user = services.link_user(&who, &issuer, &subject).await?;
                Ok(Outcome::UserLinked(LinkRow::new(&user, issuer, subject)))
            }
            Self::UnlinkUser { issuer, subject } => {
                services.unlink_user(&issuer, &subject).await?;
                Ok(Outcome::UserUnlinked(UnlinkedRow { issuer, subject }))
            }
            Self::ListLinks => Ok(Outcome::Links(services.list_links().await?.iter().map(LinkRow::from).collect())),
            Self::IssueKey { who } => {
                let (holder, key_id, key) = services.issue_key(&who).await?;
                Ok(Outcome::KeyIssued(WithKey::new(IssuedRow { key_id, holder: HolderRow::from(&holder) }, &key)))
            }
            Self::RevokeKey { what } => {
                Ok(Outcome::KeysRevoked(RevokedRow { revoked: services.revoke_key(&what).await? }))
            }
            Self::ShowQuotas { who } => Ok(Outcome::Quotas(services.quotas_of(&who).await?.into())),
            Self::SetQuota { who, resource, quota } => {
                let quota = match quota {
                    QuotaWish::Most(most) => Some(Quota::Most(most.max(0))),
                    QuotaWish::Unlimited => Some(Quota::Unlimited),
                    QuotaWish::AsSettings => None,
                };
                Ok(Outcome::Quotas(services.give_quota(&who, &resource, quota).await?.into()))
            }
            Self::Audit { after, limit } => {
                let page = services.audit_log(after, limit.clamp(1, AUDIT_MAX)).await?;
                Ok(Outcome::Audit(AuditRows { entries: page.entries, head: page.head }))
            }
        }
    }
}

/// What the admin socket tells about its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The server's process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// The address that clients use.
    pub url: String,
    /// `ready`, `draining` or `store unavailable`.
    pub status: String,
}

/// An operation that did not happen, as the admin socket says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    pub error: String,
}

#[derive(Clone)]
struct Admin {
    services: Services,
    draining: Draining,
    url: Arc<str>,
}

/// The routes of the admin socket. Whoever may open the socket may do everything: its file mode is the lock.
pub fn routes(services: Services, draining: Draining, url: String) -> Router {
    Router::new()
        .route(OPERATIONS, post(perform))
        .route(ABOUT, get(about))
        .route(BACKUP, get(back_up))
        .with_state(Admin { services: services.acting_as(Actor::local(Door::Socket)), draining, url: url.into() })
}

async fn perform(State(admin): State<Admin>, body: Bytes) -> Response {
    let operation: Operation = match serde_json::from_slice(&body) {
        Ok(operation) => operation,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("no such operation: {error}")),
    };
    match operation.perform(&admin.services).await {
        Ok(outcome) => reply(StatusCode::OK, &outcome),
        Err(error) => refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

async fn back_up(State(admin): State<Admin>) -> Response {
    match backup::stream(&admin.services).await {
        Ok(pieces) => Body::from_stream(pieces).into_response(),
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

async fn about(State(admin): State<Admin>) -> Response {
    let (_, status) = readiness(&admin.services.store, &admin.draining).await;
    let about = About {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url: admin.url.to_string(),
        status: status.to_owned(),
    };
    reply(StatusCode::OK, &about)
}

fn refuse(status: StatusCode, error: String) -> Response {
    reply(status, &Refusal { error })
}

fn reply(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(body) => (status, [(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Listens on the admin socket, for its owner alone. The caller holds the lock of the data folder, so whatever socket
/// lies there belongs to a server that is gone.
///
/// # Errors
/// When the path is too long for a socket, is taken by something else, or cannot be written.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    remove_stale(path)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    // Nobody can connect before `listen`: the mode is set in between, so there is no moment at which others might.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)
}

fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "something that is no socket lies there; move it away"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_only_its_owner_may_connect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        drop(listen(&path).unwrap());
        assert!(path.exists(), "the file outlives its server");
        let _listener = listen(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        fs::write(&path, "mine").unwrap();
        assert!(listen(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(listen(&path).is_err());
        assert!(!target.exists());
    }
}

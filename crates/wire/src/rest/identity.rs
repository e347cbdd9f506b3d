//! Users, agents and peers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::{IdentityId, IdentityKind};
use crate::page::DualMetadata;
use crate::time::Timestamp;

/// An agent as it sees itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentMe {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// `<owner>/<slug>`.
    pub handle: String,
    /// band-sdk refuses to start without one.
    pub description: Option<String>,
    /// The user who registered it (`owner_id` at registration).
    pub owner_uuid: IdentityId,
    /// When it was registered.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What this server offers; clients refuse a reply without it.
    pub feature_flags: BTreeMap<&'static str, bool>,
    /// In the public directory.
    pub listed_in_directory: bool,
}

/// Somebody that the caller may recruit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Peer {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its handle.
    pub handle: String,
    /// `registry` or `contact`.
    #[schemars(with = "crate::rest::words::PeerSource")]
    pub source: &'static str,
    /// Whether it is a contact.
    pub is_contact: bool,
    /// Whether it has a live socket.
    pub online: bool,
    /// An agent's description.
    pub description: Option<String>,
    /// True for agents; null for people.
    pub is_external: Option<bool>,
}

/// A user as it sees itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UserDetails {
    /// Who.
    pub id: IdentityId,
    /// E-mail address.
    pub email: String,
    /// Username.
    pub handle: String,
    /// `user` or `admin`.
    #[schemars(with = "crate::rest::words::UserRole")]
    pub role: &'static str,
    /// First name.
    pub first_name: String,
    /// Last name.
    pub last_name: String,
    /// In the public directory.
    pub listed_in_directory: bool,
}

/// An agent as its owner sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MyAgent {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The last part of its handle.
    pub slug: String,
    /// Always true: agents run elsewhere.
    pub is_external: bool,
    /// Always null: this server runs no models.
    pub model_type: Option<String>,
    /// May discover all agents of its owner.
    pub registry_access: bool,
    /// Visible to the owner's organization.
    pub shared_with_organization: bool,
    /// In the public directory.
    pub listed_in_directory: bool,
    /// When it was registered.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Metadata of an owner's list of agents.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MyAgentsMetadata {
    /// Paging.
    #[serde(flatten)]
    pub page: DualMetadata,
    /// What the list can be filtered by.
    pub available_filters: &'static [FilterOption],
    /// What it can be sorted by.
    pub sortable_fields: &'static [SortOption],
}

/// A filter of a list.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FilterOption {
    /// The query parameter.
    pub param: &'static str,
    /// For people.
    pub label: &'static str,
    /// `string` or `boolean`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A sort order of a list.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SortOption {
    /// The value of `sort`.
    pub param: &'static str,
    /// For people.
    pub label: &'static str,
}

/// A new agent and its key, shown this once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentRegistration {
    /// The agent.
    pub agent: RegisteredAgent,
    /// Its key.
    pub credentials: AgentCredentials,
}

/// A new agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RegisteredAgent {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The user who registered it (`owner_uuid` on `/agent/me`).
    pub owner_id: IdentityId,
    /// When.
    pub inserted_at: Timestamp,
}

/// A key in clear.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentCredentials {
    /// `band_a_…`
    pub api_key: String,
}

/// The answer to deleting an agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeletedAgent {
    /// Who it was.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// What it did.
    pub description: Option<String>,
    /// Executions (one per room where it worked) that ended with it; 0 without `force`.
    pub executions_deleted: i64,
}

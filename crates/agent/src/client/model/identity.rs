//! The agent itself, and its peers.

use std::collections::BTreeMap;

use bandstand_wire::ids::IdentityId;
use serde::{Deserialize, Serialize};

/// An agent as it sees itself.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Me {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// Its handle, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// The user who registered it.
    #[serde(default)]
    pub owner_uuid: Option<IdentityId>,
    /// What the server offers.
    #[serde(default)]
    pub feature_flags: BTreeMap<String, bool>,
    /// When it was registered.
    #[serde(default)]
    pub inserted_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

impl Me {
    /// Whether the server says that it offers something. A flag that it does not mention is off.
    pub fn offers(&self, flag: &str) -> bool {
        self.feature_flags.get(flag).copied().unwrap_or_default()
    }
}

/// Somebody that the agent may recruit.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Peer {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its handle, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
    /// `registry` or `contact`.
    #[serde(default)]
    pub source: Option<String>,
    /// Whether it is a contact.
    #[serde(default)]
    pub is_contact: Option<bool>,
    /// Whether it has a live socket.
    #[serde(default)]
    pub online: Option<bool>,
    /// An agent's description.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it runs outside the server.
    #[serde(default)]
    pub is_external: Option<bool>,
    /// Whether it is in the public directory.
    #[serde(default)]
    pub listed_in_directory: Option<bool>,
    /// Words that it is found by.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Its picture.
    #[serde(default)]
    pub avatar_url: Option<String>,
}

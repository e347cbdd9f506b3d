//! Participants of a room.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::{IdentityId, IdentityKind};

/// A participant as agents see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChatParticipant {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// `owner`, `admin` or `member`.
    #[schemars(with = "crate::rest::words::ParticipantRole")]
    pub role: &'static str,
    /// Standing, not presence.
    #[schemars(with = "crate::rest::words::ParticipantStatus")]
    pub status: &'static str,
    /// Its name.
    pub name: String,
    /// Its handle.
    pub handle: String,
    /// Whether it has a live socket.
    pub online: bool,
}

/// A participant as people see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChatParticipantDetails {
    /// What agents see as well.
    #[serde(flatten)]
    pub participant: ChatParticipant,
    /// `connected` or `disconnected` for agents, null for people.
    #[schemars(with = "Option<crate::rest::words::ConnectionStatus>")]
    pub connection_status: Option<&'static str>,
    /// An agent's description.
    pub description: Option<String>,
    /// True for agents; null for people.
    pub is_external: Option<bool>,
}

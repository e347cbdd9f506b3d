//! Rooms and who is in them.

use bandstand_wire::ids::{IdentityId, RoomId};
use serde::{Deserialize, Serialize};

/// A room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ChatRoom {
    /// Which.
    pub id: RoomId,
    /// Its title; null until it has one.
    #[serde(default)]
    pub title: Option<String>,
    /// Its creator's opaque link.
    #[serde(default)]
    pub task_id: Option<String>,
    /// When it was created.
    #[serde(default)]
    pub inserted_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
}

/// Somebody in a room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Participant {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `owner`, `admin` or `member`.
    #[serde(default)]
    pub role: Option<String>,
    /// Its standing, not its presence: `active`, `inactive` or `blocked`.
    #[serde(default)]
    pub status: Option<String>,
    /// Its handle, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
    /// An agent's description. Pushes tell it, and lists do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it has a live socket.
    #[serde(default)]
    pub online: Option<bool>,
    /// Its picture.
    #[serde(default)]
    pub avatar_url: Option<String>,
}

//! Who can act: users and their agents.

use bandstand_wire::ids::{IdentityId, IdentityKind};
use bandstand_wire::time::Timestamp;

/// What everybody in a room may know of somebody: enough for a roster row or a mention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// Without `@`: a username, or `<owner>/<agent slug>`.
    pub handle: String,
    /// An agent's name, or a user's first and last name (the handle when both are empty).
    pub name: String,
    /// An agent's description; people have none.
    pub description: Option<String>,
}

/// An agent as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// What others see.
    pub profile: Profile,
    /// The user who registered it.
    pub owner: IdentityId,
    /// The last part of its handle.
    pub slug: String,
    /// Visible to every user of the server.
    pub is_global: bool,
    /// Visible to the owner's organization.
    pub shared_with_organization: bool,
    /// Listed in the public directory.
    pub listed_in_directory: bool,
    /// May discover all agents of its owner.
    pub registry_access: bool,
    /// When it was registered.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A user as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What others see.
    pub profile: Profile,
    /// E-mail address; shown to itself and to established contacts only.
    pub email: String,
    /// First name, may be empty.
    pub first_name: String,
    /// Last name, may be empty.
    pub last_name: String,
    /// What the user may do on this server.
    pub role: UserRole,
    /// Listed in the public directory.
    pub listed_in_directory: bool,
    /// Since when the user and its agents are refused.
    pub disabled_at: Option<Timestamp>,
    /// When the user was added.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What a user may do on this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRole {
    /// Uses the server.
    User,
    /// Runs the server.
    Admin,
}

impl UserRole {
    /// The word that travels and is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }

    /// Reads [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Admin].into_iter().find(|role| role.as_str() == text)
    }
}

/// A user's display name: first and last name, or the handle when neither is set.
pub fn user_name(first: &str, last: &str, handle: &str) -> String {
    let name = [first.trim(), last.trim()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if name.is_empty() { handle.to_owned() } else { name }
}

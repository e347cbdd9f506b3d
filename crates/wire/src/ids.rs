//! Ids as they travel: lower-case hyphenated UUIDs, one Rust type per noun so that they cannot be mixed up.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

id!(
    /// A room (`chat` on the wire).
    RoomId
);
id!(
    /// A message or an event: both are rows of a room's history.
    MessageId
);
id!(
    /// Somebody who can act: a user or an agent. Which of the two is [`IdentityKind`].
    IdentityId
);
id!(
    /// An agent's work in one room; a new one each time it joins.
    ExecutionId
);
id!(
    /// A job that deletes many rooms or agents.
    BulkDeletionId
);
id!(
    /// An API key's own id; it names the key in lists and when revoking, and is no secret.
    KeyId
);

id!(
    /// A file of a room.
    FileId
);

id!(
    /// A contact's record: each of the two has its own. It names the contact, not the identity.
    ContactId
);

id!(
    /// A request to become contacts.
    ContactRequestId
);

id!(
    /// A task on a room's board.
    TaskId
);

id!(
    /// Something that an agent remembers.
    MemoryId
);

id!(
    /// An organization of users.
    OrganizationId
);

/// Whether an identity is a person or a program (`type` on the wire).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "crate::rest::words::IdentityKind")]
pub enum IdentityKind {
    /// A person.
    User,
    /// A program registered by a person.
    Agent,
}

impl IdentityKind {
    /// The word that travels: `User` or `Agent`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Agent => "Agent",
        }
    }
}

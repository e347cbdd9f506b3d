//! The names of topics: a family and the id that it is about.

use std::fmt;

use uuid::Uuid;

use crate::ids::{IdentityId, RoomId};

/// Why a topic cannot be joined by anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// A family that we know with something that is no id. Answered like an id that the caller may not see.
    #[error("unauthorized")]
    Malformed,
    /// No such family.
    #[error("unmatched topic")]
    Unknown,
}

macro_rules! topics {
    ($($(#[$doc:meta])* $variant:ident($id:ident) = $family:literal),+ $(,)?) => {
        /// A channel that can be joined.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Topic { $($(#[$doc])* $variant($id)),+ }

        impl Topic {
            /// Every family's name.
            pub const FAMILIES: &'static [&'static str] = &[$($family),+];

            /// Reads `family:uuid`, whatever way the UUID is written.
            ///
            /// # Errors
            /// [`TopicError`], which tells a known family with a bad id from an unknown one.
            pub fn parse(text: &str) -> Result<Self, TopicError> {
                let (family, id) = text.split_once(':').ok_or(TopicError::Unknown)?;
                let id = || Uuid::parse_str(id).map_err(|_| TopicError::Malformed);
                match family {
                    $($family => Ok(Self::$variant($id(id()?))),)+
                    _ => Err(TopicError::Unknown),
                }
            }

            /// The part before the colon.
            pub fn family(&self) -> &'static str {
                match self { $(Self::$variant(_) => $family),+ }
            }

            fn id(&self) -> Uuid {
                match self { $(Self::$variant(id) => id.0),+ }
            }
        }
    };
}

topics! {
    /// An agent's own control signals. Joining makes the connection the agent's live one.
    AgentControl(IdentityId) = "agent_control",
    /// Rooms that an agent enters and leaves.
    AgentRooms(IdentityId) = "agent_rooms",
    /// An agent's contacts.
    AgentContacts(IdentityId) = "agent_contacts",
    /// What is said in a room.
    ChatRoom(RoomId) = "chat_room",
    /// Who is in a room.
    RoomParticipants(RoomId) = "room_participants",
    /// Who works in a room just now.
    RoomActivity(RoomId) = "room_activity",
    /// A room's task board.
    RoomTasks(RoomId) = "room_tasks",
    /// Rooms that a user enters and leaves, and their changes.
    UserRooms(IdentityId) = "user_rooms",
    /// A user's contacts.
    UserContacts(IdentityId) = "user_contacts",
    /// A user's personal tasks, of an older generation. Nothing is sent on it.
    Tasks(IdentityId) = "tasks",
}

impl Topic {
    /// The room that the topic is about, for topics of a room.
    pub fn room(&self) -> Option<RoomId> {
        match *self {
            Self::ChatRoom(room) | Self::RoomParticipants(room) | Self::RoomActivity(room) | Self::RoomTasks(room) => {
                Some(room)
            }
            Self::AgentControl(_)
            | Self::AgentRooms(_)
            | Self::AgentContacts(_)
            | Self::UserRooms(_)
            | Self::UserContacts(_)
            | Self::Tasks(_) => None,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.family(), self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_family_with_a_bad_id_is_told_apart() {
        assert_eq!(Topic::parse("chat_room:nope"), Err(TopicError::Malformed));
        assert_eq!(Topic::parse("chat_room:"), Err(TopicError::Malformed));
        for unknown in ["", "chat_room", "memories:018f0000-0000-7000-8000-000000000000", "phoenix", ":"] {
            assert_eq!(Topic::parse(unknown), Err(TopicError::Unknown), "{unknown}");
        }
    }

    #[test]
    fn the_way_the_uuid_is_written_does_not_matter() {
        let id = RoomId(Uuid::from_u128(0x018f_0000_0000_7000_8000_0000_0000_abcd));
        assert_eq!(Topic::parse("chat_room:018F0000-0000-7000-8000-00000000ABCD"), Ok(Topic::ChatRoom(id)));
        assert_eq!(Topic::ChatRoom(id).to_string(), "chat_room:018f0000-0000-7000-8000-00000000abcd");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(family in 0..Topic::FAMILIES.len(), id in any::<u128>()) {
            let text = format!("{}:{}", Topic::FAMILIES[family], Uuid::from_u128(id));
            prop_assert_eq!(Topic::parse(&text).unwrap().to_string(), text);
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,60}") {
            let _ = Topic::parse(&text);
        }
    }
}

//! Who is in a room, and who of them is connected.

use serde::Serialize;

use crate::ids::{IdentityId, IdentityKind};

/// `participant_added`. `handle` is left out rather than null: the Python validator rejects a null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParticipantAdded<'a> {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: &'a str,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its handle, without `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<&'a str>,
    /// An agent's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    /// Whether it runs outside the server; every agent does, and for people there is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_external: Option<bool>,
    /// What it may do in the room.
    pub role: &'a str,
    /// Its standing in the room.
    pub status: &'a str,
}

/// `participant_removed`: all that any client requires.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParticipantRemoved<'a> {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: &'a str,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its handle, without `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<&'a str>,
}

/// `participant_presence_changed`, and a row of [`PresenceSnapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ParticipantPresence {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Whether it has a live connection.
    pub online: bool,
}

/// The reply to a person's join of `room_participants`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PresenceSnapshot {
    /// Every participant that is not blocked.
    pub participant_presence: Vec<ParticipantPresence>,
}

/// `agent_connected` and `agent_disconnected`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AgentConnection {
    /// Which agent.
    pub id: IdentityId,
    /// Always an agent.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// `connected` or `disconnected`.
    pub connection_status: &'static str,
}

impl AgentConnection {
    /// Says whether an agent is connected.
    pub fn new(id: IdentityId, online: bool) -> Self {
        Self { id, kind: IdentityKind::Agent, connection_status: if online { "connected" } else { "disconnected" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ID: &str = "00000000-0000-0000-0000-000000000007";

    fn id() -> IdentityId {
        IdentityId(Uuid::from_u128(7))
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let person = ParticipantAdded {
            id: id(),
            name: "Ann",
            kind: IdentityKind::User,
            handle: None,
            description: None,
            is_external: None,
            role: "owner",
            status: "active",
        };
        assert_eq!(
            serde_json::to_string(&person).unwrap(),
            format!(r#"{{"id":"{ID}","name":"Ann","type":"User","role":"owner","status":"active"}}"#)
        );
        let agent = ParticipantAdded {
            name: "Bob",
            kind: IdentityKind::Agent,
            handle: Some("ann/bob"),
            description: Some("helps"),
            is_external: Some(true),
            role: "member",
            status: "inactive",
            ..person
        };
        assert_eq!(
            serde_json::to_string(&agent).unwrap(),
            format!(
                r#"{{"id":"{ID}","name":"Bob","type":"Agent","handle":"ann/bob","description":"helps","is_external":true,"role":"member","status":"inactive"}}"#
            )
        );
        let gone = ParticipantRemoved { id: id(), name: "Bob", kind: IdentityKind::Agent, handle: Some("ann/bob") };
        assert_eq!(
            serde_json::to_string(&gone).unwrap(),
            format!(r#"{{"id":"{ID}","name":"Bob","type":"Agent","handle":"ann/bob"}}"#)
        );
    }

    #[test]
    fn presence() {
        let row = ParticipantPresence { id: id(), kind: IdentityKind::Agent, online: true };
        assert_eq!(
            serde_json::to_string(&PresenceSnapshot { participant_presence: vec![row] }).unwrap(),
            format!(r#"{{"participant_presence":[{{"id":"{ID}","type":"Agent","online":true}}]}}"#)
        );
        assert_eq!(
            serde_json::to_string(&AgentConnection::new(id(), false)).unwrap(),
            format!(r#"{{"id":"{ID}","type":"Agent","connection_status":"disconnected"}}"#)
        );
    }
}

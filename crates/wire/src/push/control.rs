//! Signals to one agent: about its work, and about its own connection.

use serde::Serialize;
use uuid::Uuid;

use crate::ids::{ExecutionId, IdentityId, RoomId};

/// `agent.control`. All keys are there, the two that may be null as well. Clients also know `type` and `reason`, but
/// refuse a null in them, so they are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AgentControl {
    /// `interrupt`, `stop` or `play`.
    pub mode: &'static str,
    /// `room` for one room, `agent` for all of the agent's.
    pub scope: &'static str,
    /// Whom it is for.
    pub agent_id: IdentityId,
    /// The execution that is meant.
    pub execution_id: Option<ExecutionId>,
    /// The room; null means all of the agent's.
    pub room_id: Option<RoomId>,
    /// New for each request; clients drop what they have seen.
    pub correlation_id: Uuid,
}

/// `supersede`: a newer connection of the same agent takes over. Never `retryable`: the two processes would replace
/// each other for ever.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Supersede {
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: &'static str,
    /// The key must be there; nothing to correlate with.
    pub correlation_id: Option<String>,
    /// Whether the old client should come back: no.
    pub retryable: bool,
    /// Seconds that clients show as advice.
    pub retry_after: u32,
    /// Whom it is for.
    pub target_socket_id: String,
}

impl Supersede {
    /// Tells `agent`'s older connection.
    pub fn new(agent: IdentityId) -> Self {
        Self {
            reason: "session.already_connected",
            message: "A newer connection of this agent took over.",
            correlation_id: None,
            retryable: false,
            retry_after: 15,
            target_socket_id: format!("agent_socket:{agent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_of_a_signal() {
        let signal = AgentControl {
            mode: "stop",
            scope: "room",
            agent_id: IdentityId(Uuid::from_u128(1)),
            execution_id: Some(ExecutionId(Uuid::from_u128(2))),
            room_id: Some(RoomId(Uuid::from_u128(3))),
            correlation_id: Uuid::from_u128(4),
        };
        assert_eq!(
            serde_json::to_string(&signal).unwrap(),
            r#"{"mode":"stop","scope":"room","agent_id":"00000000-0000-0000-0000-000000000001","execution_id":"00000000-0000-0000-0000-000000000002","room_id":"00000000-0000-0000-0000-000000000003","correlation_id":"00000000-0000-0000-0000-000000000004"}"#
        );
        let everywhere = AgentControl { scope: "agent", execution_id: None, room_id: None, ..signal };
        let json = serde_json::to_string(&everywhere).unwrap();
        assert!(json.contains(r#""execution_id":null,"room_id":null"#), "{json}");
    }

    #[test]
    fn the_json() {
        assert_eq!(
            serde_json::to_string(&Supersede::new(IdentityId(Uuid::from_u128(7)))).unwrap(),
            r#"{"reason":"session.already_connected","message":"A newer connection of this agent took over.","correlation_id":null,"retryable":false,"retry_after":15,"target_socket_id":"agent_socket:00000000-0000-0000-0000-000000000007"}"#
        );
    }
}

//! Signals to one agent about its own connection.

use serde::Serialize;

use crate::ids::IdentityId;

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
    use uuid::Uuid;

    #[test]
    fn the_json() {
        assert_eq!(
            serde_json::to_string(&Supersede::new(IdentityId(Uuid::from_u128(7)))).unwrap(),
            r#"{"reason":"session.already_connected","message":"A newer connection of this agent took over.","correlation_id":null,"retryable":false,"retry_after":15,"target_socket_id":"agent_socket:00000000-0000-0000-0000-000000000007"}"#
        );
    }
}

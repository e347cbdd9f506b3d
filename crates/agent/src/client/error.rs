//! What can go wrong between an agent and its server. No error shows a header, a body, an address or a key.

use bandstand_wire::ids::RoomId;
use serde_json::Value;

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The agent's execution in the room is stopped. Not a failure: the turn ends, and the message is served again
    /// when a person lets the agent go on.
    #[error("Room {room}: platform execution was stopped")]
    Stopped {
        /// Which room.
        room: RoomId,
    },
    /// The server could not be reached: nothing happened.
    #[error("the server could not be reached: {reason}")]
    Unreachable {
        /// Why.
        reason: &'static str,
    },
    /// The request was sent and no answer came. Whether it took effect is unknown.
    #[error("no answer came from the server ({reason})")]
    NoAnswer {
        /// Why.
        reason: &'static str,
    },
    /// The server took the request, but its answer says nothing.
    #[error("Failed to {what} - no response data")]
    NoData {
        /// What was asked, as a verb phrase.
        what: &'static str,
    },
    /// The server took the request, but its answer cannot be understood.
    #[error("the server's answer could not be read ({status}): {reason}")]
    Unreadable {
        /// The HTTP status.
        status: u16,
        /// Why, without content.
        reason: String,
    },
    /// The client's own options are wrong.
    #[error("{0}")]
    Options(String),
}

/// What the server said when it refused.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status} {code}: {message}")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The server's word for programs; `http_error` when it gave none.
    pub code: String,
    /// For people.
    pub message: String,
    /// The request's id in the server's log.
    pub request_id: Option<String>,
    /// Details; for a `validation_error` a list of texts for each place.
    pub details: Option<Value>,
}

/// What became of a mark that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkFate {
    /// Nobody knows; sending it again is safe.
    Unconfirmed,
    /// There is no such message any more, for this agent.
    NotFound,
    /// There is no open attempt that it could close.
    Rejected,
    /// The execution is stopped.
    Stopped,
}

impl ClientError {
    /// The HTTP status, when there was an answer that refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Unreadable { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What the server said, when it refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the server refused with this code.
    pub fn is_code(&self, code: &str) -> bool {
        self.refusal().is_some_and(|refusal| refusal.code == code)
    }

    /// Whether there is no such thing, as far as the agent may know.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the agent's execution in the room is stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped { .. })
    }

    /// Whether the request may have taken effect although it failed.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::NoData { .. } | Self::Unreadable { .. } => true,
            Self::Refused(refusal) => unknown_outcome(refusal.status),
            Self::Stopped { .. } | Self::Unreachable { .. } | Self::Options(_) => false,
        }
    }

    /// What this error says of a mark.
    pub fn mark_fate(&self) -> MarkFate {
        match self {
            Self::Stopped { .. } => MarkFate::Stopped,
            Self::Refused(refusal) if refusal.status == 404 && refusal.code == "not_found" => MarkFate::NotFound,
            Self::Refused(refusal)
                if refusal.status == 422
                    && refusal.code == "validation_error"
                    && refusal.details.as_ref().is_some_and(|details| details.get("/processing_attempt").is_some()) =>
            {
                MarkFate::Rejected
            }
            _ => MarkFate::Unconfirmed,
        }
    }
}

/// A status after which nobody knows whether the request took effect. 429 and 503 say that it did not.
pub(super) fn unknown_outcome(status: u16) -> bool {
    status == 408 || (status >= 500 && status != 503)
}

impl Refusal {
    /// Reads an error reply; a body that is no error envelope gives what the status alone says.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error").unwrap_or(&Value::Null);
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            status,
            code: text("code").unwrap_or_else(|| "http_error".into()),
            message: text("message").unwrap_or_else(|| "the server gave no reason".into()),
            request_id: text("request_id"),
            details: error.get("details").or_else(|| body.get("details")).filter(|details| !details.is_null()).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> ClientError {
        ClientError::Refused(Box::new(Refusal::read(status, body.as_bytes())))
    }

    #[test]
    fn an_error_says_status_code_and_message_and_nothing_else() {
        let body = r#"{"error":{"code":"not_found","message":"Nothing here","request_id":"r","details":{"secret":1}}}"#;
        assert_eq!(refused(404, body).to_string(), "404 not_found: Nothing here");
        assert_eq!(refused(502, "<html>secret</html>").to_string(), "502 http_error: the server gave no reason");
    }

    #[test]
    fn the_fate_of_a_mark() {
        let rejected =
            r#"{"error":{"code":"validation_error","message":"m","details":{"/processing_attempt":["none"]}}}"#;
        for (status, body, fate) in [
            (404, r#"{"error":{"code":"not_found","message":"m"}}"#, MarkFate::NotFound),
            (404, "", MarkFate::Unconfirmed),
            (422, rejected, MarkFate::Rejected),
            (422, r#"{"error":{"code":"validation_error","message":"m"}}"#, MarkFate::Unconfirmed),
            (500, "", MarkFate::Unconfirmed),
        ] {
            assert_eq!(refused(status, body).mark_fate(), fate, "{status} {body}");
        }
    }
}

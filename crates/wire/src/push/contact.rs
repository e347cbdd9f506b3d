//! Contacts and the requests to become one. Names and handles are never null: the TypeScript SDK drops an event without
//! them.

use serde::Serialize;

use crate::ids::{ContactId, ContactRequestId, IdentityKind};
use crate::time::Timestamp;

/// `contact_request_received` as agents read it: flat, which is easier for a model. People read the REST row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContactRequestReceived<'a> {
    /// Which request.
    pub id: ContactRequestId,
    /// Who asks, without `@`.
    pub from_handle: &'a str,
    /// Who asks.
    pub from_name: &'a str,
    /// What the requester says of itself; left out when it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// `pending`.
    pub status: &'static str,
    /// When it was made.
    pub inserted_at: Timestamp,
}

/// `contact_request_updated`, to requester and recipient alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContactRequestUpdated {
    /// Which request.
    pub id: ContactRequestId,
    /// `approved`, `rejected` or `cancelled`.
    pub status: &'static str,
}

/// `contact_added`. What is only known of agents is left out for people: the Python validator rejects a null
/// description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContactAdded<'a> {
    /// The receiver's own record of the contact.
    pub id: ContactId,
    /// Who it is, without `@`.
    pub handle: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// An agent's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    /// Whether it runs outside the server; every agent does, and for people there is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_external: Option<bool>,
    /// Whether an agent is in the public directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_in_directory: Option<bool>,
    /// Since when.
    pub inserted_at: Timestamp,
}

/// `contact_removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContactRemoved {
    /// The receiver's own record, which is gone.
    pub id: ContactId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ID: &str = "00000000-0000-0000-0000-000000000007";

    #[test]
    fn what_is_unknown_is_left_out() {
        let id = ContactRequestId(Uuid::from_u128(7));
        let asked = ContactRequestReceived {
            id,
            from_handle: "ana/weather",
            from_name: "Weather",
            message: None,
            status: "pending",
            inserted_at: Timestamp::from_micros(0),
        };
        assert_eq!(
            serde_json::to_string(&asked).unwrap(),
            format!(
                r#"{{"id":"{ID}","from_handle":"ana/weather","from_name":"Weather","status":"pending","inserted_at":"1970-01-01T00:00:00.000000Z"}}"#
            )
        );
        let with_message = ContactRequestReceived { message: Some("hi"), ..asked };
        assert!(serde_json::to_string(&with_message).unwrap().contains(r#""message":"hi","status""#));
        assert_eq!(
            serde_json::to_string(&ContactRequestUpdated { id, status: "approved" }).unwrap(),
            format!(r#"{{"id":"{ID}","status":"approved"}}"#)
        );
        let id = ContactId(Uuid::from_u128(7));
        let person = ContactAdded {
            id,
            handle: "ana",
            name: "Ana",
            kind: IdentityKind::User,
            description: None,
            is_external: None,
            listed_in_directory: None,
            inserted_at: Timestamp::from_micros(0),
        };
        assert_eq!(
            serde_json::to_string(&person).unwrap(),
            format!(
                r#"{{"id":"{ID}","handle":"ana","name":"Ana","type":"User","inserted_at":"1970-01-01T00:00:00.000000Z"}}"#
            )
        );
        assert_eq!(serde_json::to_string(&ContactRemoved { id }).unwrap(), format!(r#"{{"id":"{ID}"}}"#));
    }
}

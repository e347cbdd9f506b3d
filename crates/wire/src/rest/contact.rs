//! Contacts and the requests to become one.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::{ContactId, ContactRequestId, IdentityId, IdentityKind};
use crate::page::OffsetMetadata;
use crate::time::Timestamp;

/// A contact as an agent has it. `handle` and `online` are never null: band-client-rest 0.0.46 cannot parse that.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentContact {
    /// The record, not the identity.
    pub id: ContactId,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its handle, without `@`.
    pub handle: String,
    /// Its name.
    pub name: String,
    /// An agent's description.
    pub description: Option<String>,
    /// True for agents; null for people.
    pub is_external: Option<bool>,
    /// In the public directory.
    pub listed_in_directory: bool,
    /// Whether it has a live socket.
    pub online: bool,
    /// Since when.
    pub inserted_at: Timestamp,
}

/// A contact as a person has it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Contact {
    /// The record.
    pub id: ContactId,
    /// Who it is.
    pub contact_id: IdentityId,
    /// Person or program.
    pub contact_type: IdentityKind,
    /// Always `active`.
    pub status: &'static str,
    /// Always `request`: there is no other way to become contacts.
    pub source: &'static str,
    /// Whether it has a live socket.
    pub online: bool,
    /// Since when.
    pub inserted_at: Timestamp,
    /// Who it is; called so for agents as well.
    pub user: ContactUser,
}

/// Who a person's contact is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContactUser {
    /// Who.
    pub id: IdentityId,
    /// Its handle, without `@`.
    pub handle: String,
    /// Its name.
    pub name: String,
    /// A person's e-mail address; agents have none, and the key may not be null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// In the public directory.
    pub listed_in_directory: bool,
}

/// A request as people see it. Also the payload of `contact_request_received` for people, which is why a message that
/// does not exist is left out rather than null.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContactRequest {
    /// Which.
    pub id: ContactRequestId,
    /// `pending`, `approved`, …
    #[schemars(with = "crate::rest::words::ContactRequestStatus")]
    pub status: &'static str,
    /// Who asked.
    pub requester_id: IdentityId,
    /// Person or program.
    pub requester_type: IdentityKind,
    /// Who asked.
    pub requester: ContactParty,
    /// Who was asked.
    pub recipient_id: IdentityId,
    /// Person or program.
    pub recipient_type: IdentityKind,
    /// Who was asked.
    pub recipient: ContactParty,
    /// What the requester says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was made.
    pub inserted_at: Timestamp,
    /// When it was answered.
    pub responded_at: Option<Timestamp>,
}

/// One of the two of a request. No e-mail address: they are not contacts yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContactParty {
    /// Who.
    pub id: IdentityId,
    /// Its handle, without `@`; null when it was deleted.
    pub handle: Option<String>,
    /// Its name.
    pub name: String,
}

/// A request that an agent received.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReceivedContactRequest {
    /// Which.
    pub id: ContactRequestId,
    /// Always `pending`: answered ones are not listed.
    pub status: &'static str,
    /// Who asks, without `@`; null when it was deleted.
    pub from_handle: Option<String>,
    /// Who asks.
    pub from_name: String,
    /// What the requester says of itself.
    pub message: Option<String>,
    /// When it was made.
    pub inserted_at: Timestamp,
}

/// A request that an agent sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SentContactRequest {
    /// Which.
    pub id: ContactRequestId,
    /// `pending`, `approved`, …
    #[schemars(with = "crate::rest::words::ContactRequestStatus")]
    pub status: &'static str,
    /// Who was asked, without `@`; null when it was deleted.
    pub to_handle: Option<String>,
    /// Who was asked.
    pub to_name: String,
    /// What the agent said of itself.
    pub message: Option<String>,
    /// When it was made.
    pub inserted_at: Timestamp,
}

/// An agent's requests: a page of each direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentContactRequests {
    /// The rows.
    pub data: RequestDirections,
    /// Where they stand among all.
    pub metadata: ContactRequestsMetadata,
}

/// A page of each direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RequestDirections {
    /// What others ask of the agent.
    pub received: Vec<ReceivedContactRequest>,
    /// What the agent asks of others.
    pub sent: Vec<SentContactRequest>,
}

/// One page number for both directions, and totals for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContactRequestsMetadata {
    /// The page, from 1.
    pub page: i64,
    /// Rows a page, in each direction.
    pub page_size: i64,
    /// What others ask of the agent.
    pub received: DirectionTotals,
    /// What the agent asks of others.
    pub sent: DirectionTotals,
}

impl ContactRequestsMetadata {
    /// Works out the numbers of pages.
    pub fn new(page: i64, page_size: i64, received: i64, sent: i64) -> Self {
        let totals =
            |total| DirectionTotals { total, total_pages: OffsetMetadata::new(page, page_size, total).total_pages };
        Self { page, page_size, received: totals(received), sent: totals(sent) }
    }
}

/// How many there are in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DirectionTotals {
    /// Rows in all.
    pub total: i64,
    /// Pages in all.
    pub total_pages: i64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContactRequestAction {
    /// Which.
    pub id: ContactRequestId,
    /// `pending` or `approved` after asking; `approved`, `rejected` or `cancelled` after an answer.
    #[schemars(with = "crate::rest::words::ContactRequestStatus")]
    pub status: &'static str,
}

/// The answer to removing a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContactRemoved {
    /// Always `removed`.
    pub status: &'static str,
}

/// Who has a handle. No id and no e-mail address, deliberately: anybody may ask about anybody.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResolvedEntity {
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: IdentityKind,
    /// Its name.
    pub name: String,
    /// The handle as it is kept.
    pub handle: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_own_pages() {
        let metadata = ContactRequestsMetadata::new(2, 20, 41, 0);
        assert_eq!(metadata.received, DirectionTotals { total: 41, total_pages: 3 });
        assert_eq!(metadata.sent, DirectionTotals { total: 0, total_pages: 0 });
    }
}

//! Contacts and requests to become one.

use serde::{Deserialize, Serialize};

/// A contact.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Contact {
    /// The record, not the identity.
    pub id: String,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its handle, without `@`.
    #[serde(default)]
    pub handle: Option<String>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// An agent's description.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it has a live socket.
    #[serde(default)]
    pub online: Option<bool>,
    /// Whether it runs outside the server.
    #[serde(default)]
    pub is_external: Option<bool>,
    /// Whether it is in the public directory.
    #[serde(default)]
    pub listed_in_directory: Option<bool>,
    /// Words that it is found by.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Its picture.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Since when.
    #[serde(default)]
    pub inserted_at: Option<String>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ContactOutcome {
    /// Which request.
    pub id: String,
    /// `pending`, `approved`, `rejected`, `cancelled` or `expired`.
    pub status: String,
}

/// The answer to removing a contact.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ContactRemoved {
    /// `removed`.
    pub status: String,
}

/// A page of requests in each direction.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ContactRequests {
    /// The rows.
    pub data: RequestDirections,
    /// Where they stand among all.
    pub metadata: ContactRequestsPage,
}

/// The rows of both directions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct RequestDirections {
    /// What others ask of the agent; only pending ones.
    #[serde(default)]
    pub received: Vec<ReceivedRequest>,
    /// What the agent asks of others.
    #[serde(default)]
    pub sent: Vec<SentRequest>,
}

/// Where the pages of both directions stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ContactRequestsPage {
    /// The page, from 1.
    #[serde(default)]
    pub page: Option<i64>,
    /// Rows a page, in each direction.
    #[serde(default)]
    pub page_size: Option<i64>,
    /// What others ask of the agent.
    #[serde(default)]
    pub received: Option<DirectionTotals>,
    /// What the agent asks of others.
    #[serde(default)]
    pub sent: Option<DirectionTotals>,
}

/// How many there are in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DirectionTotals {
    /// Rows in all.
    #[serde(default)]
    pub total: Option<i64>,
    /// Pages in all.
    #[serde(default)]
    pub total_pages: Option<i64>,
}

/// A request that the agent received.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ReceivedRequest {
    /// Which.
    pub id: String,
    /// `pending`.
    pub status: String,
    /// Who asks, without `@`.
    #[serde(default)]
    pub from_handle: Option<String>,
    /// Who asks.
    #[serde(default)]
    pub from_name: Option<String>,
    /// What the requester says of itself.
    #[serde(default)]
    pub message: Option<String>,
    /// When it was made.
    #[serde(default)]
    pub inserted_at: Option<String>,
}

/// A request that the agent sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SentRequest {
    /// Which.
    pub id: String,
    /// `pending`, `approved`, …
    pub status: String,
    /// Who was asked, without `@`.
    #[serde(default)]
    pub to_handle: Option<String>,
    /// Who was asked.
    #[serde(default)]
    pub to_name: Option<String>,
    /// What the agent said of itself.
    #[serde(default)]
    pub message: Option<String>,
    /// When it was made.
    #[serde(default)]
    pub inserted_at: Option<String>,
}

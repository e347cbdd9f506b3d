//! Contacts, for a program that answers contact events.

use serde::Serialize;

use super::contacts::{CONTACT_NEEDED, REQUEST_NEEDED};
use crate::client::model::{
    ContactOutcome, ContactRemoved, ContactRequestsPage, PageMetadata, ReceivedRequest, SentRequest,
};
use crate::client::{Client, ClientError};

/// What a program can do about contacts: no room, no turn, no effect. For the callback strategy.
#[derive(Clone, Debug)]
pub struct ContactTools {
    client: Client,
}

/// A contact, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContactSummary {
    /// The record.
    pub id: String,
    /// Its handle, without `@`.
    pub handle: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A page of contacts, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContactsSummary {
    /// The rows.
    pub contacts: Vec<ContactSummary>,
    /// Where they stand among all.
    pub metadata: PageMetadata,
}

/// Requests in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestsSummary {
    /// What others ask of the agent.
    pub received: Vec<ReceivedRequest>,
    /// What the agent asks of others.
    pub sent: Vec<SentRequest>,
    /// Where they stand among all.
    pub metadata: ContactRequestsPage,
}

impl ContactTools {
    /// For the agent of a client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The agent's contacts. Pages start at 1 and have at most 100 rows.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_contacts(&self, page: i64, page_size: i64) -> Result<ContactsSummary, ClientError> {
        let page = self.client.contacts(page, page_size).await?;
        let short = |contact: crate::client::model::Contact| ContactSummary {
            id: contact.id,
            handle: contact.handle,
            name: contact.name,
            kind: contact.kind,
        };
        Ok(ContactsSummary { contacts: page.data.into_iter().map(short).collect(), metadata: page.metadata })
    }

    /// Asks somebody to become a contact.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn add_contact(&self, handle: &str, message: Option<&str>) -> Result<ContactOutcome, ClientError> {
        self.client.add_contact(handle, message).await
    }

    /// Ends a contact, by its handle or its record's id.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Options`] without either.
    pub async fn remove_contact(
        &self,
        handle: Option<&str>,
        contact_id: Option<&str>,
    ) -> Result<ContactRemoved, ClientError> {
        if handle.is_none() && contact_id.is_none() {
            return Err(ClientError::Options(CONTACT_NEEDED.into()));
        }
        self.client.remove_contact(handle, contact_id).await
    }

    /// Requests in both directions; `sent_status` is `pending`, `approved`, `rejected`, `cancelled` or `all`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_contact_requests(
        &self,
        page: i64,
        page_size: i64,
        sent_status: &str,
    ) -> Result<RequestsSummary, ClientError> {
        let requests = self.client.contact_requests(page, page_size, sent_status).await?;
        let (received, sent) = (requests.data.received, requests.data.sent);
        Ok(RequestsSummary { received, sent, metadata: requests.metadata })
    }

    /// Answers a request: `approve`, `reject` or `cancel`; by the other's handle or the request's id.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Options`] without either.
    pub async fn respond_contact_request(
        &self,
        action: &str,
        handle: Option<&str>,
        request_id: Option<&str>,
    ) -> Result<ContactOutcome, ClientError> {
        if handle.is_none() && request_id.is_none() {
            return Err(ClientError::Options(REQUEST_NEEDED.into()));
        }
        self.client.respond_contact_request(action, handle, request_id).await
    }
}

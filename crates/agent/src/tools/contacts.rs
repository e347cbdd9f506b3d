//! Contacts, for a model in a room.

use bandstand_llm::registry::{Effect, ToolError};

use super::{AgentTools, tool_error};
use crate::client::model::{Contact, ContactOutcome, ContactRemoved, ContactRequests, Page};

pub(super) const CONTACT_NEEDED: &str = "Either handle or contact_id must be provided";
pub(super) const REQUEST_NEEDED: &str = "Either handle or request_id must be provided";

impl AgentTools {
    /// The agent's contacts. Pages start at 1 and have at most 100 rows.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn list_contacts(&self, page: i64, page_size: i64) -> Result<Page<Contact>, ToolError> {
        self.client().contacts(page, page_size).await.map_err(tool_error)
    }

    /// Asks somebody to become a contact.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn add_contact(&self, handle: &str, message: Option<&str>) -> Result<ContactOutcome, ToolError> {
        let outcome = self.client().add_contact(handle, message).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(outcome)
    }

    /// Ends a contact, by its handle or its record's id.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn remove_contact(
        &self,
        handle: Option<&str>,
        contact_id: Option<&str>,
    ) -> Result<ContactRemoved, ToolError> {
        if handle.is_none() && contact_id.is_none() {
            return Err(ToolError::failed(CONTACT_NEEDED));
        }
        let removed = self.client().remove_contact(handle, contact_id).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(removed)
    }

    /// Requests in both directions.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn list_contact_requests(
        &self,
        page: i64,
        page_size: i64,
        sent_status: &str,
    ) -> Result<ContactRequests, ToolError> {
        self.client().contact_requests(page, page_size, sent_status).await.map_err(tool_error)
    }

    /// Answers a request: `approve`, `reject` or `cancel`; by the other's handle or the request's id.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn respond_contact_request(
        &self,
        action: &str,
        handle: Option<&str>,
        request_id: Option<&str>,
    ) -> Result<ContactOutcome, ToolError> {
        if handle.is_none() && request_id.is_none() {
            return Err(ToolError::failed(REQUEST_NEEDED));
        }
        let outcome = self.client().respond_contact_request(action, handle, request_id).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(outcome)
    }
}

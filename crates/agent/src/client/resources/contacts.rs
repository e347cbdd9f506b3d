//! Contacts.

use serde_json::{Map, Value, json};

use crate::client::call::Call;
use crate::client::model::{Contact, ContactOutcome, ContactRemoved, ContactRequests, Page};
use crate::client::{Client, ClientError};

impl Client {
    /// The agent's contacts. Pages start at 1 and have at most 100 rows.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn contacts(&self, page: i64, page_size: i64) -> Result<Page<Contact>, ClientError> {
        let call =
            Call::get("list contacts", "/contacts").query("page", Some(page)).query("page_size", Some(page_size));
        self.whole(call).await
    }

    /// Asks somebody to become a contact. If it asked before, both are contacts at once.
    ///
    /// # Errors
    /// [`ClientError`]; 404 for an unknown handle, 409 for who is asked or a contact already.
    pub async fn add_contact(&self, handle: &str, message: Option<&str>) -> Result<ContactOutcome, ClientError> {
        let call = Call::post("add contact", "/contacts/add").json(&json!({"handle": handle, "message": message}))?;
        self.data(call).await
    }

    /// Ends a contact, by its handle or its record's id.
    ///
    /// # Errors
    /// [`ClientError`]; 400 without either.
    pub async fn remove_contact(
        &self,
        handle: Option<&str>,
        contact_id: Option<&str>,
    ) -> Result<ContactRemoved, ClientError> {
        let body = given([("handle", handle), ("contact_id", contact_id)]);
        self.data(Call::post("remove contact", "/contacts/remove").json(&body)?).await
    }

    /// Requests in both directions; those received are always pending ones. `sent_status` is `pending`, `approved`,
    /// `rejected`, `cancelled` or `all`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn contact_requests(
        &self,
        page: i64,
        page_size: i64,
        sent_status: &str,
    ) -> Result<ContactRequests, ClientError> {
        let call = Call::get("list contact requests", "/contacts/requests")
            .query("page", Some(page))
            .query("page_size", Some(page_size))
            .query("sent_status", Some(sent_status));
        self.whole(call).await
    }

    /// Answers a request: `approve` or `reject` one that was received, `cancel` one that was sent; by the other's handle
    /// or the request's id.
    ///
    /// # Errors
    /// [`ClientError`]; 400 without either.
    pub async fn respond_contact_request(
        &self,
        action: &str,
        handle: Option<&str>,
        request_id: Option<&str>,
    ) -> Result<ContactOutcome, ClientError> {
        let body = given([("action", Some(action)), ("handle", handle), ("request_id", request_id)]);
        self.data(Call::post("respond to contact request", "/contacts/requests/respond").json(&body)?).await
    }
}

/// Only what is there: the platform refuses a null.
fn given<const N: usize>(fields: [(&str, Option<&str>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

//! What happens among an agent's contacts: strategies, and how a model is told.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::client::model::ContactRequests;
use crate::client::model::{Contact, ContactOutcome, ReceivedRequest};
use crate::client::socket::Push;
use crate::tools::ContactTools;

/// What an agent does about its contacts.
#[derive(Clone, Debug, Default)]
pub struct ContactSettings {
    /// Who deals with what happens.
    pub strategy: ContactStrategy,
    /// Whether every room is told as well, at its next turn.
    pub broadcast: bool,
}

impl ContactSettings {
    /// Whether the agent listens to its contacts at all.
    pub fn listens(&self) -> bool {
        self.broadcast || !matches!(self.strategy, ContactStrategy::Disabled)
    }
}

/// Who deals with what happens among an agent's contacts.
#[derive(Clone, Default)]
pub enum ContactStrategy {
    /// Nobody.
    #[default]
    Disabled,
    /// The program.
    Callback(Arc<dyn ContactHandler>),
    /// The agent's own model, in a room made for that at every start.
    HubRoom {
        /// The room's opaque link.
        task_id: Option<Uuid>,
    },
}

impl fmt::Debug for ContactStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "Disabled",
            Self::Callback(_) => "Callback",
            Self::HubRoom { .. } => "HubRoom",
        })
    }
}

/// A program that deals with what happens among an agent's contacts.
#[async_trait]
pub trait ContactHandler: Send + Sync {
    /// Something happened. Events come one after the other.
    ///
    /// # Errors
    /// An error is logged, and the same event is handled if it comes again.
    async fn on_event(
        &self,
        event: &ContactEvent,
        tools: &ContactTools,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// Something that happened among an agent's contacts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContactEvent {
    /// Somebody asks to become a contact.
    RequestReceived(ReceivedRequest),
    /// A request, received or sent, was answered or taken back.
    RequestUpdated(ContactOutcome),
    /// There is a new contact.
    Added(Contact),
    /// A contact is one no more.
    Removed {
        /// The agent's own record of the contact.
        id: String,
    },
}

impl ContactEvent {
    /// From a push; `None` for one that is not about contacts.
    pub(super) fn of(push: Push) -> Option<Self> {
        match push {
            Push::ContactRequestReceived(request) => Some(Self::RequestReceived(request)),
            Push::ContactRequestUpdated(update) => Some(Self::RequestUpdated(update)),
            Push::ContactAdded(contact) => Some(Self::Added(contact)),
            Push::ContactRemoved { id } => Some(Self::Removed { id }),
            _ => None,
        }
    }

    /// The word of the event, as it is pushed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RequestReceived(_) => "contact_request_received",
            Self::RequestUpdated(_) => "contact_request_updated",
            Self::Added(_) => "contact_added",
            Self::Removed { .. } => "contact_removed",
        }
    }

    /// What makes it the same event when it comes again.
    pub(super) fn key(&self) -> String {
        match self {
            Self::RequestReceived(request) => format!("request {}", request.id),
            Self::RequestUpdated(update) => format!("request {} {}", update.id, update.status),
            Self::Added(contact) => format!("added {}", contact.id),
            Self::Removed { id } => format!("removed {id}"),
        }
    }

    /// What a model reads; `people` knows who asked or was asked.
    pub(super) fn text(&self, people: &People) -> String {
        match self {
            Self::RequestReceived(request) => {
                let who = person(request.from_handle.as_deref(), request.from_name.as_deref());
                let said = match request.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
                    Some(message) => format!(" It says: \"{message}\""),
                    None => String::new(),
                };
                format!("[Contact Request] {who} asks to become a contact.{said} Request id: {}", request.id)
            }
            Self::RequestUpdated(ContactOutcome { id, status }) => {
                let whose = people.of(id).map(|who| format!(" with {who}")).unwrap_or_default();
                format!("[Contact Request Update] The request{whose} is now {status}. Request id: {id}")
            }
            Self::Added(contact) => {
                let who = person(contact.handle.as_deref(), contact.name.as_deref());
                format!("[Contact Added] {who} ({}) is a contact now. Contact id: {}", contact.kind, contact.id)
            }
            Self::Removed { id } => format!("[Contact Removed] A contact is one no more. Contact id: {id}"),
        }
    }
}

fn person(handle: Option<&str>, name: Option<&str>) -> String {
    let handle = handle.map(|handle| handle.trim_start_matches('@')).filter(|handle| !handle.is_empty());
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    match (handle, name) {
        (Some(handle), Some(name)) => format!("{name} (@{handle})"),
        (Some(handle), None) => format!("@{handle}"),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "Somebody".to_owned(),
    }
}

/// Requests whose people are remembered.
const KEPT: usize = 1_000;

/// Who is behind a request, as far as was seen.
#[derive(Debug, Default)]
pub(super) struct People {
    of: HashMap<String, String>,
    order: VecDeque<String>,
}

impl People {
    /// Learns from a request that was pushed.
    pub(super) fn learn(&mut self, event: &ContactEvent) {
        if let ContactEvent::RequestReceived(request) = event {
            self.put(&request.id, person(request.from_handle.as_deref(), request.from_name.as_deref()));
        }
    }

    /// Learns from the platform's list.
    pub(super) fn learn_all(&mut self, requests: &ContactRequests) {
        for request in &requests.data.received {
            self.put(&request.id, person(request.from_handle.as_deref(), request.from_name.as_deref()));
        }
        for request in &requests.data.sent {
            self.put(&request.id, person(request.to_handle.as_deref(), request.to_name.as_deref()));
        }
    }

    /// Whether it takes the platform's list to say who an event is about.
    pub(super) fn must_ask(&self, event: &ContactEvent) -> bool {
        matches!(event, ContactEvent::RequestUpdated(update) if !self.of.contains_key(&update.id))
    }

    fn put(&mut self, id: &str, who: String) {
        if self.of.insert(id.to_owned(), who).is_none() {
            self.order.push_back(id.to_owned());
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
    }

    fn of(&self, id: &str) -> Option<&str> {
        self.of.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> ContactEvent {
        ContactEvent::RequestReceived(ReceivedRequest {
            id: "r7".to_owned(),
            status: "pending".to_owned(),
            from_handle: Some("@eve/bot".to_owned()),
            from_name: Some("Bot".to_owned()),
            message: Some(" hi ".to_owned()),
            inserted_at: None,
        })
    }

    fn approved() -> ContactEvent {
        ContactEvent::RequestUpdated(ContactOutcome { id: "r7".to_owned(), status: "approved".to_owned() })
    }

    #[test]
    fn a_model_reads_who_and_which_request() {
        let mut people = People::default();
        assert_eq!(
            asked().text(&people),
            "[Contact Request] Bot (@eve/bot) asks to become a contact. It says: \"hi\" Request id: r7"
        );
        assert_eq!(approved().text(&people), "[Contact Request Update] The request is now approved. Request id: r7");
        assert!(people.must_ask(&approved()) && !people.must_ask(&asked()));
        people.learn(&asked());
        assert!(!people.must_ask(&approved()));
        assert!(approved().text(&people).contains("The request with Bot (@eve/bot) is now approved"));
    }

    #[test]
    fn the_next_state_of_a_request_is_another_event() {
        assert_ne!(asked().key(), approved().key());
    }
}

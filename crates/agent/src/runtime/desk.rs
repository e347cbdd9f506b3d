//! The desk where contact events are dealt with, one after the other, so that nothing else waits for them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bandstand_wire::ids::RoomId;
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::mpsc;

use super::contacts::{ContactEvent, ContactStrategy, People};
use super::seen::Seen;
use super::shared::Shared;
use crate::client::model::message_type;
use crate::client::{EventDraft, RoomDraft};
use crate::tools::ContactTools;

/// Events that are remembered.
const REMEMBERED: usize = 1_000;

/// The platform's largest page of requests.
const PAGE: i64 = 100;

/// What the model of a hub room is told before its first event.
const HUB_BRIEFING: &str = "This room is your own hub for contact events; nobody else is in it. Each event below tells \
what happened among your contacts. Deal with it by the contact tools: approve or reject a request, ask for a contact, or \
do nothing. No reply is expected here, and nobody would read one.";

/// What the desk wants done in a room.
#[derive(Debug)]
pub(super) enum DeskOrder {
    /// An event is for the hub.
    Hub { room: RoomId, event: &'static str, text: String },
    /// Every room is told.
    Broadcast(String),
}

/// Deals with contact events until there are no more.
pub(super) async fn run(
    shared: Arc<Shared>,
    mut events: mpsc::UnboundedReceiver<ContactEvent>,
    orders: mpsc::UnboundedSender<DeskOrder>,
) {
    let mut seen = Seen::new(REMEMBERED);
    let mut people = People::default();
    let mut briefed = false;
    let tools = ContactTools::new(shared.client.clone());
    while let Some(event) = events.recv().await {
        if seen.contains(&event.key()) {
            continue;
        }
        people.learn(&event);
        if people.must_ask(&event) {
            match shared.client.contact_requests(1, PAGE, "all").await {
                Ok(requests) => people.learn_all(&requests),
                Err(why) => tracing::debug!(%why, "who a request is from is not known"),
            }
        }
        let text = event.text(&people);
        let handled = match &shared.settings.contacts.strategy {
            ContactStrategy::Disabled => true,
            ContactStrategy::Callback(handler) => {
                match AssertUnwindSafe(handler.on_event(&event, &tools)).catch_unwind().await {
                    Ok(Ok(())) => true,
                    Ok(Err(why)) => {
                        tracing::error!(event = event.name(), %why, "the contact handler failed");
                        false
                    }
                    Err(_) => {
                        tracing::error!(event = event.name(), "the contact handler panicked");
                        false
                    }
                }
            }
            ContactStrategy::HubRoom { task_id } => match hub(&shared, *task_id).await {
                None => false,
                Some(room) => {
                    note_in_hub(&shared, room, &event, &text).await;
                    let text = if briefed { text.clone() } else { format!("{HUB_BRIEFING}\n\n{text}") };
                    briefed = true;
                    orders.send(DeskOrder::Hub { room, event: event.name(), text }).is_ok()
                }
            },
        };
        if handled {
            seen.note(&event.key());
        }
        if shared.settings.contacts.broadcast {
            // The agent goes on only as long as the desk is listened to.
            let _ = orders.send(DeskOrder::Broadcast(format!("[Contacts]: {text}")));
        }
    }
}

/// The hub room; it is made when the first event needs it.
async fn hub(shared: &Shared, task_id: Option<uuid::Uuid>) -> Option<RoomId> {
    if let Some(room) = shared.hub.get() {
        return Some(*room);
    }
    let draft = RoomDraft { task_id: task_id.map(|id| id.to_string()), ..RoomDraft::default() };
    match shared.client.create_room(&draft).await {
        Ok(room) => Some(*shared.hub.get_or_init(|| room.id)),
        Err(why) => {
            tracing::error!(%why, "the hub room for contact events cannot be made");
            None
        }
    }
}

/// People who look into the hub see what the agent was told.
async fn note_in_hub(shared: &Shared, room: RoomId, event: &ContactEvent, text: &str) {
    let draft =
        EventDraft::new(message_type::TASK, text.to_owned()).metadata(json!({ "contact_event_type": event.name() }));
    if let Err(why) = shared.client.post_event(room, &draft).await {
        tracing::debug!(%room, %why, "a contact event is not shown in the hub");
    }
}

//! Rows that were committed but not announced, as the events that would have announced them.

use bandstand_domain::event::Event;
use bandstand_domain::message::MessageKind;
use bandstand_store::walk::{self, Window};
use bandstand_store::{Store, StoreError, messages, participants, rooms};
use bandstand_wire::ids::{IdentityId, RoomId};

/// Most rows that are read at a time. A gap with more is beyond a hint: who misses one finds it through
/// `/messages/next`.
const BATCH: i64 = 500;

/// The rows of a room with sequence numbers after one and before another, oldest first. None for a room that is gone.
///
/// # Errors
/// When the store cannot be read.
pub async fn rows(store: &Store, room: RoomId, after: i64, before: i64) -> Result<Vec<(i64, Event)>, StoreError> {
    store
        .read("missed_rows", move |tx| {
            Box::pin(async move {
                let Some(room_key) = rooms::key(tx, room).await? else { return Ok(Vec::new()) };
                let window = Window { after, before, ..Window::oldest(BATCH) };
                let sequences = walk::history(tx, room_key, MessageKind::ALL, window).await?;
                let mut events = Vec::with_capacity(sequences.len());
                for message in messages::at(tx, room, room_key, &sequences).await? {
                    let sequence = message.sequence;
                    let event = match message.kind {
                        MessageKind::Text => {
                            let named: Vec<IdentityId> = message.mentions.iter().map(|one| one.id).collect();
                            let named = participants::named(tx, room_key, &named, &[]).await?;
                            let stopped = named.into_iter().filter(|(one, _)| one.stopped);
                            let held_back = stopped.map(|(one, _)| one.profile.id).collect();
                            Event::MessageCreated { message, held_back }
                        }
                        _ => Event::EventCreated { message },
                    };
                    events.push((sequence, event));
                }
                Ok(events)
            })
        })
        .await
}

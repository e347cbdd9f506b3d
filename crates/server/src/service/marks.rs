//! Marking messages as processing, processed or failed, and serving the next one.

use bandstand_domain::delivery::{self, DeliveryState, Mark, NoAttempt, StatusFilter, Step};
use bandstand_domain::event::Event;
use bandstand_domain::message::Message;
use bandstand_store::deliveries::{self, Place, Reached, Standing};
use bandstand_store::walk::{self, Window};
use bandstand_store::{StoreError, messages, participants, rooms};
use bandstand_wire::ids::{MessageId, RoomId};

use crate::auth::Caller;
use crate::service::delivered::{Delivered, DeliveredMarks};
use crate::state::Services;

/// Why a mark is refused.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// No such room, or the caller is not in it.
    #[error("room not found")]
    RoomNotFound,
    /// No such message in this room.
    #[error("message not found")]
    MessageNotFound,
    /// The agent is stopped in this room.
    #[error("the agent's execution is stopped in this room")]
    Stopped,
    /// Nothing to end.
    #[error(transparent)]
    NoAttempt(#[from] NoAttempt),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why there is no next message to look at.
#[derive(Debug, thiserror::Error)]
pub enum NextError {
    /// No such room, or the caller is not in it.
    #[error("room not found")]
    RoomNotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Services {
    /// Marks a message for the calling agent; the number of the attempt that was opened or closed.
    ///
    /// # Errors
    /// [`MarkError`]; then nothing changed.
    pub async fn mark(&self, caller: Caller, room: RoomId, message: MessageId, mark: Mark) -> Result<i64, MarkError> {
        let now = self.clock.now();
        self.store
            .write("mark_message", move |tx| {
                Box::pin(async move {
                    let advanced = rooms::advance(tx, room).await?.ok_or(MarkError::RoomNotFound)?;
                    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
                    let access = access.ok_or(MarkError::RoomNotFound)?;
                    if access.is_stopped() {
                        return Err(MarkError::Stopped);
                    }
                    let sequence = messages::locate(tx, access.room_key, message).await?;
                    let sequence = sequence.ok_or(MarkError::MessageNotFound)?;
                    let place = Place { room_key: advanced.key, sequence, member_key: access.member_key };
                    let before = deliveries::standing(tx, place).await?;
                    let last = before.and_then(|before| before.last_attempt);
                    let number = match (delivery::step(&mark, last)?, before) {
                        (Step::Begin { number, supersedes }, before) => {
                            deliveries::begin(tx, place, before, number, supersedes, advanced.sequence, now).await?;
                            number
                        }
                        (Step::End { number }, Some(before)) => {
                            let failure = match &mark {
                                Mark::Failed(error) => Some(error.as_str()),
                                Mark::Processing | Mark::Processed | Mark::Declined(_) => None,
                            };
                            deliveries::end(tx, place, before, number, failure, now).await?;
                            if let Mark::Declined(reason) = &mark {
                                deliveries::declined(tx, place, number, reason.as_deref()).await?;
                            }
                            number
                        }
                        (Step::End { .. }, None::<Standing>) => return Err(NoAttempt.into()),
                    };
                    if let Some(message) = messages::one(tx, room, access.room_key, sequence).await? {
                        tx.emit(Event::MessageUpdated { message });
                    }
                    Ok(number)
                })
            })
            .await
    }

    /// The oldest message that the calling agent has not finished; `None` when there is nothing to do, or while the agent
    /// is stopped in this room. It claims nothing. The first time a message is served it counts as delivered; that is noted in the background.
    ///
    /// # Errors
    /// [`NextError`].
    pub async fn next_message(
        &self,
        caller: Caller,
        room: RoomId,
        delivered: &DeliveredMarks,
    ) -> Result<Option<Message>, NextError> {
        let found = self
            .store
            .read("next_message", move |tx| {
                Box::pin(async move {
                    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
                    let access = access.ok_or(NextError::RoomNotFound)?;
                    let own = access.membership.ok_or(NextError::RoomNotFound)?;
                    if own.stopped {
                        return Ok(None);
                    }
                    let window = Window { after: own.joined_sequence, ..Window::oldest(1) };
                    let filter = StatusFilter::Unprocessed;
                    let open = walk::deliveries(tx, access.room_key, access.member_key, filter, window).await?;
                    match open.first() {
                        Some(sequence) => Ok(messages::one(tx, room, access.room_key, *sequence).await?),
                        None => Ok::<_, NextError>(None),
                    }
                })
            })
            .await?;
        let Some(mut message) = found else { return Ok(None) };
        let now = self.clock.now();
        let own = message.deliveries.iter_mut().find(|one| one.recipient == caller.identity);
        if let Some(own) = own.filter(|own| own.state == DeliveryState::Stored) {
            own.state = DeliveryState::Delivered;
            own.delivered_at = Some(now);
            delivered.note(Delivered {
                room,
                sequence: message.sequence,
                recipient: caller.identity,
                how: Reached::Served,
            });
        }
        Ok(Some(message))
    }
}

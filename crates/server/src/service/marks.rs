//! Marking messages as processing, processed or failed, and serving the next one.

use bandstand_domain::dead_letter::{self, DeadLetterReason};
use bandstand_domain::delivery::{self, DeliveryState, Mark, NoAttempt, StatusFilter, Step};
use bandstand_domain::event::Event;
use bandstand_domain::message::Message;
use bandstand_store::deliveries::{self, Outcome, Place, Reached, Standing};
use bandstand_store::walk::{self, Window};
use bandstand_store::{StoreError, Writer, messages, participants, rooms};
use bandstand_wire::ids::{MessageId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::auth::Caller;
use crate::service::dead_letters::count_dead_letters;
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
    /// The message was given up for this agent, before or just now: no more attempts until a person has it delivered
    /// again.
    #[error(
        "the message was given up after too many attempts or too long a time; a person may have it delivered again"
    )]
    DeadLettered,
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
        let (now, limit) = (self.clock.now(), self.limits.dead_letter_attempts);
        let begins = mark == Mark::Processing;
        let marked: Marked = self
            .store
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
                    let marked = set(tx, place, before, &mark, limit, advanced.sequence, now).await?;
                    if let Some(message) = messages::one(tx, room, access.room_key, sequence).await? {
                        tx.emit(Event::MessageUpdated { message });
                    }
                    Ok::<_, MarkError>(marked)
                })
            })
            .await?;
        if marked.gave_up() {
            count_dead_letters(DeadLetterReason::Attempts, 1);
        }
        let number = marked.attempt()?;
        if begins {
            self.observed.claimed(caller.identity, room);
        } else {
            self.observed.ended(caller.identity, room);
        }
        Ok(number)
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

/// What a mark came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The number of the attempt that was opened or closed.
    Attempt(i64),
    /// The attempt of this number failed, and was the last one.
    LastAttempt(i64),
    /// No attempt was opened: as many as the limit allows have ended their agent.
    GivenUp,
}

impl Marked {
    /// The number of the attempt that was opened or closed.
    ///
    /// # Errors
    /// [`MarkError::DeadLettered`] when none was opened.
    pub fn attempt(self) -> Result<i64, MarkError> {
        match self {
            Self::Attempt(number) | Self::LastAttempt(number) => Ok(number),
            Self::GivenUp => Err(MarkError::DeadLettered),
        }
    }

    fn gave_up(self) -> bool {
        matches!(self, Self::LastAttempt(_) | Self::GivenUp)
    }
}

/// Sets a mark on a delivery that stands as `before`, at the room's sequence `at`.
async fn set(
    tx: &mut Writer,
    place: Place,
    before: Option<Standing>,
    mark: &Mark,
    limit: Option<u32>,
    at: i64,
    now: Timestamp,
) -> Result<Marked, MarkError> {
    // Only what is served can be given up; who marks a message that is not for it does that at its leisure.
    let recipient = before.filter(|before| before.recipient);
    if recipient.is_some_and(|before| before.state == DeliveryState::DeadLettered) {
        return Err(MarkError::DeadLettered);
    }
    match (delivery::step(mark, before.and_then(|before| before.last_attempt))?, before) {
        (Step::Begin { number, supersedes }, before) => {
            if let Some(before) = recipient.filter(|before| before.state.is_open())
                && dead_letter::is_exhausted(before.counted_after_claim(), limit)
            {
                deliveries::give_up(tx, place, before, DeadLetterReason::Attempts, now).await?;
                return Ok(Marked::GivenUp);
            }
            deliveries::begin(tx, place, before, number, supersedes, at, now).await?;
            Ok(Marked::Attempt(number))
        }
        (Step::End { number }, Some(before)) => {
            let last = recipient.is_some() && dead_letter::is_exhausted(before.counted + 1, limit);
            let (outcome, marked) = match mark {
                Mark::Failed(error) if last => (Outcome::Exhausted(error), Marked::LastAttempt(number)),
                Mark::Failed(error) => (Outcome::Failed(error), Marked::Attempt(number)),
                Mark::Processing | Mark::Processed | Mark::Declined(_) => (Outcome::Processed, Marked::Attempt(number)),
            };
            deliveries::end(tx, place, before, number, outcome, now).await?;
            if let Mark::Declined(reason) = mark {
                deliveries::declined(tx, place, number, reason.as_deref()).await?;
            }
            Ok(marked)
        }
        (Step::End { .. }, None::<Standing>) => Err(NoAttempt.into()),
    }
}

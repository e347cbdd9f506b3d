//! Dead letters: giving up what waited for too long, listing what was given up, and having it delivered again.

use std::collections::BTreeMap;
use std::time::Duration;

use bandstand_domain::dead_letter::{self, DeadLetter, DeadLetterReason, Slew};
use bandstand_domain::event::Event;
use bandstand_domain::room::RoomStatus;
use bandstand_store::dead_letters::{self as rows, BATCH, DeadLetterQuery};
use bandstand_store::deliveries::{self, Place};
use bandstand_store::{StoreError, identities, messages, participants, rooms};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::time::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::state::Services;

/// Why a dead letter is not delivered again.
#[derive(Debug, thiserror::Error)]
pub enum RedeliverError {
    /// No such room, or the caller may not know of it.
    #[error("room not found")]
    RoomNotFound,
    /// No such message in this room.
    #[error("message not found")]
    MessageNotFound,
    /// The room is archived or closed.
    #[error("the room is {}: it can be read but not written to", .0.as_str())]
    NotActive(RoomStatus),
    /// The caller neither manages the room nor owns the agent.
    #[error("only an owner or admin of the room, or the agent's owner, may do this")]
    NotAllowed,
    /// The message is no dead letter of this agent.
    #[error("the message is no dead letter of this agent")]
    NotDead,
    /// The agent left the room since: it is served nothing from before it came back.
    #[error("the agent is no longer in the room, or came back to it after the message was posted")]
    NotThere,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Counts messages that were given up.
pub(crate) fn count_dead_letters(reason: DeadLetterReason, count: u64) {
    metrics::counter!("dead_letters_total", "reason" => reason.as_str()).increment(count);
}

impl Services {
    /// Dead letters of the rooms that a user is in and of its own agents, each with its position.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Vec<(DeadLetter, (i64, i64, i64))>, StoreError> {
        self.store.read("dead_letters", move |tx| Box::pin(rows::list(tx, query))).await
    }

    /// Has a dead letter delivered again: it is served, none of its attempts counts any more, and its age starts anew.
    ///
    /// # Errors
    /// [`RedeliverError`]; then nothing changed.
    pub async fn redeliver(
        &self,
        caller: Caller,
        room: RoomId,
        message: MessageId,
        agent: IdentityId,
    ) -> Result<(), RedeliverError> {
        let now = self.clock.now();
        self.store
            .write("redeliver_message", move |tx| {
                Box::pin(async move {
                    let advanced = rooms::advance(tx, room).await?.ok_or(RedeliverError::RoomNotFound)?;
                    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
                    let access = access.ok_or(RedeliverError::RoomNotFound)?;
                    let sequence = messages::locate(tx, advanced.key, message).await?;
                    let sequence = sequence.ok_or(RedeliverError::MessageNotFound)?;
                    let known = identities::agent(tx, agent).await?;
                    let owns_agent = known.is_some_and(|known| known.owner == caller.identity);
                    if !dead_letter::may_redeliver(access.membership.map(|own| own.role), owns_agent) {
                        return Err(RedeliverError::NotAllowed);
                    }
                    match access.room.status {
                        RoomStatus::Active => {}
                        status @ (RoomStatus::Archived | RoomStatus::Closed) => {
                            return Err(RedeliverError::NotActive(status));
                        }
                    }
                    let member = participants::one(tx, advanced.key, agent).await?.ok_or(RedeliverError::NotThere)?;
                    if participants::still_there(tx, advanced.key, agent, sequence).await?.is_none() {
                        return Err(RedeliverError::NotThere);
                    }
                    let (member, member_key) = member;
                    let place = Place { room_key: advanced.key, sequence, member_key };
                    if !rows::redeliver(tx, place, access.member_key, now).await? {
                        return Err(RedeliverError::NotDead);
                    }
                    if let Some(message) = messages::one(tx, room, advanced.key, sequence).await? {
                        tx.emit(Event::MessageUpdated { message: message.clone() });
                        // Who is stopped finds it through `/messages/next` when it may go on.
                        if !member.stopped {
                            tx.emit(Event::MessageReplayed { message, agents: vec![agent] });
                        }
                    }
                    Ok(())
                })
            })
            .await?;
        metrics::counter!("dead_letters_redelivered_total").increment(1);
        Ok(())
    }
}

/// Looks follow each other at a quarter of the age, within these bounds.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(60);

/// Starts the job that gives up what waited for too long; it ends when `stop` is cancelled, and at once when there is
/// no limit of age.
pub fn start(services: Services, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Some(age) = services.limits.dead_letter_age else { return };
        let mut time = Slew::new(services.clock.now());
        let mut looked = Instant::now();
        while stop.run_until_cancelled(tokio::time::sleep((age / 4).clamp(OFTEN, SELDOM))).await.is_some() {
            let now = time.follow(services.clock.now(), looked.elapsed());
            looked = Instant::now();
            if let Err(why) = give_up_overdue(&services, age, now, &stop).await {
                tracing::warn!(error = %why, "messages that waited too long were not given up; trying again later");
            }
        }
    })
}

async fn give_up_overdue(
    services: &Services,
    age: Duration,
    now: Timestamp,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    let since = Timestamp::from_micros(now.as_micros().saturating_sub(age));
    while !stop.is_cancelled() {
        let found: Vec<(RoomId, Place)> =
            services.store.read("overdue_deliveries", move |tx| Box::pin(rows::overdue(tx, since))).await?;
        let full = i64::try_from(found.len()).is_ok_and(|count| count >= BATCH);
        let mut rooms: BTreeMap<RoomId, Vec<Place>> = BTreeMap::new();
        for (room, place) in found {
            rooms.entry(room).or_default().push(place);
        }
        for (room, places) in rooms {
            let gave_up = give_up_in(services, room, places, since).await?;
            count_dead_letters(DeadLetterReason::Age, gave_up);
        }
        if !full {
            return Ok(());
        }
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum Unchanged {
    /// Nothing changed, so the room's sequence must not move either: the transaction is rolled back.
    #[error("nothing changed")]
    Nothing,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Gives up those deliveries of one room that are still overdue; how many.
async fn give_up_in(
    services: &Services,
    room: RoomId,
    places: Vec<Place>,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let at = services.clock.now();
    let done: Result<u64, Unchanged> = services
        .store
        .write("give_up_overdue", move |tx| {
            Box::pin(async move {
                let advanced = rooms::advance(tx, room).await?.ok_or(Unchanged::Nothing)?;
                let (mut changed, mut count) = (Vec::new(), 0);
                for place in places {
                    if !rows::is_overdue(tx, place, since).await? {
                        continue;
                    }
                    let Some(before) = deliveries::standing(tx, place).await? else { continue };
                    deliveries::give_up(tx, place, before, DeadLetterReason::Age, at).await?;
                    count += 1;
                    if !changed.contains(&place.sequence) {
                        changed.push(place.sequence);
                    }
                }
                if changed.is_empty() {
                    return Err(Unchanged::Nothing);
                }
                for message in messages::at(tx, room, advanced.key, &changed).await? {
                    tx.emit(Event::MessageUpdated { message });
                }
                Ok(count)
            })
        })
        .await;
    match done {
        Ok(count) => Ok(count),
        Err(Unchanged::Nothing) => Ok(0),
        Err(Unchanged::Store(why)) => Err(why),
    }
}

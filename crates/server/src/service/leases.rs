//! Looks after attempts that run: where the agent went away or fell silent, the attempt has lapsed. That is noted once,
//! and the message is told to the agent's live connection again.
//!
//! An attempt is looked at when its agent was not known to be at work for the shortest lease. Whoever is at work is then
//! put off by the length of the lease, so that one look costs what is due and never what has been. A lapse changes
//! nothing of the attempt itself: it stays the newest, and ends as the agent says or when a new claim supersedes it.

use std::sync::Arc;
use std::time::Duration;

use bandstand_domain::delivery::DeliveryState;
use bandstand_domain::event::Event;
use bandstand_domain::lease::{self, Lapse};
use bandstand_store::leases::{self as rows, BATCH, Running};
use bandstand_store::{StoreError, deliveries, messages, participants, rooms};
use bandstand_wire::time::Timestamp;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::signs::SignsOfLife;
use crate::state::Services;

/// Looks follow each other at a quarter of the shortest lease, within these bounds.
const OFTEN: Duration = Duration::from_millis(20);
const SELDOM: Duration = Duration::from_secs(5);

/// A moment so far ahead was noted by a clock that was set back since.
const AHEAD: Duration = Duration::from_secs(5);

/// Starts the job; it ends when `stop` is cancelled, and at once when no attempt may lapse.
pub fn start(services: Services, signs: Arc<dyn SignsOfLife>, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Some(shortest) = services.limits.lease().shortest() else { return };
        let pause = (shortest / 4).clamp(OFTEN, SELDOM);
        while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
            if let Err(why) = look(&services, &*signs, shortest, &stop).await {
                tracing::warn!(error = %why, "running attempts were not looked at; trying again later");
            }
        }
    })
}

async fn look(
    services: &Services,
    signs: &dyn SignsOfLife,
    shortest: Duration,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    while !stop.is_cancelled() {
        let now = services.clock.now();
        let (due, ahead) =
            (before(now, shortest), Timestamp::from_micros(now.as_micros().saturating_add(micros(AHEAD))));
        let mut found: Vec<Running> =
            services.store.read("attempts_to_look_at", move |tx| Box::pin(rows::unseen_since(tx, due))).await?;
        let early: Vec<Running> =
            services.store.read("attempts_seen_later", move |tx| Box::pin(rows::seen_after(tx, ahead))).await?;
        let full = found.len().max(early.len()) >= usize::try_from(BATCH).unwrap_or(usize::MAX);
        found.extend(early);
        if found.is_empty() {
            return Ok(());
        }
        let mut seen = Vec::new();
        for one in found {
            let signs_of = signs.of(one.agent, one.room);
            let lapsed = match lease::judge(services.limits.lease(), signs_of) {
                Some(why) => lapse(services, one, why, now).await?,
                None => Lapsed::Held,
            };
            match lapsed {
                Lapsed::Noted => signs.forget(one.agent, one.room),
                Lapsed::Over => {}
                // One that is quiet, but may be: it is due again when its silence is as long as the lease.
                Lapsed::Held if signs_of.reports || !signs_of.connected => {
                    seen.push((one, before(now, signs_of.quiet_for.min(shortest / 2))));
                }
                Lapsed::Held => seen.push((one, now)),
            }
        }
        if !seen.is_empty() {
            services.store.write("note_agents_at_work", move |tx| Box::pin(rows::note_seen(tx, seen))).await?;
        }
        if !full {
            return Ok(());
        }
    }
    Ok(())
}

fn before(now: Timestamp, span: Duration) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_sub(micros(span)))
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// What became of an attempt that was to lapse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lapsed {
    /// It lapsed.
    Noted,
    /// It does not run any more.
    Over,
    /// Its agent is stopped there: it may not go on, so its silence says nothing.
    Held,
}

#[derive(Debug, thiserror::Error)]
enum Unchanged {
    /// Nothing changed, so the room's sequence must not move either: the transaction is rolled back.
    #[error("nothing changed")]
    Nothing(Lapsed),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Notes that an attempt has lapsed, and tells the message to its agent again.
async fn lapse(services: &Services, one: Running, why: Lapse, now: Timestamp) -> Result<Lapsed, StoreError> {
    let Running { room, agent, place, number } = one;
    let done: Result<(), Unchanged> = services
        .store
        .write("lapse_attempt", move |tx| {
            Box::pin(async move {
                if rooms::advance(tx, room).await?.is_none() {
                    // The room is gone, and nobody is to hear of it.
                    rows::lapse(tx, place, number, now).await?;
                    return Ok(());
                }
                let member = participants::one(tx, place.room_key, agent).await?;
                if member.as_ref().is_some_and(|(member, _)| member.stopped) {
                    return Err(Unchanged::Nothing(Lapsed::Held));
                }
                if !rows::lapse(tx, place, number, now).await? {
                    return Err(Unchanged::Nothing(Lapsed::Over));
                }
                let standing = deliveries::standing(tx, place).await?;
                let served = participants::still_there(tx, place.room_key, agent, place.sequence).await?.is_some()
                    && standing.is_some_and(|one| one.recipient && one.state == DeliveryState::Processing);
                if let Some(message) = messages::one(tx, room, place.room_key, place.sequence).await? {
                    tx.emit(Event::MessageUpdated { message: message.clone() });
                    if served {
                        tx.emit(Event::MessageReplayed { message, agents: vec![agent] });
                    }
                }
                Ok(())
            })
        })
        .await;
    match done {
        Ok(()) => {
            metrics::counter!("attempts_lapsed_total", "why" => why.as_str()).increment(1);
            tracing::debug!(room.id = %room, agent.id = %agent, attempt = number, why = why.as_str(), "an attempt lapsed");
            Ok(Lapsed::Noted)
        }
        Err(Unchanged::Nothing(what)) => Ok(what),
        Err(Unchanged::Store(why)) => Err(why),
    }
}

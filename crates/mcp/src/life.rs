//! Living in rooms with nothing but MCP: a call that waits for a message and claims it, and one that settles it.
//!
//! The server's marks are the truth. A message that was claimed and never settled stays `processing` and is served again,
//! to whoever asks next: after a session that was dropped, a client that crashed, a server that was restarted.

mod inputs;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bandstand_agent::client::model::ChatMessage;
use bandstand_agent::client::{Client, ClientError, MarkFate};
use bandstand_agent::registry::ToolError;
use bandstand_agent::runtime::readable;
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use rmcp::model::RequestId;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

pub(crate) use inputs::{Finish, Outcome, Wait, finish_tool, wait_tool};

use crate::line::{Line, Trouble};

/// The longest wait, in seconds: below the minute after which many clients give up on a call.
pub(crate) const WAIT_MAX: u64 = 50;

/// The pause after something failed that may pass by itself.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the server may take about something that waiting does, when the wait itself is shorter: a wait of no length
/// still looks.
const LEAST: Duration = Duration::from_secs(5);

/// What an agent is doing in its rooms, as far as this session goes.
pub(crate) struct Life {
    client: Client,
    pinned: Option<RoomId>,
    line: tokio::sync::Mutex<Option<Line>>,
    claim: Mutex<Option<Claim>>,
    /// Ends the wait that is under way.
    waiting: Mutex<CancellationToken>,
}

/// A message that this session claimed.
#[derive(Clone)]
struct Claim {
    room: RoomId,
    message: MessageId,
    shown: Value,
    /// The call that it was the answer to.
    call: RequestId,
    /// Nobody read that answer, so it is given again.
    unread: bool,
}

/// How a message was settled.
enum Settled {
    /// The server took it.
    Taken,
    /// There was nothing to settle any more: the agent left the room, or another connection took the message.
    Gone,
    /// The agent is stopped in the room; the message is served again when it may go on.
    Stopped,
}

impl Settled {
    fn word(&self, outcome: &'static str) -> &'static str {
        match self {
            Self::Taken => outcome,
            Self::Gone => "gone",
            Self::Stopped => "stopped",
        }
    }
}

impl Life {
    pub(crate) fn new(client: Client, pinned: Option<RoomId>) -> Self {
        Self { client, pinned, line: tokio::sync::Mutex::default(), claim: Mutex::default(), waiting: Mutex::default() }
    }

    /// Settles the message of the last wait and waits for the next one.
    ///
    /// `cancelled` is the call's own end. Wherever that cuts in, no message is lost: at worst one stays claimed and is
    /// served again.
    pub(crate) async fn wait(
        &self,
        agent: IdentityId,
        call: &RequestId,
        it: &Wait,
        cancelled: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let ends = cancelled.child_token();
        // A client that lost its connection in a wait asks again; it is the new call that somebody reads.
        std::mem::replace(&mut *lock(&self.waiting), ends.clone()).cancel();
        let started = Instant::now();
        let deadline = started + Duration::from_secs(it.timeout_s.min(WAIT_MAX));
        let work = async {
            let mut line = self.line.lock().await;
            let settled = match self.settle_last(it, call, deadline).await? {
                Last::Again(shown) => return Ok(shown),
                Last::Settled(settled) => settled,
            };
            let found = self.next(&mut line, agent, call, deadline).await?;
            Ok(match found {
                Some(shown) => json!({"message": shown, "settled": settled}),
                None => json!({"message": null, "settled": settled, "waited_s": started.elapsed().as_secs()}),
            })
        };
        tokio::select! {
            biased;
            () = ends.cancelled() => {
                self.unread(call);
                Err(ToolError::refused("The wait was given up. No message was lost: the next wait is given it."))
            }
            result = work => result,
        }
    }

    /// Nobody reads the answer to a call any more.
    pub(crate) fn unread(&self, call: &RequestId) {
        if let Some(claim) = lock(&self.claim).as_mut().filter(|claim| claim.call == *call) {
            claim.unread = true;
        }
    }

    /// Settles what is claimed.
    pub(crate) async fn finish(&self, it: &Finish) -> Result<Value, ToolError> {
        let Some(claim) = lock(&self.claim).clone() else {
            return Err(ToolError::refused(
                "No message is being worked on. Call band_wait_for_message first; each message is settled once.",
            ));
        };
        if it.message_id.as_ref().is_some_and(|id| *id != claim.message.to_string()) {
            return Err(ToolError::refused(format!(
                "The message that is being worked on is {}, not the one you named.",
                claim.message
            )));
        }
        let settled = self.mark(&claim, it.outcome, it.reason.as_deref()).await.map_err(|error| {
            let unknown = if error.is_outcome_unknown() { ". It may be settled or not" } else { "" };
            ToolError::failed(format!("{error}{unknown}. Calling this again is safe."))
        })?;
        self.release(&claim);
        Ok(json!({"message_id": claim.message, "chat_id": claim.room, "status": settled.word(it.outcome.as_str())}))
    }

    /// What the last wait gave is done with now, unless nobody read it.
    async fn settle_last(&self, it: &Wait, call: &RequestId, deadline: Instant) -> Result<Last, ToolError> {
        let Some(claim) = lock(&self.claim).clone() else { return Ok(Last::Settled(Value::Null)) };
        let handled_another = it.handled.as_ref().is_some_and(|handled| *handled != claim.message.to_string());
        if claim.unread || handled_another {
            let mut held = lock(&self.claim);
            if let Some(held) = held.as_mut().filter(|held| held.message == claim.message) {
                held.call = call.clone();
                held.unread = false;
            }
            return Ok(Last::Again(json!({"message": claim.shown, "settled": null})));
        }
        let deadline = deadline.max(Instant::now() + LEAST);
        loop {
            match self.mark(&claim, Outcome::Processed, None).await {
                Ok(settled) => {
                    self.release(&claim);
                    let word = settled.word("processed");
                    return Ok(Last::Settled(json!({"message_id": claim.message, "status": word})));
                }
                Err(error) if Instant::now() + PAUSE > deadline => {
                    return Err(ToolError::failed(format!(
                        "message {} could not be settled ({error}). Call band_wait_for_message again.",
                        claim.message
                    )));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Marks a message. An error means that nobody knows what became of the mark.
    async fn mark(&self, claim: &Claim, outcome: Outcome, reason: Option<&str>) -> Result<Settled, ClientError> {
        let (client, room, message) = (&self.client, claim.room, claim.message);
        let marked = match outcome {
            Outcome::Processed => client.mark_processed(room, message).await,
            Outcome::Declined => client.mark_declined(room, message, reason).await,
            Outcome::Failed => client.mark_failed(room, message, reason.unwrap_or_default()).await,
        };
        match marked {
            Ok(_) => Ok(Settled::Taken),
            Err(error) => match error.mark_fate() {
                MarkFate::NotFound | MarkFate::Rejected => Ok(Settled::Gone),
                MarkFate::Stopped => Ok(Settled::Stopped),
                MarkFate::Unconfirmed => Err(error),
            },
        }
    }

    fn release(&self, settled: &Claim) {
        let mut claim = lock(&self.claim);
        if claim.as_ref().is_some_and(|held| held.message == settled.message) {
            *claim = None;
        }
    }

    async fn next(
        &self,
        line: &mut Option<Line>,
        agent: IdentityId,
        call: &RequestId,
        deadline: Instant,
    ) -> Result<Option<Value>, ToolError> {
        let mut trouble = None;
        loop {
            // However short the wait, the server is asked once.
            let within = deadline.max(Instant::now() + if trouble.is_none() { LEAST } else { Duration::ZERO });
            let step = match timeout_at(within, self.step(line, agent, call)).await {
                Ok(step) => step,
                Err(_) => Err(Trouble::Passing("the server did not answer in time".to_owned())),
            };
            let pause = match step {
                Ok(Some(shown)) => return Ok(Some(shown)),
                Ok(None) => {
                    trouble = None;
                    let Some(line) = line else { continue };
                    match timeout_at(deadline, line.news()).await {
                        Ok(Ok(())) => continue,
                        Ok(Err(trouble)) => trouble,
                        Err(_) => return Ok(None),
                    }
                }
                Err(trouble) => trouble,
            };
            match pause {
                Trouble::Final(why) => {
                    *line = None;
                    return Err(ToolError::failed(why));
                }
                Trouble::Passing(why) if Instant::now() + PAUSE > deadline => {
                    return Err(ToolError::failed(format!("{why}. Call band_wait_for_message again.")));
                }
                Trouble::Passing(why) => {
                    tracing::debug!(why, "waiting for messages goes on");
                    trouble = Some(why);
                    if line.as_ref().is_some_and(|line| !line.is_open()) {
                        *line = None;
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Looks once, and claims what there is.
    async fn step(
        &self,
        slot: &mut Option<Line>,
        agent: IdentityId,
        call: &RequestId,
    ) -> Result<Option<Value>, Trouble> {
        let line = match slot {
            Some(line) if line.is_open() => line,
            _ => slot.insert(Line::open(&self.client, agent, self.pinned).await?),
        };
        while let Some(message) = line.oldest(&self.client).await? {
            let Some(room) = message.chat_room_id else { continue };
            match self.client.mark_processing(room, message.id).await {
                Ok(marked) => {
                    line.look_again(room);
                    let shown = shown(&message, room, marked.attempt_number);
                    let claim =
                        Claim { room, message: message.id, shown: shown.clone(), call: call.clone(), unread: false };
                    *lock(&self.claim) = Some(claim);
                    return Ok(Some(shown));
                }
                Err(error) if error.is_stopped() => line.hold(room),
                // It ended meanwhile.
                Err(error) if matches!(error.status(), Some(403 | 404 | 409 | 422)) => line.look_again(room),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

/// What is done before the next message is waited for.
enum Last {
    /// The last answer is given once more.
    Again(Value),
    /// What became of the last message.
    Settled(Value),
}

/// A message as a model reads it.
fn shown(message: &ChatMessage, room: RoomId, attempt: i64) -> Value {
    json!({
        "id": message.id,
        "chat_id": room,
        "content": readable(message, &[]),
        "sender_id": message.sender_id,
        "sender_name": message.sender_name,
        "sender_type": message.sender_type,
        "inserted_at": message.inserted_at,
        "attachments": message.attachments,
        "attempt": attempt,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

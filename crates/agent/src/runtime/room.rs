//! A room's worker: it does what [`RoomState`] says, one thing at a time.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until};

use super::ledger::Mark;
use super::room_state::{Claim, Control, Effect, Identified, Input, Marked, Next, RoomState, Unavailable};
use super::shared::Shared;
use super::turn_run::{self, Abort, Ended, Prepared};
use super::{briefing, history, timing};
use crate::adapter::{IncomingMessage, Sender};
use crate::approval::Taken;
use crate::client::model::ChatMessage;
use crate::client::{ClientError, MarkFate, MessageQuery};
use crate::roster::{Member, Roster};
use crate::turn::Turn;

/// Messages of contacts that wait for a room's next turn; the oldest is dropped beyond.
const CONTACT_NEWS: usize = 20;

/// What a room is told. Small, since the queue of every room has space for some of them.
#[derive(Debug)]
pub(super) enum RoomInput {
    /// A message was pushed.
    Pushed(Box<ChatMessage>),
    /// Pushes may have been missed.
    Resync,
    Control(Control),
    ParticipantAdded(Box<Member>),
    ParticipantRemoved(Box<IdentityId>),
    /// Something happened among the agent's contacts that every room is told of.
    ContactNews(Arc<String>),
    /// A contact event for this room, which is the hub.
    HubEvent(Box<HubEvent>),
    Close,
    Cut,
}

/// A contact event on its way to the hub.
#[derive(Debug)]
pub(super) struct HubEvent {
    pub(super) event: &'static str,
    pub(super) text: String,
}

/// A message as a room keeps it: a quiet room has space for none.
type Message = Box<ChatMessage>;

impl Identified for Message {
    fn id(&self) -> MessageId {
        self.id
    }
}

type Operation = Pin<Box<dyn Future<Output = Done> + Send>>;

/// What came of an operation.
enum Done {
    Input(Input<Message>),
    /// A claim, with the place to run the turn in.
    Claimed {
        claim: Claim,
        place: Option<OwnedSemaphorePermit>,
        /// Whether who is in the room was read.
        roster_read: bool,
    },
    Turn(Ended, bool),
}

/// What the first turn of a room is given.
#[derive(Default)]
struct Session {
    started: bool,
    /// The roster's revision that the model was told.
    told: Option<u64>,
    /// The one that it is being told.
    telling: Option<u64>,
    contact_news: VecDeque<Arc<String>>,
    news_in_turn: usize,
}

pub(super) struct RoomWorker {
    shared: Arc<Shared>,
    room: RoomId,
    state: RoomState<Message>,
    roster: Roster,
    /// The list of participants is to be read before the next turn.
    roster_stale: bool,
    session: Session,
    own: VecDeque<IncomingMessage>,
    operation: Option<Operation>,
    /// Gives up the claim or the turn that is under way, or was last.
    abort: Option<Abort>,
    place: Option<OwnedSemaphorePermit>,
    timer: Option<Instant>,
    /// The last turn: its mark tells whether silence was the answer.
    last_turn: Option<(MessageId, Turn)>,
}

impl RoomWorker {
    pub(super) fn new(shared: Arc<Shared>, room: RoomId) -> Self {
        let state = RoomState::new(shared.settings.max_attempts);
        Self {
            shared,
            room,
            state,
            roster: Roster::default(),
            roster_stale: true,
            session: Session::default(),
            own: VecDeque::new(),
            operation: None,
            abort: None,
            place: None,
            timer: None,
            last_turn: None,
        }
    }

    /// Works until it is told to close.
    pub(super) async fn run(mut self, mut inputs: mpsc::UnboundedReceiver<RoomInput>) {
        let mut effects = self.state.start();
        let mut told_all = false;
        loop {
            for effect in std::mem::take(&mut effects) {
                if self.carry_out(effect) {
                    self.shared.adapter.on_room_closed(self.room).await;
                    return;
                }
            }
            let timer = self.timer;
            effects = tokio::select! {
                biased;
                input = inputs.recv(), if !told_all => {
                    told_all = input.is_none();
                    self.told(input.unwrap_or(RoomInput::Cut)).await
                }
                done = async {
                    match &mut self.operation {
                        Some(operation) => operation.await,
                        None => std::future::pending().await,
                    }
                } => {
                    self.operation = None;
                    self.done(done)
                }
                () = async {
                    match timer {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => {
                    self.timer = None;
                    self.state.step(Input::Elapsed)
                }
            };
        }
    }

    async fn told(&mut self, input: RoomInput) -> Vec<Effect<Message>> {
        match input {
            RoomInput::Pushed(message) if self.state.is_running() && message.sender_id != self.shared.id() => {
                // Beside a turn much may be done; a quiet room has no space for it.
                Box::pin(self.pushed_beside(message)).await
            }
            RoomInput::Pushed(_) => self.state.step(Input::Pushed),
            RoomInput::Resync => {
                // Who joined or left while the socket was away was not told.
                self.roster_stale = true;
                self.state.step(Input::Resync)
            }
            RoomInput::Control(control) => self.state.step(Input::Control(control)),
            RoomInput::ParticipantAdded(member) => {
                self.roster.add(*member);
                Vec::new()
            }
            RoomInput::ParticipantRemoved(id) => {
                self.roster.remove(*id);
                Vec::new()
            }
            RoomInput::ContactNews(text) => {
                self.session.contact_news.push_back(text);
                if self.session.contact_news.len() > CONTACT_NEWS {
                    self.session.contact_news.pop_front();
                    self.session.news_in_turn = self.session.news_in_turn.saturating_sub(1);
                }
                Vec::new()
            }
            RoomInput::HubEvent(event) => {
                self.own.push_back(self.hub_message(*event));
                self.state.step(Input::Own)
            }
            RoomInput::Close => self.state.step(Input::Close),
            RoomInput::Cut => self.state.step(Input::Cut),
        }
    }

    /// While a turn runs, a message may be what it waits for: whether a tool may be called, or the answer to a question
    /// that its adapter asked.
    async fn pushed_beside(&mut self, message: Message) -> Vec<Effect<Message>> {
        let id = message.id;
        let tools = self.shared.tools(self.room, &self.roster, &Turn::default(), id);
        let message = self.incoming(*message);
        if let Taken::Yes(text) = tools.approvals().take(&message) {
            let sender = message.sender.id().map(|id| id.to_string());
            if let Err(why) = tools.send_notice(&text, sender.as_slice()).await {
                tracing::debug!(room.id = %self.room, %why, "nobody was told what became of a call");
            }
            return self.state.step(Input::Consumed(id));
        }
        if self.shared.adapter.try_handle_control(&message, &tools).await {
            return self.state.step(Input::Consumed(id));
        }
        self.state.step(Input::Pushed)
    }

    /// Begins what is to be done; true when the room is closed.
    fn carry_out(&mut self, effect: Effect<Message>) -> bool {
        self.timer = None;
        let (shared, room) = (Arc::clone(&self.shared), self.room);
        match effect {
            Effect::FetchNext => self.begin(async move {
                let _look = shared.look().await;
                let next = match shared.client.next_message(room).await {
                    Ok(Some(message)) => Next::Message(Box::new(message)),
                    Ok(None) | Err(ClientError::Stopped { .. }) => Next::Nothing,
                    Err(why) => {
                        tracing::warn!(%room, %why, "the next message cannot be read");
                        Next::Unavailable
                    }
                };
                Done::Input(Input::Next(next))
            }),
            Effect::List(cursor) => self.begin(async move {
                let query = MessageQuery { cursor, limit: Some(100), ..MessageQuery::default() };
                let _look = shared.look().await;
                let listed = match shared.client.messages(room, &query).await {
                    Ok(page) => {
                        let more = page.metadata.next_cursor.filter(|_| page.metadata.has_more);
                        Ok((page.data.into_iter().map(Box::new).collect(), more))
                    }
                    Err(why) => {
                        tracing::warn!(%room, %why, "the unprocessed messages cannot be read");
                        Err(Unavailable)
                    }
                };
                Done::Input(Input::Listed(listed))
            }),
            Effect::Claim(message) => {
                let abort = self.fresh_abort();
                let roster = self.roster_stale.then(|| self.roster.clone());
                self.begin(claim(shared, room, message.id, roster, abort));
            }
            Effect::Run(message, last) => {
                let message = self.incoming(*message);
                self.begin_turn(message, last, true);
            }
            Effect::RunOwn => match self.own.pop_front() {
                Some(message) => {
                    self.fresh_abort();
                    self.begin_turn(message, true, false);
                }
                None => self.begin(async { Done::Input(Input::OwnEnded) }),
            },
            Effect::Abort(reason) => {
                if let Some(abort) = &self.abort {
                    abort.now(reason);
                }
            }
            Effect::Mark(message, mark) => {
                let turn = self.last_turn.as_ref().filter(|(id, _)| *id == message);
                let declined = turn.and_then(|(_, turn)| turn.declined());
                self.begin(async move {
                    let sent = match (&mark, declined) {
                        (Mark::Processed, Some(reason)) => {
                            shared.client.mark_declined(room, message, reason.as_deref()).await
                        }
                        (Mark::Processed, None) => shared.client.mark_processed(room, message).await,
                        (Mark::Failed(why), _) => shared.client.mark_failed(room, message, why).await,
                    };
                    let marked = match sent.as_ref().map_err(ClientError::mark_fate) {
                        Ok(_) => Marked::Accepted,
                        Err(MarkFate::Stopped) => Marked::Stopped,
                        Err(MarkFate::Rejected) => Marked::Ended,
                        Err(MarkFate::NotFound) => Marked::Refused,
                        Err(MarkFate::Unconfirmed) => Marked::Unconfirmed,
                    };
                    if let Err(why) = sent {
                        tracing::warn!(%room, %message, %why, "the mark was not taken");
                    }
                    Done::Input(Input::Marked(marked))
                });
            }
            Effect::Wait { failures } => {
                self.place = None;
                self.timer = Some(Instant::now() + timing::backoff(failures, self.randomness()));
            }
            Effect::Idle { checks, stopped } => {
                self.place = None;
                // Nothing is under way, and unless the agent is stopped every mark has landed.
                self.abort = None;
                if !stopped {
                    self.last_turn = None;
                }
                let pause = self.shared.settings.idle.pause(checks, stopped, self.randomness());
                self.timer = Some(Instant::now() + pause);
            }
            Effect::Closed => return true,
        }
        false
    }

    fn randomness(&self) -> &dyn crate::time::Randomness {
        self.shared.client.options().randomness.as_ref()
    }

    /// A handle for the claim that begins now, and the turn that may follow.
    fn fresh_abort(&mut self) -> Abort {
        self.abort.insert(Abort::new()).clone()
    }

    fn begin(&mut self, operation: impl Future<Output = Done> + Send + 'static) {
        self.operation = Some(Box::pin(operation));
    }

    fn done(&mut self, done: Done) -> Vec<Effect<Message>> {
        match done {
            Done::Input(input) => self.state.step(input),
            Done::Claimed { claim, place, roster_read } => {
                self.roster_stale &= !roster_read;
                self.place = place;
                self.state.step(Input::Claimed(claim))
            }
            Done::Turn(Ended { end, accepted }, own) => {
                self.place = None;
                if accepted {
                    self.session.started = true;
                    self.session.told = self.session.telling;
                    self.session.contact_news.drain(..self.session.news_in_turn.min(self.session.contact_news.len()));
                }
                self.session.news_in_turn = 0;
                self.state.step(if own { Input::OwnEnded } else { Input::TurnEnded(end) })
            }
        }
    }

    fn begin_turn(&mut self, message: IncomingMessage, last: bool, shows_work: bool) {
        let (shared, room, roster) = (Arc::clone(&self.shared), self.room, self.roster.clone());
        let abort = self.abort.get_or_insert_with(Abort::new).clone();
        let turn = Turn::new(shared.settings.report_failures);
        self.last_turn = Some((message.id, turn.clone()));
        let tools = shared.tools(room, &roster, &turn, message.id);
        let own = message.is_contact_event();
        let is_session_start = !self.session.started;
        let members = roster.members();
        let revision = roster.revision();
        let participants =
            (self.session.told != Some(revision) && !members.is_empty()).then(|| briefing::participants(&members));
        self.session.telling = Some(revision);
        let news: Vec<&str> = self.session.contact_news.iter().map(|text| text.as_str()).collect();
        self.session.news_in_turn = news.len();
        let contacts = (!news.is_empty()).then(|| news.join("\n"));
        let shows_work = shows_work && !shared.is_hub(room);
        self.begin(async move {
            // A claim has brought its place along.
            let _place = match own {
                true => tokio::select! {
                    biased;
                    _ = abort.given() => None,
                    place = Arc::clone(&shared.places).acquire_owned() => place.ok(),
                },
                false => None,
            };
            let mut history = Vec::new();
            if is_session_start && !own && shared.settings.history_rows > 0 {
                let keep = shared.settings.history_rows;
                let read = history::read(&shared.client, shared.id(), room, Some(message.id), keep, &roster);
                match read.await {
                    Ok(read) => {
                        if read.cut {
                            tracing::debug!(%room, keep, "older rows of the room's past were left out");
                        }
                        history = read.entries;
                    }
                    // Better an answer without memory than none.
                    Err(why) => tracing::warn!(%room, %why, "the room's past cannot be read"),
                }
            }
            let prepared =
                Prepared { message, tools, turn, history, participants, contacts, is_session_start, last, shows_work };
            Done::Turn(turn_run::run(&shared, prepared, abort).await, own)
        });
    }

    fn incoming(&self, message: ChatMessage) -> IncomingMessage {
        let members = self.roster.members();
        let content = history::readable(&message, &members);
        let mut incoming = IncomingMessage::of(message, self.room);
        incoming.content = content;
        // The roster knows names better than an old message.
        if let Sender::Identity { id, name, .. } = &mut incoming.sender
            && let Some(member) = members.iter().find(|member| member.id == *id)
            && member.name.is_some()
        {
            name.clone_from(&member.name);
        }
        incoming
    }

    fn hub_message(&self, HubEvent { event, text }: HubEvent) -> IncomingMessage {
        IncomingMessage {
            id: MessageId(self.randomness().uuid()),
            room: self.room,
            sender: Sender::ContactEvents,
            content: text,
            attachments: Vec::new(),
            inserted_at: None,
            metadata: Some(serde_json::json!({ "contact_event_type": event })),
        }
    }
}

/// Waits for a place, reads who is in the room when that is not known, and claims the message. In this order, so that
/// no message is claimed while nobody works on it.
async fn claim(shared: Arc<Shared>, room: RoomId, message: MessageId, roster: Option<Roster>, abort: Abort) -> Done {
    let ready = async {
        let place = Arc::clone(&shared.places).acquire_owned().await.ok();
        let roster_read = match &roster {
            Some(roster) => read_roster(&shared, room, roster).await,
            None => false,
        };
        (place, roster_read)
    };
    let (place, roster_read) = tokio::select! {
        biased;
        _ = abort.given() => return Done::Claimed { claim: Claim::Withdrawn, place: None, roster_read: false },
        ready = ready => ready,
    };
    // From here on it is not withdrawn: whether the claim was made would not be known.
    let claim = match shared.client.mark_processing(room, message).await {
        Ok(_) => Claim::Confirmed,
        Err(ClientError::Stopped { .. }) => Claim::Stopped,
        Err(why) if why.is_not_found() => Claim::Gone,
        Err(why) => {
            tracing::warn!(%room, %message, %why, "the message was not claimed");
            Claim::Unavailable
        }
    };
    let place = place.filter(|_| claim == Claim::Confirmed);
    Done::Claimed { claim, place, roster_read }
}

async fn read_roster(shared: &Shared, room: RoomId, roster: &Roster) -> bool {
    match shared.client.participants(room).await {
        Ok(list) => {
            let taken = roster.replace(list.into_iter().map(Member::from).collect());
            if !taken {
                tracing::warn!(%room, "the list of participants names somebody twice and is not used");
            }
            taken
        }
        Err(why) => {
            tracing::warn!(%room, %why, "the participants cannot be read");
            false
        }
    }
}

#[cfg(test)]
mod tests;

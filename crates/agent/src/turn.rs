//! The turn rule: every message that reaches an agent mentions it, so every turn owes the room an answer.
//!
//! A turn is complete when it replied, declined, did work, was settled by the adapter, or reported its failure. Anything
//! else is a missing reply. No I/O here: the ledger notes, [`Turn::conclude`] decides, the runtime posts and marks.
//!
//! ```
//! use bandstand_agent::registry::Effect;
//! use bandstand_agent::turn::{Conclusion, RunEnd, Turn};
//!
//! let turn = Turn::default();
//! turn.begin(true);
//! turn.record(Effect::Observe);
//! assert_eq!(turn.conclude(RunEnd::Returned), Conclusion::MissingReply);
//! turn.record(Effect::Decline);
//! assert_eq!(turn.conclude(RunEnd::Returned), Conclusion::Complete);
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bandstand_llm::registry::Effect;

use crate::failure::AgentFailure;

/// What the room reads when a turn ended without an answer.
pub const MISSING_REPLY: &str =
    "The agent ended its turn without replying or calling band_no_reply, so nothing reached the room.";

/// What the failed mark says then.
pub const MISSING_REPLY_MARK: &str = "turn ended without a reply";

/// The name under which the runtime itself reports failures.
pub const RUNTIME_PROVIDER: &str = "band-runtime";

/// The report of a missing reply.
pub fn missing_reply() -> AgentFailure {
    AgentFailure::new(RUNTIME_PROVIDER, MISSING_REPLY)
}

/// What happened in a turn. Order and repetition do not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    worked: bool,
    answered: bool,
    settled: bool,
    reported: bool,
}

/// Whether a turn did what it owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did.
    Complete,
    /// Nothing reached the room.
    MissingReply,
}

impl Verdict {
    /// The word that travels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::MissingReply => "missing_reply",
        }
    }
}

impl Ledger {
    /// A tool succeeded.
    pub fn record(&mut self, effect: Effect) {
        match effect {
            Effect::Observe => {}
            Effect::Act => self.worked = true,
            Effect::Reply | Effect::Decline => self.answered = true,
        }
    }

    /// The adapter ended the turn itself.
    pub fn settle(&mut self) {
        self.settled = true;
    }

    /// A failure of this turn reached the room.
    pub fn note_reported(&mut self) {
        self.reported = true;
    }

    /// Whether the turn answered, if only with silence: closing text may not be relayed any more.
    pub fn replied(self) -> bool {
        self.answered
    }

    /// Whether the turn did what it owes.
    pub fn complete(self) -> bool {
        self.answered || self.worked || self.settled || self.reported
    }

    /// The same as a word.
    pub fn verdict(self) -> Verdict {
        if self.complete() { Verdict::Complete } else { Verdict::MissingReply }
    }
}

/// How one run of an adapter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It returned.
    Returned,
    /// It did not accept the input: no model ran, and the message is kept for later.
    NotAccepted,
    /// It failed. The runtime's own path takes care of that.
    Failed,
}

/// What follows from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Turns like this are not judged: the message is processed.
    NotJudged,
    /// The message is processed.
    Complete,
    /// The run let go of the turn, which goes on by itself: the message is processed, and the turn is judged at its end.
    Detached,
    /// Nothing reached the room: say so there, if that is wanted, and mark the message as failed.
    MissingReply,
    /// The message waits.
    Deferred,
    /// The message failed.
    Failed,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    judged: bool,
    detached: bool,
    /// A reply, not a decline, was recorded.
    spoke: bool,
    /// It declined, with or without a reason.
    declined: Option<Option<String>>,
}

/// What becomes of the text with which a model ends its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClosingText {
    /// It stays with the agent: only a tool speaks in the room.
    #[default]
    Withheld,
    /// It is posted as the reply, if nothing answered yet.
    Relayed,
}

/// A turn's ledger, shared by all who work in it. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Turn {
    state: Arc<Mutex<State>>,
    posts_missing_reply: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self::new(true)
    }
}

impl Turn {
    /// A new turn; `posts_missing_reply` says whether the room is told when nothing reached it.
    pub fn new(posts_missing_reply: bool) -> Self {
        Self { state: Arc::default(), posts_missing_reply }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run starts; `judged` is [`judges`]' answer.
    pub fn begin(&self, judged: bool) {
        self.state().judged = judged;
    }

    /// A tool succeeded.
    pub fn record(&self, effect: Effect) {
        let mut state = self.state();
        state.ledger.record(effect);
        match effect {
            Effect::Reply => state.spoke = true,
            Effect::Decline => {
                state.declined.get_or_insert(None);
            }
            Effect::Observe | Effect::Act => {}
        }
    }

    /// Silence is the answer, for this reason.
    pub fn decline(&self, reason: Option<&str>) {
        self.record(Effect::Decline);
        if let Some(reason) = reason {
            self.state().declined = Some(Some(reason.to_owned()));
        }
    }

    /// Whether silence was the whole answer, and why: none when the turn spoke, or did not decline.
    pub fn declined(&self) -> Option<Option<String>> {
        let state = self.state();
        if state.spoke { None } else { state.declined.clone() }
    }

    /// The adapter ended the turn itself, for example by answering a control reply with its own text.
    pub fn settle(&self) {
        self.state().ledger.settle();
    }

    /// The adapter lets the run return although the turn goes on, waiting for a person's decision. The message counts
    /// as processed, and the turn is judged at its real end.
    pub fn detach(&self) {
        self.state().detached = true;
    }

    /// A failure of this turn reached the room.
    pub fn note_reported(&self) {
        self.state().ledger.note_reported();
    }

    /// Whether the turn answered, if only with silence.
    pub fn replied(&self) -> bool {
        self.state().ledger.replied()
    }

    /// Whether the turn did what it owes.
    pub fn complete(&self) -> bool {
        self.state().ledger.complete()
    }

    /// Whether a failure of this turn reached the room.
    pub fn is_reported(&self) -> bool {
        self.state().ledger.reported
    }

    /// Whether the run let go of it.
    pub fn detached(&self) -> bool {
        self.state().detached
    }

    /// Whether it is judged at all.
    pub fn judged(&self) -> bool {
        self.state().judged
    }

    /// Whether the room is told when nothing reached it.
    pub fn posts_missing_reply(&self) -> bool {
        self.posts_missing_reply
    }

    /// What happened in it so far.
    pub fn ledger(&self) -> Ledger {
        self.state().ledger
    }

    /// What follows from a run that has ended.
    pub fn conclude(&self, end: RunEnd) -> Conclusion {
        let mut state = self.state();
        match end {
            RunEnd::NotAccepted => {
                state.judged = false;
                Conclusion::Deferred
            }
            RunEnd::Failed => Conclusion::Failed,
            RunEnd::Returned if !state.judged => Conclusion::NotJudged,
            RunEnd::Returned if state.detached => Conclusion::Detached,
            RunEnd::Returned if state.ledger.complete() => Conclusion::Complete,
            RunEnd::Returned => Conclusion::MissingReply,
        }
    }

    /// What follows from the real end of a turn that a run let go of. Nothing is marked any more: a missing reply is
    /// only posted.
    pub fn conclude_detached(&self) -> Conclusion {
        let state = self.state();
        match (state.judged && state.detached, state.ledger.complete()) {
            (false, _) => Conclusion::NotJudged,
            (true, true) => Conclusion::Complete,
            (true, false) => Conclusion::MissingReply,
        }
    }
}

/// Whether a turn is judged: if the adapter's turns are, unless the message is one that the runtime made of a contact
/// event, which owes nobody an answer.
pub fn judges(adapter_judges: bool, is_contact_event: bool) -> bool {
    adapter_judges && !is_contact_event
}

//! What an agent does next in one room, decided without doing it.
//!
//! [`RoomState::step`] takes what happened and says what to do; the worker (`room.rs`) does it and comes back with what
//! happened then. At most one request or turn is under way at a time, so a room is strictly serial. A push is only a
//! hint to look: what runs comes from `/messages/next`, which is oldest first. So pushes may be lost, doubled or come in
//! any order, and the room's order holds, for the price of one request a message.

use bandstand_wire::ids::MessageId;

use super::ledger::{Eligibility, Ledger, Mark};

/// Something with a message's id.
pub(super) trait Identified {
    /// The message.
    fn id(&self) -> MessageId;
}

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum Input<M> {
    /// A message was pushed.
    Pushed,
    /// A message was dealt with beside the turns, as an answer to something that a running turn asked: it is marked as
    /// processed when its turn comes.
    Consumed(MessageId),
    /// The runtime has something of its own for a turn: [`Effect::RunOwn`] follows.
    Own,
    /// [`Effect::FetchNext`] was answered.
    Next(Next<M>),
    /// [`Effect::List`] was answered: a page of what is unprocessed, oldest first, and where the next page begins.
    Listed(Result<(Vec<M>, Option<String>), Unavailable>),
    /// [`Effect::Claim`] was answered.
    Claimed(Claim),
    /// The turn that [`Effect::Run`] began is over.
    TurnEnded(TurnEnd),
    /// The turn that [`Effect::RunOwn`] began is over.
    OwnEnded,
    /// [`Effect::Mark`] was answered.
    Marked(Marked),
    /// A person stopped, resumed or interrupted the agent.
    Control(Control),
    /// Messages may have been missed: the socket was away.
    Resync,
    /// The time that [`Effect::Wait`] or [`Effect::Idle`] named has passed.
    Elapsed,
    /// The agent stops: no new turn begins.
    Close,
    /// The agent cannot wait any longer, or another instance took over: the turn is given up without a mark.
    Cut,
}

/// The platform could not be asked, or gave no answer that can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unavailable;

/// An answer of `/messages/next`.
#[derive(Clone, Debug)]
pub(super) enum Next<M> {
    /// The oldest message that is not processed.
    Message(M),
    /// Nothing, or the agent is stopped here.
    Nothing,
    /// No answer.
    Unavailable,
}

/// An answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Ours; the turn may run.
    Confirmed,
    /// The agent is stopped here.
    Stopped,
    /// There is no such message for us.
    Gone,
    /// It was not made: the room was closed or stopped while it waited for its place.
    Withdrawn,
    /// No answer that confirms it, so nothing may run.
    Unavailable,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// As it should.
    Completed,
    /// With an error; the text goes on the mark.
    Failed(String),
    /// The adapter did not take the message yet; it is offered again.
    NotAccepted,
    /// It was given up because of [`Effect::Abort`].
    Aborted,
    /// The platform refused a post because the agent is stopped here.
    Stopped,
}

/// An answer to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// It is written.
    Accepted,
    /// The attempt has ended already: this mark was written before and the answer lost, or another process marked it.
    Ended,
    /// The platform will never take it: there is no such message for us.
    Refused,
    /// The agent is stopped here; nothing was written.
    Stopped,
    /// No answer: whether it was written is not known. Marking again is safe.
    Unconfirmed,
}

/// What a person tells an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Give up the turn and begin no other.
    Stop,
    /// Go on.
    Play,
    /// Give up this turn; its message counts as handled.
    Interrupt,
}

/// Why a turn is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AbortReason {
    /// A person stopped the agent: the message is offered again when it goes on.
    Stopped,
    /// A person interrupted it: its message counts as handled.
    Interrupted,
    /// The process stops, or another instance took over: the message stays claimed and is served again.
    Cut,
}

impl AbortReason {
    /// The same as the adapter's hook is told. To it, the end of the process is a stop.
    pub(super) fn mode(self) -> crate::client::socket::Mode {
        match self {
            Self::Interrupted => crate::client::socket::Mode::Interrupt,
            Self::Stopped | Self::Cut => crate::client::socket::Mode::Stop,
        }
    }
}

/// What is to be done. A new effect takes the place of a timer that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect<M> {
    /// Ask `/messages/next`.
    FetchNext,
    /// Ask for a page of what is unprocessed, oldest first.
    List(Option<String>),
    /// Mark the message as being processed.
    Claim(M),
    /// Run the turn; `last` when it is the last attempt.
    Run(M, bool),
    /// Run a turn for what [`Input::Own`] announced, the oldest first. Nothing is claimed and nothing marked.
    RunOwn,
    /// Give up the turn, or the claim, that is under way. [`Input::TurnEnded`], [`Input::OwnEnded`] or
    /// [`Input::Claimed`] still follows.
    Abort(AbortReason),
    /// Tell how a message ended.
    Mark(MessageId, Mark),
    /// Nothing can be done until a time has passed that grows with `failures`, the failures in a row.
    Wait {
        /// From 1.
        failures: u32,
    },
    /// Nothing is to be done: look again after a time that grows with `checks`, the empty looks in a row.
    Idle {
        /// From 0.
        checks: u32,
        /// Stopped by a person: the look is at whether it may go on.
        stopped: bool,
    },
    /// The room is closed.
    Closed,
}

#[derive(Debug)]
enum Phase<M> {
    /// Nothing is under way.
    Ready,
    /// Waiting for time to pass after a failure.
    Waiting,
    Fetching,
    Listing,
    Claiming(M),
    Running(M, Option<AbortReason>),
    RunningOwn,
    Marking(MessageId),
    Closed,
}

/// One room, as its agent sees it.
#[derive(Debug)]
pub(super) struct RoomState<M> {
    phase: Phase<M>,
    ledger: Ledger,
    own: usize,
    drain: bool,
    stopped: bool,
    closing: bool,
    cut: bool,
    probe: bool,
    failures: u32,
    checks: u32,
}

impl<M: Identified + Clone> RoomState<M> {
    /// A room whose backlog has yet to be read. A message runs at most `max_attempts` times.
    pub(super) fn new(max_attempts: u32) -> Self {
        Self {
            phase: Phase::Ready,
            ledger: Ledger::new(max_attempts),
            own: 0,
            drain: true,
            stopped: false,
            closing: false,
            cut: false,
            probe: false,
            failures: 0,
            checks: 0,
        }
    }

    /// Whether a turn is running.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(..))
    }

    /// What there is to do at the beginning.
    pub(super) fn start(&mut self) -> Vec<Effect<M>> {
        self.next()
    }

    /// Takes in what happened and says what to do.
    pub(super) fn step(&mut self, input: Input<M>) -> Vec<Effect<M>> {
        match input {
            Input::Pushed => self.pushed(),
            Input::Consumed(id) => {
                self.ledger.consume(id);
                self.pushed()
            }
            Input::Own => {
                self.own = self.own.saturating_add(1);
                self.next()
            }
            Input::OwnEnded => {
                if matches!(self.phase, Phase::RunningOwn) {
                    self.phase = Phase::Ready;
                }
                self.next()
            }
            Input::Next(next) => self.fetched(next),
            Input::Listed(listed) => self.listed(listed),
            Input::Claimed(claim) => self.claimed(claim),
            Input::TurnEnded(end) => self.turn_ended(end),
            Input::Marked(marked) => self.marked(marked),
            Input::Control(control) => self.control(control),
            Input::Resync => self.resync(),
            Input::Elapsed => self.elapsed(),
            Input::Close => {
                self.closing = true;
                let withdrawn = matches!(self.phase, Phase::Claiming(_)).then_some(Effect::Abort(AbortReason::Cut));
                withdrawn.into_iter().chain(self.next()).collect()
            }
            Input::Cut => {
                self.closing = true;
                self.cut = true;
                self.abort(AbortReason::Cut)
            }
        }
    }

    fn pushed(&mut self) -> Vec<Effect<M>> {
        self.checks = 0;
        self.drain = true;
        self.next()
    }

    fn fetched(&mut self, next: Next<M>) -> Vec<Effect<M>> {
        self.phase = Phase::Ready;
        match next {
            Next::Unavailable => {
                self.drain = true;
                return self.wait();
            }
            Next::Nothing => self.failures = 0,
            Next::Message(message) => {
                self.failures = 0;
                self.checks = 0;
                // A stopped agent is served nothing: a word to go on was missed.
                self.stopped = false;
                if self.cut || self.closing {
                    return self.next();
                }
                if self.ledger.eligibility(message.id()) == Eligibility::Runnable {
                    return self.claim(message);
                }
                // What is served first may not run again here, and hides what is behind it.
                self.phase = Phase::Listing;
                return vec![Effect::List(None)];
            }
        }
        self.next()
    }

    fn listed(&mut self, listed: Result<(Vec<M>, Option<String>), Unavailable>) -> Vec<Effect<M>> {
        self.phase = Phase::Ready;
        let Ok((messages, more)) = listed else {
            self.drain = true;
            return self.wait();
        };
        self.failures = 0;
        if self.stopped || self.closing {
            return self.next();
        }
        let runnable =
            messages.into_iter().find(|message| self.ledger.eligibility(message.id()) == Eligibility::Runnable);
        match (runnable, more) {
            (Some(message), _) => self.claim(message),
            (None, Some(cursor)) => {
                self.phase = Phase::Listing;
                vec![Effect::List(Some(cursor))]
            }
            (None, None) => self.next(),
        }
    }

    /// Claims a message. Whatever comes of it, there may be more behind it.
    fn claim(&mut self, message: M) -> Vec<Effect<M>> {
        self.drain = true;
        self.phase = Phase::Claiming(message.clone());
        vec![Effect::Claim(message)]
    }

    fn claimed(&mut self, claim: Claim) -> Vec<Effect<M>> {
        let Phase::Claiming(message) = std::mem::replace(&mut self.phase, Phase::Ready) else { return Vec::new() };
        match claim {
            // It stays claimed: the platform serves it again, first.
            Claim::Confirmed if self.stopped || self.closing => {}
            Claim::Confirmed if self.ledger.is_consumed(message.id()) => {
                self.failures = 0;
                self.ledger.owe(message.id(), Mark::Processed);
            }
            Claim::Confirmed => {
                self.failures = 0;
                self.ledger.begin(message.id());
                let last = self.ledger.is_last_attempt(message.id());
                self.phase = Phase::Running(message.clone(), None);
                return vec![Effect::Run(message, last)];
            }
            Claim::Stopped => self.stopped = true,
            Claim::Gone => self.ledger.drop_message(message.id()),
            Claim::Withdrawn => {}
            Claim::Unavailable => return self.wait(),
        }
        self.next()
    }

    fn turn_ended(&mut self, end: TurnEnd) -> Vec<Effect<M>> {
        let Phase::Running(message, aborted) = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return Vec::new();
        };
        let id = message.id();
        match (end, aborted) {
            // It ended by itself before the word to give up reached it.
            (TurnEnd::Completed, _) => self.ledger.owe(id, Mark::Processed),
            (TurnEnd::Failed(why), None) => self.ledger.owe(id, Mark::Failed(why)),
            (_, Some(AbortReason::Interrupted)) => {
                self.ledger.give_back(id);
                self.ledger.owe(id, Mark::Processed);
            }
            (TurnEnd::NotAccepted, None) => {
                self.ledger.give_back(id);
                return self.wait();
            }
            (TurnEnd::Stopped, None) => {
                self.ledger.give_back(id);
                self.stopped = true;
            }
            (_, Some(AbortReason::Stopped | AbortReason::Cut)) | (TurnEnd::Aborted, None) => self.ledger.give_back(id),
        }
        self.next()
    }

    fn marked(&mut self, marked: Marked) -> Vec<Effect<M>> {
        let Phase::Marking(id) = std::mem::replace(&mut self.phase, Phase::Ready) else { return Vec::new() };
        match marked {
            // What has ended with a failure may be served again, and runs again as often as it may.
            Marked::Accepted | Marked::Ended => {
                self.failures = 0;
                self.ledger.settle(id);
            }
            Marked::Refused => self.ledger.drop_message(id),
            Marked::Stopped => self.stopped = true,
            Marked::Unconfirmed => return self.wait(),
        }
        self.next()
    }

    fn control(&mut self, control: Control) -> Vec<Effect<M>> {
        match control {
            Control::Stop => {
                self.stopped = true;
                self.abort(AbortReason::Stopped)
            }
            Control::Play => {
                self.stopped = false;
                self.drain = true;
                self.checks = 0;
                self.next()
            }
            Control::Interrupt if self.is_running() || matches!(self.phase, Phase::RunningOwn) => {
                self.abort(AbortReason::Interrupted)
            }
            Control::Interrupt => Vec::new(),
        }
    }

    fn abort(&mut self, reason: AbortReason) -> Vec<Effect<M>> {
        match &mut self.phase {
            // The first reason stands, except that nothing is marked any more once the agent is cut off.
            Phase::Running(_, aborted) if aborted.is_none() || reason == AbortReason::Cut => {
                *aborted = Some(reason);
                vec![Effect::Abort(reason)]
            }
            Phase::Claiming(_) | Phase::RunningOwn => vec![Effect::Abort(reason)],
            _ => self.next(),
        }
    }

    fn resync(&mut self) -> Vec<Effect<M>> {
        self.drain = true;
        self.checks = 0;
        self.failures = 0;
        if matches!(self.phase, Phase::Waiting) {
            self.phase = Phase::Ready;
        }
        self.next()
    }

    fn elapsed(&mut self) -> Vec<Effect<M>> {
        match self.phase {
            Phase::Waiting => self.phase = Phase::Ready,
            Phase::Ready => {
                self.probe = true;
                self.drain = true;
                self.checks = self.checks.saturating_add(1);
            }
            _ => return Vec::new(),
        }
        self.next()
    }

    fn wait(&mut self) -> Vec<Effect<M>> {
        if self.closing {
            return self.next();
        }
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Waiting;
        vec![Effect::Wait { failures: self.failures }]
    }

    /// What to do when nothing is under way.
    fn next(&mut self) -> Vec<Effect<M>> {
        let idle = matches!(self.phase, Phase::Ready) || (self.closing && matches!(self.phase, Phase::Waiting));
        if !idle {
            return Vec::new();
        }
        // A mark that is owed is sent before the room closes, but not for ever: what fails then is served again.
        let marks = !self.cut && (!self.closing || self.failures == 0);
        if marks
            && !self.stopped
            && let Some((id, mark)) = self.ledger.owed()
        {
            self.phase = Phase::Marking(id);
            return vec![Effect::Mark(id, mark)];
        }
        if self.closing {
            self.phase = Phase::Closed;
            return vec![Effect::Closed];
        }
        if self.own > 0 && !self.stopped {
            self.own -= 1;
            self.phase = Phase::RunningOwn;
            return vec![Effect::RunOwn];
        }
        if self.drain && (!self.stopped || self.probe) {
            self.probe = false;
            self.drain = false;
            self.phase = Phase::Fetching;
            return vec![Effect::FetchNext];
        }
        vec![Effect::Idle { checks: self.checks, stopped: self.stopped }]
    }
}

#[cfg(test)]
mod tests;

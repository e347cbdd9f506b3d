//! The delivery ledger: what became of a message for one participant, and why nothing became of it yet.
//!
//! [`account`] is the one place that says so. Replies, pushes, the command line and every other surface show what it
//! answers and decide nothing themselves. It never guesses: where the facts do not settle the question the answer is
//! [`Reason::Unknown`] with the last thing that is certain, and that is never shown as fine.

mod connection;
mod facts;
mod summary;
#[cfg(test)]
mod tests;

use bandstand_wire::ids::{IdentityKind, MessageId};
use bandstand_wire::time::Timestamp;

pub use connection::{Connection, Known, Run, connection};
pub use facts::{AttemptFacts, DeliveryFacts, Facts, Limited, Named, Outcome, Stay};
pub use summary::summary;

use crate::delivery::{AttemptState, DeliveryState};
use crate::execution::Stopped;
use crate::room::words;

words! {
    /// How far a message came for one participant.
    Stage {
        /// There is no delivery: the message was not for it.
        None = "none",
        /// On disk, and nothing has reached the agent.
        Stored = "stored",
        /// Written to the agent's socket.
        Pushed = "pushed",
        /// Returned by `/messages/next`, and never pushed.
        Served = "served",
        /// An attempt runs.
        PickedUp = "picked_up",
        /// The agent of the running attempt went away or fell silent for so long that the message is offered again.
        Lapsed = "lapsed",
        /// Done.
        Processed = "processed",
        /// The last attempt failed; the message is served again.
        Failed = "failed",
        /// Will never be served: the recipient was removed, or the room or the agent deleted.
        Cancelled = "cancelled",
        /// Given up after too many attempts or too long a time.
        DeadLettered = "dead_lettered",
    }
}

words! {
    /// What the answer comes to: what a list colours its rows by.
    Verdict {
        /// The agent is done with it.
        Done = "done",
        /// An attempt runs and shows signs of life.
        Working = "working",
        /// Nothing happens, for the reason that stands beside it.
        Waiting = "waiting",
        /// The last attempt failed.
        Failed = "failed",
        /// Nothing will happen any more.
        Ended = "ended",
        /// It was never meant for this participant.
        NotSent = "not_sent",
        /// The facts do not settle it.
        Unknown = "unknown",
    }
}

words! {
    /// The closed list of reasons why nothing happened.
    ReasonCode {
        /// The message does not mention it.
        NotMentioned = "not_mentioned",
        /// It was not in the room when the message was posted.
        NotAParticipant = "not_a_participant",
        /// It never had a connection.
        NeverConnected = "never_connected",
        /// It has no connection.
        Offline = "offline",
        /// The message reached it, or could have, and it has not begun to work on it.
        NotTaken = "not_taken",
        /// It began to work on it and has shown no sign of life since.
        NoActivity = "no_activity",
        /// Somebody stopped it in this room.
        Stopped = "stopped",
        /// The connection that had the message was replaced by a newer one, which has not taken it up.
        Superseded = "superseded",
        /// Its requests are refused for being too many.
        RateLimited = "rate_limited",
        /// It waited for so long that it was given up.
        Expired = "expired",
        /// The facts do not say.
        Unknown = "unknown",
    }
}

words! {
    /// What the last certain fact is, where the reason is unknown.
    Certain {
        /// The message was posted.
        Posted = "posted",
        /// It was pushed.
        Pushed = "pushed",
        /// It was served.
        Served = "served",
        /// An attempt began.
        PickedUp = "picked_up",
        /// The agent showed a sign of life in the room.
        Active = "active",
        /// The agent was connected.
        Connected = "connected",
    }
}

words! {
    /// What is not known, where the reason is unknown.
    Missing {
        /// Whether the agent is connected: the server that would know is not heard of.
        Connection = "connection",
        /// What happened before the server kept this record.
        Record = "record",
        /// Whether a person has read it: nothing tells.
        Reading = "reading",
        /// The facts contradict each other.
        Consistency = "consistency",
    }
}

/// Why nothing happened, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The message does not mention it.
    NotMentioned {
        /// How else it stands to the message.
        named: Named,
    },
    /// It was not in the room when the message was posted.
    NotAParticipant {
        /// When it joined, if that was later.
        joined_at: Option<Timestamp>,
        /// When it left, if that was before.
        left_at: Option<Timestamp>,
    },
    /// It never had a connection.
    NeverConnected {
        /// Since when that is known: since it was registered.
        since: Timestamp,
    },
    /// It has no connection.
    Offline {
        /// Since when; the earliest moment, if it is not exactly known.
        since: Timestamp,
        /// The latest moment, where a server died with the connection and nobody saw when.
        latest: Option<Timestamp>,
    },
    /// The message reached it, or could have, and it has not begun to work on it.
    NotTaken {
        /// Since when it could have.
        since: Timestamp,
        /// Since when it is connected; none when it fetched the message without a socket.
        connected_since: Option<Timestamp>,
        /// When the message reached it; none when it does not listen in the room.
        reached_at: Option<Timestamp>,
        /// Another message of the room that it works on: agents take one after the other.
        busy_with: Option<MessageId>,
    },
    /// It began to work on it and has shown no sign of life since.
    NoActivity {
        /// The last sign of life.
        since: Timestamp,
        /// Which attempt.
        attempt: i64,
    },
    /// Somebody stopped it in this room.
    Stopped(Stopped),
    /// The connection that had the message was replaced by a newer one, which has not taken it up.
    Superseded {
        /// When.
        at: Timestamp,
        /// The attempt that the older one had begun.
        attempt: Option<i64>,
    },
    /// Its requests are refused for being too many.
    RateLimited(Limited),
    /// It waited for so long that it was given up.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The facts do not say.
    Unknown {
        /// What is missing.
        missing: Missing,
        /// The last thing that is certain.
        last: Certain,
        /// When that was.
        at: Timestamp,
    },
}

impl Reason {
    /// Which of the closed list it is.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::NotMentioned { .. } => ReasonCode::NotMentioned,
            Self::NotAParticipant { .. } => ReasonCode::NotAParticipant,
            Self::NeverConnected { .. } => ReasonCode::NeverConnected,
            Self::Offline { .. } => ReasonCode::Offline,
            Self::NotTaken { .. } => ReasonCode::NotTaken,
            Self::NoActivity { .. } => ReasonCode::NoActivity,
            Self::Stopped(_) => ReasonCode::Stopped,
            Self::Superseded { .. } => ReasonCode::Superseded,
            Self::RateLimited(_) => ReasonCode::RateLimited,
            Self::Expired { .. } => ReasonCode::Expired,
            Self::Unknown { .. } => ReasonCode::Unknown,
        }
    }
}

/// One stage that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub stage: Stage,
    /// When.
    pub at: Timestamp,
    /// The attempt that it belongs to.
    pub attempt: Option<i64>,
    /// Why, where it ended without success.
    pub note: Option<String>,
}

/// What became of a message for one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// How far it came.
    pub stage: Stage,
    /// What that comes to.
    pub verdict: Verdict,
    /// Why nothing happened; none where something did, or does.
    pub reason: Option<Reason>,
    /// Every stage that it went through, in order; of many attempts the newest.
    pub steps: Vec<Step>,
    /// How many attempts there were.
    pub attempts: i64,
    /// What the agent made of it, once it is processed.
    pub outcome: Option<Outcome>,
}

/// Says what became of a message for one participant at `now`.
///
/// What keeps it comes in this order, so that the first thing that would have to change is named first: there is no
/// delivery; it ended; a person stopped the agent; it works on it; its requests are refused; its connection.
pub fn account(facts: &Facts, now: Timestamp) -> Account {
    let Some(delivery) = &facts.delivery else { return undelivered(facts) };
    let (stage, verdict, reason) = match (delivery.state, delivery.ending) {
        (DeliveryState::Processed, _) => (Stage::Processed, Verdict::Done, None),
        (DeliveryState::Cancelled, _) => (Stage::Cancelled, Verdict::Ended, None),
        (DeliveryState::DeadLettered, _) => {
            let at = delivery.finished_at.unwrap_or(delivery.stored_at);
            (Stage::DeadLettered, Verdict::Ended, delivery.expired.then_some(Reason::Expired { at }))
        }
        // What was open when the recipient left ended then, even where that is not written yet.
        (_, Some(_)) => (Stage::Cancelled, Verdict::Ended, None),
        (DeliveryState::Failed, None) => (Stage::Failed, Verdict::Failed, None),
        (DeliveryState::Stored | DeliveryState::Delivered | DeliveryState::Processing, None) => {
            open(facts, delivery, now)
        }
    };
    let outcome = match stage {
        Stage::Processed => Some(delivery.newest.last().map(|last| last.outcome.clone()).unwrap_or_default()),
        _ => None,
    };
    Account { stage, verdict, reason, steps: steps(delivery), attempts: delivery.attempts, outcome }
}

/// Why there is no delivery.
fn undelivered(facts: &Facts) -> Account {
    let unknown = |missing| Reason::Unknown { missing, last: Certain::Posted, at: facts.posted_at };
    let reason = match (facts.kind, facts.named, facts.stay) {
        (Some(IdentityKind::User), Named::Mention, _) => unknown(Missing::Reading),
        // An agent that is mentioned has a delivery; somebody whom the room never knew is not mentioned.
        (Some(IdentityKind::Agent) | None, Named::Mention, _) => unknown(Missing::Consistency),
        // Its own message is no news to it, wherever it is now.
        (_, Named::Sender, _) => Reason::NotMentioned { named: Named::Sender },
        (_, _, Stay::Not { joined_at, left_at }) => Reason::NotAParticipant { joined_at, left_at },
        (None, _, Stay::Then) => unknown(Missing::Consistency),
        (Some(_), named @ (Named::No | Named::Reference), Stay::Then) => Reason::NotMentioned { named },
    };
    let verdict = match reason {
        Reason::Unknown { .. } => Verdict::Unknown,
        _ => Verdict::NotSent,
    };
    Account { stage: Stage::None, verdict, reason: Some(reason), steps: Vec::new(), attempts: 0, outcome: None }
}

/// The answer for a delivery that is still to be worked on.
fn open(facts: &Facts, delivery: &DeliveryFacts, now: Timestamp) -> (Stage, Verdict, Option<Reason>) {
    let last = delivery.newest.last();
    let running = last.filter(|_| delivery.state == DeliveryState::Processing);
    let sign =
        running.map(|attempt| (attempt, facts.active_at.map_or(attempt.started_at, |at| at.max(attempt.started_at))));
    let is_alive = sign.is_some_and(|(_, at)| now.as_micros().saturating_sub(at.as_micros()) <= facts.activity_ttl);
    // One that ended, and was given up or delivered again since, says nothing of now.
    let lapsed = running.and_then(|attempt| attempt.lapsed_at);
    let stage = match (delivery.state, delivery.pushed_at, delivery.served_at) {
        _ if lapsed.is_some() && !is_alive => Stage::Lapsed,
        (DeliveryState::Processing, _, _) => Stage::PickedUp,
        (_, Some(_), _) => Stage::Pushed,
        (_, None, Some(_)) => Stage::Served,
        (_, None, None) => Stage::Stored,
    };
    let reason = if let Some(stopped) = &facts.stopped {
        Reason::Stopped(stopped.clone())
    } else if is_alive {
        return (stage, Verdict::Working, None);
    } else if let Some(limited) = facts.limited.filter(|limited| limited.last_at >= last_contact(facts, delivery)) {
        Reason::RateLimited(limited)
    } else {
        match sign {
            Some((attempt, at)) => unfinished(facts, attempt, at),
            None => untaken(facts, delivery),
        }
    };
    let verdict = match reason {
        Reason::Unknown { .. } => Verdict::Unknown,
        _ => Verdict::Waiting,
    };
    (stage, verdict, Some(reason))
}

/// The newest thing that is known of the agent or of the message, besides refusals.
fn last_contact(facts: &Facts, delivery: &DeliveryFacts) -> Timestamp {
    let attempt = delivery.newest.last().map(|last| last.completed_at.unwrap_or(last.started_at));
    let others = [delivery.pushed_at, delivery.served_at, attempt, facts.active_at, facts.connection.moment()];
    others.into_iter().flatten().fold(delivery.stored_at, Timestamp::max)
}

/// Why a running attempt shows no sign of life since `sign`.
fn unfinished(facts: &Facts, attempt: &AttemptFacts, sign: Timestamp) -> Reason {
    let silent = Reason::NoActivity { since: sign, attempt: attempt.number };
    match facts.connection {
        Connection::Unknown { missing, .. } => Reason::Unknown { missing, last: Certain::Active, at: sign },
        // Whoever worked on after its socket was gone works without one.
        Connection::Offline { since, latest } if latest.unwrap_or(since) >= sign => Reason::Offline { since, latest },
        Connection::Online { .. } => match facts.superseded_at {
            // Also when the older program went on for a while: what had the message is gone.
            Some(at) if at > attempt.started_at => Reason::Superseded { at, attempt: Some(attempt.number) },
            _ => silent,
        },
        Connection::Offline { .. } | Connection::Never { .. } => silent,
    }
}

/// Why no attempt was begun.
fn untaken(facts: &Facts, delivery: &DeliveryFacts) -> Reason {
    let DeliveryFacts { stored_at, pushed_at, served_at, .. } = *delivery;
    let reached_at = pushed_at.max(served_at);
    let (last, at) = match (pushed_at, served_at) {
        (Some(at), served) if served.is_none_or(|served| served <= at) => (Certain::Pushed, at),
        (_, Some(at)) => (Certain::Served, at),
        _ => (Certain::Posted, stored_at),
    };
    let not_taken = |connected_since: Option<Timestamp>| Reason::NotTaken {
        since: [connected_since, reached_at].into_iter().flatten().fold(stored_at, Timestamp::max),
        connected_since,
        reached_at,
        busy_with: facts.busy_with,
    };
    match facts.connection {
        Connection::Online { since } => match (facts.superseded_at, reached_at) {
            (Some(at), Some(reached)) if at > reached => Reason::Superseded { at, attempt: None },
            _ => not_taken(Some(since)),
        },
        // Fetched without a socket, after the last one was gone.
        Connection::Offline { since, latest } => match served_at {
            Some(served) if served > latest.unwrap_or(since) => not_taken(None),
            _ => Reason::Offline { since, latest },
        },
        Connection::Never { since } => match (pushed_at, served_at) {
            // What never had a socket cannot have been pushed to.
            (Some(_), _) => Reason::Unknown { missing: Missing::Consistency, last, at },
            (None, Some(_)) => not_taken(None),
            (None, None) => Reason::NeverConnected { since },
        },
        Connection::Unknown { missing, last_at } => match last_at.filter(|seen| *seen > at) {
            Some(seen) => Reason::Unknown { missing, last: Certain::Connected, at: seen },
            None => Reason::Unknown { missing, last, at },
        },
    }
}

/// Every stage that was reached, in the order of a delivery's life.
fn steps(delivery: &DeliveryFacts) -> Vec<Step> {
    let plain = |stage, at| Step { stage, at, attempt: None, note: None };
    let mut steps = vec![plain(Stage::Stored, delivery.stored_at)];
    let mut reached = [(Stage::Pushed, delivery.pushed_at), (Stage::Served, delivery.served_at)];
    reached.sort_by_key(|(_, at)| *at);
    steps.extend(reached.into_iter().filter_map(|(stage, at)| Some(plain(stage, at?))));
    for attempt in &delivery.newest {
        let step = |stage, at, note| Step { stage, at, attempt: Some(attempt.number), note };
        steps.push(step(Stage::PickedUp, attempt.started_at, None));
        steps.extend(attempt.lapsed_at.map(|at| step(Stage::Lapsed, at, None)));
        steps.extend(attempt.completed_at.and_then(|at| match attempt.state {
            AttemptState::Success => Some(step(Stage::Processed, at, attempt.outcome.reason.clone())),
            AttemptState::Failed => Some(step(Stage::Failed, at, attempt.error.clone())),
            AttemptState::Processing => None,
        }));
    }
    let end = |stage, at, note| Step { stage, at, attempt: None, note };
    match (delivery.state, delivery.ending) {
        (DeliveryState::Cancelled | DeliveryState::DeadLettered, _) => {
            let stage = match delivery.state {
                DeliveryState::Cancelled => Stage::Cancelled,
                _ => Stage::DeadLettered,
            };
            steps.extend(delivery.finished_at.map(|at| end(stage, at, delivery.reason.clone())));
        }
        (DeliveryState::Processed, _) | (_, None) => {}
        (_, Some((at, why))) => steps.push(end(Stage::Cancelled, at, Some(why.to_owned()))),
    }
    steps
}

//! One turn: the adapter runs, people see that it works, and its end is judged.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bandstand_wire::ids::RoomId;
use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::room_state::{AbortReason, TurnEnd};
use super::settings::WorkingState;
use super::shared::Shared;
use crate::adapter::{HistoryEntry, IncomingMessage, TurnError, TurnInput};
use crate::client::Client;
use crate::client::socket::Mode;
use crate::failure::{AgentFailure, FailureReport, INTERNAL_ERROR};
use crate::tools::AgentTools;
use crate::turn::{self, Conclusion, MISSING_REPLY_MARK, RUNTIME_PROVIDER, RunEnd, Turn};

/// What a turn needs beside the message.
pub(super) struct Prepared {
    pub(super) message: IncomingMessage,
    pub(super) tools: AgentTools,
    pub(super) turn: Turn,
    pub(super) history: Vec<HistoryEntry>,
    pub(super) participants: Option<String>,
    pub(super) contacts: Option<String>,
    pub(super) is_session_start: bool,
    /// Whether a failure is told to the room: it is the last attempt.
    pub(super) last: bool,
    /// Whether people see that the agent works.
    pub(super) shows_work: bool,
}

/// The handle that gives a turn up.
#[derive(Clone, Debug)]
pub(super) struct Abort(watch::Sender<Option<AbortReason>>);

impl Abort {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Gives it up. The first reason stands.
    pub(super) fn now(&self, reason: AbortReason) {
        self.0.send_if_modified(|given| {
            let first = given.is_none();
            if first {
                *given = Some(reason);
            }
            first
        });
    }

    /// Resolves when it is given up.
    pub(super) async fn given(&self) -> AbortReason {
        let mut receiver = self.0.subscribe();
        // The sender is `self`, so waiting cannot fail; if it did, nothing would ever be given up.
        match receiver.wait_for(Option::is_some).await.ok().and_then(|given| *given) {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

/// How a turn ended, and whether the adapter took what it was told (history, participants, contacts).
pub(super) struct Ended {
    pub(super) end: TurnEnd,
    pub(super) accepted: bool,
}

/// Runs one turn to its end.
pub(super) async fn run(shared: &Arc<Shared>, prepared: Prepared, abort: Abort) -> Ended {
    let span = tracing::info_span!("turn", room = %prepared.message.room, message = %prepared.message.id);
    Box::pin(run_in(shared, prepared, abort).instrument(span)).await
}

async fn run_in(shared: &Arc<Shared>, prepared: Prepared, abort: Abort) -> Ended {
    let Prepared { message, tools, turn, history, participants, contacts, is_session_start, last, shows_work } =
        prepared;
    let room = message.room;
    if shared.adapter.try_handle_control(&message, &tools).await {
        return Ended { end: TurnEnd::Completed, accepted: false };
    }
    turn.begin(turn::judges(shared.adapter.judges_turns(), message.is_contact_event()));
    let cancel = CancellationToken::new();
    let input = TurnInput {
        message,
        tools: tools.clone(),
        history,
        participants,
        contacts,
        is_session_start,
        cancel: cancel.clone(),
    };
    let ended = {
        let running = AssertUnwindSafe(shared.adapter.on_message(input)).catch_unwind();
        let limit = time_limit(shared.settings.turn_limit);
        let working = show_work(&shared.client, room, shared.settings.working_state, shows_work);
        tokio::select! {
            // Who is told to stop stops, whatever else is ready.
            biased;
            reason = abort.given() => Run::Aborted(reason),
            result = running => Run::Returned(result),
            () = limit => Run::TooLong,
            () = working => Run::Stopped,
        }
    };
    // The adapter's future is gone, so nothing more is said in this turn. What it started beside itself is told.
    let interrupted = match &ended {
        Run::Aborted(reason) => Some(reason.mode()),
        Run::Stopped => Some(Mode::Stop),
        Run::TooLong => Some(Mode::Interrupt),
        Run::Returned(_) => None,
    };
    if let Some(mode) = interrupted {
        cancel.cancel();
        let told = tokio::time::timeout(shared.settings.turn_grace, shared.adapter.on_interrupt(room, mode)).await;
        if told.is_err() {
            tracing::warn!("the adapter's interrupt hook takes too long");
        }
    }
    if shows_work && shared.settings.working_state.reported {
        let timeout = shared.settings.working_state.timeout;
        if let Err(why) = shared.client.report_activity(room, false, timeout).await {
            tracing::debug!(%why, "the end of work was not reported");
        }
    }
    judge(shared, &tools, &turn, ended, last).await
}

enum Run {
    Returned(Result<Result<(), TurnError>, Box<dyn std::any::Any + Send>>),
    Aborted(AbortReason),
    Stopped,
    TooLong,
}

async fn judge(shared: &Shared, tools: &AgentTools, turn: &Turn, run: Run, last: bool) -> Ended {
    let ended = |end, accepted| Ended { end, accepted };
    match run {
        Run::Aborted(_) => ended(TurnEnd::Aborted, true),
        Run::Stopped => ended(TurnEnd::Stopped, true),
        Run::Returned(Ok(Ok(()))) => match turn.conclude(RunEnd::Returned) {
            Conclusion::MissingReply => {
                tracing::warn!("the turn ended without a reply");
                if turn.posts_missing_reply()
                    && let FailureReport::Stopped { .. } = tools.send_failure(&turn::missing_reply()).await
                {
                    return ended(TurnEnd::Stopped, true);
                }
                ended(TurnEnd::Failed(MISSING_REPLY_MARK.to_owned()), true)
            }
            _ => ended(TurnEnd::Completed, true),
        },
        Run::Returned(Ok(Err(TurnError::NotAccepted(why)))) => {
            turn.conclude(RunEnd::NotAccepted);
            tracing::info!(%why, "the input was not accepted; the message waits");
            ended(TurnEnd::NotAccepted, false)
        }
        Run::Returned(Ok(Err(TurnError::Stopped(_)))) => ended(TurnEnd::Stopped, true),
        Run::Returned(Ok(Err(TurnError::Reported(text)))) => {
            turn.conclude(RunEnd::Failed);
            tracing::warn!("the turn failed, and the room knows");
            ended(TurnEnd::Failed(text), true)
        }
        Run::Returned(Ok(Err(TurnError::Failed(why)))) => {
            tracing::error!(error = %chain(why.as_ref()), "the turn failed");
            failed(shared, tools, turn, INTERNAL_ERROR, last).await
        }
        Run::Returned(Err(_)) => {
            tracing::error!("the adapter panicked");
            failed(shared, tools, turn, INTERNAL_ERROR, last).await
        }
        Run::TooLong => {
            let limit = shared.settings.turn_limit.unwrap_or_default().as_secs_f64();
            tracing::error!(limit, "the turn took too long");
            failed(shared, tools, turn, &format!("the turn took longer than {limit} s"), last).await
        }
    }
}

/// The turn failed: the room is told once, after the last attempt, unless the adapter did so itself.
async fn failed(shared: &Shared, tools: &AgentTools, turn: &Turn, text: &str, last: bool) -> Ended {
    turn.conclude(RunEnd::Failed);
    if shared.settings.report_failures && last && !turn.is_reported() {
        let failure = AgentFailure::new(RUNTIME_PROVIDER, text);
        if let FailureReport::Stopped { .. } = tools.send_failure(&failure).await {
            return Ended { end: TurnEnd::Stopped, accepted: true };
        }
    }
    Ended { end: TurnEnd::Failed(text.to_owned()), accepted: true }
}

/// An error and what caused it, for the agent's own log.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

async fn time_limit(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Tells people again and again that the agent works. Resolves only when the platform says that it is stopped.
async fn show_work(client: &Client, room: RoomId, settings: WorkingState, shows: bool) {
    if !shows || !settings.reported {
        return std::future::pending().await;
    }
    let last = settings.longest.map(|longest| tokio::time::Instant::now() + longest);
    let mut failing = false;
    loop {
        let next = tokio::time::Instant::now() + settings.every;
        match client.report_activity(room, true, settings.timeout).await {
            Ok(true) => failing = false,
            Ok(false) => return,
            Err(why) if !failing => {
                failing = true;
                tracing::warn!(%why, "that the agent works is not shown");
            }
            Err(_) => {}
        }
        if last.is_some_and(|last| next > last) {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(next).await;
    }
}

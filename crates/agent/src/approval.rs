//! Tools that a person must allow, call by call.
//!
//! When a model calls a tool whose policy is [`Approval::Ask`](crate::registry::Approval::Ask), the room is asked, and
//! the call waits. A person who may decide answers with `/approve` or `/decline` at the start of a message, with the id of
//! the question if several are open. Without an answer within 300 s the answer is no.
//!
//! The turn that asks keeps its room busy, so the answer must be looked at before it waits behind that turn: whoever
//! receives messages gives each to [`Approvals::take`] first, as the runtime does.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bandstand_wire::ids::{IdentityId, RoomId};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::adapter::{IncomingMessage, Sender};
use crate::tools::AgentTools;

/// Longest piece of a call's arguments that a question shows, in characters.
const SHOWN_MAX: usize = 1000;

/// Who may decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approvers {
    /// Any person in the room. Agents never decide.
    #[default]
    People,
    /// Only these people.
    Only(BTreeSet<IdentityId>),
}

impl Approvers {
    fn admit(&self, id: IdentityId, kind: &str) -> bool {
        kind == "User"
            && match self {
                Self::People => true,
                Self::Only(ids) => ids.contains(&id),
            }
    }
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Somebody allows the call.
    Approved,
    /// Somebody does not.
    Declined,
    /// Nobody answered in time.
    TimedOut,
    /// The room could not be asked.
    NotAsked(String),
}

/// What a message meant for the questions of its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing: it goes its usual way.
    No,
    /// It decided something, or tried to. It is done; the text says what happened, and may be posted as a notice.
    Yes(String),
}

struct Question {
    tool: String,
    answer: oneshot::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// The open questions of each room, in the order in which they were asked.
    rooms: HashMap<RoomId, Vec<(String, Question)>>,
}

struct Inner {
    approvers: Approvers,
    timeout: Duration,
    state: Mutex<State>,
}

/// All open questions of an agent. Cloning shares them.
#[derive(Clone)]
pub struct Approvals(Arc<Inner>);

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").field("approvers", &self.0.approvers).finish_non_exhaustive()
    }
}

impl Default for Approvals {
    fn default() -> Self {
        Self::new(Approvers::default(), Duration::from_secs(300))
    }
}

impl Approvals {
    /// Who may decide, and how long a question waits.
    pub fn new(approvers: Approvers, timeout: Duration) -> Self {
        Self(Arc::new(Inner { approvers, timeout, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a room has an open question.
    pub fn is_waiting(&self, room: RoomId) -> bool {
        self.state().rooms.contains_key(&room)
    }

    /// Asks a room whether a tool may be called. Dropping the future withdraws the question.
    pub async fn ask(&self, tools: &AgentTools, tool: &str, arguments: &Value) -> Decision {
        let room = tools.room();
        let options = tools.client().options();
        if !tools.roster().is_loaded()
            && let Err(error) = tools.get_participants().await
        {
            return Decision::NotAsked(error.to_string());
        }
        let members = tools.participants();
        let deciding: Vec<String> = members
            .iter()
            .filter(|member| self.0.approvers.admit(member.id, &member.kind))
            .map(|member| member.id.to_string())
            .collect();
        if deciding.is_empty() {
            return Decision::NotAsked("nobody in the room may decide".into());
        }
        // Four random digits: a question of an earlier process must not be answered by its leftover reply.
        let id = format!("{:04x}", options.randomness.uuid().as_u128() & 0xffff);
        let (answer, answered) = oneshot::channel();
        let question = Question { tool: tool.to_owned(), answer };
        self.state().rooms.entry(room).or_default().push((id.clone(), question));
        let open = Open { approvals: self, room, id: &id };
        let mut shown: String = arguments.to_string().chars().take(SHOWN_MAX + 1).collect();
        if shown.chars().count() > SHOWN_MAX {
            shown.pop();
            shown.push('…');
        }
        let seconds = self.0.timeout.as_secs();
        let text = format!(
            "May I call `{tool}` with {shown}?\nAnswer `/approve {id}` or `/decline {id}` within {seconds} s; otherwise I \
             will not."
        );
        match tools.send_notice(&text, &deciding).await {
            Ok(_) => {}
            Err(error) => return Decision::NotAsked(error.to_string()),
        }
        let decision = tokio::select! {
            answer = answered => match answer {
                Ok(true) => Decision::Approved,
                Ok(false) => Decision::Declined,
                Err(_) => Decision::TimedOut,
            },
            () = options.clock.sleep(self.0.timeout) => Decision::TimedOut,
        };
        drop(open);
        decision
    }

    /// Whether a message answers a question of its room. Agents decide nothing; a person who may not is told so.
    pub fn take(&self, message: &IncomingMessage) -> Taken {
        let Sender::Identity { id: sender, kind, .. } = &message.sender else { return Taken::No };
        let Some((approve, wanted)) = read(&message.content) else { return Taken::No };
        let mut state = self.state();
        if kind != "User" {
            return Taken::No;
        }
        let Some(open) = state.rooms.get_mut(&message.room) else { return Taken::No };
        if !self.0.approvers.admit(*sender, kind) {
            return Taken::Yes("You may not decide this.".into());
        }
        let at = match &wanted {
            Some(wanted) => open.iter().position(|(id, _)| id.eq_ignore_ascii_case(wanted)),
            None if open.len() == 1 => Some(0),
            None => {
                let ids: Vec<&str> = open.iter().map(|(id, _)| id.as_str()).collect();
                return Taken::Yes(format!("Several calls wait: say which one, of {}.", ids.join(", ")));
            }
        };
        let Some(at) = at else {
            return Taken::Yes("No such call waits any more.".into());
        };
        let (id, question) = open.remove(at);
        if open.is_empty() {
            state.rooms.remove(&message.room);
        }
        drop(state);
        let word = if approve { "Approved" } else { "Declined" };
        match question.answer.send(approve) {
            Ok(()) => Taken::Yes(format!("{word}: `{}` ({id}).", question.tool)),
            // Whoever asked has given up just now.
            Err(_) => Taken::Yes("No such call waits any more.".into()),
        }
    }
}

/// A question that is withdrawn when nobody waits for it any more.
struct Open<'a> {
    approvals: &'a Approvals,
    room: RoomId,
    id: &'a str,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.approvals.state();
        if let Some(open) = state.rooms.get_mut(&self.room) {
            open.retain(|(id, _)| id != self.id);
            if open.is_empty() {
                state.rooms.remove(&self.room);
            }
        }
    }
}

/// `/approve [id]` or `/decline [id]`, after whom the message mentions.
fn read(content: &str) -> Option<(bool, Option<String>)> {
    let mut words = content.split_whitespace().skip_while(|word| word.starts_with('@'));
    let approve = match words.next()?.to_ascii_lowercase().as_str() {
        "/approve" => true,
        "/decline" => false,
        _ => return None,
    };
    Some((approve, words.next().map(|word| word.trim_matches(['`', '.', ',']).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::ids::MessageId;
    use uuid::Uuid;

    const ROOM: RoomId = RoomId(Uuid::from_u128(1));
    const ANN: IdentityId = IdentityId(Uuid::from_u128(2));

    fn message(kind: &str, content: &str) -> IncomingMessage {
        IncomingMessage {
            id: MessageId(Uuid::from_u128(9)),
            room: ROOM,
            sender: Sender::Identity { id: ANN, kind: kind.into(), name: None },
            content: content.into(),
            attachments: Vec::new(),
            inserted_at: None,
            metadata: None,
        }
    }

    fn asked(approvals: &Approvals, id: &str) -> oneshot::Receiver<bool> {
        let (answer, answered) = oneshot::channel();
        let question = Question { tool: "pay".into(), answer };
        approvals.state().rooms.entry(ROOM).or_default().push((id.into(), question));
        answered
    }

    #[test]
    fn a_reply_is_read_at_the_start_of_a_message_only() {
        assert_eq!(read("/approve"), Some((true, None)));
        assert_eq!(read("@ann/bot /Decline `3f2a`. thanks"), Some((false, Some("3f2a".into()))));
        assert_eq!(read("@[[018f]] @x /approve 1"), Some((true, Some("1".into()))));
        for other in ["", "please /approve", "/approved", "approve", "@x"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn one_open_question_needs_no_id_and_several_do() {
        let approvals = Approvals::default();
        let mut first = asked(&approvals, "aaaa");
        assert_eq!(approvals.take(&message("User", "/approve")), Taken::Yes("Approved: `pay` (aaaa).".into()));
        assert_eq!(first.try_recv(), Ok(true));
        assert!(!approvals.is_waiting(ROOM));
        assert_eq!(approvals.take(&message("User", "/approve")), Taken::No);

        let (_first, mut second) = (asked(&approvals, "aaaa"), asked(&approvals, "bbbb"));
        let which = Taken::Yes("Several calls wait: say which one, of aaaa, bbbb.".into());
        assert_eq!(approvals.take(&message("User", "/approve")), which);
        assert_eq!(approvals.take(&message("User", "/decline BBBB")), Taken::Yes("Declined: `pay` (bbbb).".into()));
        assert_eq!(second.try_recv(), Ok(false));
        let gone = Taken::Yes("No such call waits any more.".into());
        assert_eq!(approvals.take(&message("User", "/approve bbbb")), gone);
    }

    #[test]
    fn only_those_who_may_decide() {
        let approvals = Approvals::new(Approvers::Only(BTreeSet::new()), Duration::from_secs(1));
        let mut open = asked(&approvals, "aaaa");
        assert_eq!(approvals.take(&message("Agent", "/approve")), Taken::No);
        assert_eq!(approvals.take(&message("User", "/approve")), Taken::Yes("You may not decide this.".into()));
        assert!(open.try_recv().is_err());
    }
}

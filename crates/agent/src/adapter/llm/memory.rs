//! What a model remembers of its rooms.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bandstand_llm::transcript::model::Content;
use bandstand_llm::transcript::{Message, Part, Role, Transcript, room as rows};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use serde_json::{Value, json};

use crate::adapter::HistoryEntry;

/// What an image costs, in tokens: more or less what providers count.
const IMAGE_TOKENS: usize = 1_000;

/// A room as the model knows it, without the system text.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    pub(super) transcript: Transcript,
    /// The last message that is part of it.
    pub(super) heard: Option<MessageId>,
}

#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<RoomId, Remembered>>);

impl Memory {
    fn rooms(&self) -> MutexGuard<'_, HashMap<RoomId, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts with what the room's history says, unless the room is known already. Whether it was not.
    pub(super) fn begin(&self, room: RoomId, history: &[HistoryEntry], me: Option<IdentityId>, tokens: usize) -> bool {
        let mut rooms = self.rooms();
        if rooms.contains_key(&room) {
            return false;
        }
        let rows = rows_of(history);
        let me = me.map(|me| me.to_string()).unwrap_or_default();
        let decoded = rows::decode_rows(&rows, &me);
        for warning in decoded.warnings.iter() {
            tracing::debug!(code = %warning.code, detail = warning.detail, "part of the room's history is left out");
        }
        let transcript = bounded(decoded.transcript, tokens);
        rooms.insert(room, Remembered { transcript, heard: None });
        true
    }

    pub(super) fn recall(&self, room: RoomId) -> Remembered {
        self.rooms().get(&room).cloned().unwrap_or_default()
    }

    /// Keeps a conversation whose last message from the room was `heard`.
    pub(super) fn keep(&self, room: RoomId, heard: MessageId, transcript: &Transcript, tokens: usize) {
        let said = transcript.messages.iter().filter(|message| message.role != Role::System).cloned().collect();
        let transcript = bounded(Transcript { messages: said, stop_reason: transcript.stop_reason }, tokens);
        self.rooms().insert(room, Remembered { transcript, heard: Some(heard) });
    }

    pub(super) fn forget(&self, room: RoomId) {
        self.rooms().remove(&room);
    }
}

/// Rows as `/context` has them.
pub(super) fn rows_of(history: &[HistoryEntry]) -> Vec<Value> {
    history.iter().map(row).collect()
}

fn row(entry: &HistoryEntry) -> Value {
    json!({
        "message_type": entry.message_type,
        "content": entry.content,
        "sender_id": entry.sender.id().map(|id| id.to_string()),
        "sender_name": entry.sender.name(),
    })
}

/// The newest part that fits, from the beginning of somebody's turn: a call and its result stay or go together. The
/// last turn stays whatever it costs.
fn bounded(mut transcript: Transcript, tokens: usize) -> Transcript {
    let mut left = tokens;
    let mut start = None;
    for (at, message) in transcript.messages.iter().enumerate().rev() {
        let cost = cost(message);
        if cost > left && start.is_some() {
            break;
        }
        left = left.saturating_sub(cost);
        if message.role == Role::User {
            start = Some(at);
        }
    }
    match start {
        // Nobody has asked anything: a conversation begins with its first question.
        None => transcript.messages.clear(),
        Some(start) => {
            transcript.messages.drain(..start);
        }
    }
    transcript
}

fn cost(message: &Message) -> usize {
    let text = |text: &str| text.chars().count() / 4;
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(part) => text(&part.text),
        Part::Refusal(part) => text(&part.text),
        Part::Reasoning(part) => text(&part.text) + part.signature.as_deref().map_or(0, text),
        Part::ToolCall(call) => text(&call.input.wire_text()) + 10,
        Part::ToolResult(result) => {
            let content = result.output.content.iter().map(|content| match content {
                Content::Text(part) => text(&part.text),
                Content::Image(_) => IMAGE_TOKENS,
                Content::Foreign(part) => text(&part.block.to_string()),
            });
            content.sum::<usize>() + 10
        }
        Part::Image(_) => IMAGE_TOKENS,
        Part::Foreign(part) => text(&part.block.to_string()),
    });
    parts.sum::<usize>() + 4
}

#[cfg(test)]
mod tests {
    use bandstand_llm::transcript::{ToolCall, ToolCallId, ToolInput, ToolName, ToolOutput, ToolResult};

    use super::*;

    fn exchange(id: &str) -> Vec<Message> {
        let call = ToolCall {
            id: ToolCallId::new(id),
            name: ToolName::new("tide"),
            input: ToolInput::object(serde_json::Map::new()),
            signature: None,
            carried: bandstand_llm::transcript::model::Carried::default(),
        };
        let result = ToolResult {
            call_id: call.id.clone(),
            name: None,
            output: ToolOutput::text("x".repeat(400)),
            carried: bandstand_llm::transcript::model::Carried::default(),
        };
        vec![
            Message::text(Role::User, format!("question {id}")),
            Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
            Message::new(Role::Tool, vec![Part::ToolResult(result)]),
            Message::text(Role::Assistant, "answer"),
        ]
    }

    #[test]
    fn whole_turns_stay_or_go() {
        let all: Vec<Message> = ["a", "b", "c"].into_iter().flat_map(exchange).collect();
        let whole: usize = all.iter().map(cost).sum();
        for tokens in 0..=whole {
            let kept = bounded(Transcript::new(all.clone()), tokens);
            assert_eq!(kept.messages[0].role, Role::User, "{tokens}");
            assert!(kept.open_calls().is_empty());
            assert_eq!(kept.messages.len() % 4, 0);
            assert_eq!(kept.messages.last(), all.last());
            let costs: usize = kept.messages.iter().map(cost).sum();
            assert!(costs <= tokens || kept.messages.len() == 4);
        }
        assert_eq!(bounded(Transcript::new(all.clone()), whole).messages, all);
        let alone = vec![Message::text(Role::Assistant, "Hello?")];
        assert!(bounded(Transcript::new(alone), 100).messages.is_empty());
    }
}

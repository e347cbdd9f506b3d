//! Our own rooms: rows of `/context` to a transcript, and calls and results to the events that every Band SDK writes.
//!
//! A `tool_call` event holds `{"name", "args", "tool_call_id"}` as text, a `tool_result` event
//! `{"name", "output", "tool_call_id", "is_error"}`. The form of older LangGraph agents
//! (`{"name", "run_id", "data": {"input" | "output"}}`) is read too.

mod rows;

use serde_json::{Map, Value, json};

pub use rows::{RoomFinding, RoomHistory, history_of_rows, lint_rows};

use crate::convert::Decoded;
use crate::format::WarningCode;
use crate::ids::{ToolCallId, ToolName};
use crate::json::{blank, filled, string};
use crate::model::{Carried, Message, Part, Role, TextPart, ToolCall, ToolInput, ToolOutput, ToolResult};

/// The longest content of an event, in characters.
pub const MAX_EVENT_CONTENT: usize = 16_384;

/// An event to post into a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomEvent {
    /// `tool_call` or `tool_result`.
    pub message_type: &'static str,
    /// JSON as text.
    pub content: String,
}

/// Reads rows as `/context` gives them, oldest first, from the point of view of the agent `me` (its id).
///
/// Its own texts and calls are the assistant's. Others' texts are the user's, with the name in front, because no
/// provider format has more than one other side. Thoughts, errors and tasks are not part of a conversation with a
/// model. A result that answers nothing is left out with a warning; a call without a result stays open, and
/// [`ProviderHistory`](crate::histories::ProviderHistory) closes it in the copy that is sent.
pub fn decode_rows(rows: &[Value], me: &str) -> Decoded {
    decode_rows_with_sources(rows, me).0
}

/// The same, and for each part of each message the row that it came from.
pub fn decode_rows_with_sources(rows: &[Value], me: &str) -> (Decoded, Vec<Vec<usize>>) {
    let mut reader = Reader { decoded: Decoded::default(), open: Vec::new() };
    let mut sources: Vec<Vec<usize>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let own = string(row, "sender_id") == me;
        let content = string(row, "content");
        match (string(row, "message_type"), own) {
            ("text" | "", true) if !blank(content) => reader.said(content),
            ("text" | "", false) if !blank(content) => {
                let name = filled(row, "sender_name").or_else(|| filled(row, "name"));
                let text = name.map_or_else(|| content.to_owned(), |name| format!("[{name}]: {content}"));
                reader.decoded.transcript.push(Message::text(Role::User, text));
            }
            ("tool_call", true) => reader.call(content),
            ("tool_result", true) => reader.result(content),
            _ => {}
        }
        // What a row adds is at the end: a message, or parts of the last one.
        let messages = &reader.decoded.transcript.messages;
        sources.resize(messages.len(), Vec::new());
        if let (Some(parts), Some(last)) = (sources.last_mut(), messages.last()) {
            parts.resize(last.parts.len(), at);
        }
    }
    (reader.decoded, sources)
}

/// The event of a call.
pub fn call_event(call: &ToolCall) -> RoomEvent {
    let args = call.input.wire_object();
    let content = |args: &Value| {
        json!({ "name": call.name.as_str(), "args": args, "tool_call_id": call.id.as_str() }).to_string()
    };
    let mut text = content(&args);
    if text.chars().count() > MAX_EVENT_CONTENT {
        text = content(&json!({ "truncated": shortened(&args.to_string(), MAX_EVENT_CONTENT / 4) }));
    }
    RoomEvent { message_type: "tool_call", content: text }
}

/// The event of a result; `name` is the tool's. Images are told in words: events are text.
pub fn result_event(result: &ToolResult, name: &ToolName) -> RoomEvent {
    let images = result.output.content.len()
        - result.output.content.iter().filter(|part| matches!(part, crate::model::Content::Text(_))).count();
    let mut output = result.output.all_text();
    if images > 0 {
        let word = if images == 1 { "image" } else { "images" };
        output = format!("{output}{}[{images} {word}]", if output.is_empty() { "" } else { "\n" });
    }
    let content = |output: &str| {
        json!({
            "name": name.as_str(), "output": output, "tool_call_id": result.call_id.as_str(),
            "is_error": result.output.is_error,
        })
        .to_string()
    };
    let mut text = content(&output);
    let mut room = MAX_EVENT_CONTENT;
    // Escapes make the text longer than the output; each round leaves less of it.
    while text.chars().count() > MAX_EVENT_CONTENT && room > 1 {
        room /= 2;
        text = content(&shortened(&output, room));
    }
    RoomEvent { message_type: "tool_result", content: text }
}

fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}… (shortened)", &text[..end]),
        None => text.to_owned(),
    }
}

struct Reader {
    decoded: Decoded,
    /// Calls without a result, by id and name.
    open: Vec<(ToolCallId, ToolName)>,
}

impl Reader {
    fn said(&mut self, text: &str) {
        self.decoded.transcript.push(Message::text(Role::Assistant, text));
    }

    fn skip(&mut self, what: &str) {
        self.decoded.warnings.add(WarningCode::Unreadable, what);
    }

    fn call(&mut self, content: &str) {
        let Some(event) = object(content) else { return self.skip("a tool_call event that is no JSON object") };
        let (Some(name), Some(id)) = (filled(&event, "name"), id_of(&event)) else {
            return self.skip("a tool_call event without a name or an id");
        };
        let arguments = event.get("args").or_else(|| event.pointer("/data/input"));
        let input = match arguments {
            Some(Value::Object(fields)) => ToolInput::object(fields.clone()),
            Some(Value::String(text)) => {
                ToolInput::object(ToolInput::from_text(text).0.fields().cloned().unwrap_or_default())
            }
            // As every SDK reads it.
            _ => ToolInput::object(Map::new()),
        };
        let call = ToolCall {
            id: ToolCallId::new(id),
            name: ToolName::new(name),
            input,
            signature: None,
            carried: Carried::default(),
        };
        self.open.push((call.id.clone(), call.name.clone()));
        // Calls that follow one another are one turn, and so is the text in front of them.
        match self.decoded.transcript.messages.last_mut() {
            Some(last) if last.role == Role::Assistant => last.parts.push(Part::ToolCall(call)),
            _ => self.decoded.transcript.push(Message::new(Role::Assistant, vec![Part::ToolCall(call)])),
        }
    }

    fn result(&mut self, content: &str) {
        let Some(event) = object(content) else { return self.skip("a tool_result event that is no JSON object") };
        let name = filled(&event, "name");
        let id = id_of(&event);
        let by_id = id.and_then(|id| self.open.iter().position(|(open, _)| open.as_str() == id));
        let by_name = name.and_then(|name| {
            let mut named = self.open.iter().enumerate().filter(|(_, (_, open))| open.as_str() == name);
            // Only where there is no doubt.
            named.next().filter(|_| named.next().is_none()).map(|(at, _)| at)
        });
        let Some(at) = by_id.or(by_name) else { return self.skip("a tool_result event that answers no call") };
        let (call_id, _) = self.open.remove(at);
        let output = event.get("output").or_else(|| event.pointer("/data/output")).unwrap_or(&Value::Null);
        let text = match output {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let output = ToolOutput { is_error, ..ToolOutput::text(text) };
        let result = ToolResult { call_id, name: name.map(ToolName::new), output, carried: Carried::default() };
        self.decoded.transcript.push(Message::new(Role::Tool, vec![Part::ToolResult(result)]));
    }
}

fn object(content: &str) -> Option<Value> {
    serde_json::from_str::<Value>(content).ok().filter(Value::is_object)
}

fn id_of(event: &Value) -> Option<&str> {
    filled(event, "tool_call_id").or_else(|| filled(event, "run_id"))
}

/// Text of somebody else, as [`decode_rows`] writes it.
pub fn said_by(name: &str, text: &str) -> Part {
    Part::Text(TextPart::new(format!("[{name}]: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::EncodeOptions;
    use crate::format::Format;
    use crate::histories::ProviderHistory;

    fn row(sender: &str, kind: &str, content: &str) -> Value {
        json!({ "sender_id": sender, "sender_name": sender.to_uppercase(), "message_type": kind, "content": content })
    }

    #[test]
    fn a_room_is_a_conversation() {
        let rows = [
            row("ana", "text", "tides?"),
            row("me", "thought", "hm"),
            row("me", "tool_call", r#"{"name":"tide","args":{"port":"K"},"tool_call_id":"c1"}"#),
            row("me", "tool_call", r#"{"name":"wind","args":"{\"at\":1}","tool_call_id":"c2"}"#),
            row("me", "tool_result", r#"{"name":"wind","output":"12 kn","tool_call_id":"c2","is_error":true}"#),
            row("me", "tool_result", r#"{"name":"tide","output":{"m":5},"tool_call_id":"c1"}"#),
            row("me", "tool_result", r#"{"name":"tide","output":"again","tool_call_id":"c1"}"#),
            row("me", "text", "5 m"),
            row("bob", "tool_call", r#"{"name":"x","args":{},"tool_call_id":"c9"}"#),
        ];
        let decoded = decode_rows(&rows, "me");
        let expected = json!({ "messages": [
            { "role": "user", "parts": [{ "type": "text", "text": "[ANA]: tides?" }] },
            { "role": "assistant", "parts": [
                { "type": "tool_call", "id": "c1", "name": "tide", "arguments": { "port": "K" } },
                { "type": "tool_call", "id": "c2", "name": "wind", "arguments": { "at": 1 } },
            ] },
            { "role": "tool", "parts": [
                { "type": "tool_result", "call_id": "c2", "content": [{ "type": "text", "text": "12 kn" }],
                  "is_error": true, "name": "wind" },
                { "type": "tool_result", "call_id": "c1", "content": [{ "type": "text", "text": "{\"m\":5}" }],
                  "is_error": false, "name": "tide" },
            ] },
            { "role": "assistant", "parts": [{ "type": "text", "text": "5 m" }] },
        ] });
        assert_eq!(decoded.transcript.to_canonical(), expected);
        assert!(decoded.warnings.has(WarningCode::Unreadable));
    }

    #[test]
    fn langgraph_rows_and_open_calls() {
        let rows = [
            row("me", "tool_call", r#"{"name":"tide","run_id":"r1","data":{"input":{"port":"K"}}}"#),
            row("me", "tool_result", r#"{"name":"tide","run_id":"other","data":{"output":"5 m"}}"#),
            row("me", "tool_call", r#"{"name":"tide","args":{},"tool_call_id":"c2"}"#),
            row("ana", "text", "still there?"),
        ];
        let decoded = decode_rows(&rows, "me");
        assert_eq!(decoded.transcript.open_calls().len(), 1);
        for format in Format::ALL {
            let sent = ProviderHistory::prepare(&decoded.transcript, format, &EncodeOptions::default());
            let findings = crate::lint::lint(sent.payload(), &crate::lint::LintOptions::new(format));
            assert!(!crate::lint::has_errors(&findings), "{format}: {findings:?}");
        }
    }

    #[test]
    fn events_come_back_and_stay_within_the_limit() {
        let call = ToolCall {
            id: ToolCallId::new("c1"),
            name: ToolName::new("tide"),
            input: ToolInput::object(Map::from_iter([("port".to_owned(), json!("Kestrel \"Quay\""))])),
            signature: None,
            carried: Carried::default(),
        };
        let output = ToolOutput::error("\u{1F600}\"\n".repeat(9_000));
        let result = ToolResult { call_id: call.id.clone(), name: None, output, carried: Carried::default() };
        let events = [call_event(&call), result_event(&result, &call.name)];
        let rows: Vec<Value> = events.iter().map(|event| row("me", event.message_type, &event.content)).collect();
        assert!(events.iter().all(|event| event.content.chars().count() <= MAX_EVENT_CONTENT));
        let decoded = decode_rows(&rows, "me");
        let back = decoded.transcript.messages[0].calls().next().expect("the call");
        assert_eq!((back.id.clone(), back.input.clone()), (call.id, call.input));
        assert!(decoded.transcript.messages[1].results().next().expect("the result").output.is_error);
    }
}

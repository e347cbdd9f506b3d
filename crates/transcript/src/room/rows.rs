//! A room's history as a provider would get it from an SDK that repairs nothing, and what would be wrong with it.

use serde_json::{Value, json};

use super::{id_of, object};
use crate::convert::marked;
use crate::format::Format;
use crate::json::{blank, filled, string};
use crate::lint::{self, Finding, FindingCode, LintOptions};
use crate::model::ToolInput;

/// A room's history in a provider's format, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomHistory {
    /// `messages`, or `input`.
    pub payload: Value,
    /// For each message or item, the rows that it is made of, each with the id of the call that it is about.
    pub sources: Vec<Vec<(usize, Option<String>)>>,
    /// Rows that cannot be read, each with the index that it would have had.
    pub unreadable: Vec<(usize, usize)>,
}

/// What is wrong with a room's history, and in which rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomFinding {
    /// What; its index counts the messages of [`RoomHistory::payload`].
    pub finding: Finding,
    /// The rows concerned, as positions in what was given.
    pub rows: Vec<usize>,
}

/// Writes rows as `/context` gives them, oldest first, from the point of view of the agent `me`: as
/// [`decode_rows`](super::decode_rows) reads them, but with every fault left in.
pub fn history_of_rows(rows: &[Value], me: &str, format: Format) -> RoomHistory {
    let mut writer =
        Writer { format, items: Vec::new(), sources: Vec::new(), unreadable: Vec::new(), open: Vec::new() };
    for (row_index, row) in rows.iter().enumerate() {
        let own = string(row, "sender_id") == me;
        let content = string(row, "content");
        match (string(row, "message_type"), own) {
            ("text" | "", true) if !blank(content) => writer.text(row_index, "assistant", content),
            ("text" | "", false) if !blank(content) => {
                let name = filled(row, "sender_name").or_else(|| filled(row, "name"));
                let text = name.map_or_else(|| content.to_owned(), |name| format!("[{name}]: {content}"));
                writer.text(row_index, "user", &text);
            }
            ("tool_call", true) => writer.call(row_index, content),
            ("tool_result", true) => writer.result(row_index, content),
            _ => {}
        }
    }
    let key = if format == Format::OpenAiResponses { "input" } else { "messages" };
    RoomHistory { payload: json!({ key: writer.items }), sources: writer.sources, unreadable: writer.unreadable }
}

/// Checks a room's history as it would be sent with the next message: a call that has no result by then has none.
pub fn lint_rows(rows: &[Value], me: &str, options: &LintOptions) -> Vec<RoomFinding> {
    let mut history = history_of_rows(rows, me, options.format);
    let key = if options.format == Format::OpenAiResponses { "input" } else { "messages" };
    if let Some(items) = history.payload.get_mut(key).and_then(Value::as_array_mut) {
        items.push(json!({ "role": "user", "content": "(the next message)" }));
    }
    let mut found: Vec<RoomFinding> = lint::lint(&history.payload, options)
        .into_iter()
        .map(|finding| {
            let made_of = history.sources.get(finding.index).map_or(&[][..], Vec::as_slice);
            let about = |(_, id): &&(usize, Option<String>)| id.as_ref().is_some_and(|id| finding.ids.contains(id));
            let mut rows: Vec<usize> = made_of.iter().filter(about).map(|(row, _)| *row).collect();
            if rows.is_empty() {
                rows = made_of.iter().map(|(row, _)| *row).collect();
            }
            RoomFinding { finding, rows }
        })
        .collect();
    for (row, index) in &history.unreadable {
        let finding = lint::finding(FindingCode::UnreadableEvent, options.format, *index);
        found.push(RoomFinding { finding, rows: vec![*row] });
    }
    found.sort_by_key(|found| (found.rows.first().copied(), found.finding.index));
    found
}

struct Writer {
    format: Format,
    items: Vec<Value>,
    sources: Vec<Vec<(usize, Option<String>)>>,
    unreadable: Vec<(usize, usize)>,
    /// Calls without a result, by id and name.
    open: Vec<(String, String)>,
}

impl Writer {
    fn push(&mut self, row: usize, id: Option<&str>, item: Value) {
        self.items.push(item);
        self.sources.push(vec![(row, id.map(str::to_owned))]);
    }

    fn skip(&mut self, row: usize) {
        self.unreadable.push((row, self.items.len()));
    }

    fn text(&mut self, row: usize, role: &str, text: &str) {
        self.push(row, None, json!({ "role": role, "content": text }));
    }

    fn call(&mut self, row: usize, content: &str) {
        let Some(event) = object(content) else { return self.skip(row) };
        let (Some(name), Some(id)) = (filled(&event, "name"), id_of(&event)) else { return self.skip(row) };
        self.open.push((id.to_owned(), name.to_owned()));
        let given = event.get("args").or_else(|| event.pointer("/data/input"));
        let text = match given {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(fields)) => Value::Object(fields.clone()).to_string(),
            // As every SDK reads it.
            _ => "{}".to_owned(),
        };
        match self.format {
            Format::OpenAiChat => {
                let call = json!({ "id": id, "type": "function", "function": { "name": name, "arguments": text } });
                // Calls that follow one another are one turn, and so is the text in front of them.
                match (self.items.last_mut(), self.sources.last_mut()) {
                    (Some(last), Some(rows)) if last["role"] == "assistant" => {
                        match last.get_mut("tool_calls").and_then(Value::as_array_mut) {
                            Some(calls) => calls.push(call),
                            None => last["tool_calls"] = json!([call]),
                        }
                        rows.push((row, Some(id.to_owned())));
                    }
                    _ => {
                        let item = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
                        self.push(row, Some(id), item);
                    }
                }
            }
            Format::OpenAiResponses => {
                let item = json!({ "type": "function_call", "call_id": id, "name": name, "arguments": text });
                self.push(row, Some(id), item);
            }
            Format::Anthropic => {
                let (input, _) = ToolInput::from_text(&text);
                let input = input.fields().map_or(json!(text), |fields| Value::Object(fields.clone()));
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
                self.push(row, Some(id), json!({ "role": "assistant", "content": [block] }));
            }
        }
    }

    fn result(&mut self, row: usize, content: &str) {
        let Some(event) = object(content) else { return self.skip(row) };
        let (name, given) = (filled(&event, "name"), id_of(&event));
        let by_id = given.and_then(|id| self.open.iter().position(|(open, _)| open == id));
        let by_name = name.and_then(|name| {
            let mut named = self.open.iter().enumerate().filter(|(_, (_, open))| open == name);
            // Only where there is no doubt.
            named.next().filter(|_| named.next().is_none()).map(|(at, _)| at)
        });
        let id = match by_id.or(by_name) {
            Some(at) => self.open.remove(at).0,
            None => given.unwrap_or_default().to_owned(),
        };
        let output = event.get("output").or_else(|| event.pointer("/data/output")).unwrap_or(&Value::Null);
        let text = match output {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let failed = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let told = if failed { marked(&text) } else { text.clone() };
        let item = match self.format {
            Format::OpenAiChat => json!({ "role": "tool", "tool_call_id": id, "content": told }),
            Format::OpenAiResponses => json!({ "type": "function_call_output", "call_id": id, "output": told }),
            Format::Anthropic => json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed },
            ] }),
        };
        self.push(row, Some(&id), item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sender: &str, kind: &str, content: &str) -> Value {
        json!({ "sender_id": sender, "sender_name": sender, "message_type": kind, "content": content })
    }

    /// Each finding as its code and its rows.
    fn found(rows: &[Value], format: Format) -> Vec<(&'static str, Vec<usize>)> {
        let found = lint_rows(rows, "me", &LintOptions::new(format));
        found.into_iter().map(|found| (found.finding.code.code(), found.rows)).collect()
    }

    #[test]
    fn a_whole_room_is_clean_in_every_format() {
        let rows = [
            row("ana", "text", "tides?"),
            row("me", "text", "I look."),
            row("me", "tool_call", r#"{"name":"tide","args":{"port":"K"},"tool_call_id":"c1"}"#),
            row("me", "tool_call", r#"{"name":"wind","args":"{\"at\":1}","tool_call_id":"c2"}"#),
            row("me", "tool_result", r#"{"name":"wind","output":"12 kn","tool_call_id":"c2","is_error":true}"#),
            row("me", "tool_result", r#"{"name":"tide","output":{"m":5},"tool_call_id":"c1"}"#),
            row("me", "text", "5 m"),
        ];
        for format in Format::ALL {
            assert_eq!(found(&rows, format), Vec::new(), "{format}");
        }
    }

    #[test]
    fn faults_are_found_in_their_rows() {
        let rows = [
            row("ana", "text", "tides?"),
            row("me", "tool_call", r#"{"name":"tide","args":{},"tool_call_id":"c1"}"#),
            row("me", "tool_call", r#"{"name":"wind","args":{},"tool_call_id":"c2"}"#),
            row("me", "tool_result", r#"{"name":"wind","output":"12 kn","tool_call_id":"c2"}"#),
            row("me", "tool_call", "not json"),
            row("me", "tool_result", r#"{"name":"moon","output":"full","tool_call_id":"c9"}"#),
            row("ana", "text", "still there?"),
        ];
        for format in Format::ALL {
            let found = found(&rows, format);
            let want =
                vec![("missing_tool_result", vec![1]), ("unreadable_event", vec![4]), ("orphan_tool_result", vec![5])];
            assert_eq!(found, want, "{format}");
        }
    }

    #[test]
    fn a_message_between_call_and_result_is_said_where_it_matters() {
        let rows = [
            row("ana", "text", "tides?"),
            row("me", "tool_call", r#"{"name":"tide","args":{},"tool_call_id":"c1"}"#),
            row("ana", "text", "and wind?"),
            row("me", "tool_result", r#"{"name":"tide","output":"5 m","tool_call_id":"c1"}"#),
        ];
        assert_eq!(found(&rows, Format::OpenAiChat), [("result_not_adjacent", vec![3])]);
        assert_eq!(found(&rows, Format::OpenAiResponses), []);
        // One turn of the user, in which the result has to come first.
        assert_eq!(found(&rows, Format::Anthropic), [("result_after_content", vec![3])]);
    }
}

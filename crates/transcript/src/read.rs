//! Reads histories in whatever state they are found: broken JSON, JSON lines, log dumps, replies, mixtures.

mod detect;
mod tolerant;

use std::fmt;

use serde_json::{Value, json};

pub use detect::{detect, message_format};

use crate::format::Format;
use crate::json::{list, parse};

/// Deeper than this a value is not followed; deeper JSON than this is read as null.
const MAX_DEPTH: usize = 100;

/// What was wrong with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadFault {
    /// Bytes that are no UTF-8; replaced by U+FFFD.
    NotUtf8,
    /// It ends in the middle of a value; what was open was closed.
    Truncated,
    /// Quotes, commas, literals or escapes that JSON does not have.
    NotStrict,
    /// Other text around the JSON was skipped.
    OtherText,
    /// Nesting beyond the limit was cut off.
    TooDeep,
    /// There is no history in it.
    NoHistory,
}

impl fmt::Display for ReadFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotUtf8 => "it is not UTF-8",
            Self::Truncated => "it ends in the middle of a value",
            Self::NotStrict => "it is not strict JSON (quotes, commas, literals or escapes)",
            Self::OtherText => "there is other text around the JSON",
            Self::TooDeep => "it is nested too deeply",
            Self::NoHistory => "it holds no messages and no input",
        })
    }
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into an object.
    Key(String),
    /// Into a list.
    Index(usize),
}

/// How the bytes were laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// A request body, or a list of messages.
    Request,
    /// A provider's reply, taken as a history of one message.
    Reply,
    /// One message per line.
    Lines,
    /// A record that holds a request; of several the one with the longest history.
    Log,
    /// Nothing of the kind.
    Unknown,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// An object with `messages` or `input`, ready for the linter.
    pub payload: Value,
    /// The format that most of its messages are in; nothing when there is no telling.
    pub format: Option<Format>,
    /// How the bytes were laid out.
    pub layout: Layout,
    /// What was wrong with the bytes, each once.
    pub faults: Vec<ReadFault>,
    /// Where half UTF-16 pairs were replaced.
    pub lone_surrogates: Vec<Vec<Step>>,
    /// Messages that are certainly in a format other than `format`.
    pub mixed: Vec<(usize, Format)>,
}

/// Reads a value from UTF-8 JSON as strictly as JSON is, except that half a UTF-16 pair is read as U+FFFD: models and
/// servers do send them, and a whole reply is not lost for one.
pub fn value(bytes: &[u8]) -> Option<Value> {
    std::str::from_utf8(bytes).ok().and_then(parse)
}

/// Reads bytes. Never fails and never panics: what cannot be read is named in `faults`.
pub fn read(bytes: &[u8]) -> Document {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut faults = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        faults.push(ReadFault::NotUtf8);
    }
    let (values, lone_surrogates) = match serde_json::from_str::<Value>(&text) {
        Ok(value) => (vec![value], Vec::new()),
        Err(_) => {
            let read = tolerant::values(&text);
            for fault in read.faults {
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
            (read.values, read.lone_surrogates)
        }
    };
    let (payload, layout) = history_of(values);
    if layout == Layout::Unknown {
        faults.push(ReadFault::NoHistory);
    }
    let (format, mixed) = detect(&payload);
    Document { payload, format, layout, faults, lone_surrogates, mixed }
}

/// Finds the history in the values of a file.
fn history_of(mut values: Vec<Value>) -> (Value, Layout) {
    if values.len() == 1 {
        let value = values.swap_remove(0);
        return history_in(value, 0).unwrap_or((json!({ "messages": [] }), Layout::Unknown));
    }
    if values.iter().any(is_message) {
        let messages: Vec<Value> = values.into_iter().filter(is_message).collect();
        return (wrap(messages), Layout::Lines);
    }
    let histories = values.into_iter().filter_map(|value| history_in(value, 0));
    let length = |payload: &Value| list(payload, "messages").len() + list(payload, "input").len();
    let longest = histories.max_by_key(|(payload, layout)| (*layout != Layout::Reply, length(payload)));
    longest.map_or((json!({ "messages": [] }), Layout::Unknown), |(payload, _)| (payload, Layout::Log))
}

fn wrap(messages: Vec<Value>) -> Value {
    let items = messages.iter().any(|message| message_format(message) == Some(Format::OpenAiResponses));
    if items { json!({ "input": messages }) } else { json!({ "messages": messages }) }
}

fn is_message(value: &Value) -> bool {
    let role = value.get("role").is_some_and(Value::is_string);
    role && (value.get("content").is_some() || value.get("tool_calls").is_some() || value.get("parts").is_some())
        || value.get("call_id").is_some()
}

/// A history in a value: itself, a list of messages, a reply, or somewhere inside a log record.
fn history_in(value: Value, depth: usize) -> Option<(Value, Layout)> {
    match value {
        Value::Array(items) if items.iter().any(is_message) => Some((wrap(items), Layout::Request)),
        Value::Array(items) if depth < 4 => {
            let found = items.into_iter().filter_map(|item| history_in(item, depth + 1));
            found
                .max_by_key(|(payload, _)| list(payload, "messages").len() + list(payload, "input").len())
                .map(|(payload, _)| (payload, Layout::Log))
        }
        Value::Object(mut fields) => {
            let is_history = fields.get("messages").is_some_and(Value::is_array)
                || fields
                    .get("input")
                    .is_some_and(|input| input.is_array() || (input.is_string() && fields.contains_key("model")));
            if is_history {
                if let Some(input) = fields.get("input").and_then(Value::as_str) {
                    let item = json!([{ "type": "message", "role": "user", "content": input }]);
                    fields.insert("input".to_owned(), item);
                }
                let layout = if depth == 0 { Layout::Request } else { Layout::Log };
                return Some((Value::Object(fields), layout));
            }
            if let Some(message) =
                list(&Value::Object(fields.clone()), "choices").first().and_then(|c| c.get("message"))
            {
                return Some((json!({ "messages": [message] }), Layout::Reply));
            }
            if let Some(output) = fields.get("output").filter(|output| list_of_items(output)) {
                return Some((json!({ "input": output }), Layout::Reply));
            }
            if fields.get("type").is_some_and(|kind| kind == "message")
                && fields.get("content").is_some_and(Value::is_array)
            {
                let content = fields.remove("content").unwrap_or_default();
                return Some((json!({ "messages": [{ "role": "assistant", "content": content }] }), Layout::Reply));
            }
            if depth >= 4 {
                return None;
            }
            let inside = fields.into_iter().filter_map(|(_, value)| match value {
                // Bodies are often logged as text.
                Value::String(text) if text.trim_start().starts_with('{') => {
                    history_in(serde_json::from_str(&text).ok()?, depth + 1)
                }
                other => history_in(other, depth + 1),
            });
            inside
                .max_by_key(|(payload, layout)| {
                    (*layout != Layout::Reply, list(payload, "messages").len() + list(payload, "input").len())
                })
                .map(|(payload, _)| (payload, Layout::Log))
        }
        _ => None,
    }
}

fn list_of_items(output: &Value) -> bool {
    output.as_array().is_some_and(|items| items.iter().all(|item| item.get("type").is_some()) && !items.is_empty())
}

/// Which message, block and field of a history a path leads to.
pub(crate) fn place_in_history(path: &[Step]) -> (usize, Option<usize>, Option<String>) {
    let start = path.iter().position(|step| matches!(step, Step::Key(key) if key == "messages" || key == "input"));
    let inside = &path[start.map_or(0, |at| at + 1)..];
    let index = match inside.first() {
        Some(Step::Index(index)) => *index,
        _ => 0,
    };
    let block = match (inside.get(1), inside.get(2)) {
        (Some(Step::Key(key)), Some(Step::Index(block))) if key == "content" => Some(*block),
        _ => None,
    };
    let field = path.iter().rev().find_map(|step| match step {
        Step::Key(key) => Some(key.clone()),
        Step::Index(_) => None,
    });
    (index, block, field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_pairs_are_replaced_and_placed() {
        let body = r#"{"messages":[{"role":"user","content":"ok"},{"role":"user","content":[{"type":"text","text":"a\ud83d b"}]}]}"#;
        let read = read(body.as_bytes());
        assert_eq!(read.payload["messages"][1]["content"][0]["text"], "a\u{FFFD} b");
        assert_eq!(place_in_history(&read.lone_surrogates[0]), (1, Some(0), Some("text".to_owned())));
        assert!(read.faults.is_empty());
    }

    #[test]
    fn whole_pairs_stay() {
        let body = r#"{"messages":[{"role":"user","content":"\ud83d\ude00 \ud83d"}]}"#;
        let read = read(body.as_bytes());
        assert_eq!(read.payload["messages"][0]["content"], "\u{1F600} \u{FFFD}");
        assert_eq!(read.lone_surrogates.len(), 1);
    }

    #[test]
    fn truncated_files_keep_what_was_there() {
        let read =
            read(br#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"he"#);
        assert_eq!(read.payload["messages"][1]["content"], "he");
        assert_eq!(read.faults, [ReadFault::Truncated]);
    }

    #[test]
    fn lines_logs_and_reprs_are_found() {
        let lines = read(b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n");
        assert_eq!((lines.layout, list(&lines.payload, "messages").len()), (Layout::Lines, 2));
        let log = read(br#"2026-01-01 INFO request {"url": "x", "body": {"messages": [{"role": "user", "content": "a"}]}} took 3 ms"#);
        assert_eq!((log.layout, log.faults.as_slice()), (Layout::Log, &[ReadFault::OtherText][..]));
        let repr = read(b"{'messages': [{'role': 'user', 'content': None, 'ok': True,},]}");
        assert_eq!(repr.payload["messages"][0]["ok"], true);
        let text = read(br#"{"event":"send","body":"{\"input\":[{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"b\",\"arguments\":\"{}\"}]}"}"#);
        assert_eq!((text.format, text.layout), (Some(Format::OpenAiResponses), Layout::Log));
    }

    #[test]
    fn mixtures_are_told() {
        let read = read(br#"{"messages":[{"role":"user","content":"a"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"1","content":"x"},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}]}"#);
        assert_eq!(read.format, Some(Format::OpenAiChat));
        assert_eq!(read.mixed, [(3, Format::Anthropic)]);
    }
}

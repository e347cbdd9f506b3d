//! Faults of Anthropic Messages.

use std::collections::HashSet;

use serde_json::Value;

use super::pairs::{Pairs, items};
use super::{FindingCode, LintOptions, Sink};
use crate::anthropic::block_kinds;
use crate::format::Format;
use crate::json::{blank, filled, list, string};

/// What a message may have; anything else is refused.
pub(crate) const MESSAGE_FIELDS: &[&str] = &["role", "content"];

/// The most cache marks that a request may have.
pub(crate) const MAX_CACHE_MARKS: usize = 4;

pub(super) fn lint(payload: &Value, options: &LintOptions, sink: &mut Sink) {
    let messages = items(payload, Format::Anthropic);
    let mut marks = cache_marks(payload);
    let (mut turn_role, mut other_content) = ("", false);
    for (index, message) in messages.iter().enumerate() {
        let role = string(message, "role");
        match role {
            "user" | "assistant" => {}
            "system" => system_place(messages, index, sink),
            _ => {
                sink.with_field(FindingCode::BadMessage, index, None, "role");
                continue;
            }
        }
        for (field, value) in message.as_object().into_iter().flatten() {
            if !value.is_null() && !MESSAGE_FIELDS.contains(&field.as_str()) {
                sink.with_field(FindingCode::UnsupportedField, index, None, field);
            }
        }
        if role != turn_role {
            (turn_role, other_content) = (role, false);
        }
        match message.get("content") {
            Some(Value::String(text)) if blank(text) => {
                sink.add(FindingCode::EmptyTextBlock, index, None);
            }
            Some(Value::String(_)) => other_content = true,
            Some(Value::Array(blocks)) if blocks.is_empty() => {
                sink.add(FindingCode::EmptyTextBlock, index, None);
            }
            Some(Value::Array(blocks)) => {
                for (at, block) in blocks.iter().enumerate() {
                    lint_block(block, index, at, sink);
                    let kind = string(block, "type");
                    if kind == "tool_result" {
                        if other_content && role == "user" {
                            sink.with_id(
                                FindingCode::ResultAfterContent,
                                index,
                                Some(at),
                                string(block, "tool_use_id"),
                            );
                        }
                        marks += list(block, "content").iter().filter(|inner| marked(inner)).count();
                    } else {
                        other_content = true;
                    }
                    if marked(block) {
                        marks += 1;
                        if marks > MAX_CACHE_MARKS {
                            sink.with_field(FindingCode::TooManyCacheMarks, index, Some(at), "cache_control");
                        }
                    }
                    server_tool(messages, index, at, sink);
                }
            }
            _ => {
                sink.add(FindingCode::EmptyTextBlock, index, None);
            }
        }
    }
    if messages.first().is_some_and(|first| first["role"] == "assistant") {
        sink.add(FindingCode::RoleOrder, 0, None);
    }
    let pairs = Pairs::of(payload, Format::Anthropic);
    one_fault_each(&pairs, sink);
    sink.pairs(&pairs, options);
    trailing(messages, options, sink);
}

/// A result that is in the wrong turn, or answers nothing, is not also behind other content.
fn one_fault_each(pairs: &Pairs<'_>, sink: &mut Sink) {
    let judged = pairs.judge();
    let elsewhere: HashSet<(usize, Option<usize>)> = pairs
        .results
        .iter()
        .zip(&judged.fates)
        .filter(|(_, fate)| !matches!(fate, super::pairs::Fate::Answers(_)))
        .map(|(result, _)| (result.index, result.block))
        .collect();
    sink.findings.retain(|finding| {
        finding.code != FindingCode::ResultAfterContent || !elsewhere.contains(&(finding.index, finding.block))
    });
}

fn marked(block: &Value) -> bool {
    block.get("cache_control").is_some_and(|mark| !mark.is_null())
}

fn cache_marks(payload: &Value) -> usize {
    list(payload, "tools").iter().chain(list(payload, "system")).filter(|block| marked(block)).count()
}

fn lint_block(block: &Value, index: usize, at: usize, sink: &mut Sink) {
    match string(block, "type") {
        "text" if blank(string(block, "text")) => {
            sink.add(FindingCode::EmptyTextBlock, index, Some(at));
        }
        "tool_result" => {
            for inner in list(block, "content") {
                if string(inner, "type") == "text" && blank(string(inner, "text")) {
                    sink.with_id(FindingCode::EmptyTextBlock, index, Some(at), string(block, "tool_use_id"));
                    break;
                }
            }
        }
        "thinking" if filled(block, "signature").is_none() => {
            sink.with_field(FindingCode::MissingSignature, index, Some(at), "signature");
        }
        "thinking" | "redacted_thinking" if marked(block) => {
            sink.with_field(FindingCode::UnsupportedField, index, Some(at), "cache_control");
        }
        _ => {}
    }
}

/// A call of the server's own tool is answered by the server, unless the turn is not over.
fn server_tool(messages: &[Value], index: usize, at: usize, sink: &mut Sink) {
    if unanswered_server_call(messages, index, at) {
        sink.with_id(FindingCode::MissingToolResult, index, Some(at), string(&messages[index]["content"][at], "id"));
    }
}

/// Whether a block is the call of a server's own tool that has no result, though its turn is over. The turn goes on
/// over results of the client's own tools: the server answers when it has them.
pub(crate) fn unanswered_server_call(messages: &[Value], index: usize, at: usize) -> bool {
    let Some(block) = list(&messages[index], "content").get(at) else { return false };
    if !block_kinds::is_server_call(string(block, "type")) {
        return false;
    }
    let id = string(block, "id");
    for message in &messages[index..] {
        let blocks = list(message, "content");
        if message["role"] == "assistant" {
            let answers = |block: &Value| {
                block_kinds::is_server_result(string(block, "type")) && string(block, "tool_use_id") == id
            };
            if blocks.iter().any(answers) {
                return false;
            }
        } else if blocks.is_empty() || blocks.iter().any(|block| string(block, "type") != "tool_result") {
            return true;
        }
    }
    false
}

/// System text is taken behind a user turn, and last or before the assistant; a second message of it in a row is not.
fn system_place(messages: &[Value], index: usize, sink: &mut Sink) {
    let first = index == 0 || messages[index - 1]["role"] != "system";
    let run = system_run(messages, if first { index } else { index - 1 });
    if first != run.legal {
        sink.add(FindingCode::RoleOrder, index, None);
    }
}

/// System messages in a row.
pub(crate) struct SystemRun {
    /// How many, from the one asked for.
    pub(crate) length: usize,
    /// Whether one system message may stand there.
    pub(crate) legal: bool,
}

/// The run of system messages that `index` is in.
pub(crate) fn system_run(messages: &[Value], index: usize) -> SystemRun {
    let is_system = |message: &&Value| message["role"] == "system";
    let length = messages[index..].iter().take_while(is_system).count();
    let before = messages[..index].iter().rev().find(|message| !is_system(message));
    let server_call = |message: &Value| {
        list(message, "content").last().is_some_and(|block| block_kinds::is_server_call(string(block, "type")))
    };
    let behind = before.is_some_and(|before| match string(before, "role") {
        "user" => true,
        "assistant" => server_call(before),
        _ => false,
    });
    let ahead = messages.get(index + length).is_none_or(|next| next["role"] == "assistant");
    SystemRun { length, legal: behind && ahead }
}

fn trailing(messages: &[Value], options: &LintOptions, sink: &mut Sink) {
    let Some((index, last)) = messages.iter().enumerate().next_back().filter(|(_, last)| last["role"] == "assistant")
    else {
        return;
    };
    let blocks = list(last, "content");
    let calls = blocks.iter().any(|block| string(block, "type") == "tool_use");
    // A turn that the server paused at one of its own tools goes back as it is.
    let paused = blocks.last().is_some_and(|block| {
        let kind = string(block, "type");
        block_kinds::is_server_call(kind) || block_kinds::is_server_result(kind)
    });
    if !calls && !paused && !options.profile.prefill {
        sink.add(FindingCode::TrailingAssistant, index, None);
    }
    let (block, text) = match last.get("content") {
        Some(Value::String(text)) => (None, text.as_str()),
        _ => match blocks.last() {
            Some(block) if string(block, "type") == "text" => (Some(blocks.len() - 1), string(block, "text")),
            _ => return,
        },
    };
    if !blank(text) && text.trim_end() != text {
        sink.add(FindingCode::TrailingWhitespace, index, block);
    }
}

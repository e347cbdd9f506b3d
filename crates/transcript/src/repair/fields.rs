//! Faults inside single messages, and the order of roles.

use serde_json::{Value, json};

use super::list_mut;
use crate::format::Format;
use crate::ids::{is_legal_tool_name, wire_tool_name};
use crate::json::{blank, filled, list, string};
use crate::lint::LintOptions;
use crate::lint::fields::{
    ASSISTANT_FIELDS, MAX_CACHE_MARKS, MESSAGE_FIELDS, followed, id_prefix, system_run, unanswered_server_call,
};
use crate::lint::pairs::bad_arguments;
use crate::model::ToolInput;
use crate::openai_chat::BETWEEN;
use crate::openai_responses::is_model_item;

/// What a user is made to say where a history begins with the assistant.
const BEGINNING: &str = "(The beginning of the conversation is not shown.)";

pub(super) fn repair(payload: &mut Value, options: &LintOptions) {
    match options.format {
        Format::OpenAiChat => chat(payload, options),
        Format::OpenAiResponses => responses(payload, options),
        Format::Anthropic => anthropic(payload),
    }
}

pub(super) fn repair_order(payload: &mut Value, options: &LintOptions) {
    match options.format {
        Format::OpenAiChat if !options.profile.user_after_tool => {
            let Some(messages) = list_mut(payload, Format::OpenAiChat) else { return };
            let mut rebuilt: Vec<Value> = Vec::with_capacity(messages.len());
            for message in std::mem::take(messages) {
                let behind_tool = rebuilt.last().is_some_and(|last| string(last, "role") == "tool");
                if behind_tool && string(&message, "role") == "user" {
                    rebuilt.push(json!({ "role": "assistant", "content": BETWEEN }));
                }
                rebuilt.push(message);
            }
            *messages = rebuilt;
        }
        Format::Anthropic => anthropic_order(payload),
        Format::OpenAiChat | Format::OpenAiResponses => {}
    }
}

/// Writes a tool's name so that it is taken.
fn mend_name(function: &mut Value) {
    let name = string(function, "name");
    if !is_legal_tool_name(name) && function.is_object() {
        function["name"] = json!(wire_tool_name(name));
    }
}

fn mend_arguments(holder: &mut Value, key: &str, format: Format) {
    if !holder.is_object() || !bad_arguments(holder.get(key), format) {
        return;
    }
    let (input, _) = ToolInput::from_value(holder.get(key).unwrap_or(&Value::Null));
    let input = match holder.get(key).and_then(Value::as_str) {
        Some(text) => ToolInput::from_text(text).0,
        None => input,
    };
    holder[key] = if format == Format::Anthropic { input.wire_object() } else { json!(input.wire_text()) };
}

fn chat(payload: &mut Value, options: &LintOptions) {
    let Some(messages) = list_mut(payload, Format::OpenAiChat) else { return };
    messages.retain(|message| {
        matches!(string(message, "role"), "system" | "developer" | "user" | "assistant" | "tool" | "function")
    });
    for message in messages.iter_mut().filter(|message| string(message, "role") == "assistant") {
        if message.get("tool_calls").and_then(Value::as_array).is_some_and(Vec::is_empty)
            && let Some(fields) = message.as_object_mut()
        {
            fields.remove("tool_calls");
        }
        if options.profile.refuses_unknown_fields
            && let Some(fields) = message.as_object_mut()
        {
            fields.retain(|key, value| value.is_null() || ASSISTANT_FIELDS.contains(&key.as_str()));
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if call.get("function").is_none() && call.get("custom").is_none() && call.is_object() {
                call["function"] = json!({});
            }
            if let Some(custom) = call.get_mut("custom") {
                if !custom.is_object() {
                    *custom = json!({});
                }
                mend_name(custom);
            }
            if let Some(function) = call.get_mut("function") {
                if !function.is_object() {
                    *function = json!({});
                }
                mend_name(function);
                mend_arguments(function, "arguments", Format::OpenAiChat);
            }
        }
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            calls.retain(Value::is_object);
        }
    }
    messages.retain(|message| {
        let has = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
        let calls = !list(message, "tool_calls").is_empty() || has("function_call");
        string(message, "role") != "assistant" || calls || has("content") || has("refusal") || has("audio")
    });
}

fn responses(payload: &mut Value, options: &LintOptions) {
    let Some(items) = list_mut(payload, Format::OpenAiResponses) else { return };
    items.retain(|item| {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
        let known = matches!(string(item, "role"), "user" | "assistant" | "system" | "developer");
        let empty = string(item, "role") == "assistant" && item.get("content").is_none_or(Value::is_null);
        item.is_object() && (kind != "message" || (known && !empty))
    });
    let lonely: Vec<bool> =
        (0..items.len()).map(|at| string(&items[at], "type") == "reasoning" && !followed(items, at)).collect();
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        !lonely[at - 1]
    });
    let mut reasoned = false;
    for item in items.iter_mut() {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message").to_owned();
        if !is_model_item(item) {
            reasoned = false;
        }
        reasoned |= kind == "reasoning";
        let wrong_prefix = id_prefix(item).is_some_and(|prefix| {
            filled(item, "id").is_some_and(|id| {
                !id.starts_with(prefix)
                    || (options.reasoning_model && !reasoned && kind != "reasoning" && is_model_item(item))
            })
        });
        if wrong_prefix && let Some(fields) = item.as_object_mut() {
            fields.remove("id");
            fields.remove("status");
        }
        match kind.as_str() {
            "function_call" => {
                mend_name(item);
                mend_arguments(item, "arguments", Format::OpenAiResponses);
            }
            "custom_tool_call" => mend_name(item),
            "message" if string(item, "role") == "assistant" => {
                for part in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                    if string(part, "type") == "input_text" {
                        part["type"] = json!("output_text");
                    }
                }
                if let Some(content) = item.get_mut("content").and_then(Value::as_array_mut) {
                    content.retain(|part| !string(part, "type").starts_with("input_"));
                }
            }
            _ => {}
        }
    }
}

fn anthropic(payload: &mut Value) {
    let fixed = list(payload, "tools").iter().chain(list(payload, "system")).filter(|block| is_marked(block)).count();
    let Some(messages) = list_mut(payload, Format::Anthropic) else { return };
    messages.retain(|message| matches!(string(message, "role"), "user" | "assistant" | "system"));
    for fields in messages.iter_mut().filter_map(Value::as_object_mut) {
        fields.retain(|key, value| value.is_null() || MESSAGE_FIELDS.contains(&key.as_str()));
    }
    let unanswered = unanswered_server_tools(messages);
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) else { continue };
        let mut at = 0;
        content.retain(|block| {
            at += 1;
            match string(block, "type") {
                "text" => !blank(string(block, "text")),
                "thinking" => filled(block, "signature").is_some(),
                _ => !unanswered.contains(&(index, at - 1)),
            }
        });
        for block in content {
            mend_block(block);
        }
    }
    drop_empty(messages);
    drop_cache_marks(messages, fixed);
    trim_last(messages);
}

fn mend_block(block: &mut Value) {
    match string(block, "type") {
        "tool_use" => {
            mend_name(block);
            mend_arguments(block, "input", Format::Anthropic);
        }
        "tool_result" => {
            if let Some(content) = block.get_mut("content").and_then(Value::as_array_mut) {
                content.retain(|inner| string(inner, "type") != "text" || !blank(string(inner, "text")));
            }
            let emptied = block.get("content").and_then(Value::as_array).is_some_and(Vec::is_empty);
            if emptied && let Some(fields) = block.as_object_mut() {
                fields.remove("content");
            }
        }
        "thinking" | "redacted_thinking" => {
            if let Some(fields) = block.as_object_mut() {
                fields.remove("cache_control");
            }
        }
        _ => {}
    }
}

fn unanswered_server_tools(messages: &[Value]) -> Vec<(usize, usize)> {
    let places = messages.iter().enumerate().flat_map(|(index, message)| {
        let blocks = list(message, "content").len();
        (0..blocks).map(move |at| (index, at))
    });
    places.filter(|(index, at)| unanswered_server_call(messages, *index, *at)).collect()
}

/// Drops messages without content; neighbours that then have one role become one message.
fn drop_empty(messages: &mut Vec<Value>) {
    let mut kept: Vec<Value> = Vec::with_capacity(messages.len());
    let mut gap = false;
    for message in std::mem::take(messages) {
        let empty = match message.get("content") {
            Some(Value::String(text)) => blank(text),
            Some(Value::Array(blocks)) => blocks.is_empty(),
            _ => true,
        };
        if empty {
            gap = true;
            continue;
        }
        match kept.last_mut() {
            Some(last) if gap && string(last, "role") == string(&message, "role") => {
                let mut joined = blocks_of(last);
                joined.extend(blocks_of(&message));
                last["content"] = Value::Array(joined);
            }
            _ => kept.push(message),
        }
        gap = false;
    }
    *messages = kept;
}

fn blocks_of(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        _ => Vec::new(),
    }
}

fn is_marked(block: &Value) -> bool {
    block.get("cache_control").is_some_and(|mark| !mark.is_null())
}

/// Keeps the last marks: what is cached up to them covers what the earlier ones did.
fn drop_cache_marks(messages: &mut [Value], fixed: usize) {
    let mut left = MAX_CACHE_MARKS.saturating_sub(fixed);
    for message in messages.iter_mut().rev() {
        let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) else { continue };
        for block in content.iter_mut().rev() {
            let inner = block.get_mut("content").and_then(Value::as_array_mut);
            for inner in inner.into_iter().flatten().rev() {
                unmark(inner, &mut left);
            }
            unmark(block, &mut left);
        }
    }
}

fn unmark(block: &mut Value, left: &mut usize) {
    if !is_marked(block) {
        return;
    }
    if *left > 0 {
        *left -= 1;
    } else if let Some(fields) = block.as_object_mut() {
        fields.remove("cache_control");
    }
}

fn trim_last(messages: &mut [Value]) {
    let Some(last) = messages.last_mut().filter(|last| string(last, "role") == "assistant") else { return };
    let block = match last.get_mut("content") {
        Some(Value::String(text)) => {
            text.truncate(text.trim_end().len());
            return;
        }
        Some(Value::Array(blocks)) => blocks.last_mut(),
        _ => None,
    };
    if let Some(block) = block.filter(|block| string(block, "type") == "text") {
        let text = string(block, "text").trim_end().to_owned();
        block["text"] = json!(text);
    }
}

fn anthropic_order(payload: &mut Value) {
    let mut hoisted = Vec::new();
    if let Some(messages) = list_mut(payload, Format::Anthropic) {
        let mut at = 0;
        while at < messages.len() {
            if string(&messages[at], "role") != "system" {
                at += 1;
                continue;
            }
            let run = system_run(messages, at);
            let mut taken: Vec<Value> = messages.drain(at..at + run.length).collect();
            if !run.legal {
                hoisted.extend(taken.iter().flat_map(blocks_of));
                continue;
            }
            if taken.len() > 1 {
                let joined: Vec<Value> = taken.iter().flat_map(blocks_of).collect();
                taken[0]["content"] = Value::Array(joined);
            }
            messages.insert(at, taken.swap_remove(0));
            at += 1;
        }
        if messages.first().is_some_and(|first| string(first, "role") == "assistant") {
            messages.insert(0, json!({ "role": "user", "content": BEGINNING }));
        }
    }
    if hoisted.is_empty() {
        return;
    }
    match payload.get_mut("system") {
        Some(Value::Array(blocks)) => blocks.extend(hoisted),
        Some(Value::String(text)) => {
            for block in &hoisted {
                text.push_str("\n\n");
                text.push_str(string(block, "text"));
            }
        }
        _ => payload["system"] = Value::Array(hoisted),
    }
}

//! Whole conversations and streams, damaged in every way: what must hold of the repair and of the assemblers.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use bandstand_transcript::histories::ProviderHistory;
use bandstand_transcript::lint::{LintOptions, has_errors, lint};
use bandstand_transcript::profile::PROFILES;
use bandstand_transcript::repair::repair;
use bandstand_transcript::stream::{Assembled, Assembler, StreamReader};
use bandstand_transcript::{EncodeOptions, Format, Transcript, decode_history};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::OpenAiChat), Just(Format::OpenAiResponses), Just(Format::Anthropic)]
}

/// A turn of the user, or of the assistant with so many calls and all their results.
fn turn() -> impl Strategy<Value = (bool, String, usize)> {
    (any::<bool>(), "[a-z ]{0,6}[a-z]", 0_usize..4)
}

fn conversation(turns: &[(bool, String, usize)]) -> Transcript {
    let mut messages = vec![json!({ "role": "user", "parts": [{ "type": "text", "text": "Q" }] })];
    let mut number = 0;
    for (user, text, calls) in turns {
        let mut parts = vec![json!({ "type": "text", "text": text })];
        if *user {
            messages.push(json!({ "role": "user", "parts": parts }));
            continue;
        }
        let mut results = Vec::new();
        for _ in 0..*calls {
            number += 1;
            parts.push(json!({ "type": "tool_call", "id": format!("id{number:07}"), "name": "f", "arguments": { "n": number } }));
            results.push(json!({ "type": "tool_result", "call_id": format!("id{number:07}"), "content": [
                { "type": "text", "text": format!("r{number}") }], "is_error": number % 3 == 0 }));
        }
        messages.push(json!({ "role": "assistant", "parts": parts }));
        if !results.is_empty() {
            messages.push(json!({ "role": "tool", "parts": results }));
        }
    }
    Transcript::from_canonical(&json!({ "messages": messages })).expect("a conversation")
}

/// What bugs do to histories.
#[derive(Debug, Clone)]
enum Damage {
    Drop(Index),
    Double(Index),
    Swap(Index, Index),
    DropBlock(Index, Index),
    DoubleBlock(Index, Index),
    SwapBlocks(Index, Index, Index),
    Blank(Index),
    Id(Index, &'static str),
    Name(Index, &'static str),
    Arguments(Index, &'static str),
    Field(Index, &'static str),
    Reasoning(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        3 => at().prop_map(Damage::Drop),
        2 => at().prop_map(Damage::Double),
        3 => (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
        2 => (at(), at()).prop_map(|(message, block)| Damage::DropBlock(message, block)),
        2 => (at(), at()).prop_map(|(message, block)| Damage::DoubleBlock(message, block)),
        2 => (at(), at(), at()).prop_map(|(message, one, other)| Damage::SwapBlocks(message, one, other)),
        1 => at().prop_map(Damage::Blank),
        1 => (at(), prop_oneof![Just(""), Just("id:1"), Just("id0000001"), Just("iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii")])
            .prop_map(|(at, id)| Damage::Id(at, id)),
        1 => (at(), prop_oneof![Just(""), Just("a.b"), Just("ü")]).prop_map(|(at, name)| Damage::Name(at, name)),
        1 => (at(), prop_oneof![Just(""), Just("{\"a\":"), Just("[1]"), Just("\"{}\""), Just("null")])
            .prop_map(|(at, text)| Damage::Arguments(at, text)),
        1 => (at(), prop_oneof![Just("reasoning_content"), Just("reasoning"), Just("id"), Just("tool_calls")])
            .prop_map(|(at, key)| Damage::Field(at, key)),
        1 => at().prop_map(Damage::Reasoning),
    ]
}

fn list_mut(payload: &mut Value, format: Format) -> &mut Vec<Value> {
    let key = if format == Format::OpenAiResponses { "input" } else { "messages" };
    payload[key].as_array_mut().expect("a list")
}

/// The list inside a message: its calls, or its blocks.
fn inner(message: &mut Value) -> Option<&mut Vec<Value>> {
    let key = if message["tool_calls"].is_array() { "tool_calls" } else { "content" };
    message.get_mut(key).and_then(Value::as_array_mut).filter(|inner| !inner.is_empty())
}

/// Sets a field in the first place below that has it.
fn set(value: &mut Value, keys: &[&str], to: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            for key in keys {
                if let Some(held) = fields.get_mut(*key) {
                    *held = to.clone();
                    return true;
                }
            }
            fields.values_mut().any(|inner| set(inner, keys, to))
        }
        Value::Array(items) => items.iter_mut().any(|inner| set(inner, keys, to)),
        _ => false,
    }
}

fn apply(payload: &mut Value, format: Format, damage: &Damage) {
    let items = list_mut(payload, format);
    let length = items.len();
    if length == 0 {
        return;
    }
    match damage {
        Damage::Drop(at) => {
            items.remove(at.index(length));
        }
        Damage::Double(at) => items.insert(at.index(length), items[at.index(length)].clone()),
        Damage::Swap(one, other) => items.swap(one.index(length), other.index(length)),
        Damage::DropBlock(at, block) => {
            if let Some(inner) = inner(&mut items[at.index(length)]) {
                inner.remove(block.index(inner.len()));
            }
        }
        Damage::DoubleBlock(at, block) => {
            if let Some(inner) = inner(&mut items[at.index(length)]) {
                inner.insert(0, inner[block.index(inner.len())].clone());
            }
        }
        Damage::SwapBlocks(at, one, other) => {
            if let Some(inner) = inner(&mut items[at.index(length)]) {
                let length = inner.len();
                inner.swap(one.index(length), other.index(length));
            }
        }
        Damage::Blank(at) => {
            set(&mut items[at.index(length)], &["text", "content"], &json!(" "));
        }
        Damage::Id(at, id) => {
            set(&mut items[at.index(length)], &["call_id", "tool_call_id", "tool_use_id", "id"], &json!(id));
        }
        Damage::Name(at, name) => {
            set(&mut items[at.index(length)], &["name"], &json!(name));
        }
        Damage::Arguments(at, text) => {
            set(&mut items[at.index(length)], &["arguments", "input"], &json!(text));
        }
        Damage::Field(at, key) => {
            items[at.index(length)][*key] = if *key == "tool_calls" { json!([]) } else { json!("x_1") }
        }
        Damage::Reasoning(at) => items.insert(
            at.index(length),
            match format {
                Format::OpenAiResponses => json!({ "type": "reasoning", "id": "rs_1", "summary": [] }),
                Format::Anthropic => {
                    json!({ "role": "assistant", "content": [{ "type": "thinking", "thinking": "t" }] })
                }
                Format::OpenAiChat => json!({ "role": "assistant", "content": null, "reasoning_content": "t" }),
            },
        ),
    }
}

/// For each call by what it was given: what it was answered.
fn answers(payload: &Value, format: Format) -> HashMap<String, String> {
    let transcript = decode_history(payload, format).expect("a history").transcript;
    let mut answers = HashMap::new();
    for (at, message) in transcript.messages.iter().enumerate() {
        for call in message.calls().filter(|call| call.input.fields().is_some_and(|fields| fields.contains_key("n"))) {
            let answer = transcript.messages[at..]
                .iter()
                .flat_map(|message| message.results())
                .find(|result| result.call_id == call.id);
            if let Some(answer) = answer {
                answers.entry(call.input.wire_text()).or_insert_with(|| answer.output.all_text());
            }
        }
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_repaired_and_stays_so(
        turns in vec(turn(), 0..6), damages in vec(damage(), 0..4), format in format(), profile in 0..PROFILES.len(), reasoning_model in any::<bool>(),
    ) {
        let profile = &PROFILES[profile];
        let options = EncodeOptions { profile, reasoning_model, ..EncodeOptions::default() };
        let clean = ProviderHistory::prepare(&conversation(&turns), format, &options).payload().clone();
        let options = LintOptions { format, profile, reasoning_model };
        prop_assert_eq!(&repair(&clean, &options).payload, &clean);
        let mut payload = clean;
        for damage in &damages {
            apply(&mut payload, format, damage);
        }
        let repaired = repair(&payload, &options);
        prop_assert!(repaired.left.is_empty(), "{:?} left of {payload} in {}", repaired.left, repaired.payload);
        prop_assert_eq!(&repair(&repaired.payload, &options).payload, &repaired.payload);
        if !has_errors(&lint(&payload, &options)) {
            prop_assert_eq!(&repaired.payload, &payload);
        }
        // What was a history can still be read, and answers stay with their calls.
        prop_assert!(decode_history(&repaired.payload, format).is_ok());
        let moved = damages.iter().any(|damage| matches!(damage, Damage::Id(..) | Damage::Double(_) | Damage::DoubleBlock(..)));
        if !moved && decode_history(&payload, format).is_ok() {
            let after = answers(&repaired.payload, format);
            for (call, answer) in answers(&payload, format) {
                prop_assert_eq!(after.get(&call), Some(&answer), "{} became {}", payload, repaired.payload);
            }
        }
    }
}

/// How a server writes the calls of a stream.
#[derive(Debug, Clone, Copy)]
struct Habits {
    first_index: u64,
    step: u64,
    id_each_time: bool,
    name_each_time: bool,
    nulls: bool,
    summary: bool,
    index_missing: bool,
}

fn habits() -> impl Strategy<Value = Habits> {
    (0_u64..3, 1_u64..3, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(first_index, step, id_each_time, name_each_time, nulls, summary, index_missing)| Habits {
            first_index,
            step,
            // Without an index only the id tells calls apart.
            id_each_time: id_each_time || index_missing,
            name_each_time,
            nulls,
            summary,
            index_missing,
        },
    )
}

/// Calls with their arguments in pieces, and in which order the pieces come.
fn pieces() -> impl Strategy<Value = (Vec<Vec<String>>, Vec<Index>)> {
    let call =
        (vec(("[a-z]{1,3}", "[a-zü€🚢 {}\"]{0,6}"), 0..3), vec(any::<Index>(), 0..4)).prop_map(|(fields, cuts)| {
            let fields: serde_json::Map<String, Value> =
                fields.into_iter().map(|(key, value)| (key, json!(value))).collect();
            let text: Vec<char> = Value::Object(fields).to_string().chars().collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
            cuts.push(0);
            cuts.push(text.len());
            cuts.sort_unstable();
            cuts.windows(2).map(|pair| text[pair[0]..pair[1]].iter().collect()).collect()
        });
    (vec(call, 1..4), vec(any::<Index>(), 30))
}

/// The pieces in an order that keeps each call's own order.
fn interleaved(calls: &[Vec<String>], order: &[Index]) -> Vec<(usize, usize)> {
    let mut next = vec![0; calls.len()];
    let mut found = Vec::new();
    let mut turn = 0;
    loop {
        let open: Vec<usize> = (0..calls.len()).filter(|call| next[*call] < calls[*call].len()).collect();
        let Some(first) = open.first() else { return found };
        // Calls begin in order.
        let begun: Vec<usize> = open
            .iter()
            .copied()
            .filter(|call| next[*call] > 0 || call == open.iter().find(|call| next[**call] == 0).unwrap_or(first))
            .collect();
        let call = begun[order[turn % order.len()].index(begun.len())];
        found.push((call, next[call]));
        next[call] += 1;
        turn += 1;
    }
}

fn names(assembled: &Assembled) -> Vec<(String, String, Option<Value>)> {
    let calls = assembled.reply.message.calls();
    calls
        .map(|call| (call.id.to_string(), call.name.to_string(), call.input.fields().cloned().map(Value::Object)))
        .collect()
}

fn wanted(calls: &[Vec<String>]) -> Vec<(String, String, Option<Value>)> {
    let read = |pieces: &Vec<String>| serde_json::from_str(&pieces.concat()).ok();
    calls.iter().enumerate().map(|(at, pieces)| (format!("c{at}"), format!("tool_{at}"), read(pieces))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chat_calls_come_together_whatever_the_server_does((calls, order) in pieces(), habits in habits()) {
        let mut assembler = Assembler::new(Format::OpenAiChat);
        let entry = |call: usize, first: bool, arguments: &str| {
            let mut entry = json!({ "function": { "arguments": arguments } });
            if !habits.index_missing {
                entry["index"] = json!(habits.first_index + habits.step * call as u64);
            }
            let empty = if habits.nulls { Value::Null } else { json!("") };
            entry["id"] = if first || habits.id_each_time { json!(format!("c{call}")) } else { empty.clone() };
            entry["function"]["name"] = if first || habits.name_each_time { json!(format!("tool_{call}")) } else { empty };
            entry
        };
        let mut send = |entry: Value| {
            assembler.value("", &json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [entry] }, "finish_reason": null }] }));
        };
        for (call, piece) in interleaved(&calls, &order) {
            send(entry(call, piece == 0, &calls[call][piece]));
        }
        if habits.summary {
            for (call, pieces) in calls.iter().enumerate() {
                send(entry(call, true, &pieces.concat()));
            }
        }
        assembler.value("", &json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }));
        assembler.value("", &json!("[DONE]"));
        let assembled = assembler.finish();
        prop_assert!(assembled.complete);
        prop_assert_eq!(names(&assembled), wanted(&calls));
    }

    #[test]
    fn blocks_and_items_may_interleave((calls, order) in pieces(), wrong_index in any::<bool>()) {
        let mut messages = Assembler::new(Format::Anthropic);
        let mut responses = Assembler::new(Format::OpenAiResponses);
        messages.value("", &json!({ "type": "message_start", "message": { "type": "message", "role": "assistant", "content": [] } }));
        for (call, piece) in interleaved(&calls, &order) {
            // A gateway that numbers all items alike leaves the item's id.
            let index = if wrong_index { 0 } else { call };
            if piece == 0 {
                messages.value("", &json!({ "type": "content_block_start", "index": call, "content_block": {
                    "type": "tool_use", "id": format!("c{call}"), "name": format!("tool_{call}"), "input": {} } }));
                responses.value("", &json!({ "type": "response.output_item.added", "output_index": index, "item": {
                    "type": "function_call", "id": format!("fc_{call}"), "call_id": format!("c{call}"),
                    "name": format!("tool_{call}"), "arguments": "" } }));
            }
            let text = &calls[call][piece];
            messages.value("", &json!({ "type": "content_block_delta", "index": call, "delta": { "type": "input_json_delta", "partial_json": text } }));
            responses.value("", &json!({ "type": "response.function_call_arguments.delta", "output_index": index, "item_id": format!("fc_{call}"), "delta": text }));
        }
        for call in 0..calls.len() {
            messages.value("", &json!({ "type": "content_block_stop", "index": call }));
        }
        messages.value("", &json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }));
        messages.value("", &json!({ "type": "message_stop" }));
        responses.value("", &json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } }));
        for assembled in [messages.finish(), responses.finish()] {
            prop_assert!(assembled.complete);
            prop_assert_eq!(names(&assembled), wanted(&calls));
        }
    }

    #[test]
    fn an_error_in_any_shape_fails_any_stream(format in format(), shape in 0_usize..6, named in any::<bool>(), cut in 1_usize..20) {
        let inner = json!({ "type": "overloaded_error", "code": "overloaded", "message": "x" });
        let (event, data) = [
            ("", json!({ "error": inner })),
            ("error", json!({ "error": inner })),
            ("", json!({ "type": "error", "error": inner })),
            ("error", inner.clone()),
            ("", json!({ "object": "error", "type": "overloaded_error", "message": "x" })),
            ("", json!({ "type": "error", "code": "overloaded", "message": "x" })),
        ][shape].clone();
        let event = if named { "error" } else { event };
        let wire = format!("event: {event}\r\ndata: {data}\r\n\r\n: keep-alive\r\n\r\ndata: [DONE]\r\n\r\n");
        let mut reader = StreamReader::new(format);
        for piece in wire.as_bytes().chunks(cut) {
            reader.push(piece);
        }
        let assembled = reader.finish();
        prop_assert!(!assembled.complete);
        let error = assembled.error.expect("an error");
        prop_assert!(error.kind.starts_with("overloaded"), "{}", error.kind);
        prop_assert!(error.retryable);
    }
}

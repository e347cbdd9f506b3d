//! What must hold for any conversation, any cut of a stream's bytes, and any bytes at all.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use bandstand_transcript::histories::ProviderHistory;
use bandstand_transcript::lint::{LintOptions, has_errors, lint, lint_bytes};
use bandstand_transcript::model::{Carried, Content, ImagePart, ReasoningFormat, ReasoningPart, RefusalPart, TextPart};
use bandstand_transcript::profile::PROFILES;
use bandstand_transcript::project::project;
use bandstand_transcript::repair::repair;
use bandstand_transcript::stream::{Encoder, StreamReader, encode_stream};
use bandstand_transcript::{
    EncodeOptions, Format, Message, MidSystem, Part, Profile, Reply, Role, StopReason, ToolCall, ToolCallId, ToolInput,
    ToolName, ToolOutput, ToolResult, Transcript, Usage, Warnings, decode_history, decode_reply, encode_history,
    encode_reply, room,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9 .,äöü€\\n\"\\\\]{1,20}",
        1 => Just("  \n".to_owned()),
        1 => Just("[tool_error] no".to_owned()),
        1 => Just("\u{1F6A2} data: [DONE]".to_owned()),
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "c[0-9]{1,2}",
        1 => Just("call:with spaces".to_owned()),
        1 => Just("x".repeat(70)),
        1 => Just("a1B2c3D4e".to_owned()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![6 => "[a-z_]{1,8}", 1 => Just("fs.read/file".to_owned()), 1 => Just("fs_read.file".to_owned())]
}

fn arguments() -> impl Strategy<Value = ToolInput> {
    prop_oneof![
        6 => vec(("[a-z]{1,4}", -99_i64..99), 0..3).prop_map(|fields| {
            ToolInput::object(fields.into_iter().map(|(key, value)| (key, json!(value))).collect())
        }),
        1 => Just(ToolInput::object(Map::from_iter([("deep".to_owned(), json!({ "list": [1, null, "ü"] }))]))),
        1 => Just(ToolInput::Invalid { raw: "{\"cut\":".to_owned() }),
    ]
}

fn image() -> impl Strategy<Value = ImagePart> {
    prop_oneof![
        Just(ImagePart::from_url("data:image/png;base64,iVBORw0KGgo=")),
        Just(ImagePart::from_url("https://example.org/a.png")),
    ]
}

fn reasoning() -> impl Strategy<Value = ReasoningPart> {
    let format = prop_oneof![
        Just(ReasoningFormat::Anthropic),
        Just(ReasoningFormat::OpenAiResponses),
        Just(ReasoningFormat::ReasoningContent),
    ];
    ("[a-z ]{0,9}[a-z]", proptest::option::of("[A-Za-z0-9]{4}"), format).prop_map(|(text, signature, format)| {
        let signature = signature.filter(|_| format != ReasoningFormat::ReasoningContent);
        let id = (format == ReasoningFormat::OpenAiResponses).then(|| "rs_1".to_owned());
        ReasoningPart { text, signature, format, id, carried: Carried::default() }
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    (id(), name(), arguments()).prop_map(|(id, name, input)| ToolCall {
        id: ToolCallId::new(id),
        name: ToolName::new(name),
        input,
        signature: None,
        carried: Carried::default(),
    })
}

fn assistant_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => text().prop_map(|text| Part::Text(TextPart::new(text))),
        4 => call().prop_map(Part::ToolCall),
        2 => reasoning().prop_map(Part::Reasoning),
        1 => "[a-z]{1,9}".prop_map(|text| Part::Refusal(RefusalPart { text, carried: Carried::default() })),
    ]
}

fn output() -> impl Strategy<Value = ToolOutput> {
    let content = prop_oneof![
        3 => text().prop_map(|text| Content::Text(TextPart::new(text))),
        1 => image().prop_map(Content::Image),
    ];
    (vec(content, 0..3), any::<bool>()).prop_map(|(content, is_error)| ToolOutput { content, is_error })
}

/// A message of the user, or a turn of the assistant with the results of its calls.
fn turn() -> impl Strategy<Value = Vec<Message>> {
    let user = prop_oneof![
        3 => text().prop_map(|text| Part::Text(TextPart::new(text))),
        1 => image().prop_map(Part::Image),
    ];
    prop_oneof![
        3 => (vec(user, 1..3), proptest::option::of("[a-z]{1,5}"))
            .prop_map(|(parts, name)| vec![Message { name, ..Message::new(Role::User, parts) }]),
        1 => text().prop_map(|text| vec![Message::text(Role::System, text)]),
        4 => (vec(assistant_part(), 1..5), vec(output(), 5)).prop_map(|(parts, outputs)| {
            let message = Message::new(Role::Assistant, parts);
            let results: Vec<Part> = message
                .calls()
                .zip(outputs)
                .map(|(call, output)| Part::ToolResult(ToolResult {
                    call_id: call.id.clone(),
                    name: None,
                    output,
                    carried: Carried::default(),
                }))
                .collect();
            let mut turn = vec![message];
            if !results.is_empty() {
                turn.push(Message::new(Role::Tool, results));
            }
            turn
        }),
    ]
}

/// A conversation in the normal form, whole: every call has its result.
fn transcript() -> impl Strategy<Value = Transcript> {
    vec(turn(), 0..7).prop_map(|turns| normal(turns.into_iter().flatten().collect()))
}

/// Without blank text and empty messages.
fn normal(messages: Vec<Message>) -> Transcript {
    let mut transcript = Transcript::default();
    for mut message in messages {
        message.parts.retain(|part| !matches!(part, Part::Text(text) if text.text.trim().is_empty()));
        for part in &mut message.parts {
            if let Part::ToolResult(result) = part {
                result
                    .output
                    .content
                    .retain(|content| !matches!(content, Content::Text(text) if text.text.trim().is_empty()));
            }
        }
        transcript.push(message);
    }
    transcript
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::OpenAiChat), Just(Format::OpenAiResponses), Just(Format::Anthropic)]
}

fn options() -> impl Strategy<Value = EncodeOptions> {
    let mid_system = prop_oneof![Just(MidSystem::Hoist), Just(MidSystem::Native), Just(MidSystem::User)];
    (0..PROFILES.len(), mid_system)
        .prop_map(|(at, mid_system)| EncodeOptions { mid_system, ..EncodeOptions::for_profile(&PROFILES[at]) })
}

fn codes(warnings: &Warnings) -> BTreeSet<&'static str> {
    warnings.iter().map(|warning| warning.code.code()).collect()
}

/// System texts at the front are one text to formats that keep them apart from the messages.
fn leading_joined(transcript: &Transcript) -> (String, Vec<Message>) {
    let leading = transcript.messages.iter().take_while(|message| message.role == Role::System).count();
    let texts: Vec<String> = transcript.messages[..leading].iter().map(Message::plain_text).collect();
    let mut rest = Transcript::new(transcript.messages[leading..].to_vec());
    rest = Transcript::from_canonical(&rest.to_canonical()).expect("a canonical form");
    (texts.join("\n\n"), rest.messages)
}

fn lint_options(format: Format, profile: &'static Profile) -> LintOptions {
    LintOptions { format, profile, reasoning_model: false }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn encoding_loses_what_the_projection_says(transcript in transcript(), format in format(), options in options()) {
        // Google's filler is put in for calls of others, so it is not in what was encoded.
        prop_assume!(!options.profile.google_signatures);
        let encoded = encode_history(&transcript, format, &options);
        let decoded = decode_history(&encoded.payload, format).expect("what was encoded");
        let projected = project(&transcript, format, &options);
        prop_assert_eq!(
            decoded.transcript.to_canonical(), projected.transcript.to_canonical(),
            "{} {}: {}", format, options.profile.name, encoded.payload
        );
        prop_assert_eq!(codes(&encoded.warnings), codes(&projected.warnings));
    }

    #[test]
    fn a_projection_loses_nothing_more(transcript in transcript(), format in format()) {
        let options = EncodeOptions::default();
        let once = decode_history(&encode_history(&transcript, format, &options).payload, format).expect("encoded");
        let again = encode_history(&once.transcript, format, &options);
        let twice = decode_history(&again.payload, format).expect("encoded");
        prop_assert_eq!(leading_joined(&once.transcript), leading_joined(&twice.transcript));
    }

    #[test]
    fn a_whole_conversation_is_lint_clean(transcript in transcript(), format in format(), options in options()) {
        let sent = ProviderHistory::prepare(&transcript, format, &options);
        let findings = lint(sent.payload(), &lint_options(format, options.profile));
        prop_assert!(!has_errors(&findings), "{:?} in {}", findings, sent.payload());
    }

    #[test]
    fn the_stored_form_keeps_everything(transcript in transcript()) {
        let stored = serde_json::to_string(&transcript).expect("JSON");
        let read: Transcript = serde_json::from_str(&stored).expect("what was written");
        prop_assert_eq!(read, transcript);
    }

    #[test]
    fn streamed_and_plain_replies_mean_the_same(
        parts in vec(assistant_part(), 0..5), format in format(), cuts in vec(1_usize..40, 1..30), tokens in 0_u64..99,
    ) {
        let message = normal(vec![Message::new(Role::Assistant, parts)]).messages.pop();
        let message = message.unwrap_or_else(|| Message::new(Role::Assistant, Vec::new()));
        let called = message.calls().next().is_some();
        let reply = Reply {
            stop_reason: if called { StopReason::ToolUse } else { StopReason::End },
            usage: Some(Usage { input: tokens, output: 7, ..Usage::default() }),
            warnings: Warnings::default(),
            message,
        };
        let (plain, _) = encode_reply(&reply, format, "id", "m", 0);
        let plain = decode_reply(&plain, format).expect("what was encoded");
        let wire: Vec<u8> =
            encode_stream(&reply, format, "id", "m", 0).iter().flat_map(|event| event.to_wire().into_bytes()).collect();

        let mut whole = StreamReader::new(format);
        whole.push(&wire);
        let whole = whole.finish();
        prop_assert!(whole.complete, "{:?}", whole.error);
        prop_assert_eq!(without_own_ids(&whole.reply), without_own_ids(&plain));
        prop_assert_eq!(whole.reply.stop_reason, plain.stop_reason);
        prop_assert_eq!(whole.reply.usage, plain.usage);

        let mut pieces = StreamReader::new(format);
        let mut deltas = Vec::new();
        let (mut rest, mut turn) = (wire.as_slice(), 0);
        while !rest.is_empty() {
            let cut = cuts[turn % cuts.len()].min(rest.len());
            deltas.extend(pieces.push(&rest[..cut]));
            rest = &rest[cut..];
            turn += 1;
        }
        let pieces = pieces.finish();
        prop_assert_eq!(&pieces.reply, &whole.reply);

        // And onwards, piece by piece, to a client of any format.
        for target in Format::ALL {
            let mut encoder = Encoder::new(target, "id", "m", 0);
            let mut events = Vec::new();
            for delta in deltas.iter().chain(&pieces.deltas) {
                events.extend(encoder.delta(delta));
            }
            events.extend(encoder.finish(&pieces.reply));
            let mut reader = StreamReader::new(target);
            for event in &events {
                reader.push(event.to_wire().as_bytes());
            }
            let relayed = reader.finish();
            prop_assert!(relayed.complete);
            // Formats differ in where a refusal stands.
            let text = |reply: &Reply| {
                let mut characters: Vec<char> = reply.message.plain_text().chars().collect();
                characters.sort_unstable();
                characters
            };
            prop_assert_eq!(text(&relayed.reply), text(&pieces.reply));
            let calls = |reply: &Reply| -> Vec<(String, Option<Map<String, Value>>)> {
                reply.message.calls().map(|call| (call.id.to_string(), call.input.fields().cloned())).collect()
            };
            prop_assert_eq!(calls(&relayed.reply), calls(&pieces.reply));
        }
    }

    #[test]
    fn a_stream_that_is_cut_is_an_error_and_keeps_what_was_received(
        parts in vec(assistant_part(), 1..4), format in format(), cut in 0.0_f64..1.0,
    ) {
        let message = normal(vec![Message::new(Role::Assistant, parts)]).messages.pop();
        let Some(message) = message else { return Ok(()) };
        let reply = Reply { message, stop_reason: StopReason::End, usage: None, warnings: Warnings::default() };
        let events = encode_stream(&reply, format, "id", "m", 0);
        let cut = ((events.len() - 1) as f64 * cut) as usize;
        let mut reader = StreamReader::new(format);
        for event in &events[..cut] {
            reader.push(event.to_wire().as_bytes());
        }
        let cut = reader.finish();
        prop_assert!(!cut.complete);
        prop_assert_eq!(cut.reply.stop_reason, StopReason::Error);
        prop_assert!(cut.error.is_some());
        let whole = reply.message.plain_text();
        let kept = cut.reply.message.plain_text();
        prop_assert!(kept.chars().count() <= whole.chars().count());
        for call in cut.reply.message.calls() {
            prop_assert!(call.input.fields().is_some(), "an unfinished call is handed on");
        }
    }

    #[test]
    fn events_of_a_room_come_back(call in call(), output in output()) {
        prop_assume!(call.input.fields().is_some());
        let result = ToolResult { call_id: call.id.clone(), name: None, output, carried: Carried::default() };
        let rows: Vec<Value> = [room::call_event(&call), room::result_event(&result, &call.name)]
            .iter()
            .map(|event| json!({ "sender_id": "me", "message_type": event.message_type, "content": event.content }))
            .collect();
        let decoded = room::decode_rows(&rows, "me").transcript;
        let back = decoded.messages[0].calls().next().expect("the call");
        prop_assert_eq!((&back.id, &back.name, back.input.fields()), (&call.id, &call.name, call.input.fields()));
        let back = decoded.messages[1].results().next().expect("the result");
        prop_assert_eq!(back.output.is_error, result.output.is_error);
    }
}

/// JSON that looks like histories, and is wrong in every way.
fn payload_value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("user"),
        Just("assistant"),
        Just("tool"),
        Just("system"),
        Just("text"),
        Just("tool_use"),
        Just("tool_result"),
        Just("function_call"),
        Just("function_call_output"),
        Just("reasoning"),
        Just("message"),
        Just("a"),
        Just(""),
        Just(" "),
        Just("{}"),
        Just("\"{}\""),
        Just("fc_1"),
        Just("thinking"),
        Just("image"),
        Just("server_tool_use"),
        Just("rs_1"),
        Just("custom_tool_call"),
        Just("image_url"),
    ];
    let key = prop_oneof![
        Just("role"),
        Just("content"),
        Just("type"),
        Just("id"),
        Just("call_id"),
        Just("tool_call_id"),
        Just("tool_use_id"),
        Just("tool_calls"),
        Just("function"),
        Just("arguments"),
        Just("input"),
        Just("name"),
        Just("text"),
        Just("output"),
        Just("is_error"),
        Just("cache_control"),
        Just("refusal"),
        Just("reasoning_content"),
        Just("signature"),
        Just("summary"),
        Just("custom"),
        Just("image_url"),
        Just("source"),
    ];
    let leaf = prop_oneof![
        6 => word.prop_map(|word| json!(word)),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(|flag| json!(flag)),
        1 => (0..9).prop_map(|number| json!(number)),
    ];
    let value = leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::Array),
            3 => vec((key.clone(), inner), 0..7).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    });
    let message = (
        prop_oneof![Just("user"), Just("assistant"), Just("assistant"), Just("tool"), Just("system"), Just("x")],
        value.clone(),
        vec((Just("tool_calls"), value.clone()), 0..2),
        value.clone(),
    )
        .prop_map(|(role, content, more, extra)| {
            let mut message = json!({ "role": role, "content": content });
            for (key, value) in more {
                message[key] = json!([value]);
            }
            if let (Some(message), Some(extra)) = (message.as_object_mut(), extra.as_object()) {
                for (key, value) in extra {
                    message.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            message
        });
    (vec(prop_oneof![4 => message, 1 => value], 0..7), any::<bool>())
        .prop_map(|(items, responses)| if responses { json!({ "input": items }) } else { json!({ "messages": items }) })
}

/// As many cases, or as many as `./fuzz` asks for.
fn of_any_input(cases: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..asked }
}

proptest! {
    #![proptest_config(of_any_input(600))]

    #[test]
    fn repair_leaves_no_error_and_is_idempotent(payload in payload_value(), options in options(), reasoning_model in any::<bool>()) {
        for format in Format::ALL {
            let options = LintOptions { format, profile: options.profile, reasoning_model };
            let repaired = repair(&payload, &options);
            prop_assert!(repaired.left.is_empty(), "{format}: {:?} left in {} of {payload}", repaired.left, repaired.payload);
            prop_assert_eq!(&repair(&repaired.payload, &options).payload, &repaired.payload);
            if !has_errors(&repaired.findings) {
                prop_assert_eq!(&repaired.payload, &payload, "a clean history was changed");
            }
        }
    }

    #[test]
    fn nothing_that_parses_values_panics(payload in payload_value()) {
        for format in Format::ALL {
            let _ = decode_history(&payload, format);
            let _ = decode_reply(&payload, format);
            let mut assembler = bandstand_transcript::stream::Assembler::new(format);
            for key in ["messages", "input"] {
                for item in payload[key].as_array().into_iter().flatten() {
                    assembler.value("", item);
                }
            }
            assembler.finish();
        }
        let _ = Transcript::from_canonical(&payload);
        room::decode_rows(payload["messages"].as_array().map_or(&[], Vec::as_slice), "me");
    }

    #[test]
    fn lint_reads_any_bytes(bytes in vec(any::<u8>(), 0..200), payload in payload_value(), cut in 0_usize..400, flip in 0_usize..400) {
        let mut broken = payload.to_string().into_bytes();
        broken.truncate(cut);
        if let Some(byte) = broken.get_mut(flip) {
            *byte = *bytes.first().unwrap_or(&b'"');
        }
        for input in [bytes, broken] {
            let report = lint_bytes(&input, None, LintOptions::new);
            let options = LintOptions::new(report.format);
            prop_assert!(repair(&report.document.payload, &options).left.is_empty());
            for format in Format::ALL {
                let mut reader = StreamReader::new(format);
                reader.push(&input);
                reader.finish();
            }
        }
    }

    #[test]
    fn stream_events_in_any_order_are_survived(order in vec(0_usize..200, 0..60), format in format(), parts in vec(assistant_part(), 0..4)) {
        let message = Message::new(Role::Assistant, parts);
        let reply = Reply { message, stop_reason: StopReason::End, usage: None, warnings: Warnings::default() };
        let events = encode_stream(&reply, format, "id", "m", 0);
        for target in Format::ALL {
            let mut assembler = bandstand_transcript::stream::Assembler::new(target);
            for at in &order {
                assembler.event(&events[at % events.len()]);
            }
            assembler.finish();
        }
    }
}

/// Items of a reply get ids of their own in each encoding; what counts is the canonical message.
fn without_own_ids(reply: &Reply) -> Value {
    let mut message = reply.message.to_canonical().unwrap_or(Value::Null);
    for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        if part["type"] == "reasoning"
            && let Some(fields) = part.as_object_mut()
        {
            fields.remove("id");
        }
    }
    message
}

#[test]
fn a_deep_file_is_read_without_overflow() {
    let deep = "[{\"messages\":".repeat(200_000);
    let report = lint_bytes(deep.as_bytes(), None, LintOptions::new);
    assert!(!report.findings.is_empty());
}

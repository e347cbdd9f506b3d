//! Comparing conversations: nothing is found where nothing changed, and every change is found.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use bandstand_transcript::diff::{Difference, DifferenceCode as Code, Weight, diff, diff_in, has_faults};
use bandstand_transcript::model::{Carried, Content, ImagePart, ReasoningFormat, ReasoningPart, RefusalPart, TextPart};
use bandstand_transcript::project::project;
use bandstand_transcript::{
    EncodeOptions, Format, Message, Part, ProviderHistory, Role, StopReason, ToolCall, ToolCallId, ToolInput, ToolName,
    ToolOutput, ToolResult, Transcript, decode_history, encode_history,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn text() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => "[a-d]{1,3}( [a-d]{1,3})?",
        1 => Just(" \n".to_owned()),
        1 => Just("[tool_error] no".to_owned()),
    ]
    .prop_map(|text| Part::Text(TextPart::new(text)))
}

fn image() -> impl Strategy<Value = ImagePart> {
    "[ab]".prop_map(|name| ImagePart::from_url(&format!("https://example.org/{name}.png")))
}

fn reasoning() -> impl Strategy<Value = Part> {
    let format = prop_oneof![Just(ReasoningFormat::Anthropic), Just(ReasoningFormat::OpenAiResponses)];
    ("[a-c]{1,2}", proptest::option::of("[A-Z]{2}"), format).prop_map(|(text, signature, format)| {
        let id = (format == ReasoningFormat::OpenAiResponses).then(|| "rs_1".to_owned());
        Part::Reasoning(ReasoningPart { text, signature, format, id, carried: Carried::default() })
    })
}

fn call() -> impl Strategy<Value = Part> {
    let input = prop_oneof![
        4 => (0..3_i64).prop_map(|value| ToolInput::object(Map::from_iter([("at".to_owned(), json!(value))]))),
        1 => Just(ToolInput::Invalid { raw: "{\"cut\":".to_owned() }),
    ];
    ("c[0-4]", "[ab]", input).prop_map(|(id, name, input)| {
        let (id, name) = (ToolCallId::new(id), ToolName::new(name));
        Part::ToolCall(ToolCall { id, name, input, signature: None, carried: Carried::default() })
    })
}

fn output() -> impl Strategy<Value = ToolOutput> {
    let content = prop_oneof![
        3 => "[a-c]{1,2}".prop_map(|text| Content::Text(TextPart::new(text))),
        1 => image().prop_map(Content::Image),
    ];
    (vec(content, 0..3), any::<bool>()).prop_map(|(content, is_error)| ToolOutput { content, is_error })
}

fn turn() -> impl Strategy<Value = Vec<Message>> {
    let part = prop_oneof![
        3 => text(),
        4 => call(),
        2 => reasoning(),
        1 => "[a-c]".prop_map(|text| Part::Refusal(RefusalPart { text, carried: Carried::default() })),
    ];
    let user = prop_oneof![4 => text(), 1 => image().prop_map(Part::Image)];
    prop_oneof![
        3 => (vec(user, 1..3), proptest::option::of("[xy]"))
            .prop_map(|(parts, name)| vec![Message { name, ..Message::new(Role::User, parts) }]),
        1 => text().prop_map(|text| vec![Message::new(Role::System, vec![text])]),
        4 => (vec(part, 1..5), vec(output(), 5)).prop_map(|(parts, outputs)| {
            let message = Message::new(Role::Assistant, parts);
            let result = |(call, output): (&ToolCall, ToolOutput)| {
                Part::ToolResult(ToolResult { call_id: call.id.clone(), name: None, output, carried: Carried::default() })
            };
            let results: Vec<Part> = message.calls().zip(outputs).map(result).collect();
            vec![message, Message::new(Role::Tool, results)]
        }),
    ]
}

fn conversation() -> impl Strategy<Value = Transcript> {
    vec(turn(), 1..7).prop_map(|turns| {
        let messages = turns.into_iter().flatten().filter(|message| !message.parts.is_empty());
        Transcript::new(messages.collect())
    })
}

/// What two conversations are compared by.
fn meaning(transcript: &Transcript) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for message in transcript.to_stored()["messages"].as_array().expect("messages") {
        let mut message = message.clone();
        let role = message["role"].clone();
        let parts = message["parts"].as_array_mut().expect("parts");
        let blank = |part: &Value| part["text"].as_str().is_some_and(|text| text.trim().is_empty());
        parts.retain(|part| part["type"] == "reasoning" || !blank(part));
        for part in parts.iter_mut() {
            if let Some(content) = part.get_mut("content").and_then(Value::as_array_mut) {
                content.retain(|part| !blank(part));
            }
        }
        if parts.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last["role"] == "tool" && role == "tool" => {
                last["parts"].as_array_mut().expect("parts").append(parts);
            }
            _ => messages.push(message),
        }
    }
    json!([messages, transcript.stop_reason.map(StopReason::name)])
}

/// One change, at a place that `at` chooses.
fn change(transcript: &mut Transcript, kind: usize, at: usize, part_at: usize) {
    let count = transcript.messages.len();
    let index = at % count;
    let parts = transcript.messages[index].parts.len();
    let part_index = part_at % parts;
    match kind {
        0 => drop(transcript.messages[index].parts.remove(part_index)),
        1 => transcript.messages[index].parts.insert(part_index, Part::Text(TextPart::new("something new"))),
        2 => transcript.messages[index].parts.swap(part_index, (part_index + 1) % parts),
        3 => transcript.messages.swap(index, (index + 1) % count),
        4 => {
            let role = transcript.messages[index].role;
            if role != Role::Tool {
                transcript.messages[index].role = if role == Role::User { Role::Assistant } else { Role::User };
            }
        }
        5 => drop(transcript.messages.remove(index)),
        6 => {
            let behind = transcript.messages[index].parts.split_off(part_index);
            let message = transcript.messages[index].clone();
            transcript.messages.insert(index + 1, Message { parts: behind, ..message });
        }
        // Results have no name of a participant.
        7 if transcript.messages[index].role == Role::Tool => {}
        7 => transcript.messages[index].name = Some("z".to_owned()),
        8 => transcript.stop_reason = Some(StopReason::Length),
        9 => {
            let part = transcript.messages[index].parts.remove(part_index);
            let role = transcript.messages[index].role;
            transcript.messages.insert((index + 2).min(count), Message::new(role, vec![part]));
        }
        _ => match &mut transcript.messages[index].parts[part_index] {
            Part::Text(text) => text.text.push('!'),
            Part::Refusal(refusal) => refusal.text.push('!'),
            Part::Image(image) => *image = ImagePart::from_url("https://example.org/other.png"),
            Part::Reasoning(reasoning) => match kind {
                10 => reasoning.text.push('!'),
                11 => reasoning.signature = Some("other".to_owned()),
                12 => reasoning.signature = None,
                _ => reasoning.id = Some("rs_2".to_owned()),
            },
            Part::ToolCall(call) => match kind {
                10 => call.name = ToolName::new("other"),
                11 => call.input = ToolInput::object(Map::from_iter([("other".to_owned(), json!(1.5))])),
                12 => call.signature = Some("s".to_owned()),
                _ => call.id = ToolCallId::new("other"),
            },
            Part::ToolResult(result) => match kind {
                10 => result.output.is_error = !result.output.is_error,
                11 => result.output.content.insert(0, Content::Text(TextPart::new("other"))),
                12 => result.output.content = vec![Content::Image(ImagePart::from_url("https://example.org/o.png"))],
                _ => result.call_id = ToolCallId::new("other"),
            },
            Part::Foreign(_) => {}
        },
    }
}

fn codes(found: &[Difference]) -> Vec<&'static str> {
    found.iter().map(|difference| difference.code.code()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_has_no_difference(transcript in conversation()) {
        prop_assert_eq!(diff(&transcript, &transcript.clone()), Vec::new());
    }

    #[test]
    fn one_change_is_found(transcript in conversation(), kind in 0_usize..14, at in 0_usize..40, part in 0_usize..9) {
        let mut changed = transcript.clone();
        change(&mut changed, kind, at, part);
        let found = diff(&transcript, &changed);
        prop_assert_eq!(found.is_empty(), meaning(&transcript) == meaning(&changed), "{:?}\n{}\n{}", codes(&found), meaning(&transcript), meaning(&changed));
        let back = diff(&changed, &transcript);
        prop_assert_eq!(found.is_empty(), back.is_empty());
    }

    #[test]
    fn what_a_format_loses_is_no_fault(transcript in conversation(), format in prop_oneof![Just(Format::OpenAiChat), Just(Format::OpenAiResponses), Just(Format::Anthropic)]) {
        let options = EncodeOptions::default();
        let written = encode_history(&transcript, format, &options);
        let read = decode_history(&written.payload, format).expect("what we write").transcript;
        let found = diff_in(&transcript, &read, format, &options);
        prop_assert!(!has_faults(&found), "{found:?}");
        let sent = ProviderHistory::prepare(&transcript, format, &options);
        let read = decode_history(sent.payload(), format).expect("what we send").transcript;
        let found = diff_in(&transcript, &read, format, &options);
        prop_assert!(!has_faults(&found), "{found:?}");
    }

    #[test]
    fn a_fault_is_not_excused_by_the_format(transcript in conversation(), format in prop_oneof![Just(Format::OpenAiChat), Just(Format::OpenAiResponses), Just(Format::Anthropic)], at in 0_usize..40) {
        let options = EncodeOptions::default();
        let mut read = project(&transcript, format, &options).transcript;
        let calls = read.messages.iter().filter(|message| message.role == Role::Assistant && message.calls().next().is_some()).count();
        prop_assume!(calls > 0);
        let messages = read.messages.iter_mut().filter(|message| message.calls().next().is_some());
        let message = messages.into_iter().nth(at % calls).expect("a message with calls");
        let call = message.parts.iter_mut().find_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        });
        call.expect("a call").input = ToolInput::object(Map::from_iter([("forged".to_owned(), json!(true))]));
        let found = diff_in(&transcript, &read, format, &options);
        prop_assert!(has_faults(&found), "{found:?}");
    }
}

fn tide(id: &str, port: &str) -> Part {
    let input = ToolInput::object(Map::from_iter([("port".to_owned(), json!(port))]));
    let (id, name) = (ToolCallId::new(id), ToolName::new("tide"));
    Part::ToolCall(ToolCall { id, name, input, signature: None, carried: Carried::default() })
}

fn answer(id: &str, output: ToolOutput) -> Part {
    Part::ToolResult(ToolResult { call_id: ToolCallId::new(id), name: None, output, carried: Carried::default() })
}

fn tides() -> Transcript {
    Transcript::new(vec![
        Message::text(Role::User, "High water at Kestrel Quay and Heron Pier?"),
        Message::new(Role::Assistant, vec![tide("c1", "Kestrel Quay"), tide("c2", "Heron Pier")]),
        Message::new(
            Role::Tool,
            vec![answer("c1", ToolOutput::text("14:05")), answer("c2", ToolOutput::error("closed"))],
        ),
        Message::text(Role::Assistant, "At 14:05 at Kestrel Quay; Heron Pier is closed."),
        Message::text(Role::User, "Thanks"),
    ])
}

/// What `work` does to a conversation about tides, as codes.
fn after(work: impl FnOnce(&mut Transcript)) -> Vec<Difference> {
    let mut changed = tides();
    work(&mut changed);
    diff(&tides(), &changed)
}

#[test]
fn differences_have_the_fields_own_words() {
    let only = |found: Vec<Difference>| {
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().expect("one")
    };
    let lost = only(after(|it| drop(it.messages[2].parts.remove(1))));
    assert_eq!((lost.code, lost.id.as_deref()), (Code::ResultLost, Some("c2")));
    assert_eq!(lost.to_string(), "result lost at message 2, part 1 [c2]: \"(failed) closed\"");
    let moved = only(after(|it| {
        let result = it.messages[2].parts.remove(0);
        it.messages.push(Message::new(Role::Tool, vec![result]));
    }));
    assert_eq!(moved.to_string(), "result moved at message 2, part 0 (now message 5, part 0) [c1]");
    let arguments = only(after(|it| it.messages[1].parts[0] = tide("c1", "Kestrel Bay")));
    assert_eq!(
        arguments.to_string(),
        "arguments differ at message 1, part 0 [c1]: \"{\\\"port\\\":\\\"Kestrel Quay\\\"}\" → \"{\\\"port\\\":\\\"Kestrel Bay\\\"}\""
    );
    let flag = only(after(|it| it.messages[2].parts[1] = answer("c2", ToolOutput::text("closed"))));
    assert_eq!((flag.code, flag.weight), (Code::ErrorFlagLost, Weight::Fault));
    let role = only(after(|it| it.messages[4].role = Role::System));
    assert_eq!(
        (role.code, role.before.as_deref(), role.after.as_deref()),
        (Code::RoleChanged, Some("user"), Some("system"))
    );
    let order = after(|it| it.messages[2].parts.swap(0, 1));
    assert_eq!((only(order.clone()).code, has_faults(&order)), (Code::ResultsReordered, false));
    let split = only(after(|it| {
        let (call, result) = (it.messages[1].parts.remove(1), it.messages[2].parts.remove(1));
        it.messages.insert(3, Message::new(Role::Assistant, vec![call]));
        it.messages.insert(4, Message::new(Role::Tool, vec![result]));
    }));
    assert_eq!(split.code, Code::TurnSplit);
    let renamed = after(|it| {
        it.messages[1].parts[0] = tide("toolu_1", "Kestrel Quay");
        it.messages[2].parts[0] = answer("toolu_1", ToolOutput::text("14:05"));
    });
    assert_eq!((only(renamed.clone()).code, has_faults(&renamed)), (Code::CallIdRenamed, false));
    // Renamed at one end only: the result is nobody's.
    let torn = after(|it| it.messages[1].parts[0] = tide("toolu_1", "Kestrel Quay"));
    assert_eq!(codes(&torn), ["call_id_renamed", "result_lost", "result_added"]);
    let stopped = only(after(|it| it.stop_reason = Some(StopReason::Length)));
    assert_eq!(stopped.to_string(), "stop reason differs: none → length");
}

#[test]
fn an_answer_that_went_to_an_earlier_call_of_that_id_has_moved() {
    let turn = |port: &str, at: &str| {
        [
            Message::new(Role::Assistant, vec![tide("c0", port)]),
            Message::new(Role::Tool, vec![answer("c0", ToolOutput::text(at))]),
        ]
    };
    let whole: Vec<Message> = turn("Kestrel Quay", "14:05").into_iter().chain(turn("Heron Pier", "14:20")).collect();
    let mut swapped = whole.clone();
    swapped.swap(2, 3);
    assert_eq!(codes(&diff(&Transcript::new(whole.clone()), &Transcript::new(swapped.clone()))), ["result_moved"]);
    assert_eq!(codes(&diff(&Transcript::new(swapped), &Transcript::new(whole))), ["result_moved"]);
}

#[test]
fn numbers_and_key_order_are_json() {
    let call = |input: Value| {
        let input = ToolInput::object(input.as_object().expect("an object").clone());
        let (id, name) = (ToolCallId::new("c"), ToolName::new("n"));
        let call = ToolCall { id, name, input, signature: None, carried: Carried::default() };
        Transcript::new(vec![Message::new(Role::Assistant, vec![Part::ToolCall(call)])])
    };
    let same = |first: Value, second: Value| diff(&call(first), &call(second)).is_empty();
    assert!(same(json!({ "a": 1, "b": { "c": 2, "d": 3 } }), json!({ "b": { "d": 3, "c": 2.0 }, "a": 1 })));
    assert!(!same(json!({ "a": 1 }), json!({ "a": 1.5 })));
    // A language without whole numbers rounds this one.
    assert!(!same(json!({ "a": 9_007_199_254_740_993_u64 }), json!({ "a": 9_007_199_254_740_992.0 })));
}

#[test]
fn what_is_unavoidable_says_why() {
    let result = answer(
        "c1",
        ToolOutput { content: vec![Content::Image(ImagePart::from_url("https://example.org/a.png"))], is_error: false },
    );
    let thought = ReasoningPart {
        text: "Hm.".to_owned(),
        signature: Some("S".to_owned()),
        format: ReasoningFormat::Anthropic,
        id: None,
        carried: Carried::default(),
    };
    let first = Transcript::new(vec![
        Message::text(Role::User, "Show me"),
        Message::new(Role::Assistant, vec![Part::Reasoning(thought), tide("c1", "Kestrel Quay")]),
        Message::new(Role::Tool, vec![result]),
    ]);
    let options = EncodeOptions::default();
    let sent = encode_history(&first, Format::OpenAiChat, &options);
    let read = decode_history(&sent.payload, Format::OpenAiChat).expect("a history").transcript;
    let found = diff_in(&first, &read, Format::OpenAiChat, &options);
    let told: Vec<(&str, Weight, Option<&str>)> = found
        .iter()
        .map(|it| (it.code.code(), it.weight, it.because.map(bandstand_transcript::WarningCode::code)))
        .collect();
    assert_eq!(
        told,
        [
            ("reasoning_lost", Weight::Unavoidable, Some("signature_dropped")),
            ("image_moved", Weight::Unavoidable, Some("image_moved_to_user")),
            ("text_added", Weight::Unavoidable, Some("image_moved_to_user")),
        ]
    );
    let told = serde_json::to_value(&found[0]).expect("JSON");
    assert_eq!(
        (&told["code"], &told["weight"], &told["because"]),
        (&json!("reasoning_lost"), &json!("unavoidable"), &json!("signature_dropped"))
    );
    // The same loss within one format is a fault.
    let found = diff_in(&first, &read, Format::Anthropic, &options);
    assert!(found.iter().any(|it| it.code == Code::ReasoningLost && it.weight == Weight::Fault), "{found:?}");
}

#[test]
fn a_repair_is_told_as_one() {
    let mut first = tides();
    first.messages[2].parts.pop();
    let options = EncodeOptions::default();
    let sent = ProviderHistory::prepare(&first, Format::Anthropic, &options);
    let read = decode_history(sent.payload(), Format::Anthropic).expect("a history").transcript;
    let found = diff_in(&first, &read, Format::Anthropic, &options);
    assert_eq!((codes(&found), found[0].weight), (vec!["result_added"], Weight::Repair));
}

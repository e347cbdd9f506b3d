//! What a request offers: definitions and choices, both ways between the formats, and their faults.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use bandstand_transcript::lint::{LintOptions, Section, Severity, has_errors, lint};
use bandstand_transcript::model::Carried;
use bandstand_transcript::profile::PROFILES;
use bandstand_transcript::repair::repair;
use bandstand_transcript::tools::{
    Offer, OfferOptions, ToolChoice, ToolDefinition, ToolKind, decode_offer, encode_offer,
};
use bandstand_transcript::{
    EncodeOptions, FindingCode, Format, Message, Part, Profile, ProviderHistory, Role, ToolCall, ToolCallId, ToolInput,
    ToolName, Transcript, WarningCode,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const ALL: [Format; 3] = Format::ALL;

fn path_schema() -> Value {
    json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] })
}

fn tool(name: &str, kind: ToolKind) -> ToolDefinition {
    ToolDefinition {
        name: ToolName::new(name),
        description: Some(format!("Does {name}.")),
        kind,
        strict: None,
        carried: Carried::default(),
    }
}

fn fields(offer: &Offer, format: Format) -> Value {
    Value::Object(encode_offer(offer, format, &OfferOptions::default()).fields)
}

fn with_profile(profile: &str) -> OfferOptions {
    OfferOptions { profile: Profile::named(profile).expect("a profile"), thinking: false }
}

/// Codes of what is wrong with the tools of a request.
fn codes(request: &Value, format: Format) -> Vec<&'static str> {
    let found = lint(request, &LintOptions::new(format));
    found.iter().filter(|finding| finding.section != Section::Messages).map(|finding| finding.code.code()).collect()
}

#[test]
fn each_format_has_its_own_definition() {
    let offer = Offer {
        tools: vec![tool("read", ToolKind::Function(Some(path_schema()))), tool("now", ToolKind::Function(None))],
        ..Offer::default()
    };
    assert_eq!(
        fields(&offer, Format::OpenAiChat),
        json!({ "tools": [
            { "type": "function", "function": { "name": "read", "description": "Does read.", "parameters": path_schema() } },
            { "type": "function", "function": { "name": "now", "description": "Does now." } },
        ] })
    );
    assert_eq!(
        fields(&offer, Format::OpenAiResponses),
        json!({ "tools": [
            { "type": "function", "name": "read", "description": "Does read.", "parameters": path_schema(), "strict": false },
            { "type": "function", "name": "now", "description": "Does now.", "parameters": null, "strict": false },
        ] })
    );
    assert_eq!(
        fields(&offer, Format::Anthropic),
        json!({ "tools": [
            { "name": "read", "description": "Does read.", "input_schema": path_schema() },
            { "name": "now", "description": "Does now.", "input_schema": { "type": "object", "properties": {} } },
        ] })
    );
    // Other servers of the chat format want a schema whatever it says.
    let sent = encode_offer(&offer, Format::OpenAiChat, &with_profile("ollama"));
    assert_eq!(sent.fields["tools"][1]["function"]["parameters"], json!({ "type": "object", "properties": {} }));
}

#[test]
fn choices_go_every_way() {
    let name = || ToolName::new("read");
    let some = |required| ToolChoice::Allowed { required, names: vec![name()] };
    let rows = [
        (ToolChoice::Auto, json!("auto"), json!("auto"), json!({ "type": "auto" })),
        (ToolChoice::Required, json!("required"), json!("required"), json!({ "type": "any" })),
        (ToolChoice::None, json!("none"), json!("none"), json!({ "type": "none" })),
        (
            ToolChoice::One(name()),
            json!({ "type": "function", "function": { "name": "read" } }),
            json!({ "type": "function", "name": "read" }),
            json!({ "type": "tool", "name": "read" }),
        ),
        (
            some(true),
            json!({ "type": "allowed_tools", "allowed_tools": { "mode": "required",
                "tools": [{ "type": "function", "function": { "name": "read" } }] } }),
            json!({ "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": "read" }] }),
            json!({ "type": "any" }),
        ),
    ];
    for (choice, chat, responses, anthropic) in rows {
        let tools = ["read", "now"].map(|name| tool(name, ToolKind::Function(Some(path_schema())))).to_vec();
        let offer = Offer { tools, choice: Some(choice.clone()), parallel: None };
        for (format, expected) in ALL.into_iter().zip([chat, responses, anthropic]) {
            let sent = encode_offer(&offer, format, &OfferOptions::default());
            assert_eq!(sent.fields["tool_choice"], expected, "{format}");
            let read = decode_offer(&Value::Object(sent.fields.clone()), format).offer;
            if matches!(choice, ToolChoice::Allowed { .. }) && format == Format::Anthropic {
                // There is no such choice: the others are not offered.
                assert_eq!(read.tools.len(), 1);
                assert!(sent.warnings.has(WarningCode::ToolNotOffered));
            } else {
                assert_eq!((&read.choice, read.tools.len()), (&Some(choice.clone()), 2), "{format}");
            }
        }
    }
}

#[test]
fn one_call_at_a_time_is_said_in_each_way() {
    let offer = |choice| Offer {
        tools: vec![tool("read", ToolKind::Function(Some(path_schema())))],
        choice,
        parallel: Some(false),
    };
    assert_eq!(fields(&offer(None), Format::OpenAiChat)["parallel_tool_calls"], false);
    assert_eq!(fields(&offer(None), Format::OpenAiResponses)["parallel_tool_calls"], false);
    let chosen = |choice| fields(&offer(choice), Format::Anthropic)["tool_choice"].clone();
    assert_eq!(chosen(None), json!({ "type": "auto", "disable_parallel_tool_use": true }));
    assert_eq!(chosen(Some(ToolChoice::Required)), json!({ "type": "any", "disable_parallel_tool_use": true }));
    // Where nothing may be called there is nothing to be parallel.
    assert_eq!(chosen(Some(ToolChoice::None)), json!({ "type": "none" }));
}

#[test]
fn free_text_is_wrapped_where_there_is_none() {
    let request = json!({ "tools": [{ "type": "custom", "custom": { "name": "patch", "description": "Patches.",
        "format": { "type": "grammar", "grammar": { "syntax": "lark", "definition": "start: /.+/" } } } }],
        "tool_choice": { "type": "custom", "custom": { "name": "patch" } } });
    let offer = decode_offer(&request, Format::OpenAiChat).offer;
    assert_eq!(fields(&offer, Format::OpenAiChat), request);
    let responses = fields(&offer, Format::OpenAiResponses);
    assert_eq!(
        responses,
        json!({ "tools": [{ "name": "patch", "description": "Patches.", "type": "custom",
            "format": { "type": "grammar", "syntax": "lark", "definition": "start: /.+/" } }],
            "tool_choice": { "type": "custom", "name": "patch" } })
    );
    assert_eq!(decode_offer(&responses, Format::OpenAiResponses).offer, offer);
    let sent = encode_offer(&offer, Format::Anthropic, &OfferOptions::default());
    assert!(sent.warnings.has(WarningCode::ToolWrapped));
    assert_eq!(sent.fields["tools"][0]["input_schema"]["required"], json!(["input"]));
    let sent = encode_offer(&offer, Format::OpenAiChat, &with_profile("vllm"));
    assert_eq!(sent.fields["tools"][0]["function"]["parameters"]["properties"]["input"]["type"], "string");
    assert_eq!(sent.fields["tool_choice"]["function"]["name"], "patch");
}

#[test]
fn strict_is_kept_where_the_rules_are_kept() {
    let strict = |schema: Value| Offer {
        tools: vec![ToolDefinition { strict: Some(true), ..tool("read", ToolKind::Function(Some(schema))) }],
        ..Offer::default()
    };
    let closed = json!({ "type": "object", "properties": { "path": { "type": "string" }, "deep": { "type": "object",
        "properties": {}, "additionalProperties": false } }, "required": ["path", "deep"], "additionalProperties": false });
    assert_eq!(fields(&strict(closed.clone()), Format::OpenAiChat)["tools"][0]["function"]["strict"], true);
    assert_eq!(fields(&strict(closed.clone()), Format::Anthropic)["tools"][0]["strict"], true);
    // An argument that may be left out: OpenAI wants it listed, and nullable.
    let mut optional = closed.clone();
    optional["required"] = json!(["path"]);
    let sent = encode_offer(&strict(optional.clone()), Format::OpenAiResponses, &OfferOptions::default());
    assert_eq!(
        (&sent.fields["tools"][0]["strict"], sent.warnings.has(WarningCode::StrictDropped)),
        (&json!(false), true)
    );
    assert_eq!(fields(&strict(optional), Format::Anthropic)["tools"][0]["strict"], true);
    let mut bounded = closed;
    bounded["properties"]["path"]["maxLength"] = json!(9);
    assert_eq!(fields(&strict(bounded.clone()), Format::Anthropic)["tools"][0].get("strict"), None);
    let open = json!({ "tools": [{ "type": "function", "function": { "name": "read", "strict": true, "parameters":
        { "type": "object", "properties": { "deep": { "type": "object" } }, "required": ["deep"], "additionalProperties": false } } }] });
    let found = lint(&open, &LintOptions::new(Format::OpenAiChat));
    assert_eq!(found[0].field.as_deref(), Some("parameters/properties/deep/additionalProperties"));
}

#[test]
fn a_schema_that_is_refused_at_its_top_becomes_one_object() {
    let schema = json!({ "$defs": { "ById": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id", "kind"] } },
        "anyOf": [{ "$ref": "#/$defs/ById" }, { "type": "object", "properties": { "kind": { "type": "string" } }, "required": ["kind"] }] });
    let offer = Offer { tools: vec![tool("find", ToolKind::Function(Some(schema)))], ..Offer::default() };
    for format in ALL {
        let sent = encode_offer(&offer, format, &OfferOptions::default());
        assert!(sent.warnings.has(WarningCode::SchemaChanged));
        let place = match format {
            Format::OpenAiChat => "/tools/0/function/parameters",
            Format::OpenAiResponses => "/tools/0/parameters",
            Format::Anthropic => "/tools/0/input_schema",
        };
        let request = Value::Object(sent.fields);
        let settled = request.pointer(place).expect("a schema");
        assert_eq!(settled["properties"], json!({ "id": { "type": "integer" }, "kind": { "type": "string" } }));
        assert_eq!((&settled["type"], &settled["required"]), (&json!("object"), &json!(["kind"])));
        assert!(codes(&request, format).is_empty());
    }
}

#[test]
fn names_and_keys_find_their_way_back() {
    let schema = json!({ "type": "object", "properties": { "$filter": { "type": "string" }, "_filter": { "type": "string" } }, "required": ["$filter"] });
    let tools =
        vec![tool("odata.query", ToolKind::Function(Some(schema))), tool("odata_query", ToolKind::Function(None))];
    let sent = encode_offer(&Offer { tools, ..Offer::default() }, Format::Anthropic, &OfferOptions::default());
    assert_eq!(sent.fields["tools"][0]["name"], "odata_query_2");
    assert_eq!(sent.fields["tools"][1]["name"], "odata_query");
    assert_eq!(sent.fields["tools"][0]["input_schema"]["required"], json!(["_filter_2"]));
    let fields = Map::from_iter([("_filter_2".to_owned(), json!("a")), ("_filter".to_owned(), json!("b"))]);
    let (id, name) = (ToolCallId::new("c"), ToolName::new("odata_query_2"));
    let mut call =
        ToolCall { id, name, input: ToolInput::object(fields), signature: None, carried: Carried::default() };
    sent.names.restore(&mut call);
    assert_eq!(call.name.as_str(), "odata.query");
    assert_eq!(call.input.wire_object(), json!({ "$filter": "a", "_filter": "b" }));
}

#[test]
fn a_replayed_name_is_not_renamed_twice() {
    let call = |id: &str, name: &str| {
        let (id, name) = (ToolCallId::new(id), ToolName::new(name));
        let input = ToolInput::object(Map::new());
        Message::new(
            Role::Assistant,
            vec![Part::ToolCall(ToolCall { id, name, input, signature: None, carried: Carried::default() })],
        )
    };
    // One history kept the registry's name, another what stood on the wire; a legal tool of a like name is there too.
    let offer = Offer {
        tools: ["fs.read", "fs_read", "fs.list"].map(|name| tool(name, ToolKind::Function(None))).to_vec(),
        ..Offer::default()
    };
    let transcript = Transcript::new(vec![
        Message::text(Role::User, "Hi"),
        call("a", "fs.read"),
        call("b", "fs_read_2"),
        call("c", "fs_read"),
        call("d", "fs_list"),
    ]);
    let options = EncodeOptions::default();
    for format in ALL {
        let offered = encode_offer(&offer, format, &OfferOptions::default());
        let mut replayed = transcript.clone();
        for _ in 0..3 {
            let sent = ProviderHistory::prepare_with(&replayed, format, &options, &offered.names.tools);
            let read = bandstand_transcript::decode_history(sent.payload(), format).expect("a history").transcript;
            let names: Vec<&str> =
                read.messages.iter().flat_map(Message::calls).map(|call| call.name.as_str()).collect();
            assert_eq!(names, ["fs_read_2", "fs_read_2", "fs_read", "fs_list"], "{format}");
            replayed = read.clone();
        }
        assert_eq!(offered.names.tool("fs_read_2").as_str(), "fs.read");
        assert_eq!(offered.names.tool("fs_read").as_str(), "fs_read");
    }
}

#[test]
fn faults_of_tools_have_their_codes() {
    let function = |name: &str, parameters: Value| json!({ "type": "function", "function": { "name": name, "parameters": parameters } });
    let chat = |tools: Vec<Value>, more: Value| {
        let mut request = json!({ "messages": [{ "role": "user", "content": "Hi" }], "tools": tools });
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        codes(&request, Format::OpenAiChat)
    };
    assert_eq!(chat(vec![function("a", path_schema())], json!({ "tool_choice": "required" })), Vec::<&str>::new());
    assert_eq!(
        chat(
            vec![function("a.b", path_schema()), function("", path_schema()), function(&"x".repeat(65), path_schema())],
            json!({})
        ),
        ["bad_tool_name"; 3]
    );
    assert_eq!(
        chat(
            vec![
                function("a", json!({ "type": "object", "not": {} })),
                function("b", json!({ "oneOf": [] })),
                function("c", json!({ "type": "string" }))
            ],
            json!({})
        ),
        ["bad_tool_schema"; 3]
    );
    assert_eq!(
        chat(
            vec![json!({ "name": "a", "input_schema": path_schema() }), json!(7), json!({ "type": "function" })],
            json!({})
        ),
        ["bad_tool_definition"; 3]
    );
    assert_eq!(
        chat(
            vec![function("a", path_schema())],
            json!({ "tool_choice": { "type": "function", "function": { "name": "b" } } })
        ),
        ["unknown_tool_choice"]
    );
    assert_eq!(chat(vec![], json!({ "tool_choice": "auto" })), ["empty_tools_array", "choice_without_tools"]);
    assert_eq!(codes(&json!({ "messages": [], "tool_choice": "auto" }), Format::OpenAiChat), ["choice_without_tools"]);
    assert_eq!(codes(&json!({ "messages": [], "tool_choice": "none" }), Format::OpenAiChat), Vec::<&str>::new());
    let anthropic = |request: Value| codes(&request, Format::Anthropic);
    let own = |name: &str, schema: Value| json!({ "name": name, "input_schema": schema });
    assert_eq!(anthropic(json!({ "tools": [own("a", path_schema()), own("a", path_schema())] })), ["duplicate_tool"]);
    // There it may be any object.
    assert_eq!(
        anthropic(json!({ "tools": [own("a", json!({ "type": "object", "enum": [{}] }))] })),
        Vec::<&str>::new()
    );
    assert_eq!(
        anthropic(
            json!({ "tools": [own("a", json!({ "type": "object", "properties": { "a b": {}, "ok": { "type": "object", "properties": { "below it": {} } } } }))] })
        ),
        ["bad_property_key"]
    );
    for (thinking, choice, found) in [
        ("enabled", "any", vec!["forced_choice_with_thinking"]),
        ("adaptive", "tool", vec!["forced_choice_with_thinking"]),
        ("disabled", "any", vec![]),
        ("enabled", "auto", vec![]),
    ] {
        let request = json!({ "tools": [own("a", path_schema())], "thinking": { "type": thinking }, "tool_choice": { "type": choice, "name": "a" } });
        assert_eq!(anthropic(request), found);
    }
    // The provider's own tools are its own business.
    assert_eq!(
        anthropic(json!({ "tools": [{ "type": "web_search_20250305", "name": "web_search" }] })),
        Vec::<&str>::new()
    );
}

#[test]
fn a_server_may_want_the_tools_of_the_history() {
    let request = json!({ "messages": [
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "read", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a" }] },
    ] });
    let bedrock = Profile::named("bedrock").expect("a profile");
    let found = lint(&request, &LintOptions { profile: bedrock, ..LintOptions::new(Format::Anthropic) });
    assert_eq!((found[0].code, found[0].severity, found[0].index), (FindingCode::ToolsMissing, Severity::Warning, 1));
    assert!(lint(&request, &LintOptions::new(Format::Anthropic)).is_empty());
    let mut offered = request;
    offered["tools"] = json!([{ "name": "read", "input_schema": path_schema() }]);
    assert!(lint(&offered, &LintOptions { profile: bedrock, ..LintOptions::new(Format::Anthropic) }).is_empty());
}

#[test]
fn tools_and_the_calls_of_the_history_are_renamed_together() {
    let request = json!({
        "tools": [
            { "type": "function", "function": { "name": "fs/read" } },
            { "type": "function", "function": { "name": "fs.read" } },
        ],
        "tool_choice": { "type": "function", "function": { "name": "fs.read" } },
        "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "fs.read", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "a", "content": "x" },
        ],
    });
    let repaired = repair(&request, &LintOptions::new(Format::OpenAiChat));
    assert!(repaired.left.is_empty());
    let mended = &repaired.payload;
    assert_eq!(mended["tools"][0]["function"]["name"], "fs_read");
    for place in ["/tools/1/function/name", "/tool_choice/function/name", "/messages/1/tool_calls/0/function/name"] {
        assert_eq!(mended.pointer(place), Some(&json!("fs_read_2")), "{place}");
    }
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "integer", "minimum": 1 })),
        Just(json!({ "type": ["string", "null"] })),
        Just(json!({ "$ref": "#/$defs/A" })),
        Just(json!(true)),
    ];
    let key =
        prop_oneof![3 => "[a-c]", 1 => Just("$x y".to_owned()), 1 => Just(String::new()), 1 => Just("ü".repeat(40))];
    let object = leaf.prop_recursive(3, 16, 3, move |inner| {
        (vec((key.clone(), inner.clone()), 0..3), any::<[bool; 5]>()).prop_map(
            |(properties, [kind, closed, listed, any_of, all_of])| {
                let properties: Map<String, Value> = properties.into_iter().collect();
                let mut object = json!({ "properties": properties });
                if kind {
                    object["type"] = json!("object");
                }
                if closed {
                    object["additionalProperties"] = json!(false);
                }
                if listed {
                    object["required"] =
                        object["properties"].as_object().map(|held| held.keys().cloned().collect()).unwrap_or_default();
                }
                if any_of {
                    object["anyOf"] = json!([{ "properties": { "a": { "type": "string" } }, "required": ["a"] }]);
                }
                if all_of {
                    object["allOf"] = json!([{ "$ref": "#/$defs/A" }]);
                }
                object
            },
        )
    });
    prop_oneof![6 => object, 1 => Just(json!({ "type": "array" })), 1 => Just(json!("x"))]
}

fn definition() -> impl Strategy<Value = ToolDefinition> {
    let name = prop_oneof![4 => "[a-c_]{1,2}", 1 => Just("a.b".to_owned()), 1 => Just("a/b".to_owned()), 1 => Just(String::new()), 1 => Just("ä".repeat(70))];
    let kind = prop_oneof![
        5 => schema().prop_map(|schema| ToolKind::Function(Some(schema))),
        1 => Just(ToolKind::Function(None)),
        1 => Just(ToolKind::FreeText(None)),
        1 => Just(ToolKind::FreeText(Some(json!({ "type": "grammar", "syntax": "regex", "definition": ".+" })))),
    ];
    (name, kind, proptest::option::of(any::<bool>())).prop_map(|(name, kind, strict)| {
        let strict = strict.filter(|_| matches!(kind, ToolKind::Function(_)));
        ToolDefinition { strict, ..tool(&name, kind) }
    })
}

fn offer() -> impl Strategy<Value = Offer> {
    (vec(definition(), 0..5), 0_usize..6, any::<[bool; 2]>(), proptest::option::of(any::<bool>())).prop_map(
        |(mut tools, choice, [required, known], parallel)| {
            let mut seen = std::collections::HashSet::new();
            tools.retain(|tool| seen.insert(tool.name.clone()));
            let name = tools.first().filter(|_| known).map_or(ToolName::new("other"), |tool| tool.name.clone());
            let choice = match choice {
                0 => None,
                1 => Some(ToolChoice::Auto),
                2 => Some(ToolChoice::Required),
                3 => Some(ToolChoice::None),
                4 => Some(ToolChoice::One(name)),
                _ => Some(ToolChoice::Allowed { required, names: vec![name] }),
            };
            Offer { tools, choice, parallel }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_taken(offer in offer(), profile in 0..PROFILES.len(), thinking in any::<bool>()) {
        let profile = &PROFILES[profile];
        // A choice of a tool that nobody offers is the caller's fault, and stays one.
        let known = |name: &ToolName| offer.tools.iter().any(|tool| tool.name == *name);
        prop_assume!(match &offer.choice {
            Some(ToolChoice::One(name)) => known(name),
            Some(ToolChoice::Allowed { names, .. }) => names.iter().all(known),
            _ => true,
        });
        for format in ALL {
            let sent = encode_offer(&offer, format, &OfferOptions { profile, thinking });
            let mut request = Value::Object(sent.fields);
            if thinking {
                request["thinking"] = json!({ "type": "enabled" });
            }
            let found = lint(&request, &LintOptions { profile, ..LintOptions::new(format) });
            prop_assert!(!has_errors(&found), "{format} {}: {found:?}\n{request}", profile.name);
        }
    }

    #[test]
    fn what_is_written_is_read_again(offer in offer(), format in prop_oneof![Just(Format::OpenAiChat), Just(Format::OpenAiResponses), Just(Format::Anthropic)]) {
        let once = encode_offer(&offer, format, &OfferOptions::default());
        let read = decode_offer(&Value::Object(once.fields.clone()), format);
        prop_assert!(read.warnings.is_empty());
        let twice = encode_offer(&read.offer, format, &OfferOptions::default());
        prop_assert_eq!(&once.fields, &twice.fields);
        // On the way, nothing but what the first one said is said once more.
        prop_assert!(twice.names.tools.pairs().is_empty());
    }

    #[test]
    fn broken_offers_are_repaired_once(offer in offer(), from in 0_usize..3, entry in schema(), profile in 0..PROFILES.len(), choice in schema()) {
        let profile = &PROFILES[profile];
        // The tools of one format in a request of another, and something that is no tool.
        let written = encode_offer(&offer, ALL[from], &OfferOptions::default());
        let mut request = Value::Object(written.fields);
        if let Some(tools) = request.get_mut("tools").and_then(Value::as_array_mut) {
            let again = tools.first().cloned().unwrap_or_default();
            tools.push(again);
            tools.push(entry.clone());
            tools.push(json!({ "name": "a.b", "strict": true, "input_schema": entry.clone() }));
            tools.push(json!({ "type": "function", "name": "a.b", "strict": true, "parameters": entry.clone() }));
            tools.push(json!({ "type": "function", "function": { "name": "a/b", "strict": true, "parameters": entry.clone() } }));
        }
        request["thinking"] = json!({ "type": "enabled" });
        for choice in [request["tool_choice"].clone(), choice, json!({ "type": "tool", "name": "a.b" })] {
            request["tool_choice"] = choice;
            for format in ALL {
                let options = LintOptions { profile, ..LintOptions::new(format) };
                let repaired = repair(&request, &options);
                prop_assert!(repaired.left.is_empty(), "{format}: {:?}\n{}", repaired.left, repaired.payload);
                prop_assert_eq!(&repair(&repaired.payload, &options).payload, &repaired.payload);
                if !has_errors(&repaired.findings) {
                    prop_assert_eq!(&repaired.payload, &request);
                }
            }
        }
    }
}

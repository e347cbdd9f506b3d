//! Runs one case.

use std::collections::{BTreeSet, VecDeque};

use bandstand_llm::tool_loop::{Command, Input, Limits, OnLength, Policy, ToolLoop, Tools};
use bandstand_transcript::lint::{LintOptions, has_errors, lint, lint_bytes};
use bandstand_transcript::repair::repair;
use bandstand_transcript::stream::{Assembled, Assembler, INCOMPLETE_STREAM, StreamReader};
use bandstand_transcript::{
    DecodeError, EncodeOptions, Format, MidSystem, Profile, Reply, ToolName, ToolOutput, Transcript, Warnings,
    decode_history, decode_reply, encode_history, encode_reply,
};
use base64::Engine;
use serde_json::{Map, Value, json};

use super::compare::Comparison;

type Outcome = Result<(), String>;

/// The codes that cases know. Others that a conversion gives say more than a case asks for.
const KNOWN_WARNINGS: &[&str] = &[
    "error_flag_as_text",
    "image_moved_to_user",
    "signature_split_from_id",
    "signature_dropped",
    "foreign_block",
    "arguments_double_encoded",
    "tool_call_id_renamed",
    "index_reused",
    "index_sparse",
    "id_repeated",
    "name_repeated",
    "arguments_repeated",
    "finish_reason_promoted",
    "output_rebuilt_from_items",
    "truncated_tool_call",
    "stop_label_without_calls",
];

/// Codes for one event under several names: a block that only its maker takes was left out.
const LEFT_OUT: &[&str] = &["signature_dropped", "foreign_block", "reasoning_dropped"];

pub(crate) fn run(id: &str, case: &Value) -> Outcome {
    if case["schema"] != 1 {
        return Err(format!("schema {} is unknown", case["schema"]));
    }
    if case["id"] != id {
        return Err(format!("its id is {}, not the file's name", case["id"]));
    }
    match case["kind"].as_str() {
        Some("convert") => convert(case),
        Some("lint") => lint_case(case),
        Some("stream") => stream(case),
        Some("loop") => tool_loop(case),
        other => Err(format!("kind {other:?} is unknown")),
    }
}

fn format_of(value: &Value) -> Result<Format, String> {
    let name = value.as_str().unwrap_or_default();
    Format::from_name(name).ok_or_else(|| format!("format {name:?} is unknown"))
}

fn profile_of(input: &Value) -> Result<&'static Profile, String> {
    match input.get("profile").and_then(Value::as_str) {
        None => Ok(Profile::none()),
        Some(name) => Profile::named(name).ok_or_else(|| format!("profile {name:?} is unknown")),
    }
}

fn options_of(input: &Value) -> Result<EncodeOptions, String> {
    let mid_system = match input.pointer("/policy/mid_system").and_then(Value::as_str) {
        None | Some("hoist") => MidSystem::Hoist,
        Some("native") => MidSystem::Native,
        Some("user") => MidSystem::User,
        Some(other) => return Err(format!("mid_system {other:?} is unknown")),
    };
    Ok(EncodeOptions { mid_system, ..EncodeOptions::for_profile(profile_of(input)?) })
}

fn expect_warnings(expected: &Value, actual: &Warnings) -> Outcome {
    let Some(expected) = expected.get("warnings").and_then(Value::as_array) else { return Ok(()) };
    let expected: BTreeSet<&str> = expected.iter().filter_map(Value::as_str).collect();
    let actual: BTreeSet<&str> = actual.iter().map(|warning| warning.code.code()).collect();
    let among = |codes: &BTreeSet<&str>| LEFT_OUT.iter().any(|code| codes.contains(code));
    let missing: Vec<&&str> =
        expected.iter().filter(|code| !(actual.contains(*code) || LEFT_OUT.contains(code) && among(&actual))).collect();
    let extra: Vec<&&str> = actual
        .iter()
        .filter(|code| KNOWN_WARNINGS.contains(code) && !expected.contains(*code))
        .filter(|code| !(LEFT_OUT.contains(code) && among(&expected)))
        .collect();
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    Err(format!("warnings: missing {missing:?}, not expected {extra:?}"))
}

/// A reply, or the history of a request.
enum Read {
    History(Transcript),
    Reply(Box<Reply>),
}

fn read(payload: &Value, format: Format, shape: &Value, warnings: &mut Warnings) -> Result<Read, String> {
    if shape == "response" {
        let reply = decode_reply(payload, format).map_err(|error| error.to_string())?;
        warnings.extend(reply.warnings.clone());
        return Ok(Read::Reply(Box::new(reply)));
    }
    let decoded = decode_history(payload, format).map_err(|error| error.to_string())?;
    warnings.extend(decoded.warnings);
    Ok(Read::History(decoded.transcript))
}

impl Read {
    fn transcript(&self) -> Transcript {
        match self {
            Self::History(transcript) => transcript.clone(),
            Self::Reply(reply) => Reply::clone(reply).into_transcript(),
        }
    }
}

fn expect_canonical(expected: &Value, actual: &Transcript, comparison: &mut Comparison) -> Outcome {
    let mut actual = actual.to_canonical();
    // One message is a transcript of it.
    let expected = &if expected.get("parts").is_some() { json!({ "messages": [expected] }) } else { expected.clone() };
    if expected.get("stop_reason").is_none() {
        actual["stop_reason"] = Value::Null;
    }
    comparison.value("canonical", &normal_canonical(expected), &normal_canonical(&actual))
}

/// A missing `is_error` is false, a missing content is empty.
fn normal_canonical(transcript: &Value) -> Value {
    let mut transcript = transcript.clone();
    let messages = transcript.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        normal_message(message);
    }
    transcript
}

fn normal_message(message: &mut Value) {
    for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        if part["type"] == "tool_result" {
            let fields = part.as_object_mut().expect("an object");
            fields.entry("is_error").or_insert(json!(false));
            fields.entry("content").or_insert(json!([]));
        }
    }
}

fn convert(case: &Value) -> Outcome {
    let (input, expected) = (&case["input"], &case["expected"]);
    let op = input["op"].as_str().unwrap_or_default();
    let options = options_of(input)?;
    let (from, to) = match op {
        "transcode" => (format_of(&input["from"])?, format_of(&input["to"])?),
        "decode" | "encode" | "roundtrip" => (format_of(&input["format"])?, format_of(&input["format"])?),
        other => return Err(format!("op {other:?} is unknown")),
    };
    let mut comparison = Comparison::new(to, options.profile, case);
    let mut warnings = Warnings::default();
    let read = if op == "encode" {
        Read::History(Transcript::from_canonical(&input["canonical"]).map_err(|error| error.to_string())?)
    } else {
        read(&input["payload"], from, &input["shape"], &mut warnings)?
    };
    if let Some(canonical) = expected.get("canonical") {
        let mut comparison = Comparison::new(from, options.profile, case);
        expect_canonical(canonical, &read.transcript(), &mut comparison)?;
    }
    if op == "decode" {
        return expect_warnings(expected, &warnings);
    }
    let payload = expected.get("payload").map(|payload| as_history(payload, to));
    let payload = payload.as_ref();
    let as_reply = payload.is_some_and(|payload| payload.get("messages").is_none() && payload.get("input").is_none());
    let encoded = match (&read, as_reply) {
        (Read::Reply(reply), true) => {
            let source = &input["payload"];
            let text = |key: &str| source[key].as_str().unwrap_or(key).to_owned();
            let created = source["created"].as_u64().or(source["created_at"].as_u64()).unwrap_or(0);
            let (mut value, more) = encode_reply(reply, to, &text("id"), &text("model"), created);
            warnings.extend(more);
            // Only what the case names: what else stands around an answer is made by whoever answers.
            let named = payload.unwrap_or(&Value::Null);
            keep_named(&mut value, named);
            if let (Some(usage), Some(named)) = (value.get_mut("usage"), named.get("usage")) {
                keep_named(usage, named);
            }
            value
        }
        _ => {
            let encoded = encode_history(&read.transcript(), to, &options);
            warnings.extend(encoded.warnings);
            forbidden(&encoded.payload, to)?;
            encoded.payload
        }
    };
    if let Some(payload) = payload {
        comparison.payload(payload, &encoded, to)?;
    }
    if let Some(back) = expected.get("decode_back") {
        let decoded = decode_history(payload.unwrap_or(&encoded), to).map_err(|error| error.to_string())?;
        expect_canonical(back, &decoded.transcript, &mut comparison).map_err(|why| format!("decode_back: {why}"))?;
    }
    expect_warnings(expected, &warnings)
}

/// A list of messages or items, or one of them, is a history; what else is not one is a whole reply.
fn as_history(payload: &Value, format: Format) -> Value {
    let key = if format == Format::OpenAiResponses { "input" } else { "messages" };
    let has = |names: &[&str]| names.iter().any(|name| payload.get(name).is_some());
    match payload {
        Value::Array(_) => json!({ key: payload }),
        Value::Object(_) if has(&["messages", "input"]) => payload.clone(),
        Value::Object(_) if has(&["role", "call_id"]) && !has(&["stop_reason", "usage", "model"]) => {
            json!({ key: [payload] })
        }
        other => other.clone(),
    }
}

fn keep_named(value: &mut Value, named: &Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| named.get(key).is_some());
    }
}

/// What no payload may ever hold, whatever the case.
fn forbidden(payload: &Value, format: Format) -> Outcome {
    let items = payload["input"].as_array().into_iter().flatten();
    for item in items.filter(|_| format == Format::OpenAiResponses) {
        let parts = item["content"].as_array().into_iter().flatten();
        if item["role"] == "assistant" && parts.into_iter().any(|part| part["type"] == "input_text") {
            return Err("an assistant item holds a part of type input_text".to_owned());
        }
        if item["type"] == "function_call" && item["id"].as_str().is_some_and(|id| !id.starts_with("fc")) {
            return Err("the id of a function_call item does not begin with fc".to_owned());
        }
    }
    Ok(())
}

fn lint_case(case: &Value) -> Outcome {
    let (input, expected) = (&case["input"], &case["expected"]);
    let (format, profile) = (format_of(&input["format"])?, profile_of(input)?);
    let reasoning_model = input.pointer("/context/reasoning_model").is_some_and(|flag| flag == true);
    let options = LintOptions { format, profile, reasoning_model };
    let (payload, findings) = match input.get("raw_body").and_then(Value::as_str) {
        Some(body) => {
            let report = lint_bytes(body.as_bytes(), Some(format), |_| options);
            (report.document.payload, report.findings)
        }
        None => (input["payload"].clone(), lint(&input["payload"], &options)),
    };
    if let Some(wanted) = expected.get("findings").and_then(Value::as_array) {
        let found: Vec<Value> = findings
            .iter()
            .map(|finding| {
                json!({
                    "code": finding.code.code(), "severity": finding.severity.name(), "index": finding.index,
                    "block": finding.block, "ids": finding.ids, "field": finding.field,
                })
            })
            .collect();
        expect_findings(&grouped(wanted), &grouped(&found))?;
    }
    let repaired = repair(&payload, &options);
    if has_errors(&lint(&repaired.payload, &options)) {
        return Err(format!("the repaired payload has faults: {:?}", lint(&repaired.payload, &options)));
    }
    if repair(&repaired.payload, &options).payload != repaired.payload {
        return Err("repairing twice is not repairing once".to_owned());
    }
    if let Some(wanted) = expected.get("repaired") {
        let mut actual = repaired.payload;
        if input.get("raw_body").is_some()
            && let (Some(fields), Some(wanted)) = (actual.as_object_mut(), wanted.as_object())
        {
            // A body holds more than the history.
            fields.retain(|key, _| wanted.contains_key(key));
        }
        Comparison::new(format, profile, case)
            .payload(wanted, &actual, format)
            .map_err(|why| format!("repaired: {why}"))?;
    }
    expect_warnings(expected, &Warnings::default())
}

/// Where a format has no blocks, several calls of one message may be one finding with several ids, or several findings.
fn grouped(findings: &[Value]) -> Vec<Value> {
    let mut groups: Vec<Value> = Vec::new();
    for finding in findings {
        let same = groups.iter_mut().find(|group| {
            ["code", "severity", "index"].iter().all(|key| group[*key] == finding[*key])
                && group["block"].is_null()
                && finding["block"].is_null()
                && group["field"] == finding["field"]
                && group["ids"].is_array()
                && finding["ids"].is_array()
        });
        match same {
            Some(group) => {
                let more = finding["ids"].as_array().cloned().unwrap_or_default();
                group["ids"].as_array_mut().expect("a list").extend(more);
            }
            None => groups.push(finding.clone()),
        }
    }
    groups
}

fn expect_findings(wanted: &[Value], found: &[Value]) -> Outcome {
    let list = |findings: &[Value]| serde_json::to_string(findings).expect("JSON");
    let error = || Err(format!("findings: {} instead of {}", list(found), list(wanted)));
    // One finding without a block may stand for those of several blocks.
    let found = &joined_blocks(wanted, found);
    if wanted.len() != found.len() {
        return error();
    }
    let mut left: Vec<&Value> = found.iter().collect();
    for wanted in wanted {
        // What a finding says beyond the case is not wrong; what the case names must be so.
        let fields: &Map<String, Value> = wanted.as_object().ok_or("a finding is no object")?;
        let at =
            left.iter().position(|found| fields.iter().all(|(key, value)| value.is_null() || found[key] == *value));
        match at {
            Some(at) => left.remove(at),
            None => return error(),
        };
    }
    let order: Vec<(u64, u64)> = found
        .iter()
        .map(|finding| (finding["index"].as_u64().unwrap_or(0), finding["block"].as_u64().map_or(0, |block| block + 1)))
        .collect();
    if order.is_sorted() { Ok(()) } else { Err("findings are not in order".to_owned()) }
}

fn joined_blocks(wanted: &[Value], found: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for finding in found {
        let whole = wanted.iter().any(|wanted| {
            let several = wanted["ids"].as_array().is_some_and(|ids| ids.len() > 1 && ids.contains(&finding["ids"][0]));
            several
                && wanted["block"].is_null()
                && wanted["code"] == finding["code"]
                && wanted["index"] == finding["index"]
        });
        let same = joined.iter_mut().filter(|_| whole).find(|known| {
            known["code"] == finding["code"] && known["index"] == finding["index"] && known["block"].is_null()
        });
        match same {
            Some(known) => {
                let more = finding["ids"].as_array().cloned().unwrap_or_default();
                known["ids"].as_array_mut().expect("a list").extend(more);
            }
            None => {
                let mut finding = finding.clone();
                if whole {
                    finding["block"] = Value::Null;
                }
                joined.push(finding);
            }
        }
    }
    joined
}

fn assemble(input: &Value, format: Format) -> Result<Assembled, String> {
    if let Some(chunks) = input.get("chunks_base64").and_then(Value::as_array) {
        let mut reader = StreamReader::new(format);
        for chunk in chunks {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(chunk.as_str().unwrap_or_default())
                .map_err(|error| error.to_string())?;
            reader.push(&bytes);
        }
        return Ok(reader.finish());
    }
    let mut assembler = Assembler::new(format);
    for payload in input["payloads"].as_array().ok_or("a stream case needs payloads or chunks_base64")? {
        assembler.value(payload["event"].as_str().unwrap_or_default(), &payload["data"]);
    }
    Ok(assembler.finish())
}

fn stream(case: &Value) -> Outcome {
    let (input, expected) = (&case["input"], &case["expected"]);
    let format = format_of(&input["format"])?;
    let options = options_of(input)?;
    let assembled = assemble(input, format)?;
    let reply = &assembled.reply;
    let mut comparison = Comparison::new(format, options.profile, case);
    if let Some(message) = expected.get("message") {
        let mut wanted = message.clone();
        let mut actual = reply.message.to_canonical().unwrap_or_else(|| json!({ "role": "assistant", "parts": [] }));
        if wanted.is_null() {
            wanted = json!({ "role": "assistant", "parts": [] });
        }
        normal_message(&mut wanted);
        normal_message(&mut actual);
        comparison.value("message", &wanted, &actual)?;
    }
    if let Some(reason) = expected.get("stop_reason").and_then(Value::as_str)
        && reason != reply.stop_reason.name()
    {
        return Err(format!("stop_reason: {} instead of {reason}", reply.stop_reason.name()));
    }
    if let Some(complete) = expected.get("complete").and_then(Value::as_bool)
        && complete != assembled.complete
    {
        return Err(format!("complete: {} instead of {complete}", assembled.complete));
    }
    if let Some(usage) = expected.get("usage").and_then(Value::as_object) {
        let found = reply.usage.unwrap_or_default();
        let found = json!({
            "input": found.input, "output": found.output, "cache_read": found.cache_read,
            "cache_write": found.cache_write, "reasoning": found.reasoning,
        });
        for (key, value) in usage.iter().filter(|(_, value)| !value.is_null()) {
            if found[key] != *value {
                return Err(format!("usage: {key} is {} instead of {value}", found[key]));
            }
        }
    }
    match (expected.get("error").filter(|error| !error.is_null()), &assembled.error) {
        (Some(wanted), Some(found)) => {
            let found = json!({ "type": found.kind, "retryable": found.retryable, "message": found.message });
            // No provider has named the error of a stream that just ends; our name is as good as another.
            let ours = found["type"] == INCOMPLETE_STREAM;
            for (key, value) in wanted.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
                // Some providers have numbers where others have names.
                let same = found[key] == *value || found[key].as_str() == Some(value.to_string().as_str());
                if !(same || ours && key == "type") {
                    return Err(format!("error: {key} is {} instead of {value}", found[key]));
                }
            }
        }
        (Some(wanted), None) => return Err(format!("no error instead of {wanted}")),
        (None, Some(found)) if expected["complete"] != false => return Err(format!("an error: {found}")),
        (None, _) => {}
    }
    if let Some(wanted) = expected.get("dropped_calls") {
        let found: Vec<&str> = assembled.dropped_calls.iter().map(|id| id.as_str()).collect();
        if *wanted != json!(found) {
            return Err(format!("dropped_calls: {found:?} instead of {wanted}"));
        }
    } else if !assembled.dropped_calls.is_empty() {
        return Err(format!("dropped_calls: {:?} instead of none", assembled.dropped_calls));
    }
    if let Some(replay) = expected.get("replay") {
        expect_replay(replay, reply, format, &options, &mut comparison)?;
    }
    expect_warnings(expected, &reply.warnings)
}

/// The turn as it goes back: a payload, a list of messages or items, or one of them.
fn expect_replay(
    replay: &Value,
    reply: &Reply,
    format: Format,
    options: &EncodeOptions,
    comparison: &mut Comparison,
) -> Outcome {
    let transcript = Transcript::new(vec![reply.message.clone()]);
    let encoded = encode_history(&transcript, format, options).payload;
    comparison.payload(&as_history(replay, format), &encoded, format).map_err(|why| format!("replay: {why}"))
}

struct Registered {
    names: Vec<String>,
    terminal: Vec<String>,
}

impl Tools for Registered {
    fn names(&self) -> Vec<ToolName> {
        self.names.iter().map(ToolName::new).collect()
    }

    fn has(&self, name: &ToolName) -> bool {
        self.names.iter().any(|known| known == name.as_str())
    }

    fn check(&self, _name: &ToolName, _arguments: &Map<String, Value>) -> Result<(), String> {
        Ok(())
    }

    fn may_run_in_parallel(&self, _name: &ToolName) -> bool {
        true
    }

    fn is_terminal(&self, name: &ToolName) -> bool {
        self.terminal.iter().any(|known| known == name.as_str())
    }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn outcome_output(outcome: &Value) -> ToolOutput {
    let mut output = match &outcome["content"] {
        Value::String(text) => ToolOutput::text(text.clone()),
        Value::Array(parts) => {
            let message = json!({ "messages": [{ "role": "tool", "parts": [
                { "type": "tool_result", "call_id": "x", "content": parts },
            ] }] });
            let transcript = Transcript::from_canonical(&message).expect("content of a tool outcome");
            transcript.messages[0].results().next().expect("a result").output.clone()
        }
        Value::Null => ToolOutput::text(""),
        other => ToolOutput::text(other.to_string()),
    };
    output.is_error = outcome["is_error"] == true;
    output
}

fn tool_loop(case: &Value) -> Outcome {
    let (input, expected) = (&case["input"], &case["expected"]);
    let format = format_of(&input["format"])?;
    let options = options_of(input)?;
    let on_length = match input.pointer("/policy/on_length").and_then(Value::as_str) {
        None | Some("stop") => OnLength::Stop,
        Some("report_error") => OnLength::ReportError,
        Some(other) => return Err(format!("on_length {other:?} is unknown")),
    };
    let mut limits = Limits::default();
    if let Some(steps) = input.pointer("/limits/max_steps").and_then(Value::as_u64) {
        limits.max_steps = u32::try_from(steps).map_err(|error| error.to_string())?;
    }
    let policy = Policy { on_length, limits, ..Policy::default() };
    let terminal = strings(&input["terminal_tools"]);
    let mut names = strings(&input["tools"]);
    names.extend(terminal.iter().filter(|name| !strings(&input["tools"]).contains(name)).cloned());
    let tools = Registered { names, terminal };

    let history = decode_history(&input["history"], format).map_err(|error| error.to_string())?;
    let mut running = ToolLoop::new(history.transcript, policy);
    running.warnings.extend(history.warnings);
    let mut responses: VecDeque<&Value> = input["responses"].as_array().ok_or("no responses")?.iter().collect();
    let (mut executed, mut requests, mut first) = (Vec::new(), Vec::new(), true);
    // What is said of the copies on the wire, and the words of the last reply.
    let (mut said, mut last_text) = (Warnings::default(), String::new());
    let mut commands: VecDeque<Command> = running.start().into();
    let outcome = loop {
        let Some(command) = commands.pop_front() else { return Err("the loop stands still".to_owned()) };
        match command {
            Command::CallModel => {
                let encoded = encode_history(running.transcript(), format, &options);
                if !std::mem::take(&mut first) {
                    let options = LintOptions { format, profile: options.profile, reasoning_model: false };
                    let findings = lint(&encoded.payload, &options);
                    if has_errors(&findings) {
                        return Err(format!("a request has faults: {findings:?}"));
                    }
                    requests.push(encoded.payload);
                }
                said.extend(encoded.warnings);
                let response = responses.pop_front().ok_or("the loop asks the model once too often")?;
                let next = match decode_reply(response, format) {
                    Ok(reply) => {
                        last_text = reply.message.plain_text();
                        Input::Reply(Box::new(reply))
                    }
                    Err(DecodeError::Provider(error)) => Input::ModelFailed(error),
                    Err(error) => return Err(error.to_string()),
                };
                commands.extend(running.step(next, &tools));
            }
            Command::RunTool(call) => {
                executed.push(json!({
                    "id": call.id.as_str(), "name": call.name.as_str(), "arguments": call.input.fields(),
                }));
                let outcome = input["tool_outcomes"].get(call.id.as_str());
                let output = outcome.map_or_else(|| ToolOutput::text(""), outcome_output);
                commands.extend(running.step(Input::ToolDone { id: call.id, output }, &tools));
            }
            Command::Finish(outcome) => break outcome,
        }
    };
    let mut comparison = Comparison::new(format, options.profile, case);
    if let Some(wanted) = expected.get("executed") {
        comparison.value("executed", wanted, &Value::Array(executed))?;
    }
    if let Some(wanted) = expected.get("next_requests").and_then(Value::as_array) {
        if wanted.len() != requests.len() {
            return Err(format!("{} further requests instead of {}", requests.len(), wanted.len()));
        }
        for (at, (wanted, found)) in wanted.iter().zip(&requests).enumerate() {
            comparison.payload(wanted, found, format).map_err(|why| format!("next_requests/{at}: {why}"))?;
        }
    }
    if let Some(wanted) = expected.get("stopped").and_then(Value::as_str)
        && !stopped_names(outcome.name()).contains(&wanted)
    {
        return Err(format!("stopped: {} instead of {wanted}", outcome.name()));
    }
    if let Some(wanted) = expected.get("final_text") {
        let wanted = if wanted.is_null() { json!("") } else { wanted.clone() };
        comparison.value("final_text", &wanted, &json!(last_text))?;
    }
    if let Some(wanted) = expected.get("final_history") {
        let found = encode_history(running.transcript(), format, &options).payload;
        comparison.payload(wanted, &found, format).map_err(|why| format!("final_history: {why}"))?;
    }
    // A case about the loop may name what its conversions say, and need not.
    let named = strings(&expected["warnings"]);
    for warning in said.iter().filter(|warning| named.iter().any(|code| code == warning.code.code())) {
        running.warnings.add(warning.code, warning.detail.clone());
    }
    expect_warnings(expected, &running.warnings)
}

/// The loop tells more ways of stopping apart than cases do.
fn stopped_names(name: &str) -> Vec<&str> {
    match name {
        "refusal" => vec!["refusal", "end", "error"],
        "filter" => vec!["filter", "error", "end"],
        "unrecoverable_call" => vec!["unrecoverable_call", "error"],
        other => vec![other],
    }
}

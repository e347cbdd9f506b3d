//! `bandstand transcript`: a broken history is named, repaired, converted and shown.

use std::process::Output;

use serde_json::{Value, json};

use crate::program::bandstand;

/// A call whose result is missing, as an interrupted agent leaves it.
fn interrupted() -> Value {
    json!({ "messages": [
        { "role": "user", "content": "High water at Kestrel Quay?" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "call_1", "type": "function",
            "function": { "name": "lookup_tide", "arguments": "{\"port\":\"Kestrel Quay\"}" } }] },
        { "role": "user", "content": "Hello?" },
    ] })
}

fn transcript(command: &str, history: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.json");
    std::fs::write(&file, history).unwrap();
    bandstand().args(["transcript", command]).arg(&file).args(more).output().unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"))
}

#[test]
fn what_would_be_refused_is_named_with_its_fix() {
    let linted = transcript("lint", &interrupted().to_string(), &["--json"]);
    assert_eq!(linted.status.code(), Some(1));
    let report = json_of(&linted);
    assert_eq!((report["format"].as_str(), report["refused"].as_bool()), (Some("openai.chat"), Some(true)));
    assert_eq!(report["findings"][0]["code"], "missing_tool_result", "{report}");
    let words = transcript("lint", &interrupted().to_string(), &[]);
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains("error missing_tool_result at message 1") && words.contains("Fix: "), "{words}");
}

#[test]
fn a_repaired_history_is_clean_and_stays_as_it_is() {
    let repaired = transcript("repair", &interrupted().to_string(), &[]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    let again = String::from_utf8(repaired.stdout).unwrap();
    assert_eq!(transcript("lint", &again, &[]).status.code(), Some(0));
    assert_eq!(json_of(&transcript("repair", &again, &[])), serde_json::from_str::<Value>(&again).unwrap());
}

#[test]
fn a_history_is_written_in_another_format_and_shown() {
    let converted = transcript("convert", &interrupted().to_string(), &["--to", "anthropic"]);
    assert_eq!(converted.status.code(), Some(0), "{converted:?}");
    let call = &json_of(&converted)["messages"][1]["content"][0];
    assert_eq!((call["type"].as_str(), call["name"].as_str()), (Some("tool_use"), Some("lookup_tide")));
    let shown = transcript("show", &interrupted().to_string(), &[]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("#1 no result call call_1 lookup_tide {\"port\":\"Kestrel Quay\"}"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

/// Two calls, one result, one result of nothing; and names and texts that would like to act on the terminal.
fn colourful() -> String {
    json!({ "messages": [
        { "role": "user", "name": "a\u{1b}[2Jb", "content": "Tides?\u{1b}]0;owned\u{7} \u{202e}" },
        { "role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "tide\u{1b}[31m", "arguments": "{}" } },
            { "id": "c2", "type": "function", "function": { "name": "wind", "arguments": "{}" } } ] },
        { "role": "tool", "tool_call_id": "c2", "content": "[tool_error] no\u{9b}31m wind" },
        { "role": "tool", "tool_call_id": "c9\u{1b}c", "content": "full" },
        { "role": "assistant", "content": "Hm?" },
    ] })
    .to_string()
}

/// A text without the colours that the program itself makes.
fn without_colours(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        left.push_str(before);
        let (codes, after) = after.split_once('m').unwrap();
        assert!(codes.chars().all(|c| c.is_ascii_digit() || c == ';'), "{codes:?}");
        rest = after;
    }
    left + rest
}

#[test]
fn colours_pair_calls_and_nothing_of_the_history_reaches_the_terminal() {
    let history = colourful();
    for command in ["show", "lint"] {
        let coloured = transcript(command, &history, &["--color", "always"]);
        let coloured = String::from_utf8(coloured.stdout).unwrap();
        let plain = String::from_utf8(transcript(command, &history, &["--color", "never"]).stdout).unwrap();
        assert_eq!(without_colours(&coloured), plain);
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
        assert!(!plain.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{plain:?}");
    }
    let shown = String::from_utf8(transcript("show", &history, &["--color", "always"]).stdout).unwrap();
    let line = |part: &str| shown.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {shown}"));
    // The call and its result have the same label in the same colour.
    let label = |line: &str| line.trim_start().split("#2").next().unwrap().to_owned();
    assert_eq!(label(line("wind {}")), label(line("(error) no")));
    assert!(line("tide").contains("no result") && line("full").contains("answers no call"), "{shown}");
}

#[test]
fn the_environment_decides_about_colours_unless_a_flag_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.json");
    std::fs::write(&file, colourful()).unwrap();
    let coloured = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = bandstand();
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
            command.env_remove(name);
        }
        command.args(["transcript", "show"]).arg(&file).args(more).envs(variables.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap().contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]), "no terminal, no colours");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
    assert!(!coloured(&[("NO_COLOR", "1")], &[]));
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]));
}

fn diff(first: &Value, second: &Value, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one.json"), folder.path().join("other.json"));
    std::fs::write(&one, first.to_string()).unwrap();
    std::fs::write(&other, second.to_string()).unwrap();
    bandstand().args(["transcript", "diff"]).arg(&one).arg(&other).args(more).output().unwrap()
}

#[test]
fn what_became_of_a_conversation_is_said_in_the_fields_words() {
    let whole = json!({ "messages": [
        { "role": "user", "content": "Tides?" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "S" },
            { "type": "tool_use", "id": "t1", "name": "tide", "input": { "port": "K" } } ] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "closed", "is_error": true }] },
    ] });
    let chat = |arguments: &str, result: &str| {
        json!({ "messages": [
        { "role": "user", "content": "Tides?" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "t1", "type": "function",
            "function": { "name": "tide", "arguments": arguments } }] },
        { "role": "tool", "tool_call_id": "t1", "content": result },
    ] })
    };
    // As well as the format can: the thinking is lost, and said to be.
    let good = diff(&whole, &chat("{\"port\":\"K\"}", "[tool_error] closed"), &["--json"]);
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    let told = json_of(&good);
    assert_eq!(
        (told["from"].as_str(), told["to"].as_str(), told["same"].as_bool()),
        (Some("anthropic"), Some("openai.chat"), Some(true))
    );
    assert_eq!(
        (&told["differences"][0]["code"], &told["differences"][0]["weight"]),
        (&json!("reasoning_lost"), &json!("unavoidable"))
    );
    assert_eq!(diff(&whole, &chat("{\"port\":\"K\"}", "[tool_error] closed"), &["--strict"]).status.code(), Some(1));
    // A converter that forgot the flag and an argument.
    let bad = diff(&whole, &chat("{}", "closed"), &[]);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    let words = String::from_utf8(bad.stdout).unwrap();
    assert!(words.starts_with("anthropic → openai.chat: the meaning differs\n"), "{words}");
    assert!(
        words.contains("fault       arguments differ at message 1, part 1 (now message 1, part 0) [t1]"),
        "{words}"
    );
    assert!(words.contains("fault       error flag lost at message 2, part 0 [t1]"), "{words}");
    let same = diff(&whole, &whole, &[]);
    assert_eq!(
        (same.status.code(), String::from_utf8(same.stdout).unwrap().trim()),
        (Some(0), "anthropic → anthropic: the same")
    );
}

#[test]
fn a_diff_reads_canonical_transcripts_and_wants_two_files() {
    let canonical = transcript("convert", &interrupted().to_string(), &["--to", "canonical"]);
    let canonical = json_of(&canonical);
    let same = diff(&interrupted(), &canonical, &["--json"]);
    assert_eq!((same.status.code(), json_of(&same)["to"].as_str()), (Some(0), Some("canonical")), "{same:?}");
    let alone = bandstand().args(["transcript", "diff", "a.json"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    let missing = bandstand().args(["transcript", "diff", "a.json", "b.json"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(diff(&interrupted(), &json!({ "messages": [{ "role": "x" }] }), &[]).status.code(), Some(2));
}

#[test]
fn tools_of_a_request_are_converted_and_checked() {
    let request = json!({
        "model": "m",
        "tools": [{ "type": "function", "function": { "name": "fs.read", "parameters": { "type": "object",
            "properties": { "$path": { "type": "string" } } } } }],
        "tool_choice": { "type": "function", "function": { "name": "fs.read" } },
        "messages": [
            { "role": "user", "content": "Read it." },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "a", "type": "function",
                "function": { "name": "fs.read", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "a", "content": "x" },
        ],
    });
    let linted = transcript("lint", &request.to_string(), &["--json"]);
    assert_eq!(linted.status.code(), Some(1));
    let report = json_of(&linted);
    assert_eq!(
        (&report["findings"][1]["section"], &report["findings"][1]["code"]),
        (&json!("tools"), &json!("bad_tool_name")),
        "{report}"
    );
    let words = String::from_utf8(transcript("lint", &request.to_string(), &[]).stdout).unwrap();
    assert!(words.contains("error bad_tool_name at tool 0 [fs.read] (name): "), "{words}");
    let converted = json_of(&transcript("convert", &request.to_string(), &["--to", "anthropic"]));
    assert_eq!(converted["tools"][0]["input_schema"]["properties"], json!({ "_path": { "type": "string" } }));
    assert_eq!(converted["tool_choice"], json!({ "type": "tool", "name": "fs_read" }));
    assert_eq!(converted["messages"][1]["content"][0]["name"], "fs_read");
    assert_eq!(transcript("lint", &converted.to_string(), &["--from", "anthropic"]).status.code(), Some(0));
    let repaired = json_of(&transcript("repair", &request.to_string(), &[]));
    assert_eq!(transcript("lint", &repaired.to_string(), &[]).status.code(), Some(0), "{repaired}");
}

#[test]
fn wrong_words_are_usage() {
    for more in [&["--to", "esperanto"][..], &["--to", "anthropic", "--profile", "nobody"]] {
        let refused = transcript("convert", &interrupted().to_string(), more);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let missing = bandstand().args(["transcript", "lint", "no-such-file.json"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    // Bytes that are no history are told so, and nothing panics.
    assert_eq!(transcript("lint", "\u{0}not json {", &[]).status.code(), Some(1));
}

/// A step of a trace: a question, a call with its result, and the payload in which both went back.
fn step(folder: &std::path::Path) -> std::path::PathBuf {
    let step = folder.join("room/20260101T000000.000000Z_message/0001");
    std::fs::create_dir_all(&step).unwrap();
    let write = |file: &str, value: Value| std::fs::write(step.join(file), value.to_string()).unwrap();
    let asked = json!({ "role": "user", "parts": [{ "type": "text", "text": "[Ann]: How high?" }] });
    let system = json!({ "role": "system", "parts": [{ "type": "text", "text": "Be brief." }] });
    let called = json!({ "role": "assistant", "parts": [
        { "type": "tool_call", "id": "c1", "name": "tide.look", "arguments": { "port": "K" } }] });
    let result = json!({ "role": "tool", "parts": [{ "type": "tool_result", "call_id": "c1",
        "content": [{ "type": "text", "text": "5 m" }], "is_error": false }] });
    let row = json!({ "message_type": "text", "content": "How high?", "sender_id": "ann", "sender_name": "Ann" });
    write("1-client-history.json", json!({ "me": "me", "rows": [row], "transcript": { "messages": [] } }));
    write("2-normalised.json", json!({ "messages": [system, asked] }));
    let mut messages = vec![
        json!({ "role": "system", "content": "Be brief." }),
        json!({ "role": "user", "content": "[Ann]: How high?" }),
    ];
    write("3-payload.json", json!({ "model": "m", "messages": messages }));
    let call = json!({ "id": "c1", "type": "function",
        "function": { "name": "tide_look", "arguments": "{\"port\":\"K\"}" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let reply = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
    write("4-reply.json", reply);
    write("5-parsed.json", json!({ "transcript": { "messages": [called], "stop_reason": "tool_use" } }));
    messages.push(message);
    messages.push(json!({ "role": "tool", "tool_call_id": "c1", "content": "5 m" }));
    write("6-replayed-payload.json", json!({ "model": "m", "messages": messages }));
    write("7-output.json", json!({ "outcome": null, "transcript": { "messages": [called, result] } }));
    let names = json!([["tide.look", "tide_look"]]);
    write(
        "step.json",
        json!({ "api": "openai.chat", "profile": "openai", "mid_system": "hoist", "model": "m",
        "status": 200, "names": names, "replayed": "sent", "replayed_names": names }),
    );
    step
}

fn step_diff(folder: &std::path::Path) -> (Option<i32>, Vec<String>) {
    let output = bandstand().args(["transcript", "diff", "--json"]).arg(folder).output().unwrap();
    let said = json_of(&output);
    let stages = said["steps"][0]["stages"].as_array().unwrap();
    let changed = stages.iter().filter(|pair| pair["same"] == false);
    let names = changed.map(|pair| format!("{} → {}", pair["from"].as_str().unwrap(), pair["to"].as_str().unwrap()));
    (output.status.code(), names.collect())
}

#[test]
fn a_trace_tells_between_which_stages_the_meaning_changed() {
    let folder = tempfile::tempdir().unwrap();
    let step = step(folder.path());
    assert_eq!(step_diff(folder.path()), (Some(0), Vec::new()));
    let words = bandstand().args(["transcript", "diff"]).arg(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(words.stdout).unwrap(), "1 step; in 1 step all stages say the same.\n");
    for (file, from, to, pair) in [
        ("2-normalised.json", "How high?", "How low?", "client history → normalised"),
        ("3-payload.json", "How high?", "How low?", "normalised → payload"),
        ("4-reply.json", "tool_calls\":[", "tool_calls\":[],\"kept\":[", "reply → parsed"),
        ("6-replayed-payload.json", "5 m", "6 m", "parsed → replayed payload"),
        ("7-output.json", "tide.look", "wind.look", "parsed → output"),
    ] {
        let path = step.join(file);
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, good.replace(from, to)).unwrap();
        let (code, changed) = step_diff(&step);
        assert_eq!(code, Some(1), "{file}");
        assert!(changed.contains(&pair.to_owned()), "{file}: {changed:?}");
        std::fs::write(&path, good).unwrap();
    }
    std::fs::remove_file(step.join("7-output.json")).unwrap();
    assert_eq!(step_diff(&step).0, Some(0));
    let empty = tempfile::tempdir().unwrap();
    let nothing = bandstand().args(["transcript", "diff"]).arg(empty.path()).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

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
    assert!(shown.contains("call call_1 lookup_tide {\"port\":\"Kestrel Quay\"}"), "{shown}");
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

//! `bandstand transcript lint|show --room`: a live room, as an agent in it remembers it.

use serde_json::{Value, json};

use crate::program::{Installation, Said, Server, bandstand, http_client};

const OWNER_KEY: &str = "band_u_0123456789012345678901234567890123456789";

/// What an agent's program would post: an event each.
async fn post_events(server: &Server, key: &str, room: &str, events: &[(&str, Value)]) -> Vec<String> {
    let client = http_client();
    let mut ids = Vec::new();
    for (message_type, content) in events {
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let posted = client
            .post(server.url(&format!("/api/v1/agent/chats/{room}/events")))
            .header("x-api-key", key)
            .json(&json!({ "event": { "content": content, "message_type": message_type } }))
            .send()
            .await
            .unwrap();
        assert_eq!(posted.status(), 201);
        let posted: Value = posted.json().await.unwrap();
        ids.push(posted["data"]["id"].as_str().unwrap().to_owned());
    }
    ids
}

fn as_with(server: &Server, key: &str, arguments: &[&str]) -> Said {
    let mut command = bandstand();
    command.args(arguments).env("BANDSTAND_URL", server.url("")).env("BANDSTAND_KEY", key);
    command.output().unwrap().into()
}

fn parsed(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err))
}

#[tokio::test]
async fn faults_of_a_live_room_are_found_in_its_messages() {
    let installation = Installation::new();
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    command.env("BANDSTAND_OWNER_KEY", OWNER_KEY);
    let server = Server::start(command);
    let agent = installation.json(&["agent", "add", "Tides"]);
    let key = agent["api_key"].as_str().unwrap().to_owned();
    installation.json(&["agent", "add", "Clerk"]);
    let owner = |arguments: &[&str]| as_with(&server, OWNER_KEY, arguments);
    let room = owner(&["room", "new", "Harbour", "--with", "tides", "--with", "clerk", "--json"]).json();
    let room = room["room"]["id"].as_str().unwrap().to_owned();
    assert_eq!(owner(&["send", &room, "@tides high water at Kestrel Quay?"]).code, Some(0));
    // Not for it, so not in its history.
    assert_eq!(owner(&["send", &room, "@clerk please note"]).code, Some(0));

    let whole = [
        ("tool_call", json!({ "name": "tide", "args": { "port": "Kestrel Quay" }, "tool_call_id": "c1" })),
        ("thought", json!("hm")),
        ("tool_result", json!({ "name": "tide", "output": "14:05", "tool_call_id": "c1" })),
    ];
    post_events(&server, &key, &room, &whole).await;
    let lint = ["transcript", "lint", "--room", "harbour"];
    let clean = owner(&[&lint[..], &["--agent", "tides", "--json"]].concat());
    assert_eq!((clean.code, &parsed(&clean)["findings"]), (Some(0), &json!([])), "{}{}", clean.out, clean.err);
    assert_eq!(parsed(&clean)["rows"], 4);

    // The program died in the middle of one call; another one answers nothing, and one cannot be read.
    let broken = [
        ("tool_call", json!({ "name": "wind", "args": {}, "tool_call_id": "c2" })),
        ("tool_result", json!({ "name": "moon", "output": "full", "tool_call_id": "c9" })),
        ("tool_call", json!("not json \u{1b}[2J")),
    ];
    let ids = post_events(&server, &key, &room, &broken).await;
    for format in ["openai.chat", "openai.responses", "anthropic"] {
        // A person and the agent itself see the same.
        for (whose, more) in [(OWNER_KEY, &["--agent", "owner/tides"][..]), (&key, &[])] {
            let said = as_with(&server, whose, &[&lint[..], more, &["--to", format, "--json"]].concat());
            assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
            let report = parsed(&said);
            let found: Vec<(&str, &str)> = report["findings"]
                .as_array()
                .unwrap()
                .iter()
                .map(|found| (found["code"].as_str().unwrap(), found["rows"][0]["id"].as_str().unwrap()))
                .collect();
            let want = [
                ("missing_tool_result", ids[0].as_str()),
                ("orphan_tool_result", ids[1].as_str()),
                ("unreadable_event", ids[2].as_str()),
            ];
            assert_eq!(found, want, "{format}");
            assert!(report["findings"][0]["rows"][0]["inserted_at"].as_str().unwrap().ends_with('Z'), "{report}");
        }
    }
    let words = owner(&[&lint[..], &["--agent", "tides"]].concat());
    let line = words.out.lines().find(|line| line.contains("missing_tool_result")).unwrap();
    assert!(line.contains(&ids[0]) && line.contains("[c2]"), "{}", words.out);

    let shown = owner(&["transcript", "show", "--room", &room, "--agent", "tides"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("#1 call c1 tide {\"port\":\"Kestrel Quay\"}"), "{}", shown.out);
    assert!(
        shown.out.contains("#1 result c1 14:05") && shown.out.contains("#2 no result call c2 wind"),
        "{}",
        shown.out
    );
    assert!(!shown.out.contains("please note") && !shown.out.contains('\u{1b}'), "{}", shown.out);

    for (whose, arguments, code, part) in [
        (OWNER_KEY, &["--room", "harbour"][..], 2, "--agent"),
        (OWNER_KEY, &["--room", "harbour", "--agent", "owner"], 1, "no agent"),
        (OWNER_KEY, &["--room", "harbour", "--agent", "nobody"], 1, "there is no nobody"),
        (OWNER_KEY, &["--room", "nowhere", "--agent", "tides"], 1, "room list"),
        (OWNER_KEY, &["--room", "harbour", "--agent", "tides", "--to", "esperanto"], 2, "no format"),
        (&key, &["--room", "harbour", "--agent", "clerk"], 1, "this key is"),
    ] {
        let refused = as_with(&server, whose, &[&["transcript", "lint"], arguments].concat());
        assert_eq!(refused.code, Some(code), "{arguments:?}: {}{}", refused.out, refused.err);
        assert!(refused.err.contains(part), "{arguments:?}: {}", refused.err);
    }
    let both = bandstand().args(["transcript", "lint", "a.json", "--room", "x"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
    server.stop();
}

//! Stories of people at their terminal: the commands for rooms against a running server.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Background, Installation, Said, Server, bandstand, mode};

const OWNER_KEY: &str = "band_u_0123456789012345678901234567890123456789";

/// A server whose owner's key is known, on an address that it gets again.
fn up(installation: &Installation, listen: &str) -> Server {
    let mut command = installation.command(&["up", "--listen", listen]);
    command.env("BANDSTAND_OWNER_KEY", OWNER_KEY);
    Server::start(command)
}

/// A person's commands, by address and key.
struct Person<'a> {
    home: &'a Path,
    url: String,
    key: String,
}

impl Person<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bandstand();
        command.args(arguments).env("XDG_CONFIG_HOME", self.home);
        command.env("BANDSTAND_URL", &self.url).env("BANDSTAND_KEY", &self.key);
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).json()
    }

    fn refused(&self, arguments: &[&str], code: i32, part: &str) {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(part), "{arguments:?}: {}", said.err);
        let json = self.run(&[arguments, &["--json"]].concat());
        let answer: Value = serde_json::from_str(&json.out).unwrap();
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{}", json.out);
        assert_eq!(json.code, Some(code));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a string, please, not {value}"))
}

#[test]
fn a_login_is_kept_and_forgotten() {
    let installation = Installation::new();
    let server = up(&installation, "127.0.0.1:0");
    let home = installation.path("home");
    let login = |arguments: &[&str], key: &str| -> Said {
        let mut command = bandstand();
        command.args(arguments).env("XDG_CONFIG_HOME", &home).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), key.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    };
    let url = server.url("");
    let wrong = login(&["login", "--url", &url], "band_u_wrong");
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("does not know this key"), "{}", wrong.err);
    assert!(!home.exists(), "nothing is kept of what does not work");

    let said = login(&["login", "--url", &url], &format!("{OWNER_KEY}\n"));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("You are @owner"), "{}", said.out);
    assert!(!said.out.contains(OWNER_KEY));
    assert_eq!(mode(&home.join("bandstand/profiles.toml")), 0o600);
    let named = login(&["login", "--url", &url, "--profile", "work", "--json"], OWNER_KEY).json();
    assert_eq!((text(&named["profile"]), text(&named["handle"])), ("work", "owner"));

    let run = |arguments: &[&str]| -> Said {
        bandstand().args(arguments).env("XDG_CONFIG_HOME", &home).output().unwrap().into()
    };
    assert!(run(&["room", "list"]).out.contains("room new"));
    assert_eq!(run(&["profiles", "--json"]).json()["profiles"].as_array().unwrap().len(), 2);
    assert!(run(&["profiles", "--use", "default"]).out.contains("* "));
    assert_eq!(run(&["room", "list", "--profile", "nobody"]).code, Some(2));
    assert_eq!(run(&["room", "list", "--url", &url]).code, Some(2), "an address alone gets no key of a profile");
    assert_eq!(run(&["logout"]).code, Some(0));
    assert_eq!(run(&["logout", "work"]).code, Some(0));
    let nothing = run(&["room", "list"]);
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.err.contains("bandstand login"), "{}", nothing.err);
    server.stop();
}

#[test]
fn a_person_makes_a_room_says_something_and_asks_why_nobody_answers() {
    let installation = Installation::new();
    let server = up(&installation, "127.0.0.1:0");
    let home = installation.path("home");
    let owner = Person { home: &home, url: server.url(""), key: OWNER_KEY.into() };
    for name in ["Writer", "Clerk"] {
        installation.json(&["agent", "add", name]);
    }
    let ann = installation.json(&["user", "add", "ann"]);
    installation.json(&["agent", "add", "Writer", "--owner", "ann", "--global"]);

    let made = owner.json(&["room", "new", "Letters", "--with", "owner/writer"]);
    let room = text(&made["room"]["id"]).to_owned();
    assert_eq!(made["added"].as_array().unwrap().len(), 1);

    // In a room of two, it is for the other one.
    let sent = owner.json(&["send", "Letters", "hello", "there"]);
    assert_eq!(sent["recipients"], serde_json::json!(["@owner/writer"]));
    let why = owner.run(&["why", text(&sent["id"])]);
    assert_eq!(why.code, Some(0), "{}", why.err);
    assert!(why.out.lines().next().unwrap().contains("owner/writer"), "{}", why.out);
    assert!(why.out.contains("What to do: start the agent's program"), "{}", why.out);
    let rows = owner.json(&["why", "last", "--room", "letters"]);
    assert_eq!(rows["deliveries"][0]["reason"]["code"], "never_connected");

    // A second agent of the same name cannot be told apart by that name.
    let added = owner.json(&["room", "add", &room, "ann/writer", "clerk"]);
    assert_eq!(added["added"].as_array().unwrap().len(), 2);
    owner.refused(&["send", &room, "for @writer"], 1, "@owner/writer");
    owner.refused(&["send", &room, "for nobody"], 1, "whom is it for");
    owner.refused(&["send", &room, "for @nobody"], 1, "nobody in this room");
    owner.refused(&["send", "Nowhere", "hello"], 1, "room list");
    owner.refused(&["room", "add", &room, "clerk"], 1, "already");
    let plain = owner.json(&["send", &room, "--plain", "--to", "clerk", "an @override"]);
    assert_eq!(plain["recipients"], serde_json::json!(["@owner/clerk"]));
    let about = owner.run(&["why", text(&plain["id"]), "--participant", "ann/writer"]);
    assert!(about.out.contains("What to do: mention it"), "{}", about.out);

    let shown = owner.run(&["room", "show", &room[..8]]);
    assert!(shown.out.contains("@ann/writer") && shown.out.contains("offline"), "{}", shown.out);
    assert_eq!(owner.run(&["room", "remove", &room, "ann/writer"]).out.trim(), "Removed @ann/writer.");
    assert_eq!(owner.run(&["room", "archive", &room]).code, Some(0));
    assert_eq!(owner.json(&["room", "list"])["rooms"], serde_json::json!([]));
    assert_eq!(owner.json(&["room", "list", "--all"])["rooms"].as_array().unwrap().len(), 1);

    // Others see none of it, and an agent's key is no person's.
    let other = Person { home: &home, url: server.url(""), key: text(&ann["api_key"]).to_owned() };
    other.refused(&["room", "show", &room], 1, "");
    let agent = installation.json(&["agent", "add", "Bot"]);
    let bot = Person { home: &home, url: server.url(""), key: text(&agent["api_key"]).to_owned() };
    bot.refused(&["room", "list"], 1, "agent's key");
    server.stop();
}

#[test]
fn a_tail_loses_nothing_over_a_restart_and_shows_nothing_twice() {
    let installation = Installation::new();
    let server = up(&installation, "127.0.0.1:0");
    let listen = server.address.clone();
    let home = installation.path("home");
    let owner = Person { home: &home, url: server.url(""), key: OWNER_KEY.into() };
    installation.json(&["agent", "add", "Writer"]);
    owner.json(&["room", "new", "Log", "--with", "writer"]);
    for n in 1..=3 {
        owner.json(&["send", "log", &format!("line {n}")]);
    }
    let mut tail = Background::start(owner.command(&["tail", "log", "--json", "-n", "2"]));
    let mut seen = Vec::new();
    let mut expect = |tail: &mut Background, n: usize| {
        let row: Value = serde_json::from_str(&tail.out.wait_for("\"content\"")).unwrap();
        assert!(text(&row["content"]).ends_with(&format!("line {n}")), "{row}");
        seen.push(text(&row["id"]).to_owned());
    };
    expect(&mut tail, 2);
    expect(&mut tail, 3);
    owner.json(&["send", "log", "line 4"]);
    expect(&mut tail, 4);
    server.stop();
    tail.err.wait_for("lost the connection");
    let server = up(&installation, &listen);
    // Some of these are posted before it is back, some after.
    for n in 5..=7 {
        owner.json(&["send", "log", &format!("line {n}")]);
    }
    for n in 5..=7 {
        expect(&mut tail, n);
    }
    tail.err.wait_for("connected again");
    owner.json(&["send", "log", "line 8"]);
    expect(&mut tail, 8);
    seen.dedup();
    assert_eq!(seen.len(), 7);

    let all = owner.run(&["tail", "log", "--no-follow", "--since", "1h"]);
    let lines: Vec<&str> = all.out.lines().collect();
    assert!(lines.len() == 8 && lines[0].ends_with("@owner/writer line 1"), "{}", all.out);
    owner.refused(&["tail", "log", "--no-follow", "--since", "yesterday"], 2, "--since");
    server.stop();
}

#[test]
fn completions_and_the_manual_know_every_command() {
    for (shell, part) in [("bash", "complete -F"), ("zsh", "#compdef bandstand"), ("fish", "complete -c bandstand")] {
        let said: Said = bandstand().args(["completions", shell]).output().unwrap().into();
        assert!(said.out.contains(part) && said.out.contains("profiles"), "{shell}: {}", said.err);
    }
    assert_eq!(bandstand().args(["completions", "elvish"]).output().unwrap().status.code(), Some(2));
    let manual: Said = bandstand().arg("manual").output().unwrap().into();
    for part in [".TH bandstand", "BANDSTAND ROOM ARCHIVE", "BANDSTAND TAIL", "BANDSTAND USER ADD", "Exit codes"] {
        assert!(manual.out.contains(part), "{part} is missing");
    }
}

//! `bandstand chat` in a real terminal, which tmux plays: a person types, completes, sends, looks back and resizes.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{Background, Installation, Server, bandstand};

const KEY: &str = "band_u_0123456789012345678901234567890123456789";
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal of its own. It goes away with the value.
struct Terminal<'a> {
    socket: &'a Path,
}

impl<'a> Terminal<'a> {
    fn start(socket: &'a Path, program: &[String]) -> Self {
        let terminal = Self { socket };
        let size = ["-x", "100", "-y", "24"];
        terminal.tmux(&[&["-f", "/dev/null", "new-session", "-d"][..], &size].concat(), program);
        terminal
    }

    fn tmux(&self, arguments: &[&str], more: &[String]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket).args(arguments).args(more).env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        let done = command.output().unwrap_or_else(|why| panic!("no tmux ({why}): ./test installs it"));
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat(), &[]);
    }

    fn types(&self, text: &str) {
        self.keys(&["-l", text]);
    }

    /// What is on it, once it has what is waited for. A terminal tells nobody that it changed.
    fn shows(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.tmux(&["capture-pane", "-p"], &[]);
            if wanted(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {what} on\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.socket).arg("kill-server").output();
    }
}

#[test]
fn a_person_lives_in_a_room() {
    let installation = Installation::new();
    let mut up = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    up.env("BANDSTAND_OWNER_KEY", KEY);
    let server = Server::start(up);
    let researcher = installation.json(&["agent", "add", "Researcher"]);
    installation.json(&["agent", "add", "Silent"]);
    let run = |arguments: &[&str]| {
        let said = bandstand().args(arguments).env("BANDSTAND_URL", server.url("")).env("BANDSTAND_KEY", KEY).output();
        assert!(said.as_ref().unwrap().status.success(), "{said:?}");
    };
    run(&["room", "new", "Talk", "--with", "researcher", "--with", "silent"]);
    for n in 1..=30 {
        run(&["send", "talk", "--to", "silent", &format!("line {n}.")]);
    }
    let mut agent = bandstand();
    agent.args(["demo-agent", "researcher"]).env("BANDSTAND_URL", server.url(""));
    agent.env("BANDSTAND_KEY", researcher["api_key"].as_str().unwrap()).stdin(std::process::Stdio::piped());
    let _agent = Background::start(agent);

    let socket = installation.path("tmux");
    let program = format!(
        "BANDSTAND_URL={} BANDSTAND_KEY={KEY} exec '{}' chat talk",
        server.url(""),
        env!("CARGO_BIN_EXE_bandstand")
    );
    let terminal = Terminal::start(&socket, &["sh".into(), "-c".into(), program]);
    let first = terminal.shows("room", |it| it.contains("line 30.") && it.contains("@owner/researcher"));
    // Why nobody answers stands under one's message.
    assert!(first.contains("Talk"), "{first}");
    terminal.shows("reason", |it| it.contains("has never been connected") || it.contains("never connected"));
    terminal.shows("agent that is there", |it| it.contains("● @owner/researcher"));

    terminal.types("what do you know, @re");
    terminal.shows("hint", |it| it.contains("Tab: @owner/researcher"));
    terminal.keys(&["Tab"]);
    terminal.shows("completed mention", |it| it.contains("> what do you know, @owner/researcher"));
    terminal.keys(&["Enter"]);
    terminal.shows("answer", |it| it.contains("the notes say"));
    terminal.shows("end of the message", |it| it.contains("✓ @owner/researcher processed it"));

    for _ in 0..12 {
        terminal.keys(&["PageUp"]);
    }
    terminal.shows("old line", |it| it.contains("line 1.") && !it.contains("the notes say"));
    terminal.tmux(&["resize-window", "-x", "60", "-y", "14"], &[]);
    // Narrow, there is no room for who is there; what was read is still read.
    terminal.shows("smaller screen", |it| it.lines().count() <= 14 && !it.contains("● @owner"));
    terminal.keys(&["Escape"]);
    terminal.shows("newest line", |it| it.contains("the notes say"));
    terminal.keys(&["C-c"]);
    let deadline = Instant::now() + PATIENCE;
    while Command::new("tmux").arg("-S").arg(&socket).arg("has-session").output().unwrap().status.success() {
        assert!(Instant::now() < deadline, "it does not leave");
        thread::sleep(Duration::from_millis(50));
    }
    server.stop();
}

#[test]
fn without_a_terminal_it_says_what_does_without() {
    let said = bandstand().args(["chat", "talk"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("bandstand tail"));
}

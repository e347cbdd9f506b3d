//! `bandstand demo`, as somebody sees it who has nothing yet.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::program::{Background, bandstand};

/// A folder for temporary files, which is also how the demo's processes are found again.
fn demo(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = bandstand();
    command.arg("demo").args(arguments).env("TMPDIR", folder.path());
    command
}

/// Processes that were started with this folder.
fn processes(folder: &Path) -> Vec<String> {
    let mark = format!("TMPDIR={}", folder.display());
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    // Others' processes, and those that ended meanwhile, cannot be read.
    let ours = all.filter(|process| {
        fs::read(process.join("environ")).is_ok_and(|it| it.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()))
    });
    ours.filter_map(|process| fs::read_to_string(process.join("cmdline")).ok()).collect()
}

fn nothing_is_left(folder: &TempDir) {
    assert_eq!(processes(folder.path()), Vec::<String>::new());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Without what differs from run to run: the port, moments, and how a message reached an agent.
fn normalised(said: &str) -> String {
    let line = |line: &str| {
        if line.contains("│   stored ") {
            return "  │   stored …".to_owned();
        }
        let words = line.split(' ').map(|word| {
            let bare = word.trim_end_matches(['.', ',', ':', ')']);
            let end = &word[bare.len()..];
            let digits =
                |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit() || b"-:".contains(&byte));
            match bare.strip_prefix("http://127.0.0.1:") {
                Some(_) => format!("http://127.0.0.1:PORT{end}"),
                None if digits(bare) && bare.len() == 10 => format!("DAY{end}"),
                None if digits(bare) && bare.len() == 8 => format!("TIME{end}"),
                None => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    // How long the list of what happened to a message is differs, and so do the lines that it takes.
    said.lines().filter(|it| !it.starts_with("  │     ")).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn it_shows_what_it_promises_within_twenty_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let said = demo(&folder, &[]).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    insta::assert_snapshot!("demo", normalised(&text));
    nothing_is_left(&folder);
}

#[test]
fn kept_it_answers_until_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Background::start(demo(&folder, &["--keep", "--pace", "0"]));
    let export = running.out.wait_for("export BANDSTAND_URL=");
    let mut list = bandstand();
    list.args(["room", "list"]);
    for word in export.split_whitespace().filter_map(|word| word.split_once('=')) {
        list.env(word.0, word.1);
    }
    let listed = list.output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("Demo"), "{listed:?}");
    running.out.wait_for("bandstand send");
    running.signal("INT");
    let (status, said) = running.ended();
    assert_eq!(status.code(), Some(0), "{said}");
    nothing_is_left(&folder);
}

#[test]
fn interrupted_it_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Background::start(demo(&folder, &[]));
    running.out.wait_for("joins the room");
    running.signal("INT");
    let (status, _) = running.ended();
    assert_eq!(status.code(), Some(1));
    nothing_is_left(&folder);
}

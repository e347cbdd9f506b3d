//! What the program says about itself.

use crate::program::bandstand;

fn help(arguments: &[&str]) -> String {
    let said = bandstand().args(arguments).output().unwrap();
    assert!(said.status.success());
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn help_texts() {
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("help_up", &["up", "--help"]),
        ("help_user_add", &["user", "add", "--help"]),
        ("help_organization", &["organization", "--help"]),
        ("help_organization_member_add", &["organization", "member", "add", "--help"]),
        ("help_agent", &["agent", "--help"]),
        ("help_agent_add", &["agent", "add", "--help"]),
        ("help_key", &["key", "--help"]),
        ("help_doctor", &["doctor", "-h"]),
        ("help_room", &["room", "--help"]),
        ("help_send", &["send", "--help"]),
        ("help_tail", &["tail", "--help"]),
        ("help_why", &["why", "--help"]),
        ("help_mcp", &["mcp", "--help"]),
        ("help_demo", &["demo", "--help"]),
        ("help_status", &["status", "--help"]),
        ("help_transcript", &["transcript", "--help"]),
        ("help_transcript_lint", &["transcript", "lint", "--help"]),
        ("help_transcript_diff", &["transcript", "diff", "--help"]),
    ] {
        insta::assert_snapshot!(name, help(arguments));
    }
}

#[test]
fn printed_defaults() {
    insta::assert_snapshot!("config_print", help(&["config", "print"]));
}

#[test]
fn every_command_has_a_line_of_help() {
    for command in ["up", "user", "organization", "agent", "key", "mcp", "run", "config", "doctor"] {
        assert!(help(&["--help"]).lines().any(|line| line.trim_start().starts_with(command)), "{command}");
    }
}

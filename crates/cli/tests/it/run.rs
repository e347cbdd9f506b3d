//! `bandstand run`: what it says before it starts.

use crate::program::{Said, bandstand};

fn said(file: &str, key: Option<&str>, flags: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, file).unwrap();
    let mut command = bandstand();
    command.arg("run").arg(&path).args(flags).env_remove("OPENAI_API_KEY").env_remove("ANTHROPIC_API_KEY");
    if let Some(key) = key {
        command.env("BANDSTAND_AGENT_KEY", key);
    }
    command.output().unwrap().into()
}

#[test]
fn a_good_file_is_called_good_and_a_bad_one_is_named_with_its_line() {
    let file = "[model]\nname = \"llama3.2\"\nbase_url = \"http://localhost:1/v1\"\nprofile = \"ollama\"\n";
    let good = said(file, Some("band_a_x"), &["--check"]);
    assert_eq!((good.code, good.err.as_str()), (Some(0), ""), "{}", good.out);

    let keyless = said(file, None, &["--check"]);
    assert_eq!(keyless.code, Some(2));
    assert!(keyless.err.contains("BANDSTAND_AGENT_KEY"), "{}", keyless.err);

    let wrong = said("[model]\nnam = \"a\"\nkey = \"sk-secret\"\n", Some("band_a_x"), &[]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("agent.toml:2: unknown field `nam`"), "{}", wrong.err);

    let elsewhere = said(file, Some("band_a_x"), &["--api", "anthropic", "--profile", "ollama"]);
    assert!(elsewhere.err.contains("ollama does not speak anthropic"), "{}", elsewhere.err);
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_so() {
    let file = "url = \"http://127.0.0.1:1\"\n[model]\nname = \"a\"\nbase_url = \"http://localhost:1/v1\"\n";
    let said = said(file, Some("band_a_x"), &["--log-level", "off"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("who the agent is"), "{}", said.err);
}

#[test]
fn servers_of_tools_are_tried_by_the_check() {
    let model = "[model]\nname = \"a\"\nbase_url = \"http://localhost:1/v1\"\n";
    let table = |more: &str| format!("{model}[[mcp]]\nname = \"files\"\ncommand = \"/no/such/program\"\n{more}");
    let missing = said(&table(""), Some("band_a_x"), &["--check"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""));
    let expected = "error: the MCP server `files` cannot be started: /no/such/program: ";
    assert!(missing.err.starts_with(expected), "{}", missing.err);

    let without = said(&table("required = false\n"), Some("band_a_x"), &["--check"]);
    assert_eq!(without.code, Some(0), "{}", without.err);
    assert!(without.out.contains("MCP server files: /no/such/program\nIt cannot be used now"), "{}", without.out);

    let wrong = said(&table("effect = \"work\"\n"), Some("band_a_x"), &["--check"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("mcp `files`: effect: unknown word `work`"), "{}", wrong.err);
}

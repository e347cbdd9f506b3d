//! Settings: where they come from, and what happens when they are wrong.

use std::fs;

use crate::program::{Installation, bandstand};

#[test]
fn each_source_wins_over_the_weaker_ones_and_is_named() {
    let installation = Installation::new();
    fs::create_dir(installation.data()).unwrap();
    let file = installation.data().join("bandstand.toml");
    fs::write(&file, "log_level = \"warn\"\nreaders = 7\ndatabase = \"postgres://u:secret@h/file\"\n").unwrap();
    let mut command =
        installation.command(&["config", "print", "--effective", "--database", "postgres://u:hidden@h/flag"]);
    let said =
        command.env("BANDSTAND_LOG_LEVEL", "debug").env("BANDSTAND_OWNER_KEY", "band_u_hidden").output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(text.starts_with(&format!("# Settings file: {}", file.display())), "{text}");
    assert!(line("listen =").ends_with("# default"), "{text}");
    assert!(line("readers = 7").ends_with("# settings file, line 2"), "{text}");
    assert!(line("log_level = \"debug\"").ends_with("# environment, BANDSTAND_LOG_LEVEL"), "{text}");
    assert!(line("database =").ends_with("# flag, --database"), "{text}");
    assert!(text.contains("postgres://u:[REDACTED]@h/flag"), "{text}");
    assert!(!text.contains("hidden") && !text.contains("secret"), "{text}");
}

#[test]
fn the_printed_defaults_are_a_valid_settings_file() {
    let installation = Installation::new();
    let printed = bandstand().args(["config", "print"]).output().unwrap();
    assert!(printed.status.success());
    let file = installation.path("settings.toml");
    fs::write(&file, &printed.stdout).unwrap();
    let mut command = bandstand();
    let said = command.args(["config", "print", "--effective", "--config"]).arg(&file).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("listen = \"127.0.0.1:4000\""), "{said}");
    assert!(!said.contains("# default"), "a default that the printed file leaves out: {said}");
}

#[test]
fn a_wrong_file_ends_with_2_and_names_key_file_and_line() {
    let installation = Installation::new();
    fs::create_dir(installation.data()).unwrap();
    let file = installation.data().join("bandstand.toml");
    fs::write(&file, "# mine\nsocket_idel = \"30s\"\nreaders = \"some\"\n").unwrap();
    for arguments in [&["up", "--listen", "127.0.0.1:0"][..], &["user", "list"], &["config", "print", "--effective"]] {
        let said = installation.run(arguments);
        assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
        let file = file.display();
        assert!(said.err.contains(&format!("socket_idel in {file}, line 2: there is no such setting")), "{}", said.err);
        assert!(said.err.contains(&format!("readers in {file}, line 3: \"some\" is no whole number")), "{}", said.err);
    }
}

#[test]
fn settings_that_do_not_fit_together_end_with_2() {
    let installation = Installation::new();
    let open = installation.run(&["up", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(2));
    for part in ["--tls-cert", "--tls-key", "--behind-proxy"] {
        assert!(open.err.contains(part), "{}", open.err);
    }
    let half = installation.run(&["up", "--tls-cert", "c.pem"]);
    assert_eq!(half.code, Some(2));
    assert!(half.err.contains("--tls-key"), "{}", half.err);
    assert!(!installation.data().exists(), "nothing was touched");
}

#[test]
fn a_flag_that_does_not_exist_ends_with_2() {
    assert_eq!(Installation::new().run(&["up", "--lisen", "127.0.0.1:0"]).code, Some(2));
}

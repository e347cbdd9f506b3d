//! What the doctor finds.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::program::{Installation, Said};

/// The levels of one check, in order.
fn levels(said: &Said, check: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.out));
    let findings = answer["findings"].as_array().unwrap().iter();
    let of_check = findings.filter(|finding| finding["check"] == check);
    of_check.map(|finding| finding["level"].as_str().unwrap().to_owned()).collect()
}

fn examine(installation: &Installation, more: &[&str]) -> Said {
    installation.run(&[&["doctor", "--json", "--listen", "127.0.0.1:0"], more].concat())
}

#[test]
fn a_healthy_installation_is_well_with_and_without_a_server() {
    let installation = Installation::used();
    for running in [false, true] {
        let server = running.then(|| installation.up());
        let said = examine(&installation, &[]);
        assert_eq!(said.code, Some(0), "{}", said.out);
        for check in ["settings", "clock", "folder", "server", "database", "owner"] {
            assert_eq!(levels(&said, check), ["ok"], "{check}: {}", said.out);
        }
        let text = installation.run(&["doctor", "--listen", "127.0.0.1:0"]);
        assert!(text.out.contains("owner owns this server"), "{}", text.out);
        drop(server);
    }
}

#[tokio::test]
async fn postgres_is_examined_and_not_changed() {
    let installation = Installation::on_postgres().await;
    let said = examine(&installation, &[]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert_eq!(levels(&said, "database"), ["warn"], "still empty: {}", said.out);
    assert_eq!(levels(&examine(&installation, &[]), "database"), ["warn"]);
    let server = installation.up();
    let said = examine(&installation, &[]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert_eq!((levels(&said, "database"), levels(&said, "owner")), (vec!["ok".to_owned()], vec!["ok".to_owned()]));
    server.stop();
}

#[test]
fn an_empty_place_is_no_failure_and_stays_empty() {
    let installation = Installation::new();
    let said = examine(&installation, &[]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert_eq!(levels(&said, "folder"), ["warn"]);
    assert_eq!(levels(&said, "database"), ["warn"]);
    assert!(!installation.data().exists());
}

#[test]
fn every_failure_has_a_remedy_and_ends_with_1() {
    let installation = Installation::used();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let broken = installation.path("broken.pem");
    fs::write(&broken, "no certificate").unwrap();
    let broken = broken.to_str().unwrap();
    let said = installation.run(&["doctor", "--json", "--listen", &address, "--tls-cert", broken, "--tls-key", broken]);
    assert_eq!(said.code, Some(1));
    assert_eq!(levels(&said, "listen"), ["fail"]);
    assert_eq!(levels(&said, "tls"), ["fail"]);
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    for finding in answer["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] != "ok") {
        assert!(finding["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{finding}");
    }
    assert_eq!(answer["ok"], false);
}

#[test]
fn a_damaged_database_is_found() {
    let installation = Installation::used();
    let file = installation.data().join("bandstand.db");
    let mut content = fs::read(&file).unwrap();
    for byte in content.iter_mut().skip(4096).take(16 * 4096) {
        *byte = 0xff;
    }
    fs::write(&file, content).unwrap();
    let said = examine(&installation, &[]);
    assert_eq!(said.code, Some(1));
    assert_eq!(levels(&said, "database"), ["fail"], "{}", said.out);
}

#[test]
fn a_file_that_is_no_database_is_found_and_left_alone() {
    let installation = Installation::new();
    fs::create_dir(installation.data()).unwrap();
    let file = installation.data().join("bandstand.db");
    fs::write(&file, "something else altogether").unwrap();
    let said = examine(&installation, &[]);
    assert_eq!(levels(&said, "database"), ["fail"], "{}", said.out);
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else altogether");
}

#[test]
fn a_folder_that_others_can_read_is_a_warning() {
    let installation = Installation::used();
    fs::set_permissions(installation.data(), fs::Permissions::from_mode(0o755)).unwrap();
    let said = examine(&installation, &[]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert_eq!(levels(&said, "folder"), ["warn"], "{}", said.out);
}

#[test]
fn a_wrong_settings_file_and_an_unknown_variable_are_found() {
    let installation = Installation::used();
    let mut command = installation.command(&["doctor", "--json", "--listen", "127.0.0.1:0"]);
    let said: Said = command.env("BANDSTAND_LISTNE", "x").output().unwrap().into();
    assert_eq!(levels(&said, "settings"), ["ok", "warn"], "{}", said.out);

    fs::write(installation.data().join("bandstand.toml"), "lisen = 1\n").unwrap();
    let said = examine(&installation, &[]);
    assert_eq!(said.code, Some(1));
    assert_eq!(levels(&said, "settings"), ["fail"]);
    assert!(said.out.contains("line 1"), "{}", said.out);
}

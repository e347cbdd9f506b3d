//! The first start, the next ones, and the ones that are refused.

use std::fs;
use std::net::TcpListener;

use crate::program::{Installation, Said, Server, http_client, mode};

fn key_in(text: &str) -> Option<&str> {
    let start = text.find("band_u_")?;
    let end = text[start..].find(char::is_whitespace).map_or(text.len(), |length| start + length);
    Some(&text[start..end])
}

#[tokio::test]
async fn the_owners_key_is_printed_once_and_works() {
    let installation = Installation::new();
    let server = installation.up();
    let key = key_in(server.said()).expect("a key").to_owned();
    let me = http_client().get(server.url("/api/v1/me/profile"));
    assert_eq!(me.header("x-api-key", &key).send().await.unwrap().status(), 200);
    let (out, err) = server.stop();
    assert_eq!(out.matches("band_u_").count(), 1, "{out}");
    assert!(out.contains("bandstand agent add"), "{out}");
    assert!(!err.contains("band_u_"), "never in the log: {err}");

    let (out, err) = installation.up().stop();
    assert_eq!(key_in(&out).or(key_in(&err)), None, "{out}{err}");
    // Nor does any file hold it.
    let files = fs::read_dir(installation.data()).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let content = fs::read(file).unwrap();
        assert!(!content.windows(key.len()).any(|window| window == key.as_bytes()));
    }
}

#[tokio::test]
async fn a_preset_owners_key_works_and_is_not_printed() {
    let installation = Installation::new();
    let key = format!("band_u_{}", "k".repeat(32));
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0", "--owner-handle", "ann"]);
    command.env("BANDSTAND_OWNER_KEY", &key);
    let server = Server::start(command);
    let me = http_client().get(server.url("/api/v1/me/profile"));
    assert_eq!(me.header("x-api-key", &key).send().await.unwrap().status(), 200);
    assert_eq!(installation.json(&["user", "list"])["users"][0]["handle"], "ann");
    let (out, err) = server.stop();
    assert!(!out.contains(&key) && !err.contains(&key), "{out}{err}");
}

#[test]
fn a_weak_preset_key_ends_with_2_before_anything_is_made() {
    let installation = Installation::new();
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    let said = command.env("BANDSTAND_OWNER_KEY", "band_u_short").output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let err = String::from_utf8(said.stderr).unwrap();
    assert!(err.contains("BANDSTAND_OWNER_KEY") && err.contains("32 characters"), "{err}");
    assert!(!err.contains("band_u_short"), "{err}");
    assert!(!installation.data().exists());
}

#[test]
fn a_second_server_on_the_same_data_is_refused_at_once() {
    let installation = Installation::new();
    let server = installation.up();
    let second = installation.run(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains(&format!("pid {}", server.pid())), "{}", second.err);
    assert!(second.err.contains(&installation.data().display().to_string()), "{}", second.err);
    // And the first goes on as if nothing had happened.
    assert_eq!(installation.json(&["user", "list"])["users"].as_array().unwrap().len(), 1);
    server.stop();
}

#[tokio::test]
async fn a_second_server_on_the_same_postgres_database_is_refused_at_once() {
    let installation = Installation::on_postgres().await;
    let server = installation.up();
    let same_folder = installation.run(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(same_folder.code, Some(1));
    assert!(same_folder.err.contains(&format!("pid {}", server.pid())), "{}", same_folder.err);
    let elsewhere: Said = installation.command_elsewhere(&["up", "--listen", "127.0.0.1:0"]).output().unwrap().into();
    assert_eq!(elsewhere.code, Some(1));
    assert!(elsewhere.err.contains("in use by another server"), "{}", elsewhere.err);
    server.stop();
}

#[test]
fn an_address_in_use_is_named_and_no_key_is_lost() {
    let installation = Installation::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = installation.run(&["up", "--listen", &address]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains(&address) && said.err.contains("--listen"), "{}", said.err);
    assert!(key_in(installation.up().said()).is_some(), "the owner is made by the first start that serves");
}

#[test]
fn only_the_owner_may_use_the_folder_and_the_admin_socket() {
    let installation = Installation::new();
    let server = installation.up();
    assert_eq!(mode(&installation.data()), 0o700);
    assert_eq!(mode(&installation.data().join("admin.sock")), 0o600);
    server.stop();
    assert!(!installation.data().join("admin.sock").exists());
}

#[test]
fn a_socket_left_by_a_killed_server_does_not_matter() {
    let installation = Installation::new();
    let mut server = installation.up();
    server.signal("KILL");
    server.ended();
    assert!(installation.data().join("admin.sock").exists());
    assert_eq!(installation.json(&["user", "list"])["users"][0]["handle"], "owner");
    let server = installation.up();
    assert_eq!(installation.json(&["user", "list"])["users"][0]["handle"], "owner");
    server.stop();
}

#[tokio::test]
async fn it_says_that_it_lives_and_is_ready() {
    let installation = Installation::new();
    let server = installation.up();
    let client = http_client();
    for (path, word) in [("/healthz", "alive"), ("/readyz", "ready")] {
        let reply = client.get(server.url(path)).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        assert_eq!(reply.json::<serde_json::Value>().await.unwrap()["status"], word);
    }
    server.stop();
}

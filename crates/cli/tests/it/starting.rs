//! The first start, the next ones, and the ones that are refused.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

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
fn a_service_manager_is_told_when_it_is_ready_and_when_it_stops() {
    let installation = Installation::new();
    let path = installation.path("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let told = || {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path);
    let server = Server::start(command);
    assert_eq!(told(), "READY=1\n");
    server.stop();
    assert_eq!(told(), "STOPPING=1\n");
}

#[tokio::test]
async fn a_machine_without_certificates_serves_everything() {
    let installation = Installation::new();
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    command.env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere");
    let server = Server::start(command);
    // The key is missing, the door is there.
    assert_eq!(http_client().post(server.url("/mcp")).send().await.unwrap().status(), 401);
    let (_, err) = server.stop();
    assert!(!err.contains("ERROR"), "{err}");
}

#[test]
fn status_says_whether_a_server_runs() {
    let installation = Installation::new();
    let none = installation.run(&["status"]);
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("no server runs on") && none.err.contains("bandstand up --data"), "{}", none.err);
    assert!(!installation.data().exists(), "it makes nothing");
    let json = installation.run(&["status", "--json"]);
    assert!(json.code == Some(1) && json.out.contains(r#"{"error":"#), "{}", json.out);

    let server = installation.up();
    let said = installation.run(&["status"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.starts_with(&format!("ready: {} (version ", server.url(""))), "{}", said.out);
    assert!(said.out.contains(&format!("pid {}", server.pid())), "{}", said.out);
    let about = installation.json(&["status"]);
    assert_eq!((&about["status"], &about["url"]), (&"ready".into(), &server.url("").into()));
    server.stop();
    assert_eq!(installation.run(&["status"]).code, Some(1));
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

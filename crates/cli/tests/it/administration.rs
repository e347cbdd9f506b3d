//! People, agents and keys: the same with and without a running server.

use serde_json::Value;

use crate::crash::{OWNER_KEY, start};
use crate::program::{Installation, Said, Server, bandstand, http_client};

/// Everything once, on whatever is there.
fn administer(installation: &Installation) {
    let ann =
        installation.json(&["user", "add", "ann", "--first-name", "Ann", "--last-name", "Lee", "--email", "a@x.org"]);
    assert_eq!(ann["handle"], "ann");
    assert_eq!(ann["name"], "Ann Lee");
    assert!(ann["api_key"].as_str().unwrap().starts_with("band_u_"));
    let users = installation.json(&["user", "list"]);
    let handles: Vec<_> =
        users["users"].as_array().unwrap().iter().map(|user| user["handle"].as_str().unwrap()).collect();
    assert_eq!(handles, ["owner", "ann"]);

    let bot = installation.json(&["agent", "add", "Weather Bot", "--owner", "ann", "--global"]);
    assert!(bot["api_key"].as_str().unwrap().starts_with("band_a_"));
    assert!(bot["description"].as_str().unwrap().len() >= 10);
    assert_eq!(bot["is_global"], true);
    assert_eq!(bot["owner_id"], ann["id"]);
    let socket = bot["rest_url"].as_str().unwrap().replacen("http", "ws", 1) + "/api/v1/socket/websocket";
    assert_eq!(bot["ws_url"], socket.as_str());
    let handle = bot["handle"].as_str().unwrap();
    assert!(handle.starts_with("ann/"), "{handle}");
    let agents = installation.json(&["agent", "list"]);
    assert_eq!(agents["agents"].as_array().unwrap().len(), 1);
    assert!(!agents.to_string().contains("band_a_"), "a key is shown once");

    organize(installation, handle);

    let rotated = installation.json(&["key", "rotate", handle]);
    assert_eq!(rotated["id"], bot["id"]);
    assert_ne!(rotated["api_key"], bot["api_key"]);
    assert_eq!(valid_keys(installation, handle), 1);
    assert_eq!(installation.json(&["key", "revoke", handle])["revoked"], 1);
    assert_eq!(valid_keys(installation, handle), 0);

    let account = ["--issuer", "https://id.example.org", "--subject", "7f3a"];
    assert_eq!(installation.json(&[&["user", "link", "ann"], &account[..]].concat())["user"]["id"], ann["id"]);
    assert_eq!(installation.json(&["user", "links"])["links"][0]["subject"], "7f3a");
    assert_eq!(installation.json(&[&["user", "unlink"], &account[..]].concat())["subject"], "7f3a");
    let kid = installation.json(&["key", "rotate-signing"])["kid"].clone();
    assert_ne!(installation.json(&["key", "rotate-signing", "--revoke"])["kid"], kid);

    let removed = installation.json(&["agent", "remove", handle]);
    assert_eq!(removed["id"], bot["id"]);
    assert_eq!(installation.json(&["agent", "list"])["agents"], serde_json::json!([]));

    refusals(installation);
}

/// An organization with ann in it, and her agent shared with it.
fn organize(installation: &Installation, agent: &str) {
    let acme = installation.json(&["organization", "add", "Acme Inc"]);
    assert_eq!((&acme["name"], &acme["members"]), (&"Acme Inc".into(), &serde_json::json!([])));
    let id = acme["id"].as_str().unwrap();
    let joined = installation.json(&["organization", "member", "add", "acme inc", "@Ann"]);
    assert_eq!((&joined["organization_id"], &joined["user"]["handle"]), (&acme["id"], &"ann".into()));
    let list = installation.json(&["organization", "list"]);
    assert_eq!(list["organizations"][0]["members"][0]["handle"], "ann");

    for (command, shared) in [("share", true), ("unshare", false), ("share", true)] {
        assert_eq!(installation.json(&["agent", command, agent])["shared_with_organization"], shared);
    }
    assert_eq!(installation.json(&["agent", "list"])["agents"][0]["shared_with_organization"], true);

    for (arguments, part) in [
        (&["organization", "add", "ACME INC"][..], "there already is"),
        (&["organization", "add", " "], "blank"),
        (&["organization", "member", "add", "Acme Inc", "ann"], "one organization at most"),
        (&["organization", "member", "add", "Nowhere", "ann"], "no organization \"Nowhere\""),
        (&["organization", "member", "add", id, "nobody"], "no user \"nobody\""),
        (&["organization", "member", "add", id, agent], "no user"),
        (&["organization", "member", "remove", id, "owner"], "does not belong"),
        (&["agent", "share", "ann"], "no agent"),
    ] {
        refused(installation, arguments, part);
    }
    let left = installation.json(&["organization", "member", "remove", id, "ann"]);
    assert_eq!(left["organization"], "Acme Inc");
    refused(installation, &["organization", "member", "remove", id, "ann"], "does not belong");
}

fn valid_keys(installation: &Installation, holder: &str) -> usize {
    let keys = installation.json(&["key", "list"]);
    let valid = |key: &&Value| key["holder"]["handle"] == holder && key["revoked_at"].is_null();
    keys["keys"].as_array().unwrap().iter().filter(valid).count()
}

fn refusals(installation: &Installation) {
    for (arguments, part) in [
        (&["user", "add", "ann"][..], "taken"),
        (&["agent", "add", "x", "--owner", "nobody"], "nobody"),
        (&["agent", "add", "x", "--description", "short"], "at least 10"),
        (&["agent", "remove", "ann/nothing"], "ann/nothing"),
        (&["key", "rotate", "nobody"], "nobody"),
        (&["key", "revoke", "nobody"], "nobody"),
        (&["user", "link", "nobody", "--issuer", "i", "--subject", "s"], "nobody"),
        (&["user", "link", "ann", "--issuer", " ", "--subject", "s"], "issuer of an account"),
        (&["user", "unlink", "--issuer", "i", "--subject", "s"], "no linked account \"s\""),
    ] {
        refused(installation, arguments, part);
    }
}

/// It does not happen, and people and programs are told why.
fn refused(installation: &Installation, arguments: &[&str], part: &str) {
    let said = installation.run(arguments);
    assert_eq!(said.code, Some(1), "{arguments:?}: {}{}", said.out, said.err);
    assert!(said.err.contains(part), "{arguments:?}: {}", said.err);
    let json = installation.run(&[arguments, &["--json"]].concat());
    let answer: Value = serde_json::from_str(&json.out).unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{}", json.out);
    assert_eq!(json.code, Some(1));
}

#[test]
fn while_the_server_runs_it_goes_through_the_admin_socket() {
    let installation = Installation::new();
    let server = installation.up();
    administer(&installation);
    let bot = installation.json(&["agent", "add", "Other"]);
    assert_eq!(bot["rest_url"], server.url(""));
    server.stop();
}

#[test]
fn without_a_server_it_opens_the_store() {
    administer(&Installation::used());
}

#[tokio::test]
async fn the_same_on_postgres() {
    let installation = Installation::on_postgres().await;
    let server = installation.up();
    administer(&installation);
    server.stop();

    let installation = Installation::on_postgres().await;
    installation.up().stop();
    administer(&installation);
}

#[tokio::test]
async fn nobody_takes_the_owners_place_before_the_first_start() {
    let installation = Installation::on_postgres().await;
    let said = installation.run(&["user", "add", "ann"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("bandstand up"), "{}", said.err);
    let server = installation.up();
    assert_eq!(installation.json(&["user", "list"])["users"][0]["role"], "admin");
    server.stop();
}

#[tokio::test]
async fn a_revoked_key_stops_working_at_once() {
    let installation = Installation::new();
    let server = installation.up();
    let user = installation.json(&["user", "add", "ann"]);
    let client = http_client();
    let status = async || {
        let request =
            client.get(server.url("/api/v1/me/profile")).header("x-api-key", user["api_key"].as_str().unwrap());
        request.send().await.unwrap().status()
    };
    assert_eq!(status().await, 200);
    installation.json(&["key", "revoke", "ann"]);
    assert_eq!(status().await, 401);
    server.stop();
}

#[test]
fn what_agent_add_prints_is_a_whole_program() {
    let installation = Installation::new();
    let server = installation.up();
    let said = installation.run(&["agent", "add", "Echo"]);
    for part in [
        "from band import Agent",
        "from band.core import SimpleAdapter",
        &format!("rest_url=\"{}\"", server.url("")),
        &format!("ws_url=\"ws://{}/api/v1/socket/websocket\"", server.address),
        "api_key=\"band_a_",
    ] {
        assert!(said.out.contains(part), "{part} is missing: {}", said.out);
    }
    server.stop();
}

#[test]
fn without_data_it_says_how_to_begin() {
    let installation = Installation::new();
    let said = installation.run(&["agent", "add", "x"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("bandstand up --data"), "{}", said.err);
    assert!(!installation.data().exists());
}

#[test]
fn everything_has_a_list_for_people() {
    let installation = Installation::used();
    installation.json(&["agent", "add", "Bot"]);
    installation.json(&["organization", "add", "Acme"]);
    installation.json(&["organization", "member", "add", "Acme", "owner"]);
    for (what, first, part) in [
        ("user", "HANDLE", "owner"),
        ("agent", "HANDLE", "owner/bot"),
        ("organization", "NAME", "owner"),
        ("key", "KEY", "band_a_"),
    ] {
        let said = installation.run(&[what, "list"]);
        assert!(said.out.starts_with(first) && said.out.contains(part), "{}", said.out);
    }
    assert_eq!(bandstand().arg("user").output().unwrap().status.code(), Some(2));
}

/// A command of an administrator elsewhere, who has no data folder.
fn from_elsewhere(server: &Server, key: &str, arguments: &[&str]) -> Said {
    let mut command = bandstand();
    command.args(arguments).env("BANDSTAND_URL", server.url("/")).env("BANDSTAND_KEY", key);
    command.current_dir(std::env::temp_dir()).output().unwrap().into()
}

#[test]
fn from_elsewhere_the_same_goes_over_the_api() {
    let installation = Installation::new();
    let server = start(&installation);
    let json = |arguments: &[&str]| from_elsewhere(&server, OWNER_KEY, &[arguments, &["--json"]].concat()).json();
    let ann = json(&["user", "add", "ann", "--first-name", "Ann", "--administrator"]);
    assert_eq!((&ann["role"], &ann["name"]), (&"admin".into(), &"Ann".into()));
    assert_eq!(json(&["user", "demote", "@Ann"])["role"], "user");
    assert_eq!(json(&["user", "show", "ann"])["id"], ann["id"]);
    assert_eq!(json(&["user", "list"])["users"].as_array().unwrap().len(), 2);
    let bot = json(&["agent", "add", "Weather Bot", "--owner", "ann"]);
    assert_eq!(bot["rest_url"], server.url(""));
    assert_eq!(json(&["agent", "global", "ann/weather-bot"])["is_global"], true);
    assert_eq!(json(&["agent", "global", "ann/weather-bot", "--off"])["is_global"], false);
    assert_eq!(json(&["agent", "share", "ann/weather-bot"])["shared_with_organization"], true);
    json(&["organization", "add", "Acme Inc"]);
    json(&["organization", "member", "add", "Acme Inc", "ann"]);
    assert_eq!(json(&["organization", "list"])["organizations"][0]["members"][0]["handle"], "ann");
    json(&["organization", "member", "remove", "Acme Inc", "ann"]);
    let issued = json(&["key", "issue", "ann"]);
    assert!(issued["api_key"].as_str().unwrap().starts_with("band_u_"));
    assert_eq!(json(&["key", "revoke", issued["key_id"].as_str().unwrap()])["revoked"], 1);
    json(&["key", "rotate", "ann/weather-bot"]);
    assert_eq!(json(&["key", "list"])["keys"].as_array().unwrap().len(), 5);
    assert!(!json(&["user", "disable", "ann"])["disabled_at"].is_null());
    assert!(json(&["user", "enable", "ann"])["disabled_at"].is_null());
    let account = ["--issuer", "https://id.example.org/a b", "--subject", " one&two "];
    let linked = json(&[&["user", "link", "@Ann"], &account[..]].concat());
    assert_eq!((&linked["user"]["id"], &linked["subject"]), (&ann["id"], &" one&two ".into()));
    let links = json(&["user", "links"]);
    assert_eq!((&links["links"][0]["issuer"], links["links"].as_array().unwrap().len()), (&account[1].into(), 1));
    let said = from_elsewhere(&server, OWNER_KEY, &[&["user", "link", "owner"], &account[..]].concat());
    assert!(said.code == Some(1) && said.err.contains("is linked to a user already"), "{}", said.err);
    let ended = json(&[&["user", "unlink"], &account[..]].concat());
    assert_eq!((&ended["issuer"], &ended["subject"]), (&account[1].into(), &account[3].into()));
    assert_eq!(json(&["user", "links"])["links"], serde_json::json!([]));
    let kid = json(&["key", "rotate-signing"])["kid"].clone();
    assert_ne!(json(&["key", "rotate-signing", "--revoke"])["kid"], kid);
    json(&["agent", "remove", "ann/weather-bot"]);
    json(&["user", "delete", "ann"]);
    let log = json(&["audit", "list"]);
    let doors: Vec<&str> =
        log["entries"].as_array().unwrap().iter().map(|entry| entry["door"].as_str().unwrap()).collect();
    assert!(doors[0] == "start" && doors.len() == 21 && doors[1..].iter().all(|door| *door == "api"), "{log}");
    assert_eq!(json(&["audit", "verify"])["head"], log["head"]);

    let said = from_elsewhere(&server, OWNER_KEY, &["user", "demote", "owner"]);
    assert!(said.code == Some(1) && said.err.contains("last administrator"), "{}", said.err);
    let eve = json(&["user", "add", "eve"]);
    let said = from_elsewhere(&server, eve["api_key"].as_str().unwrap(), &["user", "list"]);
    assert!(said.code == Some(1) && said.err.contains("not an administrator's"), "{}", said.err);
    let said = from_elsewhere(&server, "band_u_nonsense", &["user", "list"]);
    assert!(said.code == Some(1) && said.err.contains("does not know this key"), "{}", said.err);
    server.stop();
}

#[test]
fn the_log_is_exported_and_checked_elsewhere() {
    let installation = Installation::used();
    for name in ["ann", "eve", "zoe"] {
        installation.json(&["user", "add", name]);
    }
    installation.json(&["user", "promote", "eve"]);
    let head = installation.json(&["audit", "verify"])["head"].clone();
    assert_eq!(head["sequence"], 5);
    let path = installation.path("log.jsonl");
    let file = path.to_str().unwrap();
    assert_eq!(installation.run(&["audit", "export", file]).code, Some(0));
    let verify = |more: &[&str]| {
        let said: Said =
            bandstand().args([&["audit", "verify", "--file", file], more].concat()).output().unwrap().into();
        (said.code, said.out + &said.err)
    };
    let hash = head["hash"].as_str().unwrap();
    assert_eq!(verify(&["--head", hash]).0, Some(0));
    // By the lines of docs/administration.md as well.
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/administration.md")).unwrap();
    let script = docs.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let python = std::process::Command::new("python3").args(["-c", script, file]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&python.stdout), format!("whole, head {hash}\n"), "{python:?}");

    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for (text, part) in [
        (whole.replacen("\"target\":\"ann\"", "\"target\":\"bob\"", 1), "entry 2 was changed"),
        ([lines[0], lines[2], lines[3], lines[4]].join("\n"), "entry 2 is missing"),
        (format!("{whole}nonsense"), "line 6 is no entry"),
    ] {
        std::fs::write(&path, text).unwrap();
        let (code, said) = verify(&[]);
        assert!(code == Some(1) && said.contains(part), "{part}: {said}");
    }
    std::fs::write(&path, lines[..4].join("\n")).unwrap();
    assert_eq!(verify(&[]).0, Some(0), "what is there is whole");
    let (code, said) = verify(&["--head", hash]);
    assert!(code == Some(1) && said.contains("cut off"), "{said}");
}

#[test]
fn a_log_that_was_changed_in_the_database_is_found() {
    let installation = Installation::used();
    installation.json(&["user", "add", "ann"]);
    let doctor = tamper(&installation);
    assert!(doctor.code == Some(1) && doctor.out.contains("entry 2 was changed"), "{}{}", doctor.out, doctor.err);
}

/// Changes an entry behind the triggers' back, as whoever owns the file can, and asks the doctor.
fn tamper(installation: &Installation) -> Said {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('DROP TRIGGER audit_entries_update'); \
                  db.execute(\"UPDATE audit_entries SET target = 'bob' WHERE sequence = 2\"); db.commit(); db.close()";
    let file = installation.data().join("bandstand.db");
    let changed = std::process::Command::new("python3").args(["-c", script]).arg(file).status().unwrap();
    assert!(changed.success());
    let verified = installation.run(&["audit", "verify"]);
    assert!(verified.code == Some(1) && verified.err.contains("entry 2 was changed"), "{}", verified.err);
    installation.run(&["doctor", "--listen", "127.0.0.1:0"])
}

//! People, agents and keys: the same with and without a running server.

use serde_json::Value;

use crate::program::{Installation, bandstand, http_client};

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

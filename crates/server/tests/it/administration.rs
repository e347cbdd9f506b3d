//! Administration over the API: who may, what it does, and the log of it.

use bandstand_domain::audit::{Entry, Verifier};
use bandstand_wire::ids::IdentityKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Caller, TestApp, stories};

stories!(
    users_come_and_go,
    the_last_administrator_stays,
    of_two_that_demote_each_other_one_stays,
    a_disabled_user_and_its_agents_are_shut_out,
    a_user_is_deleted_with_its_agents_and_leaves_its_rooms,
    organizations_and_their_members,
    agents_of_anybody,
    keys_are_issued_and_revoked,
    quotas_of_ones_own,
    accounts_are_linked_and_unlinked,
    the_signing_key_is_rotated,
    lists_are_paged_by_cursor,
    every_act_is_in_the_log_and_the_log_is_whole,
    the_log_is_only_ever_added_to,
);

/// A path of administration.
fn admin(path: &str) -> String {
    format!("/api/v1/admin/{path}")
}

impl Caller {
    /// Adds a user through the API.
    async fn adds_user(&self, handle: &str, administrator: bool) -> Caller {
        let body = json!({"user": {"handle": handle, "administrator": administrator}});
        let reply = self.post(&admin("users"), body).await.assert_status(201);
        let data = reply.data();
        let id: Uuid = data["id"].as_str().unwrap().parse().unwrap();
        Caller::new(&self.app, IdentityKind::User, id, handle, handle, data["api_key"].as_str().unwrap())
    }

    async fn log(&self) -> Vec<Entry> {
        let reply = self.get(&admin("audit?limit=100")).await.assert_status(200);
        let entries: Vec<Entry> = serde_json::from_value(reply.data().clone()).unwrap();
        assert_eq!(reply.metadata()["head"]["sequence"], entries.last().map_or(0, |last| last.sequence));
        entries
    }
}

async fn users_come_and_go(app: TestApp) {
    let olga = app.owner();
    let eve = olga.adds_user("eve", false).await;
    eve.get("profile").await.assert_status(200);
    eve.get(&admin("users")).await.assert_error(404, "not_found");
    let shown = olga.get(&admin("users/@Eve")).await.assert_status(200);
    assert_eq!((&shown.data()["id"], &shown.data()["role"]), (&json!(eve.id), &json!("user")));
    assert!(!shown.data().to_string().contains("band_u_"), "a key is shown once");

    olga.post_nothing(&admin("users/eve/promote")).await.assert_status(200);
    eve.get(&admin("users")).await.assert_status(200);
    olga.post_nothing(&admin(&format!("users/{}/demote", eve.id))).await.assert_status(200);
    eve.get(&admin("users")).await.assert_error(404, "not_found");

    let invalid = olga.post(&admin("users"), json!({"user": {"handle": "eve"}})).await;
    invalid.assert_invalid(&["handle"]);
    let invalid = olga.post(&admin("users"), json!({"user": {"handle": 5, "administrator": "x", "more": 1}})).await;
    invalid.assert_invalid(&["/user/more", "/user/administrator", "/user/handle"]);
    olga.get(&admin("users/nobody")).await.assert_error(404, "not_found");

    olga.delete(&admin("users/eve")).await.assert_status(200);
    eve.get("profile").await.assert_error(401, "unauthorized");
    olga.get(&admin("users/eve")).await.assert_error(404, "not_found");
    olga.adds_user("eve", false).await;
}

async fn the_last_administrator_stays(app: TestApp) {
    let olga = app.owner();
    for (method, path) in
        [("POST", "users/olga/demote"), ("POST", "users/olga/disable"), ("DELETE", "users/olga?force=true")]
    {
        let reply = match method {
            "POST" => olga.post_nothing(&admin(path)).await,
            _ => olga.delete(&admin(path)).await,
        };
        reply.assert_error(422, "last_administrator");
    }
    let eve = olga.adds_user("eve", true).await;
    // A disabled administrator does not count.
    olga.post_nothing(&admin("users/eve/disable")).await.assert_status(200);
    olga.post_nothing(&admin("users/olga/demote")).await.assert_error(422, "last_administrator");
    olga.post_nothing(&admin("users/eve/enable")).await.assert_status(200);
    olga.post_nothing(&admin("users/olga/demote")).await.assert_status(200);
    olga.get(&admin("users")).await.assert_error(404, "not_found");
    eve.delete(&admin("users/eve")).await.assert_error(422, "last_administrator");
    eve.delete(&admin("users/olga")).await.assert_status(200);
}

async fn of_two_that_demote_each_other_one_stays(app: TestApp) {
    let olga = app.owner();
    for round in 0..10 {
        let eve = olga.adds_user(&format!("eve{round}"), true).await;
        let (one, other) = (admin("users/olga/demote"), admin(&format!("users/eve{round}/demote")));
        let (by_eve, by_olga) = tokio::join!(eve.post_nothing(&one), olga.post_nothing(&other));
        let statuses = [by_eve.status, by_olga.status];
        // Whoever came second is refused as the last one, or is no administrator any more.
        assert!(statuses.contains(&200) && (statuses.contains(&422) || statuses.contains(&404)), "{statuses:?}");
        match by_eve.status {
            200 => {
                eve.post_nothing(&admin("users/olga/promote")).await.assert_status(200);
            }
            _ => assert_eq!(by_olga.status, 200),
        }
        olga.delete(&admin(&format!("users/eve{round}"))).await.assert_status(200);
    }
}

async fn a_disabled_user_and_its_agents_are_shut_out(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let bob = eve.registers("bob").await;
    let mut socket = bob.joins(&format!("agent_rooms:{}", bob.id)).await;
    olga.post_nothing(&admin("users/eve/disable")).await.assert_status(200);
    eve.get("profile").await.assert_error(401, "unauthorized");
    bob.get("me").await.assert_error(401, "unauthorized");
    socket.closed().await;
    assert!(!olga.get(&admin("users/eve")).await.data()["disabled_at"].is_null());
    olga.post_nothing(&admin("users/eve/disable")).await.assert_status(200);
    olga.post_nothing(&admin("users/eve/enable")).await.assert_status(200);
    eve.get("profile").await.assert_status(200);
    bob.get("me").await.assert_status(200);
}

async fn a_user_is_deleted_with_its_agents_and_leaves_its_rooms(app: TestApp) {
    let (olga, eve, zoe) = (app.owner(), app.user("eve").await, app.user("zoe").await);
    let bob = eve.registers("bob").await;
    app.organization("acme", &[&olga, &eve, &zoe]).await;
    let room = eve.creates_room().await;
    for who in [&zoe, &bob] {
        eve.adds(&room, who).await.assert_status(201);
    }
    eve.says(&room, "please look", &[&bob]).await;
    olga.delete(&admin("users/eve")).await.assert_error(422, "agents_exist");
    bob.get("me").await.assert_status(200);
    olga.delete(&admin("users/eve?force=true")).await.assert_status(200);
    eve.get("profile").await.assert_error(401, "unauthorized");
    bob.get("me").await.assert_error(401, "unauthorized");
    // Who is left inherits the room; what was said stays.
    assert_eq!(zoe.get(&room.path("/participants")).await.assert_status(200).strings("role"), ["owner"]);
    assert_eq!(zoe.contents(&room.path("/messages")).await.len(), 1);
    let members = olga.get(&admin("organizations/acme/members")).await.assert_status(200).strings("handle");
    assert_eq!(members, ["olga", "zoe"]);
}

async fn organizations_and_their_members(app: TestApp) {
    let (olga, _eve) = (app.owner(), app.user("eve").await);
    let made = olga.post(&admin("organizations"), json!({"organization": {"name": "Acme Inc"}})).await;
    let id = made.assert_status(201).id();
    let again = olga.post(&admin("organizations"), json!({"organization": {"name": "ACME inc"}})).await;
    again.assert_invalid(&["name"]);
    olga.put(&admin("organizations/acme%20inc/members/eve"), Value::Null).await.assert_status(200);
    olga.put(&admin(&format!("organizations/{id}/members/eve")), Value::Null)
        .await
        .assert_error(422, "has_organization");
    let members = olga.get(&admin(&format!("organizations/{id}/members"))).await.assert_status(200);
    assert_eq!(members.strings("handle"), ["eve"]);
    olga.delete(&admin(&format!("organizations/{id}/members/eve"))).await.assert_status(200);
    olga.delete(&admin(&format!("organizations/{id}/members/eve"))).await.assert_error(404, "not_found");
    olga.get(&admin("organizations/nowhere/members")).await.assert_error(404, "not_found");
    assert_eq!(olga.get(&admin("organizations")).await.assert_status(200).strings("name"), ["Acme Inc"]);
}

async fn agents_of_anybody(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let body = json!({"agent": {"name": "Bob", "owner": "eve", "is_global": true}});
    let made = olga.post(&admin("agents"), body).await.assert_status(201);
    assert_eq!((&made.data()["owner_id"], &made.data()["is_global"]), (&json!(eve.id), &json!(true)));
    assert!(made.data()["api_key"].as_str().unwrap().starts_with("band_a_"));
    app.agent("ana").await;
    assert_eq!(olga.get(&admin("agents")).await.strings("name"), ["Bob", "ana"]);
    assert_eq!(olga.get(&admin("agents?global=true")).await.strings("name"), ["Bob"]);
    assert_eq!(olga.get(&admin(&format!("agents?owner_id={}", olga.id))).await.strings("name"), ["ana"]);
    let patch = json!({"agent": {"is_global": false, "shared_with_organization": true}});
    let changed = olga.patch(&admin("agents/eve%2Fbob"), patch).await.assert_status(200);
    assert_eq!(
        (&changed.data()["is_global"], &changed.data()["shared_with_organization"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(olga.get(&admin("agents?global=true")).await.strings("name"), Vec::<String>::new());
    olga.post(&admin("agents"), json!({"agent": {"name": "bob", "owner": "eve"}})).await.assert_invalid(&["name"]);
    olga.delete(&admin("agents/eve%2Fbob")).await.assert_status(200);
    olga.get(&admin("agents/eve%2Fbob")).await.assert_error(404, "not_found");
}

async fn keys_are_issued_and_revoked(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let issued = olga.post(&admin("keys"), json!({"key": {"holder": "eve"}})).await.assert_status(201);
    let key = issued.data()["api_key"].as_str().unwrap();
    let second = Caller::new(&app, IdentityKind::User, eve.id.parse().unwrap(), "eve", "eve", key);
    for caller in [&eve, &second] {
        caller.get("profile").await.assert_status(200);
    }
    let keys = olga.get(&admin(&format!("keys?holder_id={}", eve.id))).await.assert_status(200);
    assert_eq!(keys.rows().len(), 2);
    assert!(!keys.json().to_string().contains(key), "a key is shown once");
    let id = issued.data()["key_id"].as_str().unwrap();
    assert_eq!(olga.delete(&admin(&format!("keys/{id}"))).await.assert_status(200).data()["revoked"], 1);
    second.get("profile").await.assert_error(401, "unauthorized");
    eve.get("profile").await.assert_status(200);
    olga.delete(&admin(&format!("keys/{id}"))).await.assert_error(404, "not_found");
    olga.post_nothing(&admin("keys/eve/rotate")).await.assert_status(200);
    eve.get("profile").await.assert_error(401, "unauthorized");
}

async fn quotas_of_ones_own(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let path = admin("quotas/eve/agents");
    let set = olga.put(&path, json!({"quota": {"most": 1}})).await.assert_status(200);
    assert_eq!(set.data()["quotas"], json!([{"resource": "agents", "most": 1}]));
    eve.registers("one").await;
    let body = json!({"agent": {"name": "two", "description": "an agent too many"}});
    eve.post("agents/register", body).await.assert_error(403, "limit_reached");
    olga.put(&path, json!({"quota": {"most": null}})).await.assert_status(200);
    eve.registers("three").await;
    let unset = olga.delete(&path).await.assert_status(200);
    assert_eq!(unset.data()["quotas"], json!([]));
    for most in [json!(-1), json!("x"), json!(1.5)] {
        olga.put(&path, json!({"quota": {"most": most}})).await.assert_invalid(&["/quota/most"]);
    }
    olga.put(&path, json!({"quota": {}})).await.assert_invalid(&["/quota/most"]);
    olga.put(&admin("quotas/eve/wishes"), json!({"quota": {"most": 1}})).await.assert_error(404, "not_found");
    olga.get(&admin("quotas/nobody")).await.assert_error(404, "not_found");
    let acts = olga.log().await.into_iter().filter(|entry| entry.act == "quota.set").count();
    assert_eq!(acts, 3);
}

async fn lists_are_paged_by_cursor(app: TestApp) {
    let olga = app.owner();
    for number in 0..5 {
        app.user(&format!("user{number}")).await;
    }
    let mut seen = Vec::new();
    let mut path = admin("users?limit=2");
    loop {
        let page = olga.get(&path).await.assert_status(200);
        seen.extend(page.strings("handle"));
        match page.metadata()["next_cursor"].as_str() {
            Some(next) => path = admin(&format!("users?limit=2&cursor={next}")),
            None => break,
        }
        assert_eq!(page.rows().len(), 2);
    }
    assert_eq!(seen, ["olga", "user0", "user1", "user2", "user3", "user4"]);
    olga.get(&admin("users?page=1")).await.assert_invalid(&["/page"]);
    olga.get(&admin("users?cursor=x")).await.assert_invalid(&["/cursor"]);
}

async fn accounts_are_linked_and_unlinked(app: TestApp) {
    const ISSUER: &str = "https://id.example.org/realms/a b?c=d&e";
    const ESCAPED: &str = "https%3A%2F%2Fid.example.org%2Frealms%2Fa%20b%3Fc%3Dd%26e";
    let (olga, eve, ana) = (app.owner(), app.user("eve").await, app.agent("ana").await);
    let links = async |user: &str, issuer: &str, subject: &str| {
        let body = json!({"link": {"user": user, "issuer": issuer, "subject": subject}});
        olga.post(&admin("links"), body).await
    };
    let linked = links("@Eve", ISSUER, "one").await.assert_status(201);
    assert_eq!(
        linked.data(),
        &json!({
            "user": {"id": eve.id, "type": "User", "handle": "eve", "name": linked.data()["user"]["name"]},
            "issuer": ISSUER, "subject": "one", "last_used_at": null,
        })
    );
    links(&eve.id, ISSUER, "two").await.assert_status(201);
    links("olga", ISSUER, "three").await.assert_status(201);
    // An account is one user's, whoever it is.
    for user in ["eve", "olga"] {
        links(user, ISSUER, "one").await.assert_error(409, "conflict");
    }
    for user in ["nobody", &ana.handle] {
        links(user, ISSUER, "four").await.assert_error(404, "not_found");
    }
    for (issuer, subject, place) in [
        (" ", "s", "issuer"),
        ("https://id\u{0}", "s", "issuer"),
        (&"i".repeat(1025), "s", "issuer"),
        (ISSUER, "", "subject"),
        (ISSUER, "a\nb", "subject"),
        (ISSUER, &"s".repeat(256), "subject"),
    ] {
        links("eve", issuer, subject).await.assert_invalid(&[place]);
    }
    // The longest that there are fit.
    links("eve", &"i".repeat(1024), &"s".repeat(255)).await.assert_status(201);
    let wrong = olga.post(&admin("links"), json!({"link": {"user": 5, "issuer": null, "more": 1}})).await;
    wrong.assert_invalid(&["/link/more", "/link/user", "/link/issuer", "/link/subject"]);

    let subjects = async |query: &str| olga.get(&admin(&format!("links?{query}"))).await.assert_status(200);
    assert_eq!(subjects("").await.strings("subject")[..3], ["one", "two", "three"]);
    let first = subjects(&format!("user_id={}&limit=2", eve.id)).await;
    assert_eq!(first.strings("subject"), ["one", "two"]);
    let cursor = first.metadata()["next_cursor"].as_str().unwrap().to_owned();
    let rest = subjects(&format!("user_id={}&limit=2&cursor={cursor}", eve.id)).await;
    assert_eq!((rest.rows().len(), &rest.metadata()["next_cursor"]), (1, &Value::Null));
    assert_eq!(subjects(&format!("user_id={}", ana.id)).await.rows().len(), 0);
    olga.get(&admin(&format!("links?limit=2&cursor={cursor}"))).await.assert_error(422, "cursor_filter_mismatch");

    let ended = olga.delete(&admin(&format!("links?issuer={ESCAPED}&subject=two"))).await.assert_status(200);
    assert_eq!(ended.data(), &json!({"issuer": ISSUER, "subject": "two"}));
    for missing in
        ["issuer=x&subject=two", &format!("issuer={ESCAPED}&subject=two"), &format!("issuer={ESCAPED}&subject=T")]
    {
        olga.delete(&admin(&format!("links?{missing}"))).await.assert_error(404, "not_found");
    }
    olga.delete(&admin("links?subject=&force=true")).await.assert_invalid(&["/force", "/issuer", "/subject"]);
    // Of a deleted user it is still nobody else's, until it is unlinked.
    olga.delete(&admin("users/eve")).await.assert_status(200);
    assert_eq!(subjects("").await.strings("subject"), ["three"]);
    links("olga", ISSUER, "one").await.assert_error(409, "conflict");
    olga.delete(&admin(&format!("links?issuer={ESCAPED}&subject=one"))).await.assert_status(200);
    links("olga", ISSUER, "one").await.assert_status(201);

    let log = olga.log().await;
    let acts: Vec<_> = log
        .iter()
        .filter(|entry| entry.act.ends_with("link"))
        .map(|entry| (entry.act.as_str(), entry.actor.as_str(), entry.door.as_str(), entry.target.as_str()))
        .collect();
    assert_eq!(
        acts[..3],
        [
            ("user.link", "olga", "api", "eve"),
            ("user.link", "olga", "api", "eve"),
            ("user.link", "olga", "api", "olga")
        ]
    );
    assert_eq!(acts[4], ("user.unlink", "olga", "api", "two"));
    assert_eq!(acts.len(), 7, "{acts:?}");
}

async fn the_signing_key_is_rotated(app: TestApp) {
    let olga = app.owner();
    let rotate = admin("signing-keys/rotate");
    let first = olga.post_nothing(&rotate).await.assert_status(200);
    let second = olga.post(&rotate, json!({"revoke": true})).await.assert_status(200);
    assert_ne!(first.data()["kid"], second.data()["kid"]);
    let keys = app.nobody().get("/.well-known/jwks.json").await.assert_status(200);
    assert_eq!(keys.json()["keys"].as_array().unwrap().len(), 1);
    assert_eq!(keys.json()["keys"][0]["kid"], second.data()["kid"]);
    olga.post(&rotate, json!({"revoke": "yes", "now": true})).await.assert_invalid(&["/now", "/revoke"]);
    olga.post(&rotate, json!([])).await.assert_invalid(&["/"]);
    let log = olga.log().await;
    let acts: Vec<_> = log[1..].iter().map(|entry| (entry.act.as_str(), &entry.details["revoke"])).collect();
    assert_eq!(acts, [("signing_key.rotate", &json!(false)), ("signing_key.rotate", &json!(true))]);
    assert_eq!((log[1].door.as_str(), log[1].target.as_str()), ("api", first.data()["kid"].as_str().unwrap()));
}

async fn every_act_is_in_the_log_and_the_log_is_whole(app: TestApp) {
    let olga = app.owner();
    let eve = olga.adds_user("eve", false).await;
    let bob = eve.registers("bob").await;
    olga.post_nothing(&admin("users/eve/promote")).await.assert_status(200);
    olga.post(&admin("keys"), json!({"key": {"holder": "eve/bob"}})).await.assert_status(201);
    eve.delete(&admin("agents/eve%2Fbob")).await.assert_status(200);
    // What is refused or changes nothing leaves no trace.
    olga.post_nothing(&admin("users/eve/promote")).await.assert_status(200);
    olga.post_nothing(&admin("users/nobody/promote")).await.assert_error(404, "not_found");
    app.state().services.add_organization("acme").await.unwrap();
    let log = olga.log().await;
    let seen: Vec<_> = log
        .iter()
        .map(|entry| (entry.act.as_str(), entry.actor.as_str(), entry.door.as_str(), entry.target.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("server.set_up", "local", "start", "olga"),
            ("user.add", "olga", "api", "eve"),
            ("user.promote", "olga", "api", "eve"),
            ("key.issue", "olga", "api", "eve/bob"),
            ("agent.remove", "eve", "api", "eve/bob"),
            ("organization.add", "local", "start", "acme"),
        ]
    );
    assert_eq!(log[1].actor_id.map(|id| id.to_string()), Some(olga.id.clone()));
    assert_eq!(log[3].details["id"], bob.id);
    let text = serde_json::to_string(&log).unwrap();
    assert!(!text.contains("band_u_") && !text.contains("band_a_"), "no secret: {text}");
    let mut verifier = Verifier::new(Some(log[5].hash));
    log.iter().try_for_each(|entry| verifier.take(entry)).unwrap();
    verifier.finish(None).unwrap();
}

async fn the_log_is_only_ever_added_to(app: TestApp) {
    for sql in [
        "UPDATE audit_entries SET target = 'eve'",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_head",
        "UPDATE audit_head SET sequence = 0",
    ] {
        let database = app.database.clone();
        let refused = std::thread::spawn(move || database.execute(sql)).join();
        assert!(refused.is_err(), "{sql}");
    }
    assert_eq!(app.owner().log().await.len(), 1);
}

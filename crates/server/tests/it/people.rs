//! People and their agents.

use serde_json::{Value, json};

use crate::support::{Caller, TestApp, stories};

stories!(
    a_profile_is_read_and_changed,
    an_agent_knows_itself,
    an_agent_is_registered,
    registration_is_checked,
    of_many_that_register_a_name_one_wins,
    a_rotated_key_takes_over,
    nobody_learns_who_is_in_a_foreign_room,
    agents_are_listed_filtered_and_sorted,
    an_agent_is_deleted_with_force_only_when_it_worked,
    a_revoked_key_opens_nothing_and_its_sockets_close,
    whom_an_agent_may_recruit,
    whom_a_person_may_invite,
);

async fn a_profile_is_read_and_changed(app: TestApp) {
    let eve = app.user("eve").await;
    let before = eve.get("profile").await.assert_status(200);
    assert_eq!(
        before.named(),
        json!({"data": {
            "id": "<eve>", "email": "eve@example.org", "handle": "eve", "role": "user",
            "first_name": "", "last_name": "", "listed_in_directory": false,
        }})
    );
    let put = async |user: Value| eve.put("profile", json!({"user": user})).await;
    let changed = put(json!({"first_name": " Eve ", "last_name": "Adams"})).await.assert_status(200);
    assert_eq!((&changed.data()["first_name"], &changed.data()["last_name"]), (&json!("Eve"), &json!("Adams")));
    let changed = put(json!({"last_name": "Smith"})).await.assert_status(200);
    assert_eq!((&changed.data()["first_name"], &changed.data()["last_name"]), (&json!("Eve"), &json!("Smith")));
    put(json!({})).await.assert_status(200);
    for (user, place) in [
        (json!({"handle": "x"}), "/user/handle"),
        (json!({"email": "x@y.z"}), "/user/email"),
        (json!({"first_name": 5}), "/user/first_name"),
        (json!({"first_name": "x".repeat(101)}), "/user/first_name"),
        (json!({"last_name": "a\u{0}"}), "/user/last_name"),
    ] {
        put(user).await.assert_invalid(&[place]);
    }
    eve.put("profile", json!({})).await.assert_invalid(&["/user"]);
    assert_eq!(eve.get("profile").await.data(), changed.data());
    // The name shows where others see it.
    let agent = eve.registers("helper").await;
    let room = app.room_with(&eve, &[&agent]).await;
    eve.says(&room, "hi", &[&agent]).await;
    assert_eq!(agent.next(&room).await.expect("a message")["sender_name"], "Eve Smith");
    assert_eq!(app.owner().get("profile").await.data()["role"], "admin");
}

async fn an_agent_knows_itself(app: TestApp) {
    let ana = app.agent("Ana B.").await;
    assert_eq!(
        ana.get("me").await.assert_status(200).named(),
        json!({"data": {
            "id": "<Ana B.>", "name": "Ana B.", "handle": "olga/ana-b", "description": "Ana B., an agent of a test",
            "owner_uuid": "<olga>",
            "inserted_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z",
            "feature_flags": {"ff_file_transfer": true, "ff_room_tasks": true},
            "listed_in_directory": false,
        }})
    );
}

async fn an_agent_is_registered(app: TestApp) {
    let olga = app.owner();
    let body = json!({"agent": {"name": " Weather Agent ", "description": "Knows the weather"}});
    let reply = olga.post("agents/register", body).await.assert_status(201);
    let key = reply.data()["credentials"]["api_key"].as_str().expect("a key").to_owned();
    assert!(key.starts_with("band_a_") && key.len() >= 40, "{key}");
    let agent = app.names.replace(&reply.data()["agent"]);
    assert_eq!(
        agent,
        json!({
            "id": "<id>", "name": "Weather Agent", "description": "Knows the weather", "owner_id": "<olga>",
            "inserted_at": "2026-01-01T00:00:00.000000Z",
        })
    );
    // Another owner may take the name, and so may the same one for a slug that clashes.
    let eve = app.user("eve").await;
    eve.registers("Weather Agent").await;
    let twin = olga.registers("Weather-Agent").await;
    assert_eq!(twin.handle, "olga/weather-agent-2");
    let odd = olga.registers("天気").await;
    assert_eq!(odd.handle, "olga/agent");
}

async fn registration_is_checked(app: TestApp) {
    let olga = app.owner();
    let register = async |agent: Value| olga.post("agents/register", json!({"agent": agent})).await;
    let good = "Knows the weather";
    register(json!({"name": "Ana", "description": good})).await.assert_status(201);
    for name in ["Ana", "ana", " ANA "] {
        let reply = register(json!({"name": name, "description": good})).await.assert_invalid(&["name"]);
        assert_eq!(reply.error()["details"], json!({"name": ["has already been taken"]}));
    }
    for (agent, places) in [
        (json!({}), &["/agent/name", "/agent/description"][..]),
        (json!({"name": "", "description": good}), &["/agent/name"]),
        (json!({"name": "a\nb", "description": good}), &["/agent/name"]),
        (json!({"name": "x".repeat(101), "description": good}), &["/agent/name"]),
        (json!({"name": 5, "description": null}), &["/agent/description", "/agent/name"]),
        (json!({"name": "Bob", "description": "too short"}), &["/agent/description"]),
        (json!({"name": "Bob", "description": " too short  "}), &["/agent/description"]),
        (json!({"name": "Bob", "description": "x".repeat(2001)}), &["/agent/description"]),
        (json!({"name": "Bob", "description": "a\u{0}bcdefghijkl"}), &["/agent/description"]),
        (json!({"name": "Bob", "description": good, "is_global": true}), &["/agent/is_global"]),
    ] {
        let reply = register(agent).await.assert_error(422, "validation_error");
        let mut named: Vec<&String> = reply.error()["details"].as_object().expect("details").keys().collect();
        let mut places = places.to_vec();
        named.sort();
        places.sort_unstable();
        assert_eq!(named, places, "{reply:?}");
    }
    assert_eq!(olga.get("agents").await.rows().len(), 1);
}

async fn of_many_that_register_a_name_one_wins(app: TestApp) {
    let olga = app.owner();
    let body = json!({"agent": {"name": "Ana", "description": "an agent of a test"}});
    let replies = futures_util::future::join_all((0..16).map(|_| olga.post("agents/register", body.clone()))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![422; 15]].concat());
    assert_eq!(olga.get("agents").await.strings("slug"), ["ana"]);
}

async fn a_rotated_key_takes_over(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut socket = ana.joins(&format!("agent_control:{}", ana.id)).await;
    let (_, key) = app.state().services.rotate_key(&ana.handle).await.expect("a new key");
    assert_eq!(socket.closed().await, 1001);
    ana.get("me").await.assert_error(401, "unauthorized");
    let renewed = Caller { key: key.reveal().to_owned(), ..ana.clone() };
    assert_eq!(renewed.get("me").await.assert_status(200).id(), ana.id);
    renewed.joins(&format!("agent_control:{}", ana.id)).await.close().await;
}

async fn nobody_learns_who_is_in_a_foreign_room(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let global = app.global_agent(&eve, "global").await;
    let other = app.global_agent(&olga, "other").await;
    let helper = eve.registers("helper").await;
    let room = app.room_with(&olga, &[&other]).await;
    let nowhere = "00000000-0000-4000-8000-00000000dead";
    for who in [&eve, &helper, &global] {
        let foreign = who.get(&format!("peers?not_in_chat={}", room.id)).await.assert_status(200);
        let unknown = who.get(&format!("peers?not_in_chat={nowhere}")).await.assert_status(200);
        assert_eq!(foreign.json(), unknown.json(), "{}", who.name);
    }
}

async fn agents_are_listed_filtered_and_sorted(app: TestApp) {
    let olga = app.owner();
    assert_eq!(olga.get("agents").await.assert_status(200).rows().len(), 0);
    for name in ["beta", "Alpha", "gamma one", "Delta"] {
        app.clock.advance(1);
        app.agent(name).await;
    }
    app.user("eve").await.registers("hers").await;
    let names = async |query: &str| olga.get(&format!("agents?{query}")).await.assert_status(200).strings("name");
    assert_eq!(names("").await, ["Delta", "gamma one", "Alpha", "beta"]);
    assert_eq!(names("order=asc").await, ["beta", "Alpha", "gamma one", "Delta"]);
    assert_eq!(names("sort=name&order=asc").await, ["Alpha", "beta", "Delta", "gamma one"]);
    assert_eq!(names("sort=updated_at&order=desc").await, ["Delta", "gamma one", "Alpha", "beta"]);
    assert_eq!(names("name=LPH").await, ["Alpha"]);
    assert_eq!(names("name=%25").await, [""; 0], "a wildcard is a character");
    assert_eq!(names("name=_").await, [""; 0]);
    assert_eq!(names("name=a%20o").await, ["gamma one"]);
    assert_eq!(names("is_external=true").await.len(), 4);
    assert_eq!(names("is_external=false").await.len(), 0);
    assert_eq!(names("listed_in_directory=false").await.len(), 4);
    assert_eq!(names("listed_in_directory=true").await.len(), 0);

    for sort in ["name", "inserted_at", "updated_at"] {
        for order in ["asc", "desc"] {
            let base = format!("agents?sort={sort}&order={order}&limit=3");
            let first = olga.get(&base).await.assert_status(200);
            let cursor = first.metadata()["next_cursor"].as_str().expect("a cursor").to_owned();
            let second = olga.get(&format!("{base}&cursor={cursor}")).await.assert_status(200);
            let walked = [first.strings("name"), second.strings("name")].concat();
            assert_eq!(walked, names(&format!("sort={sort}&order={order}")).await);
        }
    }
    let page = olga.get("agents?page=2&page_size=3").await.assert_status(200);
    assert_eq!(
        page.metadata(),
        &json!({
            "has_more": false, "limit": 3, "next_cursor": null,
            "page": 2, "page_size": 3, "total_count": 4, "total_pages": 2,
            "available_filters": [
                {"param": "name", "label": "Name", "type": "string"},
                {"param": "is_external", "label": "External", "type": "boolean"},
                {"param": "listed_in_directory", "label": "Listed in directory", "type": "boolean"},
            ],
            "sortable_fields": [
                {"param": "name", "label": "Name"},
                {"param": "inserted_at", "label": "Created"},
                {"param": "updated_at", "label": "Updated"},
            ],
        })
    );
    for (query, place) in [
        ("sort=age", "/sort"),
        ("order=up", "/order"),
        ("is_external=maybe", "/is_external"),
        ("listed_in_directory=1", "/listed_in_directory"),
        ("name=%00", "/name"),
    ] {
        olga.get(&format!("agents?{query}")).await.assert_invalid(&[place]);
    }
}

async fn an_agent_is_deleted_with_force_only_when_it_worked(app: TestApp) {
    let [idle, ana, bob] = app.agents(["idle", "ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);

    for who in [&idle, &ana] {
        eve.delete(&format!("agents/{}", who.id)).await.assert_error(404, "not_found");
    }
    olga.delete("agents/no-uuid").await.assert_error(404, "not_found");
    olga.delete(&format!("agents/{}?force=maybe", ana.id)).await.assert_invalid(&["/force"]);
    let gone = olga.delete(&format!("agents/{}", idle.id)).await.assert_status(200);
    assert_eq!(
        gone.named(),
        json!({"data": {"id": "<idle>", "name": "idle", "description": "idle, an agent of a test", "executions_deleted": 0}})
    );
    for who in [&ana, &bob] {
        let refused = olga.delete(&format!("agents/{}?force=false", who.id)).await.assert_status(422);
        assert_eq!(refused.error()["code"], "execution_history_exists");
        who.get("me").await.assert_status(200);
    }
    for who in [&ana, &bob] {
        let gone = olga.delete(&format!("agents/{}?force=true", who.id)).await.assert_status(200);
        assert_eq!(gone.data()["executions_deleted"], 1);
        who.get("me").await.assert_error(401, "unauthorized");
        olga.delete(&format!("agents/{}?force=true", who.id)).await.assert_error(404, "not_found");
    }
    assert_eq!(olga.get(&room.path("/participants")).await.named()["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(olga.get(&room.path("/messages")).await.strings("sender_name"), ["ana"], "what it said stays");
    assert_eq!(olga.get("agents").await.rows().len(), 0);
    assert_eq!(olga.get("peers").await.rows().len(), 0);
    // The name is free again.
    olga.registers("ana").await;
}

async fn a_revoked_key_opens_nothing_and_its_sockets_close(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let eve = app.user("eve").await;
    let mut sockets = Vec::new();
    for who in [&ana, &bob, &eve] {
        sockets.push(who.socket().await);
        who.get(if who.id == eve.id { "profile" } else { "me" }).await.assert_status(200);
    }
    app.revoke_key(&ana).await;
    app.revoke_key(&eve).await;
    ana.get("me").await.assert_error(401, "unauthorized");
    eve.get("profile").await.assert_error(401, "unauthorized");
    assert_eq!(sockets[0].closed().await, 1001);
    assert_eq!(sockets[2].closed().await, 1001);
    crate::support::Socket::refused(&app, "?vsn=2.0.0", &[("x-api-key", &ana.key)]).await.assert_status(403);
    app.owner().delete(&format!("agents/{}", bob.id)).await.assert_status(200);
    assert_eq!(sockets[1].closed().await, 1001);
}

async fn whom_an_agent_may_recruit(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    eve.registers("hers").await;
    let global = app.global_agent(&eve, "global").await;
    let room = app.room_with(&ana, &[&bob]).await;
    let _online = cy.socket().await;

    let mut seen: Vec<String> = ana.get("peers").await.assert_status(200).strings("id");
    seen.sort();
    let mut wanted = vec![olga.id.clone(), bob.id.clone(), cy.id.clone(), global.id.clone()];
    wanted.sort();
    assert_eq!(seen, wanted, "the owner, its siblings and the global ones; never itself");
    let reply = ana.get("peers?page_size=100").await.assert_status(200).named();
    let row = |name: &str| reply["data"].as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap();
    assert_eq!(
        row("olga"),
        json!({
            "id": "<olga>", "name": "olga", "type": "User", "handle": "olga", "source": "registry", "is_contact": false,
            "online": false, "description": null, "is_external": null,
        })
    );
    assert_eq!(
        row("cy"),
        json!({
            "id": "<cy>", "name": "cy", "type": "Agent", "handle": "olga/cy", "source": "registry", "is_contact": false,
            "online": true, "description": "cy, an agent of a test", "is_external": true,
        })
    );
    let others = ana.get(&format!("peers?not_in_chat={}", room.id)).await.assert_status(200);
    assert!(!others.strings("id").contains(&bob.id));
    assert_eq!(others.metadata(), &json!({"page": 1, "page_size": 20, "total_count": 3, "total_pages": 1}));
    let mut paged = Vec::new();
    for page in 1..=4 {
        let reply = ana.get(&format!("peers?page={page}&page_size=1")).await.assert_status(200);
        assert_eq!(reply.metadata(), &json!({"page": page, "page_size": 1, "total_count": 4, "total_pages": 4}));
        paged.extend(reply.strings("id"));
    }
    paged.sort();
    assert_eq!(paged, wanted);
    ana.get("peers?not_in_chat=x").await.assert_invalid(&["/not_in_chat"]);
    ana.get("peers?type=User").await.assert_invalid(&["/type"]);
}

async fn whom_a_person_may_invite(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    eve.registers("hers").await;
    let global = app.global_agent(&eve, "global").await;
    let room = app.room_with(&olga, &[&ana]).await;
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let ids = async |query: &str| sorted(olga.get(&format!("peers?{query}")).await.assert_status(200).strings("id"));
    let wanted = |callers: &[&Caller]| sorted(callers.iter().map(|who| who.id.clone()).collect());
    assert_eq!(ids("").await, wanted(&[&ana, &bob, &global]));
    assert_eq!(ids("type=Agent&page_size=100").await, wanted(&[&ana, &bob, &global]));
    assert_eq!(ids("type=User").await, wanted(&[]));
    assert_eq!(ids(&format!("not_in_chat={}", room.id)).await, wanted(&[&bob, &global]));
    olga.get("peers?type=robot").await.assert_invalid(&["/type"]);
}

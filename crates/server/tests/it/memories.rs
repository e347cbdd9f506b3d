//! What agents remember: storing, reading, searching, putting away.

use bandstand_server::settings::Limits;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, Reply, TestApp, stories};

stories!(
    a_memory_as_agents_and_people_see_it,
    every_field_is_checked,
    every_type_fits_its_systems_only,
    an_unqualified_memory_is_private,
    sharing_needs_an_organization,
    who_may_read_what,
    agents_change_only_what_they_stored,
    people_change_what_is_about_them_or_their_agents,
    names_are_shown_to_those_who_may_see_them,
    what_a_deleted_agent_leaves,
);
stories!(limits: Limits { memories: false, ..Default::default() } => turned_off_every_route_is_forbidden);

/// A body that is taken, with these fields changed; null takes a field out.
pub(crate) fn body(changes: &Value) -> Value {
    let mut memory = json!({
        "content": "Ana likes tea", "system": "long_term", "type": "semantic", "segment": "user", "thought": "she said so",
    });
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => memory.as_object_mut().unwrap().remove(name),
            value => memory.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    json!({"memory": memory})
}

impl Caller {
    /// Stores a memory that must be taken; its id.
    pub(crate) async fn remembers(&self, changes: Value) -> String {
        let id = self.post("memories", body(&changes)).await.assert_status(201).id();
        self.app.names.give(&id, changes["content"].as_str().unwrap_or("memory"));
        id
    }

    /// The contents of a list of memories.
    pub(crate) async fn recalls(&self, query: &str) -> Vec<String> {
        self.get(&format!("memories{query}")).await.assert_status(200).strings("content")
    }

    async fn alters(&self, id: &str, change: &str) -> Reply {
        self.post_nothing(&format!("memories/{id}/{change}")).await
    }
}

impl TestApp {
    /// An organization of these users, as the command line makes it.
    pub(crate) async fn organization(&self, name: &str, members: &[&Caller]) -> String {
        let services = &self.state().services;
        let organization = services.add_organization(name).await.expect("an organization is made");
        for member in members {
            services.add_organization_member(name, &member.handle).await.expect("a user is put into it");
        }
        let id = organization.id.to_string();
        self.names.give(&id, name);
        id
    }
}

async fn a_memory_as_agents_and_people_see_it(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let metadata = json!({"tags": ["drinks"], "references": ["x"], "weight": 1.5, "nested": {"null": null}});
    let made = ana.post("memories", body(&json!({"metadata": metadata, "subject_id": olga.id}))).await;
    let made = made.assert_status(201);
    app.names.give(&made.id(), "tea");
    let row = json!({
        "id": "<tea>", "content": "Ana likes tea", "thought": "she said so", "system": "long_term", "type": "semantic",
        "segment": "user", "scope": "subject", "status": "active", "metadata": metadata, "subject_id": "<olga>",
        "source_agent_id": "<ana>", "organization_id": null,
        "inserted_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z",
    });
    assert_eq!(made.named()["data"], row);
    let path = format!("memories/{}", made.id());
    assert_eq!(ana.get(&path).await.assert_status(200).named()["data"], row);
    let list = ana.get("memories").await.assert_status(200);
    let metadata = json!({
        "has_more": false, "limit": 20, "next_cursor": null,
        "page": 1, "page_size": 20, "total_count": 1, "total_pages": 1,
    });
    assert_eq!(list.named(), json!({"data": [row], "metadata": metadata, "meta": metadata}));

    let mut seen = row.as_object().unwrap().clone();
    for (name, value) in [
        ("chat_room_id", Value::Null),
        ("chat_room_title", Value::Null),
        ("chat_room_status", Value::Null),
        ("chat_room_type", Value::Null),
        ("source_agent_name", json!("ana")),
        ("subject_name", json!("olga")),
        ("subject_type", json!("user")),
    ] {
        seen.insert(name.into(), value);
    }
    assert_eq!(olga.get(&path).await.assert_status(200).named()["data"], Value::Object(seen.clone()));
    let list = olga.get("memories").await.assert_status(200);
    assert_eq!(list.named(), json!({"data": [seen], "metadata": metadata, "meta": metadata}));

    for (absent, status) in [("memories/nothing", 404), ("memories/00000000-0000-4000-8000-00000000dead", 404)] {
        for who in [&olga, &ana] {
            who.get(absent).await.assert_error(status, "not_found");
        }
    }
}

async fn every_field_is_checked(app: TestApp) {
    let ana = app.agent("ana").await;
    for (body, places) in [
        (json!({}), &["/memory"][..]),
        (json!([]), &["/"]),
        (
            json!({"memory": {}, "more": 1}),
            &["/more", "/memory/content", "/memory/thought", "/memory/system", "/memory/type", "/memory/segment"],
        ),
        (body(&json!({"content": " \n", "loud": true})), &["/memory/loud", "/memory/content"]),
        (body(&json!({"content": 5, "thought": []})), &["/memory/content", "/memory/thought"]),
        (body(&json!({"content": "a\u{0}b", "thought": "\u{0}"})), &["/memory/content", "/memory/thought"]),
        (body(&json!({"content": "x".repeat(65_537)})), &["/memory/content"]),
        (body(&json!({"thought": "x".repeat(16_385)})), &["/memory/thought"]),
        (
            body(&json!({"system": "short", "type": "x", "segment": ""})),
            &["/memory/system", "/memory/type", "/memory/segment"],
        ),
        (body(&json!({"scope": "world"})), &["/memory/scope"]),
        (body(&json!({"scope": "subject"})), &["/memory/subject_id"]),
        (body(&json!({"subject_id": "me"})), &["/memory/subject_id"]),
        (body(&json!({"metadata": []})), &["/memory/metadata"]),
        (
            body(&json!({"metadata": {"tags": "x", "references": ["a", 1]}})),
            &["/memory/metadata/tags", "/memory/metadata/references/1"],
        ),
        (body(&json!({"metadata": {"x": "y".repeat(65_536)}})), &["/memory/metadata"]),
    ] {
        ana.post("memories", body).await.assert_invalid(places);
    }
    assert_eq!(ana.recalls("?status=all").await, Vec::<String>::new(), "bad input changes nothing");

    for (query, places) in [
        (
            "?system=x&type=x&segment=x&scope=x&status=x&memory_scope=x",
            &["/system", "/type", "/segment", "/status", "/scope", "/memory_scope"][..],
        ),
        ("?subject_id=x&page=0", &["/subject_id", "/page"]),
        ("?chat_room_id=x", &["/chat_room_id"]),
        ("?limit=0", &["/limit"]),
        ("?cursor=nonsense", &["/cursor"]),
    ] {
        ana.get(&format!("memories{query}")).await.assert_invalid(places);
    }
    for (query, places) in [
        ("?scope=agent&source_agent_id=x&chat_room_id=x", &["/source_agent_id", "/scope", "/chat_room_id"][..]),
        ("?memory_scope=me&subject_id=x", &["/memory_scope", "/subject_id"]),
    ] {
        app.owner().get(&format!("memories{query}")).await.assert_invalid(places);
    }
    let long = "x".repeat(1001);
    ana.get(&format!("memories?content_query={long}")).await.assert_invalid(&["/content_query"]);
    // The limits themselves are within.
    let most = json!({"content": "ü".repeat(32_768), "thought": "x".repeat(16_384)});
    ana.post("memories", body(&most)).await.assert_status(201);
    ana.post("memories", body(&json!({"thought": "", "scope": Value::Null}))).await.assert_status(201);
}

async fn every_type_fits_its_systems_only(app: TestApp) {
    let ana = app.agent("ana").await;
    let sensory = ["iconic", "echoic", "haptic"];
    for system in ["sensory", "working", "long_term"] {
        for kind in ["iconic", "echoic", "haptic", "episodic", "semantic", "procedural"] {
            let reply = ana.post("memories", body(&json!({"system": system, "type": kind}))).await;
            if sensory.contains(&kind) == (system == "sensory") {
                reply.assert_status(201);
            } else {
                let error = reply.assert_invalid(&["/memory/type"]);
                let text = error.error()["details"]["/memory/type"][0].as_str().unwrap().to_owned();
                assert!(text.contains(&format!("{kind} is not valid for system {system}")), "{text}");
            }
        }
    }
    for (query, count) in [
        ("?system=sensory", 3),
        ("?system=working&type=episodic", 1),
        ("?type=semantic", 2),
        ("?system=sensory&type=semantic", 0),
        ("?segment=user", 9),
        ("?segment=tool", 0),
    ] {
        assert_eq!(ana.recalls(query).await.len(), count, "{query}");
    }
}

async fn an_unqualified_memory_is_private(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    for (changes, scope) in [
        (json!({}), "agent"),
        (json!({"subject_id": olga.id}), "subject"),
        (json!({"subject_id": olga.id, "scope": "agent"}), "agent"),
        // Whom an id names, if anybody, is not told: a stranger's is taken like one that nobody has.
        (json!({"subject_id": "00000000-0000-4000-8000-00000000dead"}), "subject"),
    ] {
        let made = ana.post("memories", body(&changes)).await.assert_status(201);
        assert_eq!((&made.data()["scope"], &made.data()["subject_id"]), (&json!(scope), &changes["subject_id"]));
        assert_eq!(made.data()["organization_id"], Value::Null);
    }
}

async fn sharing_needs_an_organization(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let refused = |reply: Reply| {
        let reply = reply.assert_error(422, "org_scope_requires_organization");
        assert!(reply.error()["details"]["organization_id"].is_array(), "{reply:?}");
    };
    refused(ana.post("memories", body(&json!({"scope": "organization"}))).await);
    for query in
        ["?scope=organization", "?memory_scope=org", "?memory_scope=org&scope=agent", "?memory_scope=org&scope=all"]
    {
        refused(ana.get(&format!("memories{query}")).await);
    }
    let about = format!("?memory_scope=org&scope=subject&subject_id={}", olga.id);
    refused(ana.get(&format!("memories{about}")).await);
    assert_eq!(ana.recalls("?scope=all").await, Vec::<String>::new());
    assert_eq!(olga.recalls("?scope=organization").await, Vec::<String>::new());

    app.organization("acme", &[&olga]).await;
    let made = ana.post("memories", body(&json!({"scope": "organization"}))).await.assert_status(201);
    assert_eq!(made.named()["data"]["organization_id"], "<acme>");
    let made = ana.post("memories", body(&json!({"subject_id": olga.id}))).await.assert_status(201);
    assert_eq!(made.named()["data"]["organization_id"], "<acme>");
    let made = ana.post("memories", body(&json!({}))).await.assert_status(201);
    assert_eq!(made.data()["organization_id"], Value::Null);
}

async fn who_may_read_what(app: TestApp) {
    let (olga, eve, zoe) = (app.owner(), app.user("eve").await, app.user("zoe").await);
    app.organization("acme", &[&olga, &eve]).await;
    app.organization("other", &[&zoe]).await;
    let (ana, bob) = (app.agent("ana").await, eve.registers("bob").await);
    let (cy, nil) = (zoe.registers("cy").await, app.user("nil").await.registers("nil").await);
    let private = ana.remembers(json!({"subject_id": bob.id, "scope": "agent"})).await;
    let subject = ana.remembers(json!({"subject_id": zoe.id})).await;
    let shared = ana.remembers(json!({"scope": "organization"})).await;
    let status = async |who: &Caller, id: &str| who.get(&format!("memories/{id}")).await.status;
    for (who, seen) in [
        (&ana, [200, 200, 200]),
        (&bob, [404, 200, 200]),
        (&cy, [404, 404, 404]),
        (&nil, [404, 404, 404]),
        (&olga, [200, 404, 200]),
        (&eve, [404, 404, 200]),
        (&zoe, [404, 200, 404]),
    ] {
        let found = [status(who, &private).await, status(who, &subject).await, status(who, &shared).await];
        assert_eq!(found, seen, "{}", who.name);
    }
    // Whoever leaves an organization no longer reads what it shares, and neither do its agents.
    app.state().services.remove_organization_member("acme", "eve").await.expect("eve leaves");
    assert_eq!([status(&bob, &subject).await, status(&bob, &shared).await, status(&eve, &shared).await], [404; 3]);
    bob.get("memories?memory_scope=org").await.assert_error(422, "org_scope_requires_organization");
    // What an agent stored stays its own.
    app.state().services.remove_organization_member("acme", "olga").await.expect("olga leaves");
    assert_eq!([status(&ana, &private).await, status(&ana, &subject).await, status(&ana, &shared).await], [200; 3]);
    assert_eq!(status(&olga, &shared).await, 404);
}

async fn agents_change_only_what_they_stored(app: TestApp) {
    let olga = app.owner();
    app.organization("acme", &[&olga]).await;
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let private = ana.remembers(json!({"content": "private"})).await;
    let shared = ana.remembers(json!({"content": "shared", "scope": "organization"})).await;
    for change in ["supersede", "archive"] {
        bob.alters(&private, change).await.assert_error(404, "not_found");
        bob.alters(&shared, change).await.assert_error(403, "forbidden");
        bob.alters("nothing", change).await.assert_error(404, "not_found");
    }
    ana.alters(&private, "restore").await.assert_error(404, "not_found");
    ana.delete(&format!("memories/{private}")).await.assert_error(405, "method_not_allowed");
    assert_eq!(ana.recalls("").await, ["shared", "private"], "nothing has changed");

    app.clock.advance(60);
    let archived = ana.alters(&private, "archive").await.assert_status(200);
    assert_eq!(archived.data()["status"], "archived");
    assert_eq!(archived.data()["updated_at"], "2026-01-01T00:01:00.000000Z");
    assert_eq!(archived.data()["inserted_at"], "2026-01-01T00:00:00.000000Z");
    app.clock.advance(60);
    let again = ana.alters(&private, "archive").await.assert_status(200);
    assert_eq!(again.data(), archived.data(), "the same again changes nothing");
    let superseded = ana.alters(&shared, "supersede").await.assert_status(200);
    assert_eq!(superseded.data()["status"], "superseded");
    for (query, found) in [
        ("", &[][..]),
        ("?status=active", &[]),
        ("?status=archived", &["private"]),
        ("?status=superseded", &["shared"]),
        ("?status=all", &["shared", "private"]),
        ("?status=all&memory_scope=org", &["shared"]),
    ] {
        assert_eq!(ana.recalls(query).await, found, "{query}");
    }
    assert_eq!(olga.recalls("?status=superseded").await, ["shared"]);
    // One that is put away can still be read by its id, and be superseded.
    ana.get(&format!("memories/{private}")).await.assert_status(200);
    assert_eq!(ana.alters(&private, "supersede").await.assert_status(200).data()["status"], "superseded");
}

async fn people_change_what_is_about_them_or_their_agents(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    app.organization("acme", &[&olga, &eve]).await;
    let (ana, bob) = (app.agent("ana").await, eve.registers("bob").await);
    let private = ana.remembers(json!({"content": "private"})).await;
    let about = bob.remembers(json!({"content": "about olga", "subject_id": olga.id})).await;
    let shared = ana.remembers(json!({"content": "shared", "scope": "organization"})).await;
    let foreign = bob.remembers(json!({"content": "foreign"})).await;
    for change in ["supersede", "archive", "restore"] {
        olga.alters(&shared, change).await.assert_error(403, "forbidden");
        olga.alters(&foreign, change).await.assert_error(404, "not_found");
        eve.alters(&about, change).await.assert_error(404, "not_found");
        eve.alters(&private, change).await.assert_error(404, "not_found");
    }
    for (who, id, status) in [(&olga, &shared, 403), (&olga, &foreign, 404), (&eve, &private, 404)] {
        assert_eq!(who.delete(&format!("memories/{id}")).await.status, status);
    }
    for id in [&private, &about] {
        olga.alters(id, "restore").await.assert_invalid(&["status"]);
        assert_eq!(olga.alters(id, "supersede").await.assert_status(200).data()["status"], "superseded");
        olga.alters(id, "restore").await.assert_invalid(&["status"]);
        assert_eq!(olga.alters(id, "archive").await.assert_status(200).data()["status"], "archived");
        app.clock.advance(1);
        let restored = olga.alters(id, "restore").await.assert_status(200);
        assert_eq!(restored.data()["status"], "active");
        assert_ne!(restored.data()["updated_at"], restored.data()["inserted_at"]);
        olga.alters(id, "restore").await.assert_invalid(&["status"]);
        let deleted = olga.delete(&format!("memories/{id}")).await.assert_status(204);
        assert!(deleted.body.is_none());
        olga.delete(&format!("memories/{id}")).await.assert_error(404, "not_found");
        olga.get(&format!("memories/{id}")).await.assert_error(404, "not_found");
    }
    assert_eq!(ana.recalls("?status=all").await, ["shared"]);
    assert_eq!(bob.recalls("?status=all").await, ["foreign"]);
    assert_eq!(ana.recalls("?status=all&content_query=private").await, Vec::<String>::new(), "nor is it found");
}

async fn names_are_shown_to_those_who_may_see_them(app: TestApp) {
    let (olga, zoe) = (app.owner(), app.user("zoe").await);
    let (ana, cy) = (app.agent("ana").await, zoe.registers("cy").await);
    let global = app.global_agent(&zoe, "global").await;
    let gone = app.agent("gone").await;
    let nobody = "00000000-0000-4000-8000-00000000dead";
    let seen = async |subject: &str| {
        let id = ana.remembers(json!({"scope": "agent", "subject_id": subject})).await;
        let row = olga.get(&format!("memories/{id}")).await.assert_status(200);
        assert_eq!(row.data()["subject_id"], subject);
        (row.data()["subject_name"].clone(), row.data()["subject_type"].clone())
    };
    let hidden = (Value::Null, Value::Null);
    assert_eq!(seen(&olga.id).await, (json!("olga"), json!("user")));
    assert_eq!(seen(&ana.id).await, (json!("ana"), json!("agent")));
    assert_eq!(seen(&global.id).await, (json!("global"), json!("agent")));
    assert_eq!(seen(nobody).await, hidden);
    assert_eq!(seen(&zoe.id).await, hidden);
    assert_eq!(seen(&cy.id).await, hidden);
    assert_eq!(seen(&gone.id).await, (json!("gone"), json!("agent")));
    olga.delete(&format!("agents/{}", gone.id)).await.assert_status(200);
    assert_eq!(seen(&gone.id).await, hidden);
    // Who is in a room with the user is seen.
    let room = app.room_with(&zoe, &[&cy]).await;
    assert_eq!(seen(&cy.id).await, hidden);
    app.organization("acme", &[&olga, &zoe]).await;
    assert_eq!(seen(&zoe.id).await, (json!("zoe"), json!("user")));
    assert_eq!(seen(&cy.id).await, hidden);
    zoe.adds(&room, &olga).await.assert_status(201);
    assert_eq!(seen(&cy.id).await, (json!("cy"), json!("agent")));
    let named = olga.get(&format!("memories?source_agent_id={}", ana.id)).await.assert_status(200);
    assert!(named.strings("source_agent_name").iter().all(|name| name == "ana"));
    let subjects = named.strings("subject_name");
    assert_eq!(subjects.iter().filter(|name| *name == "cy").count(), 4, "as it is seen now: {subjects:?}");
}

async fn what_a_deleted_agent_leaves(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    app.organization("acme", &[&olga, &eve]).await;
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let private = ana.remembers(json!({"content": "private"})).await;
    let about = ana.remembers(json!({"content": "about eve", "subject_id": eve.id})).await;
    ana.remembers(json!({"content": "about olga", "subject_id": olga.id})).await;
    let shared = ana.remembers(json!({"content": "shared", "scope": "organization"})).await;
    olga.delete(&format!("agents/{}", ana.id)).await.assert_status(200);

    olga.get(&format!("memories/{private}")).await.assert_error(404, "not_found");
    assert_eq!(olga.recalls("").await, ["shared", "about olga"]);
    assert_eq!(app.database.query("SELECT content FROM memories WHERE scope = 'agent'"), Vec::<Vec<String>>::new());
    let orphan = olga.get(&format!("memories/{shared}")).await.assert_status(200);
    assert_eq!(orphan.data()["source_agent_id"], Value::Null);
    assert_eq!(orphan.data()["source_agent_name"], Value::Null);
    assert_eq!(orphan.named()["data"]["organization_id"], "<acme>");
    assert_eq!(olga.recalls(&format!("?source_agent_id={}", ana.id)).await, Vec::<String>::new());
    assert_eq!(bob.recalls("?memory_scope=org").await, ["shared"]);
    let seen = bob.get(&format!("memories/{about}")).await.assert_status(200);
    assert_eq!(seen.data()["source_agent_id"], Value::Null);
    bob.alters(&shared, "archive").await.assert_error(403, "forbidden");
    assert_eq!(eve.recalls("").await, ["shared", "about eve"]);
    eve.alters(&about, "archive").await.assert_status(200);
}

async fn turned_off_every_route_is_forbidden(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let id = "00000000-0000-4000-8000-00000000dead";
    let agent = [
        (Method::GET, "memories".to_owned()),
        (Method::POST, "memories".to_owned()),
        (Method::GET, format!("memories/{id}")),
        (Method::POST, format!("memories/{id}/supersede")),
        (Method::POST, format!("memories/{id}/archive")),
    ];
    let user = [
        (Method::GET, "memories".to_owned()),
        (Method::GET, format!("memories/{id}")),
        (Method::DELETE, format!("memories/{id}")),
        (Method::POST, format!("memories/{id}/supersede")),
        (Method::POST, format!("memories/{id}/archive")),
        (Method::POST, format!("memories/{id}/restore")),
    ];
    for (who, routes) in [(&ana, &agent[..]), (&olga, &user)] {
        for (method, path) in routes {
            let body = (*method == Method::POST).then(|| body(&json!({})).to_string().into_bytes());
            let reply = who.send(method.clone(), path, Some("application/json"), body).await;
            let reply = reply.assert_error(403, "forbidden");
            assert_eq!(reply.error()["message"], "memories are turned off on this server");
        }
    }
    let nobody = app.nobody();
    nobody.get("/api/v1/agent/memories").await.assert_error(401, "unauthorized");
    nobody.get("/api/v1/me/memories").await.assert_error(401, "unauthorized");
    let wrong = olga.get("/api/v1/agent/memories").await.assert_error(403, "forbidden");
    assert_eq!(wrong.error()["message"], "agent authentication required");
}

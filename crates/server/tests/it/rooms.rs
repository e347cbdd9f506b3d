//! Rooms: made, named, listed, archived and deleted.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(
    a_room_is_created_from_next_to_nothing,
    a_title_is_trimmed_and_checked,
    only_an_owner_renames,
    agents_list_their_rooms_oldest_first,
    people_list_their_rooms,
    what_a_list_of_rooms_can_include,
    a_list_of_rooms_is_walked_in_any_order,
    lists_of_rooms_are_checked,
    a_room_is_seen_through_an_agent,
    who_may_delete_a_room,
    counts_of_messages_by_type,
);

async fn a_room_is_created_from_next_to_nothing(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    for who in [&olga, &ana] {
        for body in [
            Some(json!({})),
            Some(json!({"chat": {}})),
            Some(json!({"chat": null})),
            Some(json!({"chat": {"title": null, "task_id": null}})),
            Some(json!({"chat": {"title": "  "}})),
        ] {
            let body = body.map(|body| body.to_string().into_bytes());
            let reply = who.send(Method::POST, "chats", Some("application/json"), body).await.assert_status(201);
            assert_eq!((&reply.data()["title"], &reply.data()["task_id"]), (&Value::Null, &Value::Null));
        }
        // n8n sends the media type and no body; others send neither.
        who.send(Method::POST, "chats", Some("application/json"), Some(Vec::new())).await.assert_status(201);
        who.post_nothing("chats").await.assert_status(201);
    }
    let created = olga.post("chats", json!({"chat": {"title": "Plans", "task_id": olga.id}})).await.assert_status(201);
    assert_eq!(
        created.named(),
        json!({"data": {
            "id": "<id>", "title": "Plans", "task_id": "<olga>", "status": "active", "type": "task", "last_message_at": null,
            "inserted_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z",
            "description": null, "agents": [], "work_status": "idle",
            "task_counts": {"pending": 0, "in_progress": 0, "blocked": 0, "in_review": 0, "failed": 0, "completed": 0},
        }})
    );
    let created = ana.post("chats", json!({"chat": {"title": "Plans"}})).await.assert_status(201);
    assert_eq!(
        created.named(),
        json!({"data": {
            "id": "<id>", "title": "Plans", "task_id": null,
            "inserted_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z",
        }})
    );
    let roster = ana.get(&format!("chats/{}/participants", created.id())).await.named();
    assert_eq!((&roster["data"][0]["id"], &roster["data"][0]["role"]), (&json!("<ana>"), &json!("owner")));
}

async fn a_title_is_trimmed_and_checked(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    for who in [&olga, &ana] {
        let create = async |chat: Value| who.post("chats", json!({"chat": chat})).await;
        let longest = "ü".repeat(120);
        let reply = create(json!({"title": format!(" {longest} ")})).await.assert_status(201);
        assert_eq!(reply.data()["title"], longest);
        let room = Room { id: reply.id() };
        for title in [json!("x".repeat(121)), json!("a\nb"), json!("a\rb"), json!("a\u{0}b"), json!(5)] {
            create(json!({"title": title})).await.assert_invalid(&["/chat/title"]);
            who.patch(&room.path(""), json!({"chat": {"title": title}})).await.assert_invalid(&["/chat/title"]);
        }
        for title in [json!(""), json!("  "), Value::Null] {
            who.patch(&room.path(""), json!({"chat": {"title": title}})).await.assert_invalid(&["/chat/title"]);
        }
        create(json!({"task_id": "x"})).await.assert_invalid(&["/chat/task_id"]);
        create(json!({"name": "x"})).await.assert_invalid(&["/chat/name"]);
        who.post("chats", json!({"room": {}})).await.assert_invalid(&["/room"]);
        who.post("chats", json!([])).await.assert_invalid(&["/"]);
        who.post("chats", json!({"chat": []})).await.assert_invalid(&["/chat"]);
        who.patch(&room.path(""), json!({})).await.assert_invalid(&["/chat"]);
        who.patch(&room.path(""), json!({"chat": {"title": "x", "task_id": null}}))
            .await
            .assert_invalid(&["/chat/task_id"]);
        assert_eq!(who.get(&room.path("")).await.data()["title"], longest);
    }
}

async fn only_an_owner_renames(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&olga]).await;
    ana.adds_as(&room, &bob, "admin").await.assert_status(201);
    let rename = async |who: &Caller, title: &str| who.patch(&room.path(""), json!({"chat": {"title": title}})).await;
    app.clock.advance(1);
    let renamed = rename(&ana, " Plans ").await.assert_status(200);
    assert_eq!(renamed.data()["title"], "Plans");
    assert_eq!(renamed.data()["updated_at"], "2026-01-01T00:00:01.000000Z");
    app.clock.advance(1);
    let same = rename(&ana, "Plans").await.assert_status(200);
    assert_eq!(same.data(), renamed.data(), "the same title changes nothing");
    for other in [&bob, &olga] {
        rename(other, "Mine").await.assert_error(403, "forbidden");
    }
    rename(&cy, "Mine").await.assert_error(404, "not_found");
    assert_eq!(ana.get(&room.path("")).await.data(), renamed.data());
    ana.adds_as(&room, &cy, "owner").await.assert_status(201);
    rename(&cy, "Ours").await.assert_status(200);
}

async fn agents_list_their_rooms_oldest_first(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let mut rooms = Vec::new();
    for _ in 0..5 {
        // The order is that of creation even at the same moment.
        rooms.push(app.room_with(&ana, &[&bob]).await);
    }
    let ids: Vec<String> = rooms.iter().map(|room| room.id.clone()).collect();
    let all = ana.get("chats").await.assert_status(200);
    assert_eq!(all.strings("id"), ids);
    assert_eq!(all.metadata(), &json!({"page": 1, "page_size": 20, "total_count": 5, "total_pages": 1}));
    let page = ana.get("chats?page=2&page_size=2").await.assert_status(200);
    assert_eq!(page.strings("id"), ids[2..4]);
    assert_eq!(page.metadata(), &json!({"page": 2, "page_size": 2, "total_count": 5, "total_pages": 3}));
    assert_eq!(ana.get("chats?page=9").await.assert_status(200).rows().len(), 0);

    ana.removes(&rooms[1], &bob).await.assert_status(200);
    let left = bob.get("chats?page=1&page_size=100").await.assert_status(200);
    assert_eq!(left.strings("id"), [&ids[..1], &ids[2..]].concat(), "a room that it left is gone");
    assert_eq!(left.metadata()["total_count"], 4);

    assert_eq!(all.rows()[0].get("participants"), None, "omitted, not null");
    for query in ["include=participants", "include[]=participants", "include=participants,participants"] {
        let reply = bob.get(&format!("chats?{query}&page_size=1")).await.assert_status(200);
        let row = &app.names.replace(&reply.rows()[0]);
        assert_eq!((&row["participant_count"], &row["participants_truncated"]), (&json!(2), &json!(false)));
        let ids: Vec<&Value> = row["participants"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, [&json!("<ana>"), &json!("<bob>")]);
    }
    bob.get("chats?include=participants,secrets").await.assert_invalid(&["/include/1"]);
}

async fn people_list_their_rooms(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let mut ids = Vec::new();
    for _ in 0..3 {
        app.clock.advance(1);
        ids.push(olga.creates_room().await.id);
    }
    let agents_only = app.room_with(&ana, &[]).await;
    let all = olga.get("chats").await.assert_status(200);
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(all.strings("id"), newest_first);
    assert_eq!(all.metadata(), &json!({"has_more": false, "limit": 20, "next_cursor": null}));
    let by_page = olga.get("chats?page=1&page_size=2").await.assert_status(200);
    assert_eq!(
        by_page.metadata(),
        &json!({
            "has_more": true, "limit": 2, "next_cursor": by_page.metadata()["next_cursor"],
            "page": 1, "page_size": 2, "total_count": 3, "total_pages": 2,
        })
    );
    assert_eq!(olga.get("chats?order=asc").await.strings("id"), ids);
    app.clock.advance(1);
    let title = json!({"chat": {"title": "Renamed"}});
    olga.patch(&format!("chats/{}", ids[0]), title).await.assert_status(200);
    assert_eq!(olga.get("chats?sort_by=updated_at&limit=1").await.strings("id"), ids[..1]);
    let with_agents = olga.get("chats?include=agent_rooms").await.assert_status(200).strings("id");
    assert_eq!(with_agents.len(), 4);
    assert!(with_agents.contains(&agents_only.id));
}

async fn what_a_list_of_rooms_can_include(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let own = app.room_with(&olga, &[&ana]).await;
    olga.says(&own, "hello", &[&ana]).await;
    let via = app.room_with(&ana, &[&bob]).await;
    app.names.give(&via.id, "via");

    let all = "chats?include=agent_rooms,participants,last_message,membership,total_count&order=asc";
    let reply = olga.get(all).await.assert_status(200);
    assert_eq!(reply.metadata()["total_count"], 2);
    let rows: Vec<Value> = reply.rows().iter().map(|row| app.names.replace(row)).collect();
    let membership = |row: &Value| {
        json!([row["membership"], row["my_role"], row["my_status"], row["via_agent_ids"], row["participant_count"]])
    };
    assert_eq!(membership(&rows[0]), json!(["participant", "owner", "active", ["<ana>"], 2]));
    assert_eq!(membership(&rows[1]), json!(["via_agent", null, null, ["<ana>", "<bob>"], 2]));
    assert_eq!(rows[0]["last_message"]["content"], "@[[<ana>]] hello");
    assert_eq!(rows[1]["last_message"], Value::Null);
    assert_eq!(rows[0]["participants"][1]["connection_status"], "disconnected");
    assert_eq!(rows[0]["last_message_at"], "2026-01-01T00:00:00.000000Z");

    let bare = olga.get("chats?include=agent_rooms").await.assert_status(200);
    for key in ["participants", "participant_count", "participants_truncated", "last_message", "membership", "my_role"]
    {
        assert_eq!(bare.rows()[0].get(key), None, "{key}");
    }
    for query in
        ["include=membership&include=total_count&limit=1", "include[]=membership&include[]=total_count&limit=1"]
    {
        let first = olga.get(&format!("chats?{query}")).await.assert_status(200);
        assert_eq!(first.metadata()["total_count"], 1);
    }
    // Only the first page by cursor counts.
    let first = olga.get("chats?include=agent_rooms,total_count&limit=1").await.assert_status(200);
    let cursor = first.metadata()["next_cursor"].as_str().expect("a cursor").to_owned();
    let second =
        olga.get(&format!("chats?include=agent_rooms,total_count&limit=1&cursor={cursor}")).await.assert_status(200);
    assert_eq!(second.metadata().get("total_count"), None);
    assert_eq!(eve.get(all).await.assert_status(200).rows().len(), 0);
}

async fn a_list_of_rooms_is_walked_in_any_order(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let mut ids = Vec::new();
    for number in 0..7 {
        // Three at each moment: ties must not lose or repeat a row.
        app.clock.advance(i64::from(number % 3 == 0));
        let owner = if number % 2 == 0 { &olga } else { &ana };
        ids.push(owner.creates_room().await.id);
    }
    for order in ["asc", "desc"] {
        for sort in ["inserted_at", "updated_at"] {
            for limit in [1, 2, 3, 7] {
                let base = format!("chats?include=agent_rooms&sort_by={sort}&order={order}&limit={limit}");
                let (mut found, mut path) = (Vec::new(), base.clone());
                loop {
                    let reply = olga.get(&path).await.assert_status(200);
                    found.extend(reply.strings("id"));
                    match reply.metadata()["next_cursor"].as_str() {
                        Some(cursor) => path = format!("{base}&cursor={cursor}"),
                        None => break,
                    }
                }
                let wanted: Vec<String> =
                    if order == "asc" { ids.clone() } else { ids.iter().rev().cloned().collect() };
                assert_eq!(found, wanted, "{base}");
            }
        }
    }
}

async fn lists_of_rooms_are_checked(app: TestApp) {
    let olga = app.owner();
    for _ in 0..2 {
        olga.creates_room().await;
    }
    for (query, places) in [
        ("status=open", &["/status"][..]),
        ("type=party", &["/type"]),
        ("sort_by=title", &["/sort_by"]),
        ("order=down", &["/order"]),
        ("include=participants,nope,last_message,never", &["/include/1", "/include/3"]),
        ("include=nope&include=never", &["/include/0", "/include/1"]),
        ("limit=0&order=x&what=1", &["/what", "/order", "/limit"]),
    ] {
        olga.get(&format!("chats?{query}")).await.assert_invalid(places);
    }
    let cursor = olga.get("chats?limit=1").await.metadata()["next_cursor"].as_str().expect("a cursor").to_owned();
    for other in ["include=agent_rooms", "order=asc", "sort_by=updated_at", "status=active", "type=direct"] {
        olga.get(&format!("chats?{other}&cursor={cursor}")).await.assert_error(422, "cursor_filter_mismatch");
    }
    // Another page length is the same list.
    olga.get(&format!("chats?limit=50&cursor={cursor}")).await.assert_status(200);
    olga.get("chats?cursor=nonsense").await.assert_invalid(&["/cursor"]);
}

async fn a_room_is_seen_through_an_agent(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let room = app.room_with(&ana, &[&bob]).await;
    ana.says(&room, "hi", &[&bob]).await;
    olga.get(&room.path("")).await.assert_status(200);
    assert_eq!(olga.get(&room.path("/messages")).await.assert_status(200).rows().len(), 1);
    assert_eq!(olga.get(&room.path("/participants")).await.assert_status(200).rows().len(), 2);
    eve.get(&room.path("")).await.assert_error(404, "not_found");
    ana.removes(&room, &bob).await.assert_status(200);
    olga.get(&room.path("")).await.assert_status(200);
    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    olga.get(&room.path("")).await.assert_error(404, "not_found");
    olga.get(&room.path("/messages")).await.assert_error(404, "not_found");
    assert_eq!(olga.get("chats?include=agent_rooms").await.rows().len(), 0);
}

async fn who_may_delete_a_room(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let global = app.global_agent(&eve, "global").await;
    let of_people = app.room_with(&olga, &[&ana]).await;
    let of_agents = app.room_with(&ana, &[&bob, &global]).await;
    let of_eve = app.room_with(&eve, &[&global]).await;
    eve.delete(&of_people.path("")).await.assert_error(404, "not_found");
    eve.delete(&of_agents.path("")).await.assert_error(403, "forbidden");
    olga.delete(&of_eve.path("")).await.assert_error(404, "not_found");
    olga.delete(&of_people.path("")).await.assert_status(200);
    olga.delete(&of_agents.path("")).await.assert_status(200);
    eve.delete(&of_eve.path("")).await.assert_status(200);
    for (who, room) in [(&olga, &of_people), (&ana, &of_people), (&bob, &of_agents), (&eve, &of_eve)] {
        who.get(&room.path("")).await.assert_error(404, "not_found");
        assert_eq!(who.get("chats").await.rows().len(), 0);
    }
    // The agents' own API has no such request.
    let reply = ana.delete(&of_agents.path("")).await;
    assert_eq!(reply.status, 405, "{reply:?}");
}

async fn counts_of_messages_by_type(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let room = app.room_with(&olga, &[&ana]).await;
    olga.says(&room, "hi", &[&ana]).await;
    ana.says(&room, "hi", &[&olga]).await;
    ana.records(&room, "thought", "x").await;
    let plain = olga.get(&room.path("")).await.assert_status(200);
    assert_eq!(plain.data().get("message_counts"), None);
    let counted = olga.get(&room.path("?include=message_counts")).await.assert_status(200);
    assert_eq!(counted.data()["message_counts"], json!({"text": 2, "thought": 1}));
    olga.get(&room.path("?include=money")).await.assert_invalid(&["/include/0"]);
}

//! An agent's work in its rooms, as its owner sees it.

use serde_json::{Value, json};

use crate::control::{room_of_three, stops};
use crate::support::{TestApp, stories};

stories!(executions_are_one_for_each_room, executions_are_paged, executions_are_for_the_agents_owner,);

async fn executions_are_one_for_each_room(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    app.clock.advance(5);
    let own = app.room_with(&bob, &[&ana]).await;
    let list = format!("agents/{}/executions", bob.id);
    let rows = olga.get(&list).await.assert_status(200);
    assert_eq!(rows.strings("chat_room_id"), [own.id.clone(), room.id.clone()], "the newest rooms first");
    app.clock.advance(5);
    stops(&olga, &room).await;
    bob.post(&own.path("/activity"), json!({"working": true})).await.assert_status(200);
    let reply = olga.get(&list).await.assert_status(200);
    let execution = |status: &str, seconds: u32, stop: [Value; 2]| {
        json!({
            "id": "<id>", "agent_id": "<bob>", "chat_room_id": "<room>", "status": status,
            "inserted_at": format!("2026-01-01T00:00:{seconds:02}.000000Z"), "stopped_at": stop[0], "stopped_by": stop[1],
        })
    };
    let by = json!({"id": "<olga>", "type": "User", "name": "olga", "handle": "olga"});
    assert_eq!(
        reply.named(),
        json!({
            "data": [
                execution("working", 5, [Value::Null, Value::Null]),
                execution("stopped", 0, [json!("2026-01-01T00:00:10.000000Z"), by]),
            ],
            "metadata": {"has_more": false, "limit": 100, "next_cursor": null},
        })
    );
    // Deleted rooms are gone from the list, though nobody was removed from them.
    olga.delete(&room.path("")).await.assert_status(200);
    assert_eq!(olga.get(&list).await.strings("chat_room_id"), [own.id]);
}

async fn executions_are_paged(app: TestApp) {
    let (olga, bob) = (app.owner(), app.agent("bob").await);
    let mut rooms = Vec::new();
    for _ in 0..5 {
        rooms.push(app.room_with(&olga, &[&bob]).await.id);
    }
    rooms.reverse();
    let list = format!("agents/{}/executions", bob.id);
    for limit in 1..=6 {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = olga.get(&format!("{list}?limit={limit}{cursor}")).await.assert_status(200);
            assert!(page.rows().len() <= limit, "{page:?}");
            found.extend(page.strings("chat_room_id"));
            assert_eq!(page.metadata()["has_more"], !page.metadata()["next_cursor"].is_null());
            match page.metadata()["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, rooms, "by {limit}");
    }
    olga.get(&format!("{list}?limit=0")).await.assert_invalid(&["/limit"]);
    olga.get(&format!("{list}?page=1")).await.assert_invalid(&["/page"]);
    olga.get(&format!("{list}?cursor=x")).await.assert_invalid(&["/cursor"]);
}

async fn executions_are_for_the_agents_owner(app: TestApp) {
    let (olga, _, bob, room) = room_of_three(&app).await;
    let eve = app.user("eve").await;
    let global = app.global_agent(&olga, "global").await;
    for agent in [&bob, &global] {
        let path = format!("agents/{}/executions", agent.id);
        olga.get(&path).await.assert_status(200);
        eve.get(&path).await.assert_error(404, "not_found");
        agent.get(&format!("/api/v1/me/{path}")).await.assert_error(403, "forbidden");
        app.nobody().get(&format!("/api/v1/me/{path}")).await.assert_error(401, "unauthorized");
    }
    for who in [olga.id.as_str(), room.id.as_str(), "no-uuid"] {
        olga.get(&format!("agents/{who}/executions")).await.assert_error(404, "not_found");
    }
    olga.delete(&format!("agents/{}?force=true", bob.id)).await.assert_status(200);
    olga.get(&format!("agents/{}/executions", bob.id)).await.assert_error(404, "not_found");
}

//! What is given up after too many attempts or too long a time: it leaves the agent's work, is listed, and a person has
//! it delivered again.

use std::time::Duration;

use bandstand_server::settings::Limits;
use serde_json::{Value, json};

use crate::support::{Caller, Reply, Room, TestApp, stories};

fn two_attempts() -> Limits {
    Limits { dead_letter_attempts: Some(2), ..Limits::default() }
}

stories!(limits: two_attempts() =>
    failures_count_and_the_last_one_gives_up,
    a_repeated_claim_does_not_count,
    what_is_given_up_takes_no_marks,
    a_redelivered_message_starts_anew,
    who_may_redeliver_and_what,
    dead_letters_are_listed_for_those_concerned,
    the_list_is_walked_by_cursor,
    who_is_not_a_recipient_gives_nothing_up,
);

stories!(limits: Limits { dead_letter_age: Some(Duration::from_secs(1)), ..Limits::default() } =>
    what_waits_too_long_is_given_up,
);

stories!(nothing_is_given_up_by_default);

/// Fails once.
async fn fails(agent: &Caller, room: &Room, message: &str) {
    agent.marks(room, message, "processing").await.assert_status(200);
    agent.marks(room, message, "failed").await.assert_status(200);
}

async fn gives_up(agent: &Caller, room: &Room, message: &str) {
    fails(agent, room, message).await;
    fails(agent, room, message).await;
}

async fn redelivers(who: &Caller, room: &Room, message: &str, agent: &Caller) -> Reply {
    who.post(&room.path(&format!("/messages/{message}/redeliver")), json!({"agent_id": agent.id})).await
}

async fn status(app: &TestApp, room: &Room, message: &str, agent: &Caller) -> Value {
    let reply = app.owner().get(&room.path(&format!("/messages?around={message}&limit=1"))).await.assert_status(200);
    reply.rows()[0]["metadata"]["delivery_status"][&agent.id].clone()
}

async fn failures_count_and_the_last_one_gives_up(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&bob, &cy]).await;
    let message = ana.says(&room, "work", &[&bob, &cy]).await;
    let other = ana.says(&room, "more", &[&bob]).await;
    fails(&bob, &room, &message).await;
    assert_eq!(bob.next_id(&room).await, Some(message.clone()), "once is not enough");

    let mut watcher = app.owner().joins(&format!("chat_room:{}", room.id)).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    let last = bob.marks(&room, &message, "failed").await.assert_status(200);
    assert_eq!((&last.data()["status"], &last.data()["attempt_number"]), (&json!("failed"), &json!(2)));
    watcher.skip_to("message_updated").await;
    let update = watcher.skip_to("message_updated").await;
    assert_eq!(update["metadata"]["delivery_status"][&bob.id], Value::Null, "clients know no such state");

    assert_eq!(bob.next_id(&room).await, Some(other.clone()), "it no longer stands in the way");
    assert_eq!(bob.get(&room.path("/messages")).await.strings("id"), [other.as_str()]);
    for filter in ["pending", "processing", "failed", "processed"] {
        let rows = bob.get(&room.path(&format!("/messages?status={filter}"))).await.strings("id");
        assert!(!rows.contains(&message), "{filter}: {rows:?}");
    }
    assert!(bob.get(&room.path("/messages?status=all")).await.strings("id").contains(&message));
    assert_eq!(cy.next_id(&room).await, Some(message), "the other recipient's delivery is its own");
}

async fn a_repeated_claim_does_not_count(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    for number in 1..6 {
        let claim = bob.marks(&room, &message, "processing").await.assert_status(200);
        assert_eq!(claim.data()["attempt_number"], number);
    }
    bob.marks(&room, &message, "failed").await.assert_status(200);
    assert_eq!(bob.next_id(&room).await, Some(message.clone()), "five attempts, one of which counts");
    fails(&bob, &room, &message).await;
    assert_eq!(bob.next(&room).await, None);
}

async fn what_is_given_up_takes_no_marks(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    gives_up(&bob, &room, &message).await;
    for mark in ["processing", "processed", "failed"] {
        bob.marks(&room, &message, mark).await.assert_invalid(&["/processing_attempt"]);
    }
    assert_eq!(bob.next(&room).await, None);
    let letters = app.owner().get("dead-letters").await.assert_status(200);
    assert_eq!(letters.rows()[0]["attempts"], 2);
}

async fn a_redelivered_message_starts_anew(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    gives_up(&bob, &room, &message).await;

    let mut socket = bob.socket().await;
    socket.join_room(&room).await;
    let reply = redelivers(&app.owner(), &room, &message, &bob).await.assert_status(200);
    assert_eq!(reply.data(), &json!({"id": message, "agent_id": bob.id, "redelivered": true}));
    assert_eq!(socket.next_event("message_created").await["id"], json!(message), "it is told at once");
    assert_eq!(app.owner().get("dead-letters").await.rows().len(), 0);
    redelivers(&app.owner(), &room, &message, &bob).await.assert_invalid(&["/agent_id"]);

    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    fails(&bob, &room, &message).await;
    assert_eq!(bob.next_id(&room).await, Some(message.clone()), "what failed before counts no more");
    let done = bob.marks(&room, &message, "processing").await.assert_status(200);
    assert_eq!(done.data()["attempt_number"], 4, "the history goes on");
    bob.marks(&room, &message, "processed").await.assert_status(200);
    assert_eq!(bob.next(&room).await, None);
    assert_eq!(status(&app, &room, &message, &bob).await["status"], "processed");
}

async fn who_may_redeliver_and_what(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, mia) = (app.owner(), app.user("mia").await);
    let vera = app.user("vera").await;
    let via = app.global_agent(&vera, "via").await;
    let room = app.room_with(&ana, &[&bob]).await;
    ana.adds(&room, &via).await.assert_status(201);
    let message = ana.says(&room, "work", &[&bob, &via]).await;
    gives_up(&bob, &room, &message).await;
    gives_up(&via, &room, &message).await;

    redelivers(&mia, &room, &message, &bob).await.assert_error(404, "not_found");
    redelivers(&vera, &room, &message, &bob).await.assert_error(403, "forbidden");
    redelivers(&vera, &room, &room.id, &via).await.assert_error(404, "not_found");
    let path = room.path(&format!("/messages/{message}/redeliver"));
    olga.post(&path, json!({})).await.assert_invalid(&["/agent_id"]);
    olga.post(&path, json!({"agent_id": bob.id, "why": 1})).await.assert_invalid(&["/why"]);
    redelivers(&vera, &room, &message, &via).await.assert_status(200);
    redelivers(&olga, &room, &message, &bob).await.assert_status(200);

    gives_up(&bob, &room, &message).await;
    ana.removes(&room, &bob).await.assert_status(200);
    ana.adds(&room, &bob).await.assert_status(201);
    redelivers(&olga, &room, &message, &bob).await.assert_invalid(&["/agent_id"]);
    assert_eq!(bob.next(&room).await, None, "it is served nothing from before it came back");
}

async fn dead_letters_are_listed_for_those_concerned(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, mia, vera) = (app.owner(), app.user("mia").await, app.user("vera").await);
    let via = app.global_agent(&vera, "via").await;
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    olga.adds(&room, &via).await.assert_status(201);
    let message = ana.says(&room, "work", &[&bob, &via]).await;
    app.clock.advance(5);
    gives_up(&bob, &room, &message).await;
    gives_up(&via, &room, &message).await;

    let all = olga.get("dead-letters").await.assert_status(200);
    let first = &all.rows()[0];
    assert_eq!(
        first,
        &json!({
            "chat_room_id": room.id,
            "message_id": message,
            "sender": {"id": ana.id, "type": "Agent", "name": "ana", "handle": ana.handle},
            "agent": {"id": bob.id, "type": "Agent", "name": "bob", "handle": bob.handle},
            "reason": "attempts",
            "stored_at": "2026-01-01T00:00:00.000000Z",
            "dead_lettered_at": "2026-01-01T00:00:05.000000Z",
            "attempts": 2,
            "last_error": "it broke",
        })
    );
    let agents = |reply: &Reply| -> Vec<String> {
        reply.rows().iter().map(|row| row["agent"]["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(agents(&all), [bob.id.as_str(), via.id.as_str()]);
    assert_eq!(agents(&vera.get("dead-letters").await), [via.id.as_str()], "only its own agents'");
    assert_eq!(mia.get("dead-letters").await.assert_status(200).rows().len(), 0);

    let (of_via, of_room) = (format!("agent_id={}", via.id), format!("chat_id={}", room.id));
    assert_eq!(agents(&olga.get(&format!("dead-letters?{of_via}")).await), [via.id.as_str()]);
    assert_eq!(agents(&olga.get(&format!("dead-letters?{of_room}")).await).len(), 2);
    let nowhere = format!("dead-letters?chat_id={}", ana.id);
    assert_eq!(olga.get(&nowhere).await.assert_status(200).rows().len(), 0);
    olga.get("dead-letters?agent_id=x").await.assert_invalid(&["/agent_id"]);
    olga.get("dead-letters?page=1").await.assert_invalid(&["/page"]);
}

async fn the_list_is_walked_by_cursor(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let mut expected = Vec::new();
    for _ in 0..2 {
        let room = app.room_with(&app.owner(), &[&ana, &bob, &cy]).await;
        let mut of_room = Vec::new();
        for agent in [&bob, &cy] {
            for number in 0..3 {
                let message = ana.says(&room, &format!("{number}"), &[agent]).await;
                gives_up(agent, &room, &message).await;
                of_room.push(message);
            }
        }
        expected.splice(0..0, of_room);
    }
    for limit in [1, 4, 100] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app.owner().get(&format!("dead-letters?limit={limit}{cursor}")).await.assert_status(200);
            found.extend(page.strings("message_id"));
            let Some(next) = page.metadata()["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, expected, "the newest room first, in it by agent, oldest first; {limit} a page");
    }
}

async fn who_is_not_a_recipient_gives_nothing_up(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    for _ in 0..3 {
        fails(&ana, &room, &message).await;
    }
    assert_eq!(app.owner().get("dead-letters").await.rows().len(), 0);
}

async fn what_waits_too_long_is_given_up(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&app.owner(), &[&ana, &bob, &cy]).await;
    let old = ana.says(&room, "old", &[&bob]).await;
    let held = ana.says(&room, "worked on", &[&cy]).await;
    let done = ana.says(&room, "done", &[&bob]).await;
    bob.handles(&room, &done).await;
    app.clock.advance(30);
    // Its attempt is younger than the limit, though the message is not.
    cy.marks(&room, &held, "processing").await.assert_status(200);
    app.until_none("SELECT 1 FROM deliveries WHERE recipient = 1 AND state IN (0, 1)").await;
    let letters = app.owner().get("dead-letters").await.assert_status(200);
    assert_eq!(letters.strings("message_id"), [old.as_str()]);
    assert_eq!(letters.strings("reason"), ["age"]);
    assert_eq!(bob.next(&room).await, None);
    cy.marks(&room, &held, "processed").await.assert_status(200);

    redelivers(&app.owner(), &room, &old, &bob).await.assert_status(200);
    assert_eq!(bob.next_id(&room).await, Some(old.clone()), "its age starts anew");
    bob.handles(&room, &old).await;
}

async fn nothing_is_given_up_by_default(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    for _ in 0..20 {
        fails(&bob, &room, &message).await;
    }
    assert_eq!(bob.next_id(&room).await, Some(message));
}

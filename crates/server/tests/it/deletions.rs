//! What follows from the deletion of a room or an agent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(
    a_deleted_room_ends_for_everybody,
    who_may_delete_a_room_by_what_it_owns,
    a_deleted_agent_leaves_its_rooms,
    a_deleted_owner_has_an_heir,
    a_room_without_an_heir_is_deleted,
    what_counts_as_history,
    an_agent_of_many_rooms_is_deleted,
);

/// The reasons of the deliveries that ended as cancelled.
fn cancelled(app: &TestApp) -> BTreeMap<String, usize> {
    let rows = app.database.query("SELECT reason FROM deliveries WHERE state = 5");
    rows.into_iter().fold(BTreeMap::new(), |mut counts, mut row| {
        *counts.entry(row.remove(0)).or_default() += 1;
        counts
    })
}

async fn roles(of: &Caller, room: &Room) -> Vec<(Value, Value)> {
    let reply = of.get(&room.path("/participants")).await.assert_status(200);
    let named = of.app.names.replace(reply.data());
    named.as_array().expect("a list").iter().map(|row| (row["id"].clone(), row["role"].clone())).collect()
}

async fn a_deleted_room_ends_for_everybody(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob, &cy]).await;
    for number in 0..3 {
        olga.says(&room, &number.to_string(), &[&ana, &bob]).await;
    }
    let done = bob.next_id(&room).await.expect("a message");
    bob.handles(&room, &done).await;
    let working = bob.next_id(&room).await.expect("a message");
    bob.marks(&room, &working, "processing").await.assert_status(200);
    olga.post_nothing(&room.path("/agents/stop")).await.assert_status(200);

    let mut person = olga.socket().await;
    person.join_room(&room).await;
    person.join(&format!("user_rooms:{}", olga.id)).await;
    let mut agent = ana.socket().await;
    agent.join_room(&room).await;
    agent.join(&format!("agent_rooms:{}", ana.id)).await;
    olga.delete(&room.path("")).await.assert_status(200);
    for socket in [&mut person, &mut agent] {
        assert_eq!(socket.skip_to("room_deleted").await, json!({"id": room.id}));
        let removed = socket.next_event("room_removed").await;
        assert_eq!((&removed["id"], &removed["status"]), (&json!(room.id), &json!("removed")));
    }
    // The room is gone at once; that nothing in it stays open is seen to in the background.
    app.until_none("SELECT 1 FROM rooms WHERE deleted_at IS NOT NULL AND participants > 0").await;
    app.until_none("SELECT 1 FROM deliveries WHERE state IN (0, 1, 2, 3)").await;
    assert_eq!(cancelled(&app), BTreeMap::from([("room deleted".to_owned(), 5)]));
    let attempts = app.database.query("SELECT error FROM attempts WHERE state = 2");
    assert_eq!(attempts, [["room deleted"]], "the attempt that ran ended with it");
    for who in [&ana, &bob, &cy, &olga] {
        assert_eq!(who.get("chats").await.rows().len(), 0);
    }
}

async fn who_may_delete_a_room_by_what_it_owns(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (ana, global) = (app.agent("ana").await, app.global_agent(&eve, "global").await);
    // Eve reads it through an agent that is but a member; then the agent is an owner.
    let room = app.room_with(&olga, &[&global, &ana]).await;
    eve.delete(&room.path("")).await.assert_error(403, "forbidden");
    olga.removes(&room, &global).await.assert_status(200);
    eve.delete(&room.path("")).await.assert_error(404, "not_found");
    olga.adds_as(&room, &global, "owner").await.assert_status(201);
    eve.delete(&room.path("")).await.assert_status(200);
    olga.get(&room.path("")).await.assert_error(404, "not_found");
    // An agent has no request for it.
    let own = app.room_with(&ana, &[]).await;
    ana.delete(&own.path("")).await.assert_error(405, "method_not_allowed");
    olga.delete(&own.path("")).await.assert_status(200);
}

async fn a_deleted_agent_leaves_its_rooms(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let rooms = [app.room_with(&olga, &[&ana, &bob]).await, app.room_with(&olga, &[&ana, &bob]).await];
    for room in &rooms {
        let message = olga.says(room, "work", &[&bob]).await;
        olga.says(room, "more", &[&bob]).await;
        bob.marks(room, &message, "processing").await.assert_status(200);
    }
    let mut watcher = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    let mut sibling = ana.socket().await;
    for room in &rooms {
        sibling.join(&format!("room_participants:{}", room.id)).await;
    }
    let mut gone = bob.joins(&format!("agent_rooms:{}", bob.id)).await;

    let deleted = olga.delete(&format!("agents/{}?force=true", bob.id)).await.assert_status(200);
    assert_eq!(deleted.data()["executions_deleted"], 2);
    assert_eq!(gone.closes().await, 1001, "its sockets close, and the next handshake is refused");
    for room in &rooms {
        let removed = sibling.next_event("participant_removed").await;
        assert_eq!((&removed["id"], &removed["type"]), (&json!(bob.id), &json!("Agent")));
        assert_eq!(watcher.next_event("room_updated").await["id"], json!(room.id));
        assert_eq!(ana.get(&room.path("/participants")).await.rows().len(), 2);
        // The history keeps what was said to it, without a standing that will never change.
        let history = olga.get(&room.path("/messages")).await.assert_status(200);
        for row in history.rows() {
            assert_eq!(row["metadata"]["mentions"][0]["id"], json!(bob.id));
            assert_eq!(row["metadata"]["delivery_status"], json!({}));
        }
        olga.posts(room, "are you there", &[&bob]).await.assert_error(422, "mentioned_participant_not_in_room");
    }
    assert_eq!(cancelled(&app), BTreeMap::from([("agent deleted".to_owned(), 4)]));
}

async fn a_deleted_owner_has_an_heir(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let of_eve = app.global_agent(&eve, "helper").await;
    let owned = |by: &str| (json!(format!("<{by}>")), json!("owner"));

    // Its own user comes before anybody else.
    let with_user = app.room_with(&ana, &[&of_eve, &bob, &olga]).await;
    // Among agents, whoever joined first.
    let with_agents = app.room_with(&ana, &[&cy, &bob]).await;
    // Another owner stays the owner.
    let with_owner = app.room_with(&ana, &[&olga]).await;
    ana.adds_as(&with_owner, &bob, "owner").await.assert_status(201);

    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    let owners = async |room: &Room| {
        let all = roles(&olga, room).await;
        all.into_iter().filter(|(_, role)| role == "owner").collect::<Vec<_>>()
    };
    assert_eq!(owners(&with_user).await, [owned("olga")]);
    assert_eq!(owners(&with_agents).await, [owned("cy")]);
    assert_eq!(owners(&with_owner).await, [owned("bob")]);
    // The heir may do what an owner may.
    olga.patch(&with_user.path(""), json!({"chat": {"title": "Mine now"}})).await.assert_status(200);
    olga.post_nothing(&with_user.path("/agents/stop")).await.assert_status(200);
    cy.patch(&with_agents.path(""), json!({"chat": {"title": "Mine now"}})).await.assert_status(200);

    // Without its own user, the person who joined first; an agent could never remove a person.
    let asked = json!({"contact_request": {"recipient_handle": "olga"}});
    let request = eve.post("contacts/requests", asked).await.assert_status(201).id();
    olga.post_nothing(&format!("contacts/requests/{request}/approve")).await.assert_status(200);
    let with_person = app.room_with(&eve, &[]).await;
    eve.adds_as(&with_person, &of_eve, "owner").await.assert_status(201);
    eve.adds(&with_person, &olga).await.assert_status(201);
    eve.removes(&with_person, &eve).await.assert_status(200);
    eve.delete(&format!("agents/{}?force=true", of_eve.id)).await.assert_status(200);
    assert_eq!(owners(&with_person).await, [owned("olga")]);
}

async fn a_room_without_an_heir_is_deleted(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let room = app.room_with(&ana, &[]).await;
    assert_eq!(olga.get("chats?include=agent_rooms").await.strings("id"), std::slice::from_ref(&room.id));
    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    assert_eq!(olga.get("chats?include=agent_rooms").await.rows().len(), 0);
    olga.get(&room.path("")).await.assert_error(404, "not_found");
    let left = app.database.query("SELECT deleted_at FROM rooms WHERE deleted_at IS NULL");
    assert!(left.is_empty(), "a room that nobody can find is no room: {left:?}");
}

async fn what_counts_as_history(app: TestApp) {
    let olga = app.owner();
    let [idle, tried, gone, curious, talked, heard] =
        app.agents(["idle", "tried", "gone", "curious", "talked", "heard"]).await;
    let room = app.room_with(&olga, &[&idle, &tried, &gone, &curious, &talked, &heard]).await;
    let message = olga.says(&room, "work", &[&tried, &gone, &heard]).await;
    // Tried, and never finished; the same, and then removed; tried what was not for it; said something.
    tried.marks(&room, &message, "processing").await.assert_status(200);
    gone.marks(&room, &message, "processing").await.assert_status(200);
    olga.removes(&room, &gone).await.assert_status(200);
    curious.marks(&room, &message, "processing").await.assert_status(200);
    talked.records(&room, "thought", "hm").await;
    // Being spoken to is no work.
    assert_eq!(heard.next_id(&room).await, Some(message));
    for agent in [&tried, &gone, &curious, &talked] {
        let path = format!("agents/{}", agent.id);
        let refused = olga.delete(&path).await.assert_error(422, "execution_history_exists");
        assert!(refused.error()["message"].as_str().is_some_and(|text| text.contains("force=true")), "{refused:?}");
        agent.get("me").await.assert_status(200);
        let deleted = olga.delete(&format!("{path}?force=true")).await.assert_status(200);
        assert_eq!(deleted.data()["executions_deleted"], 1, "{}", agent.name);
    }
    for agent in [&idle, &heard] {
        let deleted = olga.delete(&format!("agents/{}", agent.id)).await.assert_status(200);
        assert_eq!(deleted.data()["executions_deleted"], 0);
    }
}

async fn an_agent_of_many_rooms_is_deleted(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let mut rooms = Vec::new();
    for _ in 0..103 {
        rooms.push(app.room_with(&olga, &[&ana]).await);
    }
    olga.delete(&format!("agents/{}", ana.id)).await.assert_status(200);
    let last = rooms.last().expect("a room");
    assert_eq!(
        olga.get(&last.path("/participants")).await.strings("id"),
        std::slice::from_ref(&olga.id),
        "nobody sees it any more"
    );
    // Its last rooms it leaves after the reply.
    app.until_none(
        "SELECT 1 FROM participants p JOIN identities i ON i.key = p.member_key \
         WHERE i.deleted_at IS NOT NULL AND p.left_at IS NULL",
    )
    .await;
    for room in [&rooms[0], last] {
        assert_eq!(olga.get(&room.path("")).await.assert_status(200).data()["type"], "direct");
    }
}

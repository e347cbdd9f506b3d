//! The payload of every event, as snapshots: what clients' validators look at.

use serde_json::{Value, json};

use crate::support::{Caller, Room, Socket, TestApp, stories};

stories!(
    messages_and_events,
    rooms_come_and_go,
    participants_come_and_go,
    presence,
    activity,
    an_untitled_room_has_a_title_on_the_wire,
    updates_tell_every_step_of_a_delivery,
    a_changed_room_is_pushed_as_it_is,
);
stories!(
    limits: bandstand_server::settings::Limits {
        activity_ttl: std::time::Duration::from_millis(100),
        ..bandstand_server::settings::Limits::default()
    } => activity_expires
);

/// A snapshot that both engines share.
fn snapshot(app: &TestApp, name: &str, payload: &Value) {
    let payload = app.names.replace(payload);
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "snapshots"}, {
        insta::assert_json_snapshot!(name, payload);
    });
}

async fn snap(socket: &mut Socket, event: &str) {
    let payload = socket.next_event(event).await;
    snapshot(&socket.app, event, &payload);
}

async fn room(app: &TestApp) -> (Caller, Caller, Caller, Room) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    olga.patch(&room.path(""), json!({"chat": {"title": "Plans"}})).await.assert_status(200);
    (olga, ana, bob, room)
}

async fn messages_and_events(app: TestApp) {
    let (olga, ana, bob, room) = room(&app).await;
    let topic = format!("chat_room:{}", room.id);
    let (mut agent, mut person) = (bob.joins(&topic).await, olga.joins(&topic).await);
    ana.says(&room, "please look", &[&bob, &olga]).await;
    snap(&mut agent, "message_created").await;
    snap(&mut person, "message_created").await;
    let delivered = person.next_event("message_updated").await;
    snapshot(&app, "message_updated", &delivered);
    let event = json!({"event": {"content": "calling", "message_type": "tool_call", "metadata": {"tool": "fs"}}});
    ana.post(&room.path("/events"), event).await.assert_status(201);
    snap(&mut person, "event_created").await;
    // A person hears what it says itself, as the text that is stored.
    olga.says(&room, "mine", &[&ana]).await;
    let own = person.next_named("message_created").await;
    assert_eq!((&own["sender_id"], &own["content"]), (&json!("<olga>"), &json!("@[[<ana>]] mine")));
    agent.assert_silent().await;
}

async fn rooms_come_and_go(app: TestApp) {
    let (olga, _, bob, room) = room(&app).await;
    let mut person = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    let mut agent = bob.joins(&format!("agent_rooms:{}", bob.id)).await;
    app.clock.advance(60);
    olga.removes(&room, &bob).await.assert_status(200);
    snap(&mut agent, "room_removed").await;
    snap(&mut person, "room_updated").await;
    olga.adds(&room, &bob).await.assert_status(201);
    snap(&mut agent, "room_added").await;
    person.next_event("room_updated").await;
    olga.patch(&room.path(""), json!({"chat": {"title": "Other plans"}})).await.assert_status(200);
    assert_eq!(person.next_event("room_updated").await["title"], "Other plans");
    olga.post_nothing(&room.path("/archive")).await.assert_status(200);
    assert_eq!(person.next_event("room_updated").await["status"], "archived");
    let created = olga.creates_room().await;
    assert_eq!(person.next_event("room_added").await["id"], created.id, "also to the creator");
    person.join(&format!("room_participants:{}", room.id)).await;
    olga.delete(&room.path("")).await.assert_status(200);
    snap(&mut person, "room_deleted").await;
    assert_eq!(person.next_event("room_removed").await["id"], room.id);
    assert_eq!(agent.next_event("room_removed").await["id"], room.id);
}

async fn participants_come_and_go(app: TestApp) {
    let (olga, ana, bob, room) = room(&app).await;
    let mut socket = ana.joins(&format!("room_participants:{}", room.id)).await;
    olga.removes(&room, &bob).await.assert_status(200);
    snap(&mut socket, "participant_removed").await;
    olga.adds_as(&room, &bob, "admin").await.assert_status(201);
    snap(&mut socket, "participant_added").await;
    let second = app.room_with(&ana, &[]).await;
    socket.join(&format!("room_participants:{}", second.id)).await;
    ana.adds(&second, &olga).await.assert_status(201);
    let person = socket.next_event("participant_added").await;
    snapshot(&app, "participant_added_person", &person);
}

async fn presence(app: TestApp) {
    let (olga, ana, bob, room) = room(&app).await;
    let topic = format!("room_participants:{}", room.id);
    let mut listening_agent = ana.joins(&topic).await;
    let mut person = olga.socket().await;
    let reply = person.join(&topic).await;
    snapshot(&app, "room_participants_join", &reply);
    let first = bob.socket().await;
    snap(&mut person, "participant_presence_changed").await;
    snap(&mut person, "agent_connected").await;
    // A second connection changes nothing; the last one to go does.
    let second = bob.socket().await;
    first.close().await;
    second.close().await;
    let gone = person.next_event("participant_presence_changed").await;
    assert_eq!((&gone["id"], &gone["online"]), (&json!(bob.id), &json!(false)));
    snap(&mut person, "agent_disconnected").await;
    listening_agent.assert_silent().await;
    let roster = olga.get(&room.path("/participants")).await.named();
    let online: Vec<&Value> = roster["data"].as_array().unwrap().iter().map(|row| &row["online"]).collect();
    assert_eq!(online, [true, true, false]);
    // Who is connected already when it joins does not come online later: it is told of at once.
    let carl = app.agent("carl").await;
    let _connected = carl.socket().await;
    ana.adds(&room, &carl).await.assert_status(201);
    person.next_event("participant_added").await;
    let there = person.next_event("participant_presence_changed").await;
    assert_eq!((&there["id"], &there["online"]), (&json!(carl.id), &json!(true)));
}

async fn activity(app: TestApp) {
    let (olga, ana, _, room) = room(&app).await;
    let topic = format!("room_activity:{}", room.id);
    let mut early = olga.socket().await;
    assert_eq!(early.join(&topic).await, json!({"activity_snapshot": {"working_agents": []}}));
    let report = async |body: Value| ana.post(&room.path("/activity"), body).await.assert_status(200);
    report(json!({"working": true, "activity": {"kind": "tool_call", "name": "fs.read"}})).await;
    snap(&mut early, "activity_changed").await;
    let mut late = olga.socket().await;
    let reply = late.join(&topic).await;
    snapshot(&app, "room_activity_join", &reply);
    // The same report again is news to nobody; another activity is, and so is the end.
    report(json!({"working": true, "activity": {"kind": "tool_call", "name": "fs.read"}})).await;
    report(json!({"working": true})).await;
    let changed = early.next_event("activity_changed").await;
    assert_eq!(changed["working_agents"][0]["activity"], Value::Null);
    report(json!({"working": false})).await;
    assert_eq!(early.next_event("activity_changed").await, json!({"working_agents": []}));
    report(json!({"working": false})).await;
    // Who is removed works no more.
    report(json!({"working": true})).await;
    assert_eq!(early.next_event("activity_changed").await["working_agents"][0]["agent_id"], ana.id);
    olga.removes(&room, &ana).await.assert_status(200);
    assert_eq!(early.next_event("activity_changed").await, json!({"working_agents": []}));
}

async fn activity_expires(app: TestApp) {
    let (olga, ana, _, room) = room(&app).await;
    let mut person = olga.joins(&format!("room_activity:{}", room.id)).await;
    ana.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(person.next_event("activity_changed").await["working_agents"].as_array().map(Vec::len), Some(1));
    assert_eq!(person.next_event("activity_changed").await, json!({"working_agents": []}));
}

async fn an_untitled_room_has_a_title_on_the_wire(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut socket = ana.joins(&format!("agent_rooms:{}", ana.id)).await;
    let room = ana.creates_room().await;
    let added = socket.next_event("room_added").await;
    assert_eq!((&added["id"], &added["title"]), (&json!(room.id), &json!("New room")));
    assert_eq!(ana.get(&room.path("")).await.data()["title"], Value::Null);
}

async fn updates_tell_every_step_of_a_delivery(app: TestApp) {
    let (olga, ana, bob, room) = room(&app).await;
    let mut person = olga.joins(&format!("chat_room:{}", room.id)).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    person.next_event("message_created").await;
    for (mark, status) in
        [("processing", "processing"), ("failed", "failed"), ("processing", "processing"), ("processed", "processed")]
    {
        bob.marks(&room, &message, mark).await.assert_status(200);
        let update = person.next_event("message_updated").await;
        assert_eq!((&update["id"], &update["message_type"]), (&json!(message), &json!("text")));
        assert_eq!(update["metadata"]["delivery_status"][&bob.id]["status"], status);
        let row = olga.get(&room.path("/messages?limit=1")).await.rows()[0].clone();
        assert_eq!(update, row, "the push is the row");
    }
    bob.marks(&room, &message, "processed").await.assert_invalid(&["/processing_attempt"]);
    person.assert_silent().await;
    // Agents hear nothing of all that.
    let mut agent = ana.joins(&format!("chat_room:{}", room.id)).await;
    bob.handles(&room, &message).await;
    agent.assert_silent().await;
}

async fn a_changed_room_is_pushed_as_it_is(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana]).await;
    let mut person = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    let mut changed = async |what: &str| {
        let pushed = person.next_event("room_updated").await;
        let row = olga.get(&room.path("")).await.assert_status(200).data().clone();
        assert_eq!(pushed, row, "{what}");
        app.clock.advance(1);
    };
    ana.says(&room, "the first words", &[&olga]).await;
    changed("an automatic title").await;
    olga.patch(&room.path(""), json!({"chat": {"title": "Plans"}})).await.assert_status(200);
    changed("a title").await;
    olga.adds(&room, &bob).await.assert_status(201);
    changed("a participant more, and a group").await;
    olga.removes(&room, &bob).await.assert_status(200);
    changed("a participant less").await;
    olga.post_nothing(&room.path("/archive")).await.assert_status(200);
    changed("archived").await;
    olga.post_nothing(&room.path("/unarchive")).await.assert_status(200);
    changed("open again").await;
    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    changed("an agent was deleted").await;
}

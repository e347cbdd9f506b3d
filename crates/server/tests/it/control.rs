//! Stopping a room's agents, letting them go on, and interrupting one.

use std::collections::HashSet;
use std::sync::Arc;

use bandstand_server::settings::Limits;
use bandstand_store::testing::{TestDatabase, TestEngine};
use serde_json::{Value, json};

use crate::support::{Caller, Room, Socket, TestApp, run_on, stories};

stories!(
    only_an_owner_stops_and_plays,
    a_stopped_agent_may_not_work,
    a_stopped_message_is_served_again,
    signals_reach_the_agents_of_the_room,
    an_interrupt_reaches_the_agent_wherever_it_is,
    what_was_missed_is_told_once,
    more_than_can_be_replayed_is_found_by_next,
    whoever_comes_later_is_not_stopped,
    a_return_clears_the_stop,
    who_is_stopped_does_not_work,
    people_see_that_a_room_is_stopped,
);

pub(crate) async fn stops(who: &Caller, room: &Room) {
    let reply = who.post_nothing(&room.path("/agents/stop")).await.assert_status(200);
    assert_eq!(reply.json(), &json!({"data": {"stopped": true}}));
}

pub(crate) async fn plays(who: &Caller, room: &Room) {
    let reply = who.post_nothing(&room.path("/agents/play")).await.assert_status(200);
    assert_eq!(reply.json(), &json!({"data": {"stopped": false}}));
}

/// A person's room with two of its agents.
pub(crate) async fn room_of_three(app: &TestApp) -> (Caller, Caller, Caller, Room) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    (olga, ana, bob, room)
}

pub(crate) async fn listens(agent: &Caller) -> Socket {
    agent.joins(&format!("agent_control:{}", agent.id)).await
}

pub(crate) async fn execution(owner: &Caller, agent: &Caller, room: &Room) -> Value {
    let reply = owner.get(&format!("agents/{}/executions", agent.id)).await.assert_status(200);
    let found = reply.rows().iter().find(|row| row["chat_room_id"] == json!(room.id));
    found.unwrap_or_else(|| panic!("no execution: {reply:?}")).clone()
}

async fn only_an_owner_stops_and_plays(app: TestApp) {
    let (olga, ana, _, room) = room_of_three(&app).await;
    let (eve, ian) = (app.user("eve").await, app.user("ian").await);
    let global = app.global_agent(&eve, "global").await;
    olga.adds(&room, &global).await.assert_status(201);
    for path in ["/agents/stop", "/agents/play"] {
        let path = room.path(path);
        // Eve reads the room, because an agent of hers is in it; Ian may not know of it.
        eve.post_nothing(&path).await.assert_error(403, "forbidden");
        ian.post_nothing(&path).await.assert_error(404, "not_found");
        ana.post_nothing(&format!("/api/v1/me/{path}")).await.assert_error(403, "forbidden");
        app.nobody().post_nothing(&format!("/api/v1/me/{path}")).await.assert_error(401, "unauthorized");
        let unknown = path.replace(&room.id, &ana.id);
        olga.post_nothing(&unknown).await.assert_error(404, "not_found");
        olga.post_nothing(&path.replace(&room.id, "no-uuid")).await.assert_error(404, "not_found");
    }
    // An agent's own room has no owner among people.
    let own = app.room_with(&ana, &[&olga]).await;
    olga.post_nothing(&own.path("/agents/stop")).await.assert_error(403, "forbidden");
    assert_eq!(execution(&olga, &ana, &own).await["status"], "idle");
    // A room without agents, and one that is archived, are stopped and played all the same.
    let empty = olga.creates_room().await;
    stops(&olga, &empty).await;
    plays(&olga, &empty).await;
    olga.post_nothing(&room.path("/archive")).await.assert_status(200);
    stops(&olga, &room).await;
    assert_eq!(execution(&olga, &ana, &room).await["status"], "stopped");
    plays(&olga, &room).await;
    olga.delete(&empty.path("")).await.assert_status(200);
    olga.post_nothing(&empty.path("/agents/stop")).await.assert_error(404, "not_found");
}

async fn a_stopped_agent_may_not_work(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let other = app.room_with(&olga, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    let elsewhere = olga.says(&other, "work", &[&bob]).await;
    stops(&olga, &room).await;

    assert_eq!(bob.next(&room).await, None);
    for mark in ["processing", "processed", "failed"] {
        let reply = bob.marks(&room, &message, mark).await.assert_status(204);
        assert_eq!(reply.body, None);
    }
    // What cannot be read is told before what cannot be done.
    bob.post(&room.path(&format!("/messages/{message}/failed")), json!({})).await.assert_invalid(&["/error"]);
    let refused = bob.posts(&room, "a word", &[&ana]).await.assert_error(403, "forbidden");
    let event = json!({"event": {"content": "calling", "message_type": "tool_call"}});
    for refused in [refused, bob.post(&room.path("/events"), event).await.assert_error(403, "forbidden")] {
        let text = refused.error()["message"].as_str().unwrap_or_default();
        assert!(text.contains("execution is stopped"), "{refused:?}");
    }
    for working in [true, false] {
        let reply = bob.post(&room.path("/activity"), json!({"working": working})).await.assert_status(200);
        assert_eq!(reply.json(), &json!({"data": {"working": false}}));
    }
    // It may look, and nothing that it did meanwhile left a trace.
    assert_eq!(bob.get(&room.path("/messages?status=pending")).await.strings("id"), std::slice::from_ref(&message));
    assert_eq!(bob.get(&room.path("/context")).await.assert_status(200).rows().len(), 1);
    assert_eq!(olga.get(&room.path("/messages")).await.rows().len(), 1);
    // People go on, and so does the agent in its other rooms.
    olga.says(&room, "wait", &[&bob]).await;
    assert_eq!(bob.next_id(&other).await, Some(elsewhere.clone()));
    bob.handles(&other, &elsewhere).await;

    plays(&olga, &room).await;
    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    bob.handles(&room, &message).await;
    bob.says(&room, "done", &[&ana]).await;
    let reply = bob.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(reply.data()["working"], true);
}

async fn a_stopped_message_is_served_again(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    stops(&olga, &room).await;
    bob.marks(&room, &message, "processed").await.assert_status(204);
    plays(&olga, &room).await;
    assert_eq!(bob.next_id(&room).await, Some(message.clone()), "clients leave it processing, and rely on this");
    let again = bob.marks(&room, &message, "processing").await.assert_status(200);
    assert_eq!(again.data()["attempt_number"], 2);
    bob.marks(&room, &message, "processed").await.assert_status(200);
    assert_eq!(bob.next(&room).await, None);
}

async fn signals_reach_the_agents_of_the_room(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let stranger = app.agent("stranger").await;
    let (mut of_ana, mut of_bob, mut of_stranger) =
        (listens(&ana).await, listens(&bob).await, listens(&stranger).await);
    let mut seen = HashSet::new();
    // The second of each is for whoever missed the first.
    for mode in ["stop", "stop", "play", "play"] {
        olga.post_nothing(&room.path(&format!("/agents/{mode}"))).await.assert_status(200);
        let (first, second) = (of_ana.next_event("agent.control").await, of_bob.next_event("agent.control").await);
        assert_eq!(first["correlation_id"], second["correlation_id"], "one request, one id");
        for (payload, agent) in [(&first, &ana), (&second, &bob)] {
            let execution = execution(&olga, agent, &room).await;
            let correlation = payload["correlation_id"].as_str().expect("an id");
            assert_eq!(
                payload,
                &json!({
                    "mode": mode, "scope": "room", "agent_id": agent.id, "execution_id": execution["id"],
                    "room_id": room.id, "correlation_id": correlation,
                })
            );
        }
        assert!(seen.insert(first["correlation_id"].clone()), "each request has an id of its own");
    }
    of_stranger.assert_silent().await;
    // Who is refused sends no signal.
    app.user("eve").await.post_nothing(&room.path("/agents/stop")).await.assert_status(404);
    of_bob.assert_silent().await;
}

async fn an_interrupt_reaches_the_agent_wherever_it_is(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let other = app.room_with(&olga, &[&bob]).await;
    let message = olga.says(&other, "work", &[&bob]).await;
    bob.marks(&other, &message, "processing").await.assert_status(200);
    let (mut of_ana, mut of_bob) = (listens(&ana).await, listens(&bob).await);
    let named = execution(&olga, &bob, &room).await["id"].as_str().expect("an id").to_owned();
    let path = format!("agents/{}/executions/{named}/interrupt", bob.id);
    let mut seen = HashSet::new();
    for _ in 0..2 {
        let reply = olga.post_nothing(&path).await.assert_status(200);
        assert_eq!(reply.json(), &json!({"data": {"id": named}}));
        let payload = of_bob.next_event("agent.control").await;
        assert_eq!(
            payload,
            json!({
                "mode": "interrupt", "scope": "agent", "agent_id": bob.id, "execution_id": named,
                "room_id": null, "correlation_id": payload["correlation_id"],
            })
        );
        assert!(seen.insert(payload["correlation_id"].as_str().expect("an id").to_owned()));
    }
    of_ana.assert_silent().await;
    // Nothing stops by it: the client settles its message and goes on.
    bob.marks(&other, &message, "processed").await.assert_status(200);
    assert_eq!(execution(&olga, &bob, &other).await["status"], "idle");

    // An execution of another agent, one that is over, one that never was.
    let of_other = execution(&olga, &ana, &room).await["id"].as_str().expect("an id").to_owned();
    olga.post_nothing(&path.replace(&named, &of_other)).await.assert_error(404, "not_found");
    olga.post_nothing(&path.replace(&named, &bob.id)).await.assert_error(404, "not_found");
    olga.post_nothing(&path.replace(&named, "no-uuid")).await.assert_error(404, "not_found");
    app.user("eve").await.post_nothing(&path).await.assert_error(404, "not_found");
    bob.post_nothing(&format!("/api/v1/me/{path}")).await.assert_error(403, "forbidden");
    olga.removes(&room, &bob).await.assert_status(200);
    olga.post_nothing(&path).await.assert_error(404, "not_found");
    of_bob.assert_silent().await;
}

async fn what_was_missed_is_told_once(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let topic = format!("chat_room:{}", room.id);
    let (mut of_bob, mut of_olga) = (bob.joins(&topic).await, olga.joins(&topic).await);
    let before = olga.says(&room, "before", &[&bob]).await;
    assert_eq!(of_bob.next_event("message_created").await["id"], before);
    stops(&olga, &room).await;
    let first = olga.says(&room, "first", &[&bob, &ana]).await;
    olga.says(&room, "not for bob", &[&ana]).await;
    let second = olga.says(&room, "second", &[&bob]).await;
    of_bob.assert_silent().await;
    // A channel that is joined while stopped hears nothing either.
    of_bob.leave(&topic).await;
    of_bob.join(&topic).await;
    of_bob.assert_silent().await;
    // A person reads the message that is told again once and no second time.
    while of_olga.skip_to("message_created").await["id"] != json!(second) {}

    plays(&olga, &room).await;
    let live = olga.says(&room, "live", &[&bob]).await;
    for id in [&first, &second, &live] {
        let heard = of_bob.next_event("message_created").await;
        assert_eq!(heard["id"], json!(id), "what was missed comes first, in its order");
    }
    assert_eq!(of_olga.skip_to("message_created").await["id"], json!(live));
    plays(&olga, &room).await;
    of_bob.assert_silent().await;
    // The others go through their backlog as ever.
    assert_eq!(bob.next_id(&room).await, Some(before));
    assert_eq!(ana.next_id(&room).await, Some(first.clone()));
    // That it arrived is noted, as of every push.
    let is_delivered = |update: &Value| {
        update["id"] == json!(second) && update["metadata"]["delivery_status"][&bob.id]["status"] == "delivered"
    };
    let mut watcher = olga.socket().await;
    watcher.join(&topic).await;
    let path = room.path(&format!("/messages?around={second}&limit=1"));
    if !is_delivered(&olga.get(&path).await.rows()[0]) {
        while !is_delivered(&watcher.skip_to("message_updated").await) {}
    }
}

async fn more_than_can_be_replayed_is_found_by_next(app: TestApp) {
    const MISSED: usize = 103;
    let (olga, _, bob, room) = room_of_three(&app).await;
    let mut socket = bob.joins(&format!("chat_room:{}", room.id)).await;
    stops(&olga, &room).await;
    let mut ids = Vec::new();
    for number in 0..MISSED {
        ids.push(olga.says(&room, &number.to_string(), &[&bob]).await);
    }
    plays(&olga, &room).await;
    for id in &ids[..100] {
        assert_eq!(socket.next_event("message_created").await["id"], json!(id));
    }
    socket.assert_silent().await;
    for id in &ids {
        assert_eq!(bob.next_id(&room).await.as_ref(), Some(id));
        bob.handles(&room, id).await;
    }
    assert_eq!(bob.next(&room).await, None);
}

async fn whoever_comes_later_is_not_stopped(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    app.clock.advance(10);
    stops(&olga, &room).await;
    let late = app.agent("late").await;
    olga.adds(&room, &late).await.assert_status(201);
    let mut socket = late.joins(&format!("chat_room:{}", room.id)).await;
    let message = olga.says(&room, "both of you", &[&late, &bob]).await;
    assert_eq!(socket.next_event("message_created").await["id"], json!(message));
    assert_eq!(late.next_id(&room).await, Some(message.clone()));
    late.says(&room, "here", &[&ana]).await;
    assert_eq!(bob.next(&room).await, None);
    // The next stop is for it as well, and leaves the earlier ones as they were.
    app.clock.advance(10);
    stops(&olga, &room).await;
    assert_eq!(late.next(&room).await, None);
    let at = async |agent: &Caller| execution(&olga, agent, &room).await["stopped_at"].clone();
    assert_eq!(
        (at(&bob).await, at(&late).await),
        (json!("2026-01-01T00:00:10.000000Z"), json!("2026-01-01T00:00:20.000000Z"))
    );
    plays(&olga, &room).await;
    for agent in [&bob, &late] {
        assert_eq!(agent.next_id(&room).await, Some(message.clone()));
    }
    // It heard the message before it was stopped, and does not hear it again.
    socket.assert_silent().await;
}

async fn a_return_clears_the_stop(app: TestApp) {
    let (olga, _, bob, room) = room_of_three(&app).await;
    let before = execution(&olga, &bob, &room).await;
    stops(&olga, &room).await;
    olga.removes(&room, &bob).await.assert_status(200);
    let gone = olga.get(&format!("agents/{}/executions", bob.id)).await.assert_status(200);
    assert_eq!(gone.rows().len(), 0);
    olga.adds(&room, &bob).await.assert_status(201);
    let after = execution(&olga, &bob, &room).await;
    assert_ne!(before["id"], after["id"], "it is another execution");
    assert_eq!(
        (&after["status"], &after["stopped_at"], &after["stopped_by"]),
        (&json!("idle"), &Value::Null, &Value::Null)
    );
    let message = olga.says(&room, "work", &[&bob]).await;
    bob.handles(&room, &message).await;
}

async fn who_is_stopped_does_not_work(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let mut watcher = olga.joins(&format!("room_activity:{}", room.id)).await;
    for agent in [&ana, &bob] {
        agent.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
        watcher.next_event("activity_changed").await;
    }
    stops(&olga, &room).await;
    assert_eq!(watcher.next_event("activity_changed").await, json!({"working_agents": []}), "both at once");
    bob.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    watcher.assert_silent().await;
    plays(&olga, &room).await;
    bob.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(watcher.skip_to("activity_changed").await["working_agents"][0]["agent_id"], json!(bob.id));
}

async fn people_see_that_a_room_is_stopped(app: TestApp) {
    let (olga, _, bob, room) = room_of_three(&app).await;
    let mut watcher = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    for (mode, status) in [("stop", "stopped"), ("stop", ""), ("play", "idle"), ("play", "")] {
        olga.post_nothing(&room.path(&format!("/agents/{mode}"))).await.assert_status(200);
        if status.is_empty() {
            watcher.assert_silent().await;
            continue;
        }
        let pushed = watcher.next_event("room_updated").await;
        let read = olga.get(&room.path("")).await.assert_status(200);
        assert_eq!((&pushed["id"], &pushed["work_status"]), (&json!(room.id), &json!(status)));
        assert_eq!(&pushed["work_status"], &read.data()["work_status"]);
        assert_eq!(pushed["updated_at"], pushed["inserted_at"], "the room itself is as it was");
    }
    bob.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(olga.get(&room.path("")).await.data()["work_status"], "working");
}

async fn a_stop_survives_a_restart(engine: TestEngine) {
    let database = Arc::new(TestDatabase::create(engine).await);
    let kept = std::sync::Mutex::new(None);
    let first = run_on(&database, Limits::default(), None, async |app: TestApp| {
        let (olga, _, bob, room) = room_of_three(&app).await;
        stops(&olga, &room).await;
        let message = olga.says(&room, "work", &[&bob]).await;
        *kept.lock().unwrap() = Some((bob, room, message));
    })
    .await;
    let (bob, room, message) = kept.lock().unwrap().take().expect("the first server's");
    run_on(&database, Limits::default(), Some(&first), async |app: TestApp| {
        let bob = Caller { app: app.clone(), ..bob.clone() };
        assert_eq!(bob.next(&room).await, None);
        let mut socket = bob.joins(&format!("chat_room:{}", room.id)).await;
        bob.posts(&room, "a word", &[&app.owner()]).await.assert_error(403, "forbidden");
        plays(&app.owner(), &room).await;
        assert_eq!(socket.next_event("message_created").await["id"], json!(message));
        bob.handles(&room, &message).await;
    })
    .await;
}

mod a_stop_survives_a_restart {
    use bandstand_store::testing::TestEngine;

    #[tokio::test]
    async fn sqlite() {
        super::a_stop_survives_a_restart(TestEngine::Sqlite).await;
    }

    #[tokio::test]
    async fn postgres() {
        super::a_stop_survives_a_restart(TestEngine::Postgres).await;
    }
}

//! What is heard of the task board, who is taken off it, and what people see of a room because of it.

use bandstand_server::settings::Limits;
use serde_json::{Value, json};

use crate::support::{Caller, Room, Socket, TestApp, stories};

stories!(
    those_in_the_room_hear_of_its_board,
    who_leaves_hears_nothing_more,
    who_leaves_is_taken_off_what_it_had_not_completed,
    who_comes_back_keeps_what_it_takes_up_then,
    many_tasks_are_left_in_batches,
    a_deleted_agent_is_taken_off,
    people_see_counts_and_agents,
    people_hear_when_counts_change,
    the_first_text_describes_the_room,
    the_work_status_of_a_room,
);
stories!(limits: Limits { tasks: false, ..Default::default() } => without_tasks_rooms_are_told_without_counts);

async fn creates(who: &Caller, room: &Room, subject: &str) -> Value {
    who.post(&room.path("/tasks"), json!({"subject": subject})).await.assert_status(201).data().clone()
}

async fn saves(who: &Caller, room: &Room, task: i64, body: Value) -> Value {
    who.post(&room.path(&format!("/tasks/{task}")), body).await.assert_status(200).data().clone()
}

async fn hears_board(who: &Caller, room: &Room) -> Socket {
    who.joins(&format!("room_tasks:{}", room.id)).await
}

async fn those_in_the_room_hear_of_its_board(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let foreign = app.global_agent(&eve, "foreign").await;
    let room = app.room_with(&ana, &[&bob, &olga, &foreign]).await;
    let topic = format!("room_tasks:{}", room.id);
    // The owner of a participating agent reads the talk, but takes no part in the board; a stranger neither.
    let cy = app.agent("cy").await;
    for stranger in [&eve, &cy] {
        let mut socket = stranger.socket().await;
        assert_eq!(socket.try_join(&topic).await, Err("unauthorized".to_owned()));
        socket.close().await;
    }
    let mut listeners = Vec::new();
    for who in [&ana, &bob, &olga, &foreign] {
        listeners.push(hears_board(who, &room).await);
    }
    let first = creates(&ana, &room, "First").await;
    let taken = saves(&bob, &room, 1, json!({"status": "in_progress", "active_form": "Reading"})).await;
    let noted = saves(&ana, &room, 1, json!({"comment": "Good"})).await;
    // What changes nothing is not told, nor is what is refused.
    saves(&bob, &room, 1, json!({"status": "in_progress"})).await;
    ana.post(&room.path("/tasks/1"), json!({"state": "superseded"})).await.assert_status(422);
    let body = json!({"subject": "Second", "supersedes_id": "1"});
    let second = bob.post(&room.path("/tasks"), body).await.assert_status(201).data().clone();
    let replaced = ana.get(&room.path("/tasks/1")).await.data().clone();
    let board = ana.put(&room.path("/board"), json!({"goal_title": "Ship it"})).await.assert_status(200);
    ana.put(&room.path("/board"), json!({"goal_title": "Ship it"})).await.assert_status(200);
    for socket in &mut listeners {
        for (event, payload) in [
            ("task_created", &first),
            ("task_updated", &taken),
            ("task_updated", &noted),
            ("task_created", &second),
            ("task_updated", &replaced),
            ("board_updated", board.data()),
        ] {
            assert_eq!(&socket.next_event(event).await, payload, "the same object as by REST");
        }
        socket.assert_silent().await;
    }
    for socket in listeners {
        socket.close().await;
    }
}

async fn who_leaves_hears_nothing_more(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let foreign = app.global_agent(&eve, "foreign").await;
    let room = app.room_with(&olga, &[&ana, &bob, &foreign]).await;
    // Eve takes part, and has an agent in the room.
    foreign.adds(&room, &eve).await.assert_status(201);
    let (mut bobs, mut eves) = (hears_board(&bob, &room).await, hears_board(&eve, &room).await);
    creates(&ana, &room, "First").await;
    bobs.next_event("task_created").await;
    eves.next_event("task_created").await;
    olga.removes(&room, &bob).await.assert_status(200);
    olga.removes(&room, &eve).await.assert_status(200);
    // She may still read the room, but the board is for those who take part.
    eve.get(&room.path("")).await.assert_status(200);
    creates(&ana, &room, "Second").await;
    bobs.assert_silent().await;
    eves.assert_silent().await;
    // Back in the room, the same channels go on.
    foreign.adds(&room, &eve).await.assert_status(201);
    olga.adds(&room, &bob).await.assert_status(201);
    creates(&ana, &room, "Third").await;
    assert_eq!(bobs.skip_to("task_created").await["subject"], "Third");
    assert_eq!(eves.skip_to("task_created").await["subject"], "Third");
    bobs.close().await;
    eves.close().await;
}

async fn who_leaves_is_taken_off_what_it_had_not_completed(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for (number, status) in [(1, "in_progress"), (2, "completed"), (3, "failed"), (4, "blocked"), (5, "blocked")] {
        creates(&ana, &room, "One").await;
        saves(&bob, &room, number, json!({"status": status})).await;
    }
    saves(&ana, &room, 1, json!({"status": "completed"})).await;
    saves(&ana, &room, 4, json!({"state": "archived"})).await;
    saves(&ana, &room, 5, json!({"state": "cancelled"})).await;
    let mut socket = hears_board(&ana, &room).await;
    app.clock.advance(60);
    ana.removes(&room, &bob).await.assert_status(200);
    for (number, overall, parts) in [(1, "completed", 1), (3, "pending", 0), (4, "pending", 0)] {
        let task = socket.next_event("task_updated").await;
        assert_eq!((&task["number"], &task["overall_status"]), (&json!(number), &json!(overall)));
        assert_eq!(task["assignments"].as_array().unwrap().len(), parts);
        let reply = ana.get(&room.path(&format!("/tasks/{number}?include=history"))).await.assert_status(200);
        let named = reply.named();
        let last = named["data"]["history"].as_array().unwrap().last().unwrap().clone();
        let by = json!({"id": "<bob>", "type": "Agent", "name": "bob", "handle": "olga/bob"});
        let expected = json!({"event": "dropped", "actor": by, "payload": {"reason": "no longer in the room"},
                              "at": "2026-01-01T00:01:00.000000Z"});
        assert_eq!(last, expected);
    }
    socket.assert_silent().await;
    socket.close().await;
    for (number, status) in [(2, "completed"), (5, "blocked")] {
        let task = ana.get(&room.path(&format!("/tasks/{number}"))).await;
        assert_eq!(task.data()["assignments"][0]["status"], status, "it stays as it was");
    }
    assert_eq!(app.owner().get(&room.path("")).await.data()["task_counts"]["failed"], 0);
}

async fn who_comes_back_keeps_what_it_takes_up_then(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for _ in 0..2 {
        creates(&ana, &room, "One").await;
    }
    // The second is taken up again after the return, before or after the job came to it: either way it stays.
    for _ in 0..10 {
        saves(&bob, &room, 1, json!({"status": "in_progress"})).await;
        saves(&bob, &room, 2, json!({"status": "in_progress"})).await;
        let mut socket = hears_board(&ana, &room).await;
        ana.removes(&room, &bob).await.assert_status(200);
        ana.adds(&room, &bob).await.assert_status(201);
        saves(&bob, &room, 2, json!({"status": "in_review"})).await;
        // The first one is dropped in any case.
        loop {
            let task = socket.next_event("task_updated").await;
            if task["number"] == 1 && task["assignments"] == json!([]) {
                break;
            }
        }
        socket.close().await;
        let second = ana.get(&room.path("/tasks/2")).await;
        assert_eq!(second.data()["assignments"][0]["status"], "in_review");
    }
}

async fn many_tasks_are_left_in_batches(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for number in 1..=103 {
        creates(&ana, &room, "One").await;
        saves(&bob, &room, number, json!({"status": "in_progress"})).await;
    }
    let mut socket = hears_board(&ana, &room).await;
    ana.removes(&room, &bob).await.assert_status(200);
    for number in 1..=103 {
        let task = socket.next_event("task_updated").await;
        assert_eq!((&task["number"], &task["assignments"]), (&json!(number), &json!([])));
    }
    socket.close().await;
    let counts = &app.owner().get(&room.path("")).await.data()["task_counts"].clone();
    assert_eq!((&counts["pending"], &counts["in_progress"]), (&json!(103), &json!(0)));
}

async fn a_deleted_agent_is_taken_off(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    creates(&bob, &room, "One").await;
    saves(&bob, &room, 1, json!({"status": "in_progress"})).await;
    let mut socket = hears_board(&ana, &room).await;
    app.owner().delete(&format!("agents/{}?force=true", bob.id)).await.assert_status(200);
    let task = socket.next_event("task_updated").await;
    assert_eq!((&task["assignments"], &task["overall_status"]), (&json!([]), &json!("pending")));
    assert_eq!(task["created_by"]["name"], "bob", "what was written stays written");
    socket.close().await;
}

async fn people_see_counts_and_agents(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let foreign = app.global_agent(&eve, "foreign").await;
    let empty = json!({"pending": 0, "in_progress": 0, "blocked": 0, "in_review": 0, "failed": 0, "completed": 0});
    let reply = olga.post("chats", json!({"chat": {"title": "Plans"}})).await.assert_status(201);
    let room = Room { id: reply.id() };
    assert_eq!(
        [
            &reply.data()["description"],
            &reply.data()["agents"],
            &reply.data()["task_counts"],
            &reply.data()["work_status"]
        ],
        [&Value::Null, &json!([]), &empty, &json!("idle")]
    );
    // In the order of joining, whatever their ids.
    for agent in [&foreign, &bob, &ana] {
        olga.adds(&room, agent).await.assert_status(201);
    }
    for (number, status) in [(1, "in_progress"), (2, "blocked"), (3, "blocked"), (4, "completed"), (5, "failed")] {
        creates(&ana, &room, "One").await;
        saves(&bob, &room, number, json!({"status": status})).await;
    }
    creates(&ana, &room, "Six").await;
    creates(&ana, &room, "Seven").await;
    saves(&bob, &room, 5, json!({"state": "cancelled"})).await;
    ana.post(&room.path("/tasks"), json!({"subject": "Eight", "supersedes_id": "7"})).await.assert_status(201);
    let counts = json!({"pending": 2, "in_progress": 1, "blocked": 2, "in_review": 0, "failed": 0, "completed": 1});
    let agents = json!([
        {"id": "<foreign>", "name": "foreign", "type": "Agent", "handle": "eve/foreign"},
        {"id": "<bob>", "name": "bob", "type": "Agent", "handle": "olga/bob"},
        {"id": "<ana>", "name": "ana", "type": "Agent", "handle": "olga/ana"},
    ]);
    let other = olga.creates_room().await;
    let list = olga.get("chats?order=asc").await.assert_status(200);
    assert_eq!(list.strings("id"), [room.id.clone(), other.id]);
    assert_eq!(list.rows()[1]["task_counts"], empty);
    let detail = olga.get(&room.path("")).await.assert_status(200);
    let renamed = olga.patch(&room.path(""), json!({"chat": {"title": "More plans"}})).await.assert_status(200);
    let archived = olga.post_nothing(&room.path("/archive")).await.assert_status(200);
    // Whoever reads the room because of an agent sees the same.
    let via = eve.get("chats?include=agent_rooms").await.assert_status(200);
    for shown in [&list.rows()[0], detail.data(), renamed.data(), archived.data(), &via.rows()[0]] {
        assert_eq!((&shown["task_counts"], &app.names.replace(&shown["agents"])), (&counts, &agents));
    }
    // Agents see none of it.
    assert!(ana.get(&room.path("")).await.data().get("task_counts").is_none());
}

async fn people_hear_when_counts_change(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let foreign = app.global_agent(&eve, "foreign").await;
    let room = app.room_with(&olga, &[&ana, &bob, &foreign]).await;
    let mut listeners =
        [olga.joins(&format!("user_rooms:{}", olga.id)).await, eve.joins(&format!("user_rooms:{}", eve.id)).await];
    let before = olga.get(&room.path("")).await.data()["updated_at"].clone();
    app.clock.advance(60);
    creates(&ana, &room, "One").await;
    saves(&ana, &room, 1, json!({"status": "in_progress"})).await;
    // Neither a note nor a second one at work changes a count.
    saves(&ana, &room, 1, json!({"comment": "x"})).await;
    saves(&bob, &room, 1, json!({"status": "in_progress"})).await;
    saves(&ana, &room, 1, json!({"status": "pending", "state": "archived"})).await;
    for socket in &mut listeners {
        for (pending, in_progress) in [(1, 0), (0, 1), (0, 0)] {
            let room = socket.next_event("room_updated").await;
            let counts = &room["task_counts"];
            assert_eq!((&counts["pending"], &counts["in_progress"]), (&json!(pending), &json!(in_progress)));
            assert_eq!(room["agents"].as_array().unwrap().len(), 3);
            assert_eq!(room["updated_at"], before, "the room itself did not change");
        }
        socket.assert_silent().await;
    }
    for socket in listeners {
        socket.close().await;
    }
}

async fn the_first_text_describes_the_room(app: TestApp) {
    let ana = app.agent("ana").await;
    let olga = app.owner();
    let reply = olga.post("chats", json!({"chat": {"title": "Plans"}})).await.assert_status(201);
    let room = Room { id: reply.id() };
    olga.adds(&room, &ana).await.assert_status(201);
    let mut socket = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    // What only names somebody says nothing of the room.
    ana.records(&room, "thought", "No text").await;
    olga.says(&room, &format!("@[[{}]]", ana.id), &[&ana]).await;
    olga.says(&room, &format!("please\n write  it {}", "and more ".repeat(30)), &[&ana]).await;
    olga.says(&room, "something else", &[&ana]).await;
    let told = socket.next_event("room_updated").await;
    let description = told["description"].as_str().unwrap();
    assert!(description.starts_with("please write it and more"), "{description}");
    assert!((190..=200).contains(&description.chars().count()), "{description}");
    assert_eq!(told["title"], "Plans");
    socket.assert_silent().await;
    socket.close().await;
    assert_eq!(olga.get(&room.path("")).await.data()["description"], description);
}

async fn the_work_status_of_a_room(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let status = async || {
        let shown = olga.get(&room.path("")).await.data()["work_status"].clone();
        assert_eq!(olga.get("chats").await.rows()[0]["work_status"], shown);
        shown
    };
    assert_eq!(status().await, "idle");
    ana.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(status().await, "working");
    let mut socket = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    creates(&ana, &room, "One").await;
    assert_eq!(socket.next_event("room_updated").await["work_status"], "working");
    socket.close().await;
    // A stop holds no reports on tasks: the agent may well say why it stands still.
    olga.post_nothing(&room.path("/agents/stop")).await.assert_status(200);
    assert_eq!(status().await, "stopped");
    saves(&ana, &room, 1, json!({"status": "blocked"})).await;
    olga.post_nothing(&room.path("/agents/play")).await.assert_status(200);
    ana.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    // A failed task is no failed agent, but a message that an agent could not handle is.
    saves(&ana, &room, 1, json!({"status": "failed"})).await;
    assert_eq!(status().await, "working");
    let message = olga.says(&room, "please", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    bob.marks(&room, &message, "failed").await.assert_status(200);
    assert_eq!(status().await, "failed");
    bob.handles(&room, &message).await;
    assert_eq!(status().await, "working");
    ana.post(&room.path("/activity"), json!({"working": false})).await.assert_status(200);
    assert_eq!(status().await, "idle");
}

async fn without_tasks_rooms_are_told_without_counts(app: TestApp) {
    let olga = app.owner();
    let room = app.room_with(&olga, &[]).await;
    let mut socket = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    olga.patch(&room.path(""), json!({"chat": {"title": "Plans"}})).await.assert_status(200);
    let told = socket.next_event("room_updated").await;
    for key in ["description", "agents", "task_counts", "work_status"] {
        assert!(told.get(key).is_none(), "{key} is left out: {told}");
    }
    let board = socket.try_join(&format!("room_tasks:{}", room.id)).await;
    assert!(board.is_err(), "the board is absent, and so is its topic: {board:?}");
    socket.close().await;
}

//! The task board: what tasks are, who may do what with them, and what is refused.

use bandstand_server::settings::Limits;
use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(
    a_new_task,
    the_first_status_joins,
    the_status_is_rolled_up,
    a_task_is_named_by_id_or_number,
    states_and_lists,
    a_task_is_replaced_by_another,
    what_is_refused_changes_nothing,
    texts_have_limits,
    the_board_is_for_those_in_the_room,
    an_archived_room_is_only_read,
    the_goal_and_its_trail,
    a_goal_is_refused,
    attention_names_a_task_of_the_room,
);
stories!(limits: Limits { tasks: false, ..Default::default() } => without_tasks_there_is_no_board);

/// Creates a task that must be taken.
pub(crate) async fn creates(who: &Caller, room: &Room, body: Value) -> Value {
    who.post(&room.path("/tasks"), body).await.assert_status(201).data().clone()
}

/// Saves something of a task that must be taken.
pub(crate) async fn saves(who: &Caller, room: &Room, task: &str, body: Value) -> Value {
    who.post(&room.path(&format!("/tasks/{task}")), body).await.assert_status(200).data().clone()
}

pub(crate) async fn shows(who: &Caller, room: &Room, task: &str) -> Value {
    who.get(&room.path(&format!("/tasks/{task}"))).await.assert_status(200).data().clone()
}

pub(crate) async fn numbers(who: &Caller, room: &Room, query: &str) -> Vec<i64> {
    let reply = who.get(&room.path(&format!("/tasks{query}"))).await.assert_status(200);
    reply.rows().iter().map(|task| task["number"].as_i64().unwrap()).collect()
}

/// The events of a task's history, each with its payload.
pub(crate) async fn history(who: &Caller, room: &Room, task: &str) -> Vec<(String, Value)> {
    let reply = who.get(&room.path(&format!("/tasks/{task}/history?limit=100"))).await.assert_status(200);
    reply.rows().iter().map(|row| (row["event"].as_str().unwrap().to_owned(), row["payload"].clone())).collect()
}

async fn a_new_task(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let me = ana.get("me").await;
    assert_eq!(me.data()["feature_flags"]["ff_room_tasks"], true, "agents are told that there is a board");
    let room = app.room_with(&ana, &[&bob]).await;
    let reply = ana.post(&room.path("/tasks"), json!({"subject": "  Write it ", "detail": "All of it\n"})).await;
    let by = json!({"id": "<ana>", "type": "Agent", "name": "ana", "handle": "olga/ana"});
    assert_eq!(
        reply.assert_status(201).named(),
        json!({"data": {
            "id": "<id>", "number": 1, "chat_room_id": "<room>", "subject": "Write it", "detail": "All of it\n",
            "state": "active", "overall_status": "pending", "superseded_by_id": null, "created_by": by,
            "assignments": [], "started_at": null, "completed_at": null,
            "inserted_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z",
        }})
    );
    let bare = creates(&bob, &room, json!({"subject": "Read it", "detail": null, "supersedes_id": null})).await;
    assert_eq!((&bare["number"], &bare["detail"]), (&json!(2), &json!("")));
    // Another room counts for itself.
    let other = app.room_with(&ana, &[]).await;
    assert_eq!(creates(&ana, &other, json!({"subject": "Alone"})).await["number"], 1);

    let list = ana.get(&room.path("/tasks")).await.assert_status(200);
    assert_eq!(list.metadata(), &json!({"has_more": false, "limit": 50, "next_cursor": null}));
    assert_eq!(list.strings("subject"), ["Write it", "Read it"]);
    let history = ana.get(&room.path("/tasks/1?include=history")).await;
    let created = json!({"event": "created", "actor": by, "payload": {"subject": "Write it", "detail": "All of it\n"},
                         "at": "2026-01-01T00:00:00.000000Z"});
    assert_eq!(history.named()["data"]["history"], json!([created]));
    assert_eq!(history.data()["history_truncated"], false);
}

async fn the_first_status_joins(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    for field in ["active_form", "linked_native_id"] {
        let reply = bob.post(&room.path("/tasks/1"), json!({field: "x"})).await;
        reply.assert_invalid(&[&format!("/{field}")]);
    }
    app.clock.advance(60);
    let body = json!({"status": "in_progress", "active_form": "Writing", "linked_native_id": "todo-7"});
    let reply = bob.post(&room.path("/tasks/1"), body).await.assert_status(200);
    assert_eq!(
        reply.named()["data"]["assignments"],
        json!([{
            "assignee": {"id": "<bob>", "type": "Agent", "name": "bob", "handle": "olga/bob"},
            "status": "in_progress", "active_form": "Writing", "linked_native_id": "todo-7",
            "updated_at": "2026-01-01T00:01:00.000000Z",
        }])
    );
    assert_eq!(reply.data()["started_at"], "2026-01-01T00:01:00.000000Z");
    // Each says only what is its own.
    app.clock.advance(60);
    saves(&ana, &room, "1", json!({"status": "pending"})).await;
    let task = saves(&bob, &room, "1", json!({"active_form": ""})).await;
    let parts: Vec<_> = task["assignments"].as_array().unwrap().iter().map(|part| app.names.replace(part)).collect();
    assert_eq!(parts[0]["active_form"], "");
    assert_eq!((&parts[0]["status"], &parts[1]["status"]), (&json!("in_progress"), &json!("pending")));
    assert_eq!(parts[1]["assignee"]["id"], "<ana>");
    assert_eq!(task["updated_at"], "2026-01-01T00:02:00.000000Z");
    // What is the same as before is no save.
    let before = shows(&bob, &room, "1").await;
    app.clock.advance(60);
    assert_eq!(saves(&bob, &room, "1", json!({"status": "in_progress", "linked_native_id": "todo-7"})).await, before);
    let told: Vec<String> = history(&ana, &room, "1").await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(told, ["created", "status_changed", "status_changed"]);
}

async fn the_status_is_rolled_up(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    let at = |minute: u32| json!(format!("2026-01-01T00:0{minute}:00.000000Z"));
    for (minute, who, status, overall, started, completed) in [
        (1, &ana, "pending", "pending", Value::Null, Value::Null),
        (2, &ana, "completed", "completed", at(2), at(2)),
        (3, &bob, "in_review", "in_review", at(2), Value::Null),
        (4, &bob, "completed", "completed", at(2), at(4)),
        (5, &ana, "in_progress", "in_progress", at(2), Value::Null),
        (6, &bob, "blocked", "blocked", at(2), Value::Null),
        (7, &ana, "failed", "failed", at(2), Value::Null),
        (8, &ana, "pending", "blocked", at(2), Value::Null),
        (9, &bob, "pending", "pending", at(2), Value::Null),
    ] {
        app.clock.advance(60);
        let task = saves(who, &room, "1", json!({"status": status})).await;
        assert_eq!(task["overall_status"], overall, "{minute}");
        assert_eq!((&task["started_at"], &task["completed_at"]), (&started, &completed), "{minute}");
        assert_eq!(task["updated_at"], at(minute));
    }
}

async fn a_task_is_named_by_id_or_number(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (room, other) = (app.room_with(&ana, &[&bob]).await, app.room_with(&ana, &[]).await);
    let task = creates(&ana, &room, json!({"subject": "Write it"})).await;
    let elsewhere = creates(&ana, &other, json!({"subject": "Elsewhere"})).await;
    creates(&ana, &other, json!({"subject": "Elsewhere, too"})).await;
    let id = task["id"].as_str().unwrap();
    for named in [id, &id.to_uppercase(), "1", "%231"] {
        assert_eq!(shows(&ana, &room, named).await["id"], id, "{named}");
        assert_eq!(history(&ana, &room, named).await.len(), 1);
    }
    saves(&bob, &room, id, json!({"status": "completed"})).await;
    assert_eq!(shows(&bob, &room, "1").await["overall_status"], "completed");
    for unknown in ["2", "0", "-1", "one", "1.0", "99999999999999999999", elsewhere["id"].as_str().unwrap()] {
        let path = room.path(&format!("/tasks/{unknown}"));
        bob.get(&path).await.assert_error(404, "not_found");
        bob.get(&format!("{path}/history")).await.assert_error(404, "not_found");
        bob.post(&path, json!({"status": "completed"})).await.assert_error(404, "not_found");
    }
}

async fn states_and_lists(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    for number in 1..=6 {
        creates(&ana, &room, json!({"subject": format!("Task {number}")})).await;
    }
    saves(&ana, &room, "2", json!({"state": "cancelled"})).await;
    saves(&ana, &room, "3", json!({"status": "completed", "state": "archived"})).await;
    saves(&ana, &room, "5", json!({"state": "archived"})).await;
    creates(&ana, &room, json!({"subject": "Task 7", "supersedes_id": "4"})).await;
    for (query, expected) in [
        ("", vec![1, 6, 7]),
        ("?state=active", vec![1, 6, 7]),
        ("?state=cancelled", vec![2]),
        ("?state=superseded", vec![4]),
        ("?state=archived", vec![3, 5]),
        ("?state=all", vec![1, 2, 3, 4, 5, 6, 7]),
    ] {
        assert_eq!(numbers(&ana, &room, query).await, expected, "{query}");
    }
    // Pages by cursor.
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = ana.get(&room.path(&format!("/tasks?state=all&limit=3{cursor}"))).await.assert_status(200);
        seen.extend(reply.rows().iter().map(|task| task["number"].as_i64().unwrap()));
        assert_eq!(reply.metadata()["has_more"], reply.metadata()["next_cursor"].is_string());
        let Some(next) = reply.metadata()["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
    let other = ana.get(&room.path(&format!("/tasks?state=active{cursor}"))).await;
    other.assert_error(422, "cursor_filter_mismatch");
    for (query, places) in [
        ("?state=gone", &["/state"][..]),
        ("?limit=0", &["/limit"]),
        ("?cursor=nope", &["/cursor"]),
        ("?page=1", &["/page"]),
    ] {
        ana.get(&room.path(&format!("/tasks{query}"))).await.assert_invalid(places);
    }
    ana.get(&room.path("/tasks/1?include=all")).await.assert_invalid(&["/include/0"]);

    // Only an archived task comes back, and only an active one takes work.
    let back = saves(&ana, &room, "3", json!({"state": "active"})).await;
    assert_eq!((&back["state"], &back["overall_status"]), (&json!("active"), &json!("completed")));
    saves(&ana, &room, "5", json!({"state": "active", "comment": "Not yet"})).await;
    assert_eq!(numbers(&ana, &room, "").await, [1, 3, 5, 6, 7]);
    let told: Vec<String> = history(&ana, &room, "5").await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(told, ["created", "archived", "unarchived", "commented"]);
    for (task, body, place) in [
        ("2", json!({"state": "active"}), "/state"),
        ("4", json!({"state": "active"}), "/state"),
        ("2", json!({"state": "archived"}), "/state"),
        ("2", json!({"status": "completed"}), "/status"),
        ("4", json!({"comment": "x"}), "/comment"),
        ("2", json!({"subject": "x"}), "/subject"),
        ("2", json!({"detail": "x"}), "/detail"),
        ("2", json!({"active_form": "x"}), "/active_form"),
    ] {
        let before = history(&ana, &room, task).await;
        ana.post(&room.path(&format!("/tasks/{task}")), body).await.assert_invalid(&[place]);
        assert_eq!(history(&ana, &room, task).await, before);
    }
    assert_eq!(saves(&ana, &room, "2", json!({"state": "cancelled"})).await["state"], "cancelled", "a repeat is none");
}

async fn a_task_is_replaced_by_another(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let first = creates(&ana, &room, json!({"subject": "First"})).await;
    saves(&ana, &room, "1", json!({"status": "in_progress"})).await;
    let second = creates(&bob, &room, json!({"subject": "Second", "supersedes_id": first["id"]})).await;
    let third = creates(&ana, &room, json!({"subject": "Third", "supersedes_id": "#2"})).await;
    let [one, two, three] =
        [shows(&ana, &room, "1").await, shows(&ana, &room, "2").await, shows(&ana, &room, "3").await];
    assert_eq!((&one["state"], &one["superseded_by_id"]), (&json!("superseded"), &second["id"]));
    assert_eq!((&two["state"], &two["superseded_by_id"]), (&json!("superseded"), &third["id"]));
    assert_eq!((&three["state"], &three["superseded_by_id"]), (&json!("active"), &Value::Null));
    assert_eq!(one["assignments"].as_array().unwrap().len(), 1, "it stays as it was, as a record");
    assert_eq!(
        history(&ana, &room, "1").await.last().unwrap(),
        &(
            "superseded".to_owned(),
            json!({"state": {"from": "active", "to": "superseded"}, "superseded_by_id": second["id"]})
        )
    );
    assert_eq!(
        history(&ana, &room, "2").await[0],
        ("created".to_owned(), json!({"subject": "Second", "detail": "", "supersedes_id": first["id"]}))
    );
    for gone in ["1", "2", "9", "x", "##3", "00000000-0000-4000-8000-00000000dead"] {
        let body = json!({"subject": "No", "supersedes_id": gone});
        ana.post(&room.path("/tasks"), body).await.assert_invalid(&["/supersedes_id"]);
    }
    // A refused task gives its number back.
    assert_eq!(creates(&ana, &room, json!({"subject": "Fourth"})).await["number"], 4);
}

async fn what_is_refused_changes_nothing(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    let before = shows(&ana, &room, "1?include=history").await;
    for (body, places) in [
        (json!({}), &["/subject"][..]),
        (json!({"subject": null}), &["/subject"]),
        (json!({"subject": " \u{200b} "}), &["/subject"]),
        (json!({"subject": 5, "detail": 5, "supersedes_id": 5}), &["/subject", "/detail", "/supersedes_id"]),
        (json!({"subject": "x", "status": "pending"}), &["/status"]),
        (json!({"subject": "a\0b", "detail": "a\0b"}), &["/subject", "/detail"]),
        (json!({"subject": "x", "supersedes_id": "1\0"}), &["/supersedes_id"]),
        (json!({"subject": "x".repeat(501), "detail": "x".repeat(16_385)}), &["/subject", "/detail"]),
        (json!([]), &["/"]),
    ] {
        ana.post(&room.path("/tasks"), body).await.assert_invalid(places);
    }
    for (body, places) in [
        (json!({}), &["/"][..]),
        (json!({"status": null}), &["/"]),
        (json!({"status": "done", "state": "superseded"}), &["/status", "/state"]),
        (json!({"status": "pending", "number": 5}), &["/number"]),
        (json!({"comment": " "}), &["/comment"]),
        (json!({"subject": ""}), &["/subject"]),
        (
            json!({"comment": "\0", "active_form": "\0", "linked_native_id": "\0"}),
            &["/active_form", "/linked_native_id", "/comment"],
        ),
        (json!({"active_form": "x".repeat(501), "status": "pending"}), &["/active_form"]),
        (json!({"linked_native_id": "x".repeat(501), "status": "pending"}), &["/linked_native_id"]),
        (json!({"comment": "x".repeat(16_385)}), &["/comment"]),
        (json!("x"), &["/"]),
    ] {
        ana.post(&room.path("/tasks/1"), body).await.assert_invalid(places);
    }
    ana.post(&room.path("/tasks?colour=red"), json!({"subject": "x"})).await.assert_invalid(&["/colour"]);
    ana.post(&room.path("/tasks/1?colour=red"), json!({"comment": "x"})).await.assert_invalid(&["/colour"]);
    ana.put(&room.path("/board?colour=red"), json!({"goal_title": "x"})).await.assert_invalid(&["/colour"]);
    let broken = ana.send(reqwest::Method::POST, &room.path("/tasks"), None, Some(b"{".to_vec())).await;
    broken.assert_error(400, "bad_request");
    assert_eq!(shows(&ana, &room, "1?include=history").await, before);
    assert_eq!(numbers(&ana, &room, "?state=all").await, [1]);
}

async fn texts_have_limits(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    // Characters, not bytes.
    let (line, text) = ("ü".repeat(500), "\u{1}".repeat(16_383) + "漢");
    creates(&ana, &room, json!({"subject": line, "detail": text})).await;
    let body = json!({"status": "pending", "active_form": line, "linked_native_id": line, "comment": text});
    let task = saves(&ana, &room, "1", body).await;
    assert_eq!((&task["detail"], &task["assignments"][0]["active_form"]), (&json!(text), &json!(line)));
    let goal = json!({"goal_title": line, "goal_summary": text});
    ana.put(&room.path("/board"), goal).await.assert_status(200);
}

/// Every route of a board.
async fn every_route(who: &Caller, room: &Room) -> Vec<crate::support::Reply> {
    vec![
        who.get(&room.path("/tasks")).await,
        who.post(&room.path("/tasks"), json!({"subject": "x"})).await,
        who.get(&room.path("/tasks/1")).await,
        who.post(&room.path("/tasks/1"), json!({"status": "pending"})).await,
        who.get(&room.path("/tasks/1/history")).await,
        who.get(&room.path("/board")).await,
        who.put(&room.path("/board"), json!({"goal_title": "x"})).await,
    ]
}

async fn the_board_is_for_those_in_the_room(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&cy]).await;
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    ana.removes(&room, &cy).await.assert_status(200);
    let nowhere = Room { id: "00000000-0000-4000-8000-00000000dead".into() };
    let malformed = Room { id: "room-1".into() };
    for (who, room) in [(&bob, &room), (&cy, &room), (&ana, &nowhere), (&ana, &malformed)] {
        for reply in every_route(who, room).await {
            reply.assert_error(404, "not_found");
        }
    }
    // A person has no such routes, and no key opens nothing.
    let olga = app.owner();
    let path = format!("/api/v1/agent/{}", room.path("/tasks"));
    olga.get(&path).await.assert_error(403, "forbidden");
    app.nobody().get(&path).await.assert_error(401, "unauthorized");
    assert_eq!(numbers(&ana, &room, "?state=all").await, [1]);
    assert_eq!(ana.get(&room.path("/board")).await.data()["goal_title"], Value::Null);
}

async fn an_archived_room_is_only_read(app: TestApp) {
    let ana = app.agent("ana").await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana]).await;
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    olga.post_nothing(&room.path("/archive")).await.assert_status(200);
    for reply in every_route(&ana, &room).await {
        match reply.method.as_str() {
            "GET" => drop(reply.assert_status(200)),
            _ => drop(reply.assert_error(403, "forbidden")),
        }
    }
    // What does not exist is said first.
    ana.post(&room.path("/tasks/x"), json!({"status": "pending"})).await.assert_error(404, "not_found");
    olga.post_nothing(&room.path("/unarchive")).await.assert_status(200);
    assert_eq!(shows(&ana, &room, "1").await["assignments"], json!([]));
    saves(&ana, &room, "1", json!({"status": "pending"})).await;
}

async fn the_goal_and_its_trail(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let unset = json!({"chat_room_id": "<room>", "goal_title": null, "goal_summary": null, "created_by": null,
                       "updated_by": null, "inserted_at": null, "updated_at": null});
    assert_eq!(ana.get(&room.path("/board")).await.assert_status(200).named()["data"], unset);
    let reply = ana.put(&room.path("/board"), json!({"goal_title": null, "goal_summary": " "})).await;
    assert_eq!(reply.assert_status(200).named()["data"], unset, "nothing was set");
    // A board that has tasks has no goal by that.
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    assert_eq!(ana.get(&room.path("/board")).await.named()["data"], unset);

    let set = ana.put(&room.path("/board"), json!({"goal_title": " Ship it "})).await.assert_status(200);
    let (a, b) = (
        json!({"id": "<ana>", "type": "Agent", "name": "ana", "handle": "olga/ana"}),
        json!({"id": "<bob>", "type": "Agent", "name": "bob", "handle": "olga/bob"}),
    );
    let (zero, one) = ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:01:00.000000Z");
    let expected = json!({"chat_room_id": "<room>", "goal_title": "Ship it", "goal_summary": null, "created_by": a,
                          "updated_by": a, "inserted_at": zero, "updated_at": zero});
    assert_eq!(set.named()["data"], expected);
    app.clock.advance(60);
    ana.put(&room.path("/board"), json!({"goal_title": "Ship it"})).await.assert_status(200);
    let edited = bob.put(&room.path("/board"), json!({"goal_title": null, "goal_summary": "All of it"})).await;
    let expected = json!({"chat_room_id": "<room>", "goal_title": null, "goal_summary": "All of it", "created_by": a,
                          "updated_by": b, "inserted_at": zero, "updated_at": one});
    assert_eq!(edited.assert_status(200).named()["data"], expected);
    let shown = ana.get(&room.path("/board?include=history")).await.assert_status(200).named();
    assert_eq!(
        shown["data"]["history"],
        json!([
            {"event": "goal_set", "actor": a, "payload": {"goal_title": {"from": null, "to": "Ship it"}}, "at": zero},
            {"event": "goal_edited", "actor": b, "at": one,
             "payload": {"goal_title": {"from": "Ship it", "to": null}, "goal_summary": {"from": null, "to": "All of it"}}},
        ])
    );
    assert_eq!(shown["data"]["history_truncated"], false);
    // The newest hundred are shown, oldest first.
    for number in 0..100 {
        ana.put(&room.path("/board"), json!({"goal_title": format!("Goal {number}")})).await.assert_status(200);
    }
    let shown = ana.get(&room.path("/board?include=history")).await.assert_status(200);
    let rows = shown.data()["history"].as_array().unwrap();
    assert_eq!((rows.len(), &shown.data()["history_truncated"]), (100, &json!(true)));
    assert_eq!(rows[0]["payload"]["goal_title"], json!({"from": null, "to": "Goal 0"}));
    assert_eq!(rows[99]["payload"]["goal_title"], json!({"from": "Goal 98", "to": "Goal 99"}));
}

async fn a_goal_is_refused(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    for (body, places) in [
        (json!({}), &["/"][..]),
        (json!({"goal_title": 1, "goal_summary": []}), &["/goal_title", "/goal_summary"]),
        (json!({"goal_title": "a\0", "goal_summary": "a\0"}), &["/goal_title", "/goal_summary"]),
        (json!({"goal_title": "x".repeat(501), "goal_summary": "x".repeat(16_385)}), &["/goal_title", "/goal_summary"]),
        (json!({"goal_title": "x", "chat_room_id": "x"}), &["/chat_room_id"]),
        (json!([]), &["/"]),
    ] {
        ana.put(&room.path("/board"), body).await.assert_invalid(places);
    }
    ana.get(&room.path("/board?include=x")).await.assert_invalid(&["/include/0"]);
    assert_eq!(ana.get(&room.path("/board")).await.data()["created_by"], Value::Null);
}

async fn attention_names_a_task_of_the_room(app: TestApp) {
    let ana = app.agent("ana").await;
    let (room, other) = (app.room_with(&ana, &[]).await, app.room_with(&ana, &[]).await);
    let task = creates(&ana, &room, json!({"subject": "Write it"})).await;
    let elsewhere = creates(&ana, &other, json!({"subject": "Elsewhere"})).await;
    saves(&ana, &room, "1", json!({"state": "cancelled"})).await;
    let event = |task: &Value| {
        let metadata = json!({"kind": "question", "task_id": task});
        json!({"event": {"content": "Well?", "message_type": "attention", "metadata": metadata}})
    };
    for known in [&task["id"], &json!("1"), &json!("#1"), &Value::Null] {
        ana.post(&room.path("/events"), event(known)).await.assert_status(201);
    }
    for unknown in [&elsewhere["id"], &json!("2"), &json!("x"), &json!(1), &json!("")] {
        ana.post(&room.path("/events"), event(unknown)).await.assert_invalid(&["/event/metadata/task_id"]);
    }
    assert_eq!(
        app.owner().get(&room.path("?include=message_counts")).await.data()["message_counts"],
        json!({"attention": 4})
    );
}

async fn without_tasks_there_is_no_board(app: TestApp) {
    let ana = app.agent("ana").await;
    assert_eq!(ana.get("me").await.data()["feature_flags"]["ff_room_tasks"], false);
    let room = app.room_with(&ana, &[&app.owner()]).await;
    for reply in every_route(&ana, &room).await {
        reply.assert_error(404, "not_found");
    }
    ana.post(&room.path("/tasks"), json!({"nonsense": 1})).await.assert_error(404, "not_found");
    app.nobody().get(&format!("/api/v1/agent/{}", room.path("/tasks"))).await.assert_error(401, "unauthorized");
    app.owner().get(&format!("/api/v1/agent/{}", room.path("/tasks"))).await.assert_error(403, "forbidden");
    let metadata = json!({"kind": "question", "task_id": "1"});
    let event = json!({"event": {"content": "Well?", "message_type": "attention", "metadata": metadata}});
    ana.post(&room.path("/events"), event).await.assert_invalid(&["/event/metadata/task_id"]);
    for room in [app.owner().get(&room.path("")).await.data(), &app.owner().get("chats").await.rows()[0]] {
        for key in ["description", "agents", "task_counts", "work_status"] {
            assert!(room.get(key).is_none(), "{key} is left out: {room}");
        }
    }
}

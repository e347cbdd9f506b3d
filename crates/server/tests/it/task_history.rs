//! The history of a task: pages of it, what of it a task shows, and that it tells all that became of the task.

use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(pages_go_on_whichever_way_the_task_is_named, the_newest_hundred_are_shown, the_history_replays_to_the_task,);

async fn saves(who: &Caller, room: &Room, task: &str, body: Value) {
    who.post(&room.path(&format!("/tasks/{task}")), body).await.assert_status(200);
}

async fn pages_go_on_whichever_way_the_task_is_named(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    let id = ana.post(&room.path("/tasks"), json!({"subject": "One"})).await.assert_status(201).id();
    ana.post(&room.path("/tasks"), json!({"subject": "Two"})).await.assert_status(201);
    for number in 0..6 {
        saves(&ana, &room, "1", json!({"comment": format!("note {number}")})).await;
        saves(&ana, &room, "2", json!({"comment": format!("note {number}")})).await;
    }
    let (mut seen, mut cursor, mut names) = (Vec::new(), String::new(), ["1", id.as_str()].into_iter().cycle());
    loop {
        let named = names.next().unwrap();
        let reply = ana.get(&room.path(&format!("/tasks/{named}/history?limit=2{cursor}"))).await.assert_status(200);
        seen.extend(reply.rows().iter().map(|row| row["payload"]["text"].as_str().unwrap_or("created").to_owned()));
        let Some(next) = reply.metadata()["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, ["created", "note 0", "note 1", "note 2", "note 3", "note 4", "note 5"]);
    ana.get(&room.path(&format!("/tasks/2/history?limit=2{cursor}"))).await.assert_error(422, "cursor_filter_mismatch");
    ana.get(&room.path(&format!("/tasks?limit=2{cursor}"))).await.assert_error(422, "cursor_filter_mismatch");
    for (query, place) in [("?cursor=x", "/cursor"), ("?limit=x", "/limit"), ("?page_size=1", "/page_size")] {
        ana.get(&room.path(&format!("/tasks/1/history{query}"))).await.assert_invalid(&[place]);
    }
    let default = ana.get(&room.path("/tasks/1/history")).await.assert_status(200);
    assert_eq!(default.metadata(), &json!({"has_more": false, "limit": 50, "next_cursor": null}));
}

async fn the_newest_hundred_are_shown(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    ana.post(&room.path("/tasks"), json!({"subject": "One"})).await.assert_status(201);
    for number in 1..100 {
        saves(&ana, &room, "1", json!({"comment": format!("note {number}")})).await;
    }
    let shown = ana.get(&room.path("/tasks/1?include=history")).await.assert_status(200);
    let rows = shown.data()["history"].as_array().unwrap();
    assert_eq!((rows.len(), &shown.data()["history_truncated"]), (100, &json!(false)));
    assert_eq!(rows[0]["event"], "created");
    saves(&ana, &room, "1", json!({"comment": "note 100"})).await;
    let shown = ana.get(&room.path("/tasks/1?include=history")).await.assert_status(200);
    let rows = shown.data()["history"].as_array().unwrap();
    assert_eq!((rows.len(), &shown.data()["history_truncated"]), (100, &json!(true)));
    let texts: Vec<&str> = rows.iter().map(|row| row["payload"]["text"].as_str().unwrap()).collect();
    assert_eq!((texts[0], texts[99]), ("note 1", "note 100"));
    let whole = ana.get(&room.path("/tasks/1/history?limit=100")).await;
    assert_eq!(whole.metadata()["has_more"], true);
    let task = ana.get(&room.path("/tasks/1")).await;
    assert!(task.data().get("history").is_none() && task.data().get("history_truncated").is_none());
}

/// The same numbers in each run, as far from each other as a test needs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// What a history says of its task, worked out from what was answered alone.
fn replayed(rows: &[Value]) -> Value {
    let mut task = json!({"state": "active", "superseded_by_id": null});
    let mut parts: Vec<(Value, Value, Value)> = Vec::new();
    for row in rows {
        let (payload, actor) = (&row["payload"], &row["actor"]);
        let mut change = |field: &str| {
            if let Some(change) = payload.get(field) {
                assert_eq!(task[field], change["from"], "{row}");
                task[field] = change["to"].clone();
            }
        };
        match row["event"].as_str().unwrap() {
            "created" => {
                for field in ["subject", "detail"] {
                    task[field] = payload[field].clone();
                }
                (task["created_by"], task["inserted_at"]) = (actor.clone(), row["at"].clone());
            }
            "edited" => ["subject", "detail"].iter().for_each(|field| change(field)),
            "status_changed" => {
                let (status, link) = (&payload["status"], payload.get("linked_native_id").cloned());
                match parts.iter_mut().find(|(who, _, _)| who["id"] == actor["id"]) {
                    Some(part) => {
                        assert_eq!(part.1, status["from"]);
                        (part.1, part.2) = (status["to"].clone(), link.unwrap_or(part.2.clone()));
                    }
                    None => {
                        assert_eq!(status["from"], Value::Null);
                        parts.push((actor.clone(), status["to"].clone(), link.unwrap_or(json!(""))));
                    }
                }
            }
            "commented" => assert!(payload["text"].is_string()),
            "dropped" => parts.retain(|(who, _, _)| who["id"] != actor["id"]),
            "cancelled" | "archived" | "unarchived" => change("state"),
            "superseded" => {
                change("state");
                task["superseded_by_id"] = payload["superseded_by_id"].clone();
            }
            other => panic!("{other} is no event of a task"),
        }
    }
    let parts = parts.into_iter().map(|(who, status, link)| json!([who, status, link])).collect::<Vec<_>>();
    task["parts"] = Value::Array(parts);
    task
}

/// The same of a task as it is.
fn shown(task: &Value) -> Value {
    let part = |part: &Value| json!([part["assignee"], part["status"], part["linked_native_id"]]);
    json!({
        "state": task["state"], "superseded_by_id": task["superseded_by_id"], "subject": task["subject"],
        "detail": task["detail"], "created_by": task["created_by"], "inserted_at": task["inserted_at"],
        "parts": task["assignments"].as_array().unwrap().iter().map(part).collect::<Vec<_>>(),
    })
}

async fn the_history_replays_to_the_task(app: TestApp) {
    let agents = app.agents(["ana", "bob", "cy"]).await;
    let [ana, bob, cy] = &agents;
    let room = app.room_with(ana, &[bob, cy]).await;
    let mut dice = Dice(42);
    let mut tasks = 0;
    for _ in 0..6 {
        ana.post(&room.path("/tasks"), json!({"subject": "a"})).await.assert_status(201);
        tasks += 1;
    }
    for _ in 0..250 {
        app.clock.advance(1);
        let (who, task) = (&agents[dice.below(3)], 1 + dice.below(tasks));
        if dice.below(12) == 0 {
            let body = json!({"subject": "b", "supersedes_id": task.to_string()});
            if who.post(&room.path("/tasks"), body).await.status == 201 {
                tasks += 1;
            }
            continue;
        }
        let mut body = json!({});
        for (field, values, often) in [
            ("status", &["pending", "in_progress", "blocked", "in_review", "failed", "completed"][..], 2),
            ("active_form", &["", "a", "b"], 4),
            ("linked_native_id", &["", "a", "b"], 4),
            ("comment", &["a", "b"], 4),
            ("subject", &["a", "b", "c"], 4),
            ("detail", &["", "a", "b"], 4),
            ("state", &["archived", "active", "active", "archived", "active", "active", "active", "cancelled"], 4),
        ] {
            if dice.below(often) == 0 {
                body[field] = json!(dice.one(values));
            }
        }
        // Whatever is refused must leave nothing behind.
        let status = who.post(&room.path(&format!("/tasks/{task}")), body).await.status;
        assert!(matches!(status, 200 | 422), "{status}");
    }
    ana.post(&room.path("/tasks"), json!({"subject": "c"})).await.assert_status(201);
    tasks += 1;
    saves(cy, &room, &tasks.to_string(), json!({"status": "blocked"})).await;
    // One operation takes it off all of them, so the first push tells that it is done.
    let mut socket = ana.joins(&format!("room_tasks:{}", room.id)).await;
    ana.removes(&room, cy).await.assert_status(200);
    socket.next_event("task_updated").await;
    socket.close().await;
    let mut kinds = std::collections::BTreeSet::new();
    for task in 1..=tasks {
        let (mut rows, mut cursor) = (Vec::new(), String::new());
        loop {
            let reply = ana.get(&room.path(&format!("/tasks/{task}/history?limit=7{cursor}"))).await.assert_status(200);
            rows.extend_from_slice(reply.rows());
            let Some(next) = reply.metadata()["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        kinds.extend(rows.iter().map(|row| row["event"].as_str().unwrap().to_owned()));
        let reply = ana.get(&room.path(&format!("/tasks/{task}"))).await.assert_status(200);
        assert_eq!(replayed(&rows), shown(reply.data()), "task {task}");
    }
    assert_eq!(kinds.len(), 9, "every kind of row was seen: {kinds:?}");
}

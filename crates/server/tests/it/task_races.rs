//! Many at one board at once: each number is given once, one of many wins, and no save is lost.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::{TestApp, stories};
use crate::tasks::{creates, history, numbers, saves, shows};

stories!(numbers_have_no_gaps_however_many_ask, of_many_that_replace_a_task_one_wins, many_work_on_one_task_at_once,);

async fn numbers_have_no_gaps_however_many_ask(app: TestApp) {
    let agents = app.agents(["ana", "bob", "cy", "dee"]).await;
    let [ana, others @ ..] = &agents;
    let room = app.room_with(ana, &others.each_ref()).await;
    // Every fourth is refused in between, and must leave no hole.
    let replies = join_all((0..86).map(|place| {
        let who = &agents[place % agents.len()];
        let room = &room;
        async move {
            let refused = (place % 4 == 3).then_some("999");
            who.post(&room.path("/tasks"), json!({"subject": format!("Task {place}"), "supersedes_id": refused})).await
        }
    }))
    .await;
    let mut given: Vec<i64> = Vec::new();
    for (place, reply) in replies.into_iter().enumerate() {
        if place % 4 == 3 {
            reply.assert_invalid(&["/supersedes_id"]);
        } else {
            given.push(reply.assert_status(201).data()["number"].as_i64().unwrap());
        }
    }
    given.sort_unstable();
    assert_eq!(given, (1..=65).collect::<Vec<_>>());
    assert_eq!(numbers(ana, &room, "?limit=100").await, given);
}

async fn of_many_that_replace_a_task_one_wins(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    creates(&ana, &room, json!({"subject": "Write it"})).await;
    let replies = join_all((0..32).map(|place| {
        let who = if place % 2 == 0 { &ana } else { &bob };
        let room = &room;
        async move { who.post(&room.path("/tasks"), json!({"subject": "Better", "supersedes_id": "1"})).await }
    }))
    .await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![422; 31]].concat());
    assert_eq!(numbers(&ana, &room, "?state=all").await, [1, 2]);
    assert_eq!(shows(&ana, &room, "1").await["superseded_by_id"], shows(&ana, &room, "2").await["id"]);
}

async fn many_work_on_one_task_at_once(app: TestApp) {
    let olga = app.owner();
    let room = app.room_with(&olga, &[]).await;
    let mut agents = Vec::new();
    for number in 0..16 {
        let agent = app.agent(&format!("agent {number}")).await;
        olga.adds(&room, &agent).await.assert_status(201);
        agents.push(agent);
    }
    creates(&agents[0], &room, json!({"subject": "Write it"})).await;
    join_all(agents.iter().map(|agent| async {
        for status in ["in_progress", "in_review", "completed"] {
            saves(agent, &room, "1", json!({"status": status, "comment": status})).await;
        }
    }))
    .await;
    let task = shows(&agents[0], &room, "1").await;
    assert_eq!((&task["overall_status"], task["assignments"].as_array().unwrap().len()), (&json!("completed"), 16));
    assert_eq!(history(&agents[0], &room, "1").await.len(), 1 + 16 * 3 * 2, "a row for each save of each");
    assert_eq!(olga.get(&room.path("")).await.data()["task_counts"]["completed"], 1);
}

//! Stops and plays that cross each other and what is posted, and stops of many.

use std::collections::HashSet;

use bandstand_store::testing::TestEngine;
use futures_util::future::join_all;
use proptest::prelude::{Just, Strategy};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::control::{listens, plays, room_of_three, stops};
use crate::support::{Caller, TestApp, stories};

stories!(many_stop_and_play_at_once, whatever_happens_each_message_is_heard_once, a_room_of_many_agents_is_stopped,);

async fn many_stop_and_play_at_once(app: TestApp) {
    let (olga, ana, bob, room) = room_of_three(&app).await;
    let mut socket = bob.joins(&format!("chat_room:{}", room.id)).await;
    let mut control = listens(&bob).await;
    // The newer connection is the live one; the other one may go on listening to the room.
    let paths = ["stop", "play"].map(|mode| room.path(&format!("/agents/{mode}")));
    let signals = (0..64).map(|number| olga.post_nothing(&paths[number % 2]));
    let to = [&bob, &ana];
    let posts = (0..16).map(|_| olga.says(&room, "work", &to));
    let (replies, posted) = tokio::join!(join_all(signals), join_all(posts));
    replies.into_iter().for_each(|reply| drop(reply.assert_status(200)));
    plays(&olga, &room).await;
    let mut seen = HashSet::new();
    for _ in 0..65 {
        assert!(
            seen.insert(control.next_event("agent.control").await["correlation_id"].to_string()),
            "each is its own"
        );
    }
    // However stops, posts and plays came after each other: each message is heard once, in order.
    let mut heard = Vec::new();
    for _ in 0..posted.len() {
        heard.push(socket.next_event("message_created").await["id"].as_str().expect("an id").to_owned());
    }
    socket.assert_silent().await;
    let stored = bob.get(&room.path("/messages?limit=100")).await.strings("id");
    assert_eq!(heard, stored);
    assert_eq!(heard.iter().collect::<HashSet<_>>().len(), posted.len());
    assert_eq!(bob.next_id(&room).await, stored.first().cloned());
}

/// What may happen in a room.
#[derive(Clone, Copy, Debug)]
enum Step {
    Post,
    Stop,
    Play,
    Leave,
    Return,
}

/// Any order of posts, stops, plays, removals and returns, one after the other.
async fn whatever_happens_each_message_is_heard_once(app: TestApp) {
    let step = proptest::prop_oneof![
        4 => Just(Step::Post),
        2 => Just(Step::Stop),
        2 => Just(Step::Play),
        1 => Just(Step::Leave),
        2 => Just(Step::Return),
    ];
    let orders = proptest::collection::vec(step, 1..40);
    let mut random = TestRunner::deterministic();
    for number in 0..8 {
        let steps = orders.new_tree(&mut random).expect("an order").current();
        let bob = app.agent(&format!("bob {number}")).await;
        in_this_order(&app, &bob, &steps).await;
    }
}

async fn in_this_order(app: &TestApp, bob: &Caller, steps: &[Step]) {
    let olga = app.owner();
    let room = app.room_with(&olga, &[bob]).await;
    let mut socket = bob.joins(&format!("chat_room:{}", room.id)).await;
    let (mut inside, mut stopped) = (true, false);
    // What it has to hear, what is held back from it, and what is open for it.
    let (mut heard, mut missed, mut open): (Vec<String>, Vec<String>, Vec<String>) = Default::default();
    for step in steps {
        match step {
            Step::Post if inside => {
                let id = olga.says(&room, "work", &[bob]).await;
                open.push(id.clone());
                if stopped { missed.push(id) } else { heard.push(id) }
            }
            Step::Stop => {
                stops(&olga, &room).await;
                stopped = inside;
            }
            Step::Play => {
                plays(&olga, &room).await;
                heard.append(&mut missed);
                stopped = false;
            }
            Step::Leave if inside => {
                olga.removes(&room, bob).await.assert_status(200);
                (inside, stopped) = (false, false);
                missed.clear();
                open.clear();
            }
            Step::Return if !inside => {
                olga.adds(&room, bob).await.assert_status(201);
                inside = true;
            }
            Step::Post | Step::Leave | Step::Return => continue,
        }
        if inside {
            let next = if stopped { None } else { open.first().cloned() };
            assert_eq!(bob.next_id(&room).await, next, "after {step:?} of {steps:?}");
        }
    }
    for id in &heard {
        assert_eq!(socket.next_event("message_created").await["id"], json!(id), "{steps:?}");
    }
    socket.assert_silent().await;
}

async fn a_room_of_many_agents_is_stopped(app: TestApp) {
    let (olga, _, bob, room) = room_of_three(&app).await;
    // Registering them all would only test the machine.
    let (id, numbers) = match app.database.engine() {
        TestEngine::Sqlite => (
            "randomblob(16)",
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100) SELECT i FROM n)",
        ),
        TestEngine::Postgres => ("gen_random_uuid()", "(SELECT i FROM generate_series(1, 1100) AS n(i))"),
    };
    app.database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, owner_key, slug, inserted_at, updated_at)
             SELECT {id}, 1, 'olga/n' || i, 'n' || i, 'n' || i, 1, 'n' || i, 0, 0 FROM {numbers} AS numbers;
         INSERT INTO participants (room_key, member_key, role, status, joined_sequence, joined_at, execution_id)
             SELECT r.key, i.key, 'member', 'inactive', r.sequence, 0, {id} FROM identities i, rooms r
             WHERE i.name LIKE 'n%' AND i.slug = i.name;
         UPDATE rooms SET participants = participants + 1100;"
    ));
    let stopped = || {
        let rows = app.database.query("SELECT count(*) FROM participants WHERE stopped_sequence IS NOT NULL");
        rows[0][0].clone()
    };
    let mut control = listens(&bob).await;
    stops(&olga, &room).await;
    assert_eq!(stopped(), "1102");
    assert_eq!(control.next_event("agent.control").await["mode"], "stop");
    plays(&olga, &room).await;
    assert_eq!(stopped(), "0");
    assert_eq!(control.next_event("agent.control").await["mode"], "play");
    control.assert_silent().await;
}

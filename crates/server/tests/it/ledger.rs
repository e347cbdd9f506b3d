//! The delivery ledger: what became of a message for each participant, and why.

use std::sync::Arc;

use bandstand_server::settings::Limits;
use bandstand_store::testing::{TestDatabase, TestEngine};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::control::{plays, stops};
use crate::support::{Caller, PATIENCE, Reply, Room, Socket, TestApp, run_on, stories};

stories!(
    every_stage_is_told_with_its_time,
    the_first_reason_is_the_right_one,
    who_has_no_delivery_learns_why,
    nobody_learns_who_exists,
    each_sees_what_concerns_it,
    a_decline_is_told_apart_from_silence_and_a_reply,
    a_stop_names_who_stopped,
    a_newer_connection_is_told,
    what_ended_says_why,
    a_return_revives_nothing,
    the_list_is_paged,
    a_poller_without_a_socket_is_seen,
    people_hear_what_becomes_of_messages,
    whoever_may_not_read_the_room_hears_nothing,
);

stories!(limits: Limits { upgrades_per_second: 1, ..Limits::default() } => refused_connections_are_told);

pub(crate) fn path(room: &Room, message: &str) -> String {
    room.path(&format!("/messages/{message}/deliveries"))
}

/// The row of one participant.
pub(crate) async fn told(by: &Caller, room: &Room, message: &str, about: &Caller) -> Value {
    let reply = by.get(&format!("{}?participant={}", path(room, message), about.id)).await.assert_status(200);
    assert_eq!(reply.metadata(), &json!({"has_more": false, "limit": 100, "next_cursor": null}));
    let [row] = reply.rows() else { panic!("one row: {reply:?}") };
    row.clone()
}

fn answer(row: &Value) -> (&str, Option<&str>) {
    (row["stage"].as_str().unwrap(), row["reason"]["code"].as_str())
}

/// Until the row says this. It looks again and again: some of it is noted in the background.
pub(crate) async fn until(
    by: &Caller,
    room: &Room,
    message: &str,
    about: &Caller,
    stage: &str,
    code: Option<&str>,
) -> Value {
    let mut last = Value::Null;
    let found = async {
        loop {
            last = told(by, room, message, about).await;
            if answer(&last) == (stage, code) {
                return;
            }
        }
    };
    let found = timeout(PATIENCE, found).await;
    assert!(found.is_ok(), "not {stage} {code:?} but {last:#}");
    last
}

async fn heard(agent: &Caller, room: &Room) -> Socket {
    let mut socket = agent.joins(&format!("agent_control:{}", agent.id)).await;
    socket.join(&format!("chat_room:{}", room.id)).await;
    socket
}

async fn every_stage_is_told_with_its_time(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let mut socket = heard(&bob, &room).await;
    app.clock.advance(1);
    let message = olga.says(&room, "work", &[&bob]).await;
    app.names.give(&message, "message");
    socket.next_event("message_created").await;
    let pushed = until(&olga, &room, &message, &bob, "pushed", Some("not_taken")).await;
    assert_eq!(
        app.names.replace(&pushed),
        json!({
            "message_id": "<message>",
            "chat_room_id": "<room>",
            "participant": {"id": "<bob>", "handle": "olga/bob", "name": "bob", "type": "Agent"},
            "is_recipient": true,
            "stage": "pushed",
            "verdict": "waiting",
            "reason": {
                "code": "not_taken",
                "since": "2026-01-01T00:00:01.000000Z",
                "evidence": {
                    "connected_since": "2026-01-01T00:00:00.000000Z",
                    "reached_at": "2026-01-01T00:00:01.000000Z",
                },
            },
            "outcome": null,
            "attempts": 0,
            "stages": [
                {"stage": "stored", "at": "2026-01-01T00:00:01.000000Z", "attempt": null, "note": null},
                {"stage": "pushed", "at": "2026-01-01T00:00:01.000000Z", "attempt": null, "note": null},
            ],
            "summary": "@olga/bob is connected and got the message, but has not taken it up since 2026-01-01T00:00:01.000000Z.",
            "as_of": "2026-01-01T00:00:01.000000Z",
        })
    );
    app.clock.advance(1);
    bob.marks(&room, &message, "processing").await.assert_status(200);
    let working = told(&olga, &room, &message, &bob).await;
    assert_eq!((answer(&working), &working["verdict"]), (("picked_up", None), &json!("working")));
    app.clock.advance(11);
    let silent = told(&olga, &room, &message, &bob).await;
    assert_eq!(answer(&silent), ("picked_up", Some("no_activity")));
    assert_eq!(silent["reason"]["evidence"], json!({"attempt": 1, "last_activity_at": "2026-01-01T00:00:02.000000Z"}));
    bob.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("picked_up", None));
    app.clock.advance(11);
    bob.records(&room, "thought", "hm").await;
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("picked_up", None), "a post is a sign of life");
    bob.marks(&room, &message, "failed").await.assert_status(200);
    let failed = told(&olga, &room, &message, &bob).await;
    assert_eq!((answer(&failed), &failed["verdict"]), (("failed", None), &json!("failed")));
    app.clock.advance(1);
    bob.handles(&room, &message).await;
    let done = told(&olga, &room, &message, &bob).await;
    assert_eq!((answer(&done), &done["verdict"], &done["attempts"]), (("processed", None), &json!("done"), &json!(2)));
    let stages: Vec<_> = done["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["stage"].as_str().unwrap(), one["attempt"].as_i64(), one["note"].as_str()))
        .collect();
    assert_eq!(
        stages,
        [
            ("stored", None, None),
            ("pushed", None, None),
            ("picked_up", Some(1), None),
            ("failed", Some(1), Some("it broke")),
            ("picked_up", Some(2), None),
            ("processed", Some(2), None),
        ]
    );
}

async fn the_first_reason_is_the_right_one(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let message = olga.says(&room, "work", &[&bob]).await;
    let row = told(&olga, &room, &message, &bob).await;
    assert_eq!(answer(&row), ("stored", Some("never_connected")));
    assert_eq!(row["reason"]["evidence"], json!({"registered_at": "2026-01-01T00:00:00.000000Z"}));

    // Connected, but it does not listen in the room.
    app.clock.advance(1);
    let mut socket = bob.joins(&format!("agent_control:{}", bob.id)).await;
    let row = told(&olga, &room, &message, &bob).await;
    assert_eq!(answer(&row), ("stored", Some("not_taken")));
    assert_eq!(row["reason"]["evidence"], json!({"connected_since": "2026-01-01T00:00:01.000000Z"}));

    // It works on an older one; agents take one after the other.
    socket.join(&format!("chat_room:{}", room.id)).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    let second = olga.says(&room, "more", &[&bob]).await;
    let row = until(&olga, &room, &second, &bob, "pushed", Some("not_taken")).await;
    assert_eq!(row["reason"]["evidence"]["busy_with"], json!(message));

    app.clock.advance(1);
    socket.close().await;
    for (message, stage) in [(&second, "pushed"), (&message, "picked_up")] {
        app.clock.advance(11);
        let row = until(&olga, &room, message, &bob, stage, Some("offline")).await;
        assert_eq!(row["reason"]["evidence"], json!({"offline_since": "2026-01-01T00:00:02.000000Z"}));
    }
    // It works on without a socket.
    bob.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("picked_up", None));
    app.clock.advance(11);
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("picked_up", Some("no_activity")));
}

async fn who_has_no_delivery_learns_why(app: TestApp) {
    let olga = app.owner();
    let [ana, bob, cy, dan] = app.agents(["ana", "bob", "cy", "dan"]).await;
    let mia = app.user("mia").await;
    let services = &app.state().services;
    services.add_organization("Theatre").await.unwrap();
    for who in [&olga, &mia] {
        services.add_organization_member("Theatre", &who.handle).await.unwrap();
    }
    let room = app.room_with(&olga, &[&ana, &bob, &dan, &mia]).await;
    app.clock.advance(1);
    olga.removes(&room, &dan).await.assert_status(200);
    app.clock.advance(1);
    let body = json!({"message": {"content": "look", "mentions": [
        {"id": ana.id}, {"id": bob.id, "kind": "reference"}, {"id": mia.id},
    ]}});
    let message = olga.post(&room.path("/messages"), body).await.assert_status(201).id();
    app.clock.advance(1);
    for late in [&cy, &dan] {
        olga.adds(&room, late).await.assert_status(201);
    }
    let (joined, left) = ("2026-01-01T00:00:03.000000Z", "2026-01-01T00:00:01.000000Z");
    for (who, code, evidence) in [
        (&bob, "not_mentioned", json!({"named_as": "reference"})),
        (&olga, "not_mentioned", json!({"named_as": "sender"})),
        (&cy, "not_a_participant", json!({"joined_at": joined})),
        (&dan, "not_a_participant", json!({"joined_at": joined, "left_at": left})),
    ] {
        let row = told(&olga, &room, &message, who).await;
        assert_eq!((answer(&row), &row["reason"]["evidence"]), (("none", Some(code)), &evidence), "{row:#}");
        assert_eq!((&row["verdict"], &row["is_recipient"]), (&json!("not_sent"), &json!(false)));
    }
    let row = told(&olga, &room, &message, &mia).await;
    assert_eq!((answer(&row), &row["verdict"]), (("none", Some("unknown")), &json!("unknown")));
    assert_eq!(row["reason"]["evidence"]["missing"], "reading");
    // Only those that it was delivered to are listed.
    assert_eq!(olga.get(&path(&room, &message)).await.rows().len(), 1);
    // An earlier stay counts: it was there, and is back.
    let again = olga.says(&room, "again", &[&ana]).await;
    olga.removes(&room, &bob).await.assert_status(200);
    olga.adds(&room, &bob).await.assert_status(201);
    assert_eq!(answer(&told(&olga, &room, &again, &bob).await), ("none", Some("not_mentioned")));
    // By handle, with and without @, in any case.
    for handle in ["olga/bob", "@olga/bob", "@Olga/BOB"] {
        let reply = olga.get(&format!("{}?participant={handle}", path(&room, &again))).await.assert_status(200);
        assert_eq!(reply.rows()[0]["participant"]["id"], json!(bob.id));
    }
}

async fn nobody_learns_who_exists(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let ian = app.user("ian").await;
    let hidden = app.global_agent(&ian, "hidden").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let message = olga.says(&room, "work", &[&bob]).await;
    let ask = async |who: &str| -> Value {
        let reply = olga.get(&format!("{}?participant={who}", path(&room, &message))).await.assert_status(200);
        reply.rows()[0].clone()
    };
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (real, made_up) in [(hidden.id.as_str(), unknown), (hidden.handle.as_str(), "ian/nobody"), ("ian", "eve")] {
        let (one, other) = (ask(real).await, ask(made_up).await);
        let swapped = one.to_string().replace(real, made_up);
        assert_eq!(swapped, other.to_string());
        assert_eq!(answer(&other), ("none", Some("not_a_participant")));
        assert_eq!(other["reason"]["evidence"], json!({}));
    }
    for bad in ["", "%20", "@", "a%00b"] {
        let reply = olga.get(&format!("{}?participant={bad}", path(&room, &message))).await;
        reply.assert_invalid(&["/participant"]);
    }
    olga.get(&format!("{}?who=bob", path(&room, &message))).await.assert_invalid(&["/who"]);
}

async fn each_sees_what_concerns_it(app: TestApp) {
    let [ana, bob, cy, dan] = app.agents(["ana", "bob", "cy", "dan"]).await;
    let (olga, ian) = (app.owner(), app.user("ian").await);
    let eve = app.user("eve").await;
    let via = app.global_agent(&eve, "via").await;
    let room = app.room_with(&ana, &[&bob, &cy, &dan, &olga, &via]).await;
    let other = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob, &cy]).await;
    let ids = |reply: &Reply| -> Vec<String> {
        reply.rows().iter().map(|row| row["participant"]["id"].as_str().unwrap().to_owned()).collect()
    };
    for all in [&ana, &olga, &eve] {
        let reply = all.get(&path(&room, &message)).await.assert_status(200);
        assert_eq!(ids(&reply), [bob.id.clone(), cy.id.clone()]);
        assert_eq!(told(all, &room, &message, &dan).await["reason"]["code"], "not_mentioned");
    }
    assert_eq!(ids(&bob.get(&path(&room, &message)).await.assert_status(200)).join(" "), bob.id);
    assert_eq!(told(&bob, &room, &message, &bob).await["stage"], "stored");
    let by_handle = bob.get(&format!("{}?participant=@olga/bob", path(&room, &message))).await.assert_status(200);
    assert_eq!(ids(&by_handle).join(" "), bob.id);
    bob.get(&format!("{}?participant={}", path(&room, &message), cy.id)).await.assert_error(404, "not_found");
    // To an agent that it does not mention the message does not exist, whomever it asks about.
    for asked in [String::new(), format!("?participant={}", dan.id), format!("?participant={}", bob.id)] {
        dan.get(&format!("{}{asked}", path(&room, &message))).await.assert_error(404, "not_found");
    }
    // Until it has to do with it.
    dan.marks(&room, &message, "processing").await.assert_status(200);
    let row = told(&dan, &room, &message, &dan).await;
    assert_eq!((answer(&row), &row["is_recipient"]), (("picked_up", None), &json!(false)));
    for nowhere in [path(&other, &message), path(&room, &room.id), path(&room, "no-uuid")] {
        ana.get(&nowhere).await.assert_error(404, "not_found");
    }
    ian.get(&path(&room, &message)).await.assert_error(404, "not_found");
    olga.get(&path(&other, &message)).await.assert_status(404);
}

async fn a_decline_is_told_apart_from_silence_and_a_reply(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    bob.says(&room, "said before, which is no reply", &[&olga]).await;
    let mut sent = Vec::new();
    for text in ["declined", "declined with a reason", "silent", "replied"] {
        let message = olga.says(&room, text, &[&bob]).await;
        bob.marks(&room, &message, "processing").await.assert_status(200);
        sent.push(message);
    }
    let done = |message: &str| room.path(&format!("/messages/{message}/processed"));
    for bad in [json!({"outcome": "done"}), json!({"outcome": 5})] {
        bob.post(&done(&sent[0]), bad).await.assert_invalid(&["/outcome"]);
    }
    for bad in [json!({"reason": "x"}), json!({"outcome": "declined", "reason": " "})] {
        bob.post(&done(&sent[0]), bad).await.assert_invalid(&["/reason"]);
    }
    bob.post(&done(&sent[0]), json!({"outcome": "declined", "why": "x"})).await.assert_invalid(&["/why"]);
    bob.post(&done(&sent[0]), json!({"outcome": "declined"})).await.assert_status(200);
    bob.post(&done(&sent[1]), json!({"outcome": "declined", "reason": "not for me"})).await.assert_status(200);
    bob.post(&done(&sent[2]), json!({})).await.assert_status(200);
    bob.says(&room, "here you are", &[&olga]).await;
    bob.marks(&room, &sent[3], "processed").await.assert_status(200);
    for (message, outcome, summary) in [
        (&sent[0], json!({"declined": true, "reason": null, "replied": false}), "declined it at"),
        (&sent[1], json!({"declined": true, "reason": "not for me", "replied": false}), ": not for me."),
        (&sent[2], json!({"declined": false, "reason": null, "replied": false}), "without a reply in the room."),
        (&sent[3], json!({"declined": false, "reason": null, "replied": true}), "and replied."),
    ] {
        let row = told(&olga, &room, message, &bob).await;
        assert_eq!((answer(&row), &row["outcome"]), (("processed", None), &outcome));
        assert!(row["summary"].as_str().unwrap().contains(summary), "{row:#}");
    }
    // What clients know of it did not change.
    let reply = olga.get(&room.path(&format!("/messages?around={}&limit=1", sent[1]))).await.assert_status(200);
    let known = &reply.rows()[0]["metadata"]["delivery_status"][&bob.id];
    assert_eq!((&known["status"], &known["attempts"][0]["error"]), (&json!("processed"), &Value::Null));
}

async fn a_stop_names_who_stopped(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let taken = olga.says(&room, "taken", &[&bob]).await;
    bob.marks(&room, &taken, "processing").await.assert_status(200);
    app.clock.advance(1);
    stops(&olga, &room).await;
    let waiting = olga.says(&room, "waiting", &[&bob]).await;
    for (message, stage) in [(&taken, "picked_up"), (&waiting, "stored")] {
        let row = told(&olga, &room, message, &bob).await;
        assert_eq!(answer(&row), (stage, Some("stopped")));
        assert_eq!(row["reason"]["evidence"]["stopped_by"]["handle"], "olga");
        assert_eq!(row["reason"]["since"], "2026-01-01T00:00:01.000000Z");
    }
    plays(&olga, &room).await;
    assert_eq!(answer(&told(&olga, &room, &waiting, &bob).await), ("stored", Some("never_connected")));
}

async fn a_newer_connection_is_told(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let mut older = heard(&bob, &room).await;
    let (taken, pushed) = (olga.says(&room, "taken", &[&bob]).await, olga.says(&room, "pushed", &[&bob]).await);
    bob.marks(&room, &taken, "processing").await.assert_status(200);
    until(&olga, &room, &pushed, &bob, "pushed", Some("not_taken")).await;
    app.clock.advance(20);
    let mut newer = heard(&bob, &room).await;
    assert_eq!(older.closes().await, 1000);
    for (message, stage) in [(&taken, "picked_up"), (&pushed, "pushed")] {
        let row = told(&olga, &room, message, &bob).await;
        assert_eq!(answer(&row), (stage, Some("superseded")), "{row:#}");
        assert_eq!(row["reason"]["evidence"]["superseded_at"], "2026-01-01T00:00:20.000000Z");
    }
    // The newer one takes up what the older one had begun.
    bob.marks(&room, &taken, "processing").await.assert_status(200);
    let row = told(&olga, &room, &taken, &bob).await;
    assert_eq!((answer(&row), &row["attempts"]), (("picked_up", None), &json!(2)));
    // What comes now reaches the newer one.
    let later = olga.says(&room, "later", &[&bob]).await;
    app.clock.advance(1);
    newer.skip_to("message_created").await;
    until(&olga, &room, &later, &bob, "pushed", Some("not_taken")).await;
}

async fn what_ended_says_why(app: TestApp) {
    let olga = app.owner();
    let [bob, cy] = app.agents(["bob", "cy"]).await;
    let room = app.room_with(&olga, &[&bob, &cy]).await;
    let message = olga.says(&room, "work", &[&bob, &cy]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    app.clock.advance(1);
    olga.removes(&room, &bob).await.assert_status(200);
    olga.delete(&format!("agents/{}?force=true", cy.id)).await.assert_status(200);
    for (who, why) in [(&bob, "recipient removed"), (&cy, "agent deleted")] {
        let row = told(&olga, &room, &message, who).await;
        assert_eq!((answer(&row), &row["verdict"]), (("cancelled", None), &json!("ended")), "{row:#}");
        let last = row["stages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["note"], &last["at"]), (&json!(why), &json!("2026-01-01T00:00:01.000000Z")));
    }
}

async fn a_return_revives_nothing(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let message = olga.says(&room, "work", &[&bob]).await;
    olga.removes(&room, &bob).await.assert_status(200);
    olga.adds(&room, &bob).await.assert_status(201);
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("cancelled", None));
    // Unless it takes it up by itself.
    bob.marks(&room, &message, "processing").await.assert_status(200);
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("picked_up", None));
}

async fn the_list_is_paged(app: TestApp) {
    let olga = app.owner();
    let agents = app.agents(["a", "b", "c", "d", "e"]).await;
    let everybody: Vec<&Caller> = agents.iter().collect();
    let room = app.room_with(&olga, &everybody).await;
    let message = olga.says(&room, "all", &everybody).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for shown in [2, 2, 1] {
        let reply = olga.get(&format!("{}?limit=2{cursor}", path(&room, &message))).await.assert_status(200);
        assert_eq!(reply.rows().len(), shown);
        seen.extend(reply.rows().iter().map(|row| row["participant"]["name"].as_str().unwrap().to_owned()));
        match reply.metadata()["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => assert_eq!(reply.metadata()["has_more"], false),
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
    let other = olga.says(&room, "other", &everybody).await;
    let foreign = olga.get(&format!("{}?limit=2{cursor}", path(&room, &other))).await;
    assert_eq!(foreign.status, 422, "a cursor belongs to its list");
}

async fn a_poller_without_a_socket_is_seen(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let message = olga.says(&room, "work", &[&bob]).await;
    app.clock.advance(1);
    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    let row = until(&olga, &room, &message, &bob, "served", Some("not_taken")).await;
    assert_eq!(row["reason"]["evidence"], json!({"reached_at": "2026-01-01T00:00:01.000000Z"}));
    bob.marks(&room, &message, "processing").await.assert_status(200);
    app.clock.advance(11);
    assert_eq!(answer(&told(&olga, &room, &message, &bob).await), ("picked_up", Some("no_activity")));
}

/// The next update, and the stages of each recipient in it.
async fn update(socket: &mut Socket, message: &str) -> (Value, Vec<(String, String)>) {
    loop {
        let payload = socket.skip_to("delivery_updated").await;
        if payload["message_id"] == json!(message) {
            let stage = |row: &Value| {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                (text(&row["participant"]["name"]), text(&row["stage"]))
            };
            let stages = payload["deliveries"].as_array().unwrap().iter().map(stage).collect();
            return (payload, stages);
        }
    }
}

/// Until an update shows this stage of somebody; what was shown before it.
async fn hears(socket: &mut Socket, message: &str, who: &Caller, stage: &str) -> Value {
    loop {
        let (payload, stages) = update(socket, message).await;
        if stages.contains(&(who.name.clone(), stage.to_owned())) {
            return payload;
        }
    }
}

async fn people_hear_what_becomes_of_messages(app: TestApp) {
    let olga = app.owner();
    let [bob, cy] = app.agents(["bob", "cy"]).await;
    let room = app.room_with(&olga, &[&bob, &cy]).await;
    let mut socket = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    let message = olga.says(&room, "work", &[&bob, &cy]).await;
    let (payload, stages) = update(&mut socket, &message).await;
    assert_eq!(stages, [("bob".to_owned(), "stored".to_owned()), ("cy".to_owned(), "stored".to_owned())]);
    assert_eq!((&payload["chat_room_id"], &payload["has_more"]), (&json!(room.id), &json!(false)));
    // The same JSON as the resource.
    let listed = olga.get(&path(&room, &message)).await.assert_status(200);
    assert_eq!(&payload["deliveries"], listed.data());
    bob.next_id(&room).await;
    hears(&mut socket, &message, &bob, "served").await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    hears(&mut socket, &message, &bob, "picked_up").await;
    bob.marks(&room, &message, "processed").await.assert_status(200);
    let done = hears(&mut socket, &message, &bob, "processed").await;
    assert_eq!(done["deliveries"][0]["outcome"]["replied"], false);
    olga.removes(&room, &cy).await.assert_status(200);
    hears(&mut socket, &message, &cy, "cancelled").await;
    // A mention of nobody but people changes no delivery.
    let quiet = app.room_with(&bob, &[&olga]).await;
    bob.says(&quiet, "for a person", &[&olga]).await;
    let next = olga.says(&room, "next", &[&bob]).await;
    let heard = socket.skip_to("delivery_updated").await;
    assert_eq!(heard["message_id"], json!(next));
}

async fn whoever_may_not_read_the_room_hears_nothing(app: TestApp) {
    let olga = app.owner();
    let ian = app.user("ian").await;
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let mut socket = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    let mut stranger = ian.joins(&format!("user_rooms:{}", ian.id)).await;
    let mut agent = bob.joins(&format!("agent_rooms:{}", bob.id)).await;
    let message = olga.says(&room, "work", &[&bob]).await;
    hears(&mut socket, &message, &bob, "stored").await;
    stranger.assert_silent().await;
    agent.assert_silent().await;
}

async fn refused_connections_are_told(app: TestApp) {
    let olga = app.owner();
    let bob = app.agent("bob").await;
    let room = app.room_with(&olga, &[&bob]).await;
    let message = olga.says(&room, "work", &[&bob]).await;
    app.clock.advance(1);
    let refused = async || {
        let headers = [("x-api-key", bob.key.as_str())];
        Socket::refused(&app, "?vsn=2.0.0", &headers).await.status
    };
    // What is no handshake counts as an attempt; some are let through to be told that they are none.
    let all = async { while refused().await != 429 {} };
    timeout(PATIENCE, all).await.expect("refused at last");
    let row = told(&olga, &room, &message, &bob).await;
    assert_eq!(answer(&row), ("stored", Some("rate_limited")));
    let at = json!("2026-01-01T00:00:01.000000Z");
    let evidence = &row["reason"]["evidence"];
    assert_eq!((&evidence["first_refused_at"], &evidence["last_refused_at"]), (&at, &at));
}

/// What is known of connections outlives the server, however it ends.
async fn connections_are_remembered(engine: TestEngine) {
    let database = Arc::new(TestDatabase::create(engine).await);
    let mut left = None;
    let first = run_on(&database, Limits::default(), None, async |app: TestApp| {
        let olga = app.owner();
        let [bob, cy, dan] = app.agents(["bob", "cy", "dan"]).await;
        let room = app.room_with(&olga, &[&bob, &cy, &dan]).await;
        let message = olga.says(&room, "work", &[&bob, &cy, &dan]).await;
        app.clock.advance(1);
        let socket = bob.joins(&format!("agent_control:{}", bob.id)).await;
        let other = cy.joins(&format!("agent_control:{}", cy.id)).await;
        app.clock.advance(1);
        socket.close().await;
        app.clock.advance(1);
        left = Some((room, message, bob, cy, dan, other));
    });
    // The other socket is still open when the server goes down, and so goes with it.
    let first = first.await;
    let (room, message, bob, cy, dan, _) = left.unwrap();
    let ask = async |app: &TestApp, who: &Caller| told(&app.owner(), &room, &message, who).await;
    let story = async |app: TestApp| {
        for (who, since) in [(&bob, "2026-01-01T00:00:02.000000Z"), (&cy, "2026-01-01T00:00:03.000000Z")] {
            let row = ask(&app, who).await;
            assert_eq!(answer(&row), ("stored", Some("offline")));
            assert_eq!(row["reason"]["evidence"], json!({"offline_since": since}), "{row:#}");
        }
        assert_eq!(answer(&ask(&app, &dan).await), ("stored", Some("never_connected")));
    };
    let second = run_on(&database, Limits::default(), Some(&first), story).await;
    // As a crash leaves it: connected, and not a word of the end.
    database.execute("UPDATE sightings SET gone_at = NULL; UPDATE runs SET ended_at = NULL, found_at = NULL");
    let story = async |app: TestApp| {
        let row = ask(&app, &cy).await;
        assert_eq!(answer(&row), ("stored", Some("offline")));
        let evidence = &row["reason"]["evidence"];
        assert!(evidence["offline_since"].is_string() && evidence["offline_latest"].is_string(), "{row:#}");
        assert!(row["summary"].as_str().unwrap().contains("when the server was down"), "{row:#}");
        assert_eq!(answer(&ask(&app, &dan).await), ("stored", Some("never_connected")));
        // And when it is back, that is what is told.
        let _socket = cy_on(&app, &cy).await;
        assert_eq!(answer(&ask(&app, &cy).await), ("stored", Some("not_taken")));
    };
    run_on(&database, Limits::default(), Some(&second), story).await;
}

async fn cy_on(app: &TestApp, cy: &Caller) -> Socket {
    let cy = Caller { app: app.clone(), ..cy.clone() };
    cy.joins(&format!("agent_control:{}", cy.id)).await
}

#[tokio::test]
async fn connections_are_remembered_on_sqlite() {
    connections_are_remembered(TestEngine::Sqlite).await;
}

#[tokio::test]
async fn connections_are_remembered_on_postgres() {
    connections_are_remembered(TestEngine::Postgres).await;
}

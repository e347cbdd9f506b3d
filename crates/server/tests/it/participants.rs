//! Who may add and remove whom, and who sees that a room exists.

use serde_json::{Value, json};

use crate::support::{TestApp, stories};

stories!(
    the_table_of_adding_for_agents,
    the_table_of_removing_for_agents,
    the_table_for_people,
    a_room_of_strangers_does_not_exist,
    the_roster_as_agents_and_people_see_it,
    the_roster_is_paged_for_people,
    of_many_that_add_the_same_one_wins,
    many_are_added_at_once,
    two_owners_cannot_both_leave,
    of_many_that_remove_the_same_one_wins,
    a_third_participant_makes_it_a_group,
);
stories!(limits: bandstand_server::settings::Limits { room_participants: 2, ..Default::default() } => a_full_room_takes_nobody);

async fn the_table_of_adding_for_agents(app: TestApp) {
    let [ana, bob, cy, dee, eli] = app.agents(["ana", "bob", "cy", "dee", "eli"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (foreign, global) = (eve.registers("foreign").await, app.global_agent(&eve, "global").await);
    let room = app.room_with(&ana, &[&bob]).await;
    ana.adds_as(&room, &cy, "admin").await.assert_status(201);

    // Whom.
    ana.adds(&room, &olga).await.assert_status(201);
    ana.adds(&room, &global).await.assert_status(201);
    ana.adds(&room, &foreign).await.assert_error(403, "forbidden");
    ana.adds(&room, &eve).await.assert_error(403, "forbidden");
    let nobody = json!({"participant": {"participant_id": room.id}});
    ana.post(&room.path("/participants"), nobody).await.assert_error(404, "not_found");
    let conflict = ana.adds(&room, &bob).await.assert_error(409, "conflict");
    assert_eq!(conflict.header("retry-after"), Some("1"), "clients retry a 409");

    // As what.
    for (adder, role, status) in [(&bob, "admin", 403), (&bob, "owner", 403), (&cy, "admin", 403), (&cy, "owner", 403)]
    {
        let reply = adder.adds_as(&room, &dee, role).await.assert_status(status);
        assert_eq!(reply.error()["code"], "forbidden");
    }
    bob.adds_as(&room, &bob, "admin").await.assert_error(403, "forbidden");
    bob.adds(&room, &dee).await.assert_status(201);
    cy.adds(&room, &eli).await.assert_status(201);
    ana.removes(&room, &eli).await.assert_status(200);
    ana.adds_as(&room, &eli, "owner").await.assert_status(201);

    for (body, places) in [
        (json!({}), &["/participant"][..]),
        (json!({"participant": {}}), &["/participant/participant_id"]),
        (
            json!({"participant": {"participant_id": "x", "role": "king"}}),
            &["/participant/participant_id", "/participant/role"],
        ),
        (json!({"participant": {"participant_id": eve.id, "loud": 1}}), &["/participant/loud"]),
    ] {
        ana.post(&room.path("/participants"), body).await.assert_invalid(places);
    }
}

async fn the_table_of_removing_for_agents(app: TestApp) {
    let [ana, bob, cy, dee, eli] = app.agents(["ana", "bob", "cy", "dee", "eli"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &dee, &olga]).await;
    ana.adds_as(&room, &cy, "admin").await.assert_status(201);
    ana.adds_as(&room, &eli, "admin").await.assert_status(201);

    bob.removes(&room, &ana).await.assert_error(403, "forbidden");
    cy.removes(&room, &ana).await.assert_error(403, "forbidden");
    bob.removes(&room, &dee).await.assert_error(403, "forbidden");
    cy.removes(&room, &eli).await.assert_error(403, "forbidden");
    for agent in [&ana, &bob, &cy] {
        agent.removes(&room, &olga).await.assert_error(403, "forbidden");
    }
    ana.removes(&room, &ana).await.assert_error(403, "cannot_remove_sole_owner");
    let gone = cy.removes(&room, &dee).await.assert_status(200);
    assert_eq!(
        gone.named(),
        json!({"data": {
            "id": "<dee>", "type": "Agent", "role": "member", "status": "inactive",
            "name": "dee", "handle": "olga/dee", "online": false,
        }}),
        "the removed row"
    );
    cy.removes(&room, &dee).await.assert_error(404, "not_found");
    ana.removes(&room, &eli).await.assert_status(200);
    cy.removes(&room, &cy).await.assert_status(200);
    bob.removes(&room, &bob).await.assert_status(200);
    bob.adds(&room, &bob).await.assert_error(404, "not_found");
    bob.get(&room.path("")).await.assert_error(404, "not_found");
    // With a second owner the first may go.
    ana.adds_as(&room, &bob, "owner").await.assert_status(201);
    ana.removes(&room, &ana).await.assert_status(200);
    bob.removes(&room, &bob).await.assert_error(403, "cannot_remove_sole_owner");
}

async fn the_table_for_people(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (foreign, global) = (eve.registers("foreign").await, app.global_agent(&eve, "global").await);
    let room = app.room_with(&olga, &[&ana]).await;
    olga.adds_as(&room, &bob, "admin").await.assert_status(201);
    olga.adds(&room, &global).await.assert_status(201);
    olga.adds(&room, &foreign).await.assert_error(403, "forbidden");
    olga.adds(&room, &eve).await.assert_error(403, "forbidden");
    olga.adds(&room, &ana).await.assert_error(409, "conflict");
    olga.removes(&room, &olga).await.assert_error(403, "cannot_remove_sole_owner");

    // A person whose agent is in the room reads; it is not in the room itself.
    for (method, reply) in [
        ("add", eve.adds(&room, &foreign).await),
        ("remove", eve.removes(&room, &global).await),
        ("remove", eve.removes(&room, &ana).await),
    ] {
        assert_eq!((reply.status, reply.error()["code"].as_str()), (404, Some("not_found")), "{method}");
    }
    eve.patch(&room.path(""), json!({"chat": {"title": "mine"}})).await.assert_error(403, "forbidden");
    eve.delete(&room.path("")).await.assert_error(403, "forbidden");
    eve.post_nothing(&room.path("/archive")).await.assert_error(403, "forbidden");
    eve.get(&room.path("/participants")).await.assert_status(200);

    // An admin among people removes members only; an owner removes anybody.
    let hers = app.room_with(&eve, &[&foreign, &global]).await;
    let reply = eve.post(&hers.path("/participants"), json!({"participant": {"participant_id": foreign.id}})).await;
    reply.assert_error(409, "conflict");
    bob.removes(&room, &ana).await.assert_status(200);
    bob.removes(&room, &olga).await.assert_error(403, "forbidden");
    olga.removes(&room, &bob).await.assert_status(200);
    olga.removes(&room, &global).await.assert_status(200);
    olga.removes(&room, &cy).await.assert_error(404, "not_found");
    eve.get(&room.path("")).await.assert_error(404, "not_found");
}

async fn a_room_of_strangers_does_not_exist(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let eve = app.user("eve").await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "hi", &[&bob]).await;
    let nowhere = crate::support::Room { id: "00000000-0000-4000-8000-00000000dead".into() };
    let malformed = crate::support::Room { id: "room-1".into() };
    let post = json!({"message": {"content": "x", "mentions": [{"id": bob.id}]}});
    let participant = json!({"participant": {"participant_id": bob.id}});
    let event = json!({"event": {"content": "x", "message_type": "thought"}});
    let title = json!({"chat": {"title": "x"}});
    for who in [&cy, &eve] {
        let mut answers: Vec<Vec<Value>> = Vec::new();
        for place in [&room, &nowhere, &malformed] {
            let mut replies = vec![
                who.get(&place.path("")).await,
                who.patch(&place.path(""), title.clone()).await,
                who.get(&place.path("/participants")).await,
                who.post(&place.path("/participants"), participant.clone()).await,
                who.delete(&place.path(&format!("/participants/{}", bob.id))).await,
                who.get(&place.path("/messages")).await,
                who.post(&place.path("/messages"), post.clone()).await,
            ];
            if who.id == cy.id {
                replies.push(who.get(&place.path("/messages/next")).await);
                replies.push(who.get(&place.path("/context")).await);
                replies.push(who.post(&place.path("/events"), event.clone()).await);
                replies.push(who.post(&place.path("/activity"), json!({"working": true})).await);
                replies.push(who.marks(place, &message, "processing").await);
            } else {
                replies.push(who.delete(&place.path("")).await);
                replies.push(who.post_nothing(&place.path("/archive")).await);
                replies.push(who.post_nothing(&place.path("/unarchive")).await);
            }
            let bare = |reply: crate::support::Reply| {
                let reply = reply.assert_error(404, "not_found");
                let mut error = reply.error().clone();
                error.as_object_mut().expect("an object").remove("request_id");
                error
            };
            answers.push(replies.into_iter().map(bare).collect());
        }
        assert_eq!(answers[0], answers[1], "word for word the same");
        assert_eq!(answers[0], answers[2]);
    }
}

async fn the_roster_as_agents_and_people_see_it(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &olga]).await;
    let _online = bob.socket().await;
    let seen = ana.get(&room.path("/participants")).await.assert_status(200).named();
    assert_eq!(
        seen,
        json!({"data": [
            {"id": "<olga>", "type": "User", "role": "member", "status": "active", "name": "olga", "handle": "olga", "online": false},
            {"id": "<ana>", "type": "Agent", "role": "owner", "status": "inactive", "name": "ana", "handle": "olga/ana", "online": false},
            {"id": "<bob>", "type": "Agent", "role": "member", "status": "inactive", "name": "bob", "handle": "olga/bob", "online": true},
        ]})
    );
    let seen = olga.get(&room.path("/participants?participant_type=Agent")).await.assert_status(200).named();
    assert_eq!(
        seen["data"],
        json!([
            {
                "id": "<ana>", "type": "Agent", "role": "owner", "status": "inactive", "name": "ana", "handle": "olga/ana",
                "online": false, "connection_status": "disconnected", "description": "ana, an agent of a test", "is_external": true,
            },
            {
                "id": "<bob>", "type": "Agent", "role": "member", "status": "inactive", "name": "bob", "handle": "olga/bob",
                "online": true, "connection_status": "connected", "description": "bob, an agent of a test", "is_external": true,
            },
        ])
    );
    let people = olga.get(&room.path("/participants?participant_type=User")).await.assert_status(200).named();
    assert_eq!(
        people["data"],
        json!([{
            "id": "<olga>", "type": "User", "role": "member", "status": "active", "name": "olga", "handle": "olga",
            "online": false, "connection_status": null, "description": null, "is_external": null,
        }])
    );
    olga.get(&room.path("/participants?participant_type=robot")).await.assert_invalid(&["/participant_type"]);
}

async fn the_roster_is_paged_for_people(app: TestApp) {
    let olga = app.owner();
    let room = app.room_with(&olga, &[]).await;
    let mut wanted = vec![olga.id.clone()];
    for number in 0..24 {
        let agent = app.agent(&format!("agent {number}")).await;
        olga.adds(&room, &agent).await.assert_status(201);
        wanted.push(agent.id);
    }
    let first = olga.get(&room.path("/participants")).await.assert_status(200);
    assert_eq!((first.rows().len(), &first.metadata()["has_more"]), (20, &json!(true)));
    let cursor = first.metadata()["next_cursor"].as_str().expect("a cursor").to_owned();
    let second = olga.get(&room.path(&format!("/participants?cursor={cursor}"))).await.assert_status(200);
    assert_eq!([first.strings("id"), second.strings("id")].concat(), wanted);
    let page = olga.get(&room.path("/participants?page=3&page_size=10")).await.assert_status(200);
    assert_eq!(page.strings("id"), wanted[20..]);
    assert_eq!((&page.metadata()["total_count"], &page.metadata()["total_pages"]), (&json!(25), &json!(3)));
    let mismatch = format!("/participants?participant_type=User&cursor={cursor}");
    olga.get(&room.path(&mismatch)).await.assert_error(422, "cursor_filter_mismatch");
    // Agents get all of them.
    let agent = olga.registers("last").await;
    olga.adds(&room, &agent).await.assert_status(201);
    assert_eq!(agent.get(&room.path("/participants")).await.rows().len(), 26);
}

async fn of_many_that_add_the_same_one_wins(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[]).await;
    let replies = futures_util::future::join_all((0..64).map(|_| ana.adds(&room, &bob))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![409; 63]].concat());
    assert_eq!(ana.get(&room.path("/participants")).await.rows().len(), 2);
}

async fn many_are_added_at_once(app: TestApp) {
    let olga = app.owner();
    let room = app.room_with(&olga, &[]).await;
    let mut agents = Vec::new();
    for number in 0..16 {
        agents.push(app.agent(&format!("agent {number}")).await);
    }
    let replies = futures_util::future::join_all(agents.iter().map(|agent| olga.adds(&room, agent))).await;
    assert!(replies.iter().all(|reply| reply.status == 201), "{replies:?}");
    assert_eq!(olga.get(&room.path("/participants?limit=100")).await.rows().len(), 17);
}

async fn two_owners_cannot_both_leave(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    for _ in 0..10 {
        let room = app.room_with(&ana, &[]).await;
        ana.adds_as(&room, &bob, "owner").await.assert_status(201);
        let (one, other) = tokio::join!(ana.removes(&room, &ana), bob.removes(&room, &bob));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 403], "{one:?} {other:?}");
    }
}

async fn of_many_that_remove_the_same_one_wins(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let replies = futures_util::future::join_all((0..32).map(|_| ana.removes(&room, &bob))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200], vec![404; 31]].concat());
}

async fn a_third_participant_makes_it_a_group(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana]).await;
    assert_eq!(olga.get(&room.path("")).await.data()["type"], "direct");
    olga.adds(&room, &bob).await.assert_status(201);
    assert_eq!(olga.get(&room.path("")).await.data()["type"], "group");
    olga.removes(&room, &bob).await.assert_status(200);
    assert_eq!(olga.get(&room.path("")).await.data()["type"], "group");
    assert_eq!(olga.get("chats?type=group").await.strings("id"), std::slice::from_ref(&room.id));
}

async fn a_full_room_takes_nobody(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana]).await;
    let reply = olga.adds(&room, &bob).await.assert_error(403, "limit_reached");
    assert_eq!(reply.error()["details"], json!({"resource": "participants", "limit": 2, "current": 2}));
    olga.removes(&room, &ana).await.assert_status(200);
    olga.adds(&room, &bob).await.assert_status(201);
}

//! Saying something: who hears it, how it is stored, what is refused.

use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(
    only_the_mentioned_agent_hears_the_message,
    a_message_is_stored_with_its_mentions_in_front,
    recipients_come_in_request_order,
    a_reference_names_but_does_not_deliver,
    a_person_may_be_the_only_one_mentioned,
    callers_that_hang_up_leave_whole_messages,
    a_mention_may_be_by_handle,
    every_refusal_of_a_mention_has_its_code,
    explicit_nulls_count_as_absent,
    unknown_properties_are_refused,
    tolerated_properties_are_ignored,
    content_must_be_visible_and_not_too_long,
    a_refused_message_changes_nothing,
    the_first_message_titles_the_room,
    an_archived_room_refuses_writes_and_is_read,
    whoever_is_not_in_the_room_cannot_post,
    events_are_recorded_and_reach_no_agent,
    events_are_checked,
    an_attention_event_has_rules_of_its_own,
    activity_is_reported_and_echoed,
    attachments_are_unknown,
);

async fn only_the_mentioned_agent_hears_the_message(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&bob, &cy]).await;
    let topic = format!("chat_room:{}", room.id);
    let (mut ana_socket, mut bob_socket, mut cy_socket) =
        (ana.joins(&topic).await, bob.joins(&topic).await, cy.joins(&topic).await);

    let message = ana.says(&room, "please look", &[&bob]).await;

    let heard = bob_socket.next_event("message_created").await;
    assert_eq!((&heard["id"], &heard["content"]), (&json!(message), &json!(format!("@[[{}]] please look", bob.id))));
    ana_socket.assert_silent().await;
    cy_socket.assert_silent().await;
    assert_eq!(bob.next_id(&room).await, Some(message));
    assert_eq!(cy.next(&room).await, None);
    assert_eq!(ana.next(&room).await, None);
}

async fn a_message_is_stored_with_its_mentions_in_front(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&bob, &cy]).await;
    let token = |who: &Caller| format!("@[[{}]]", who.id);

    ana.says(&room, "@bob look, @[[ and @[[nobody]] stay", &[&bob, &cy]).await;
    ana.says(&room, &format!("see {} there", token(&cy)), &[&bob, &cy]).await;

    assert_eq!(
        bob.contents(&room.path("/messages")).await,
        [
            format!("{} {} @bob look, @[[ and @[[nobody]] stay", token(&bob), token(&cy)),
            format!("{} see {} there", token(&bob), token(&cy)),
        ]
    );
    let row = bob.get(&room.path("/messages?limit=1")).await.named()["data"][0].clone();
    assert_eq!(
        row,
        json!({
            "id": "<id>",
            "content": "@[[<bob>]] @[[<cy>]] @bob look, @[[ and @[[nobody]] stay",
            "message_type": "text",
            "sender_id": "<ana>",
            "sender_type": "Agent",
            "sender_name": "ana",
            "chat_room_id": "<room>",
            "thread_id": null,
            "metadata": {
                "mentions": [
                    {"id": "<bob>", "handle": "olga/bob", "name": "bob"},
                    {"id": "<cy>", "handle": "olga/cy", "name": "cy"},
                ],
                "status": "sent",
                "delivery_status": {},
            },
            "attachments": [],
            "inserted_at": "2026-01-01T00:00:00.000000Z",
            "updated_at": "2026-01-01T00:00:00.000000Z",
        })
    );
}

async fn recipients_come_in_request_order(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &cy, &olga]).await;
    let mentions = json!([
        {"id": cy.id, "name": "whatever"},
        {"id": bob.id, "kind": "reference"},
        {"id": olga.id, "handle": "wrong", "kind": "mention"},
    ]);
    let reply = ana.post(&room.path("/messages"), json!({"message": {"content": "hi", "mentions": mentions}})).await;
    let sent = reply.assert_status(201).named();
    assert_eq!(
        sent,
        json!({"data": {
            "id": "<id>",
            "success": true,
            "recipients": [
                {"id": "<cy>", "handle": "olga/cy", "name": "cy"},
                {"id": "<olga>", "handle": "olga", "name": "olga"},
            ],
        }})
    );
}

async fn a_reference_names_but_does_not_deliver(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&bob, &cy]).await;
    let mut cy_socket = cy.joins(&format!("chat_room:{}", room.id)).await;
    let mentions = json!([{"id": bob.id}, {"id": cy.id, "kind": "reference"}]);
    let body = json!({"message": {"content": "ask cy", "mentions": mentions}});

    ana.post(&room.path("/messages"), body).await.assert_status(201);

    let row = bob.next(&room).await.expect("a message");
    assert_eq!(row["content"], format!("@[[{}]] ask cy", bob.id));
    assert_eq!(
        app.names.replace(&row["metadata"]["mentions"]),
        json!([
            {"id": "<bob>", "handle": "olga/bob", "name": "bob"},
            {"id": "<cy>", "handle": "olga/cy", "name": "cy", "kind": "reference"},
        ])
    );
    assert_eq!(cy.next(&room).await, None);
    assert_eq!(cy.contents(&room.path("/messages?status=all")).await, [""; 0]);
    assert_eq!(cy.contents(&room.path("/context")).await, [""; 0]);
    cy_socket.assert_silent().await;
}

async fn a_person_may_be_the_only_one_mentioned(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &olga]).await;
    let mut person = olga.joins(&format!("chat_room:{}", room.id)).await;
    let id = ana.says(&room, "done", &[&olga]).await;
    assert_eq!(person.next_event("message_created").await["id"], id);
    for agent in [&ana, &bob] {
        assert_eq!(agent.next(&room).await, None);
    }
    assert_eq!(olga.get(&room.path("/messages")).await.rows()[0]["metadata"]["delivery_status"], json!({}));
}

async fn callers_that_hang_up_leave_whole_messages(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let mut person = olga.joins(&format!("chat_room:{}", room.id)).await;
    let mut answered = Vec::new();
    for round in 0..10 {
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..20 {
            let (ana, bob, room) = (ana.clone(), bob.clone(), room.clone());
            callers.spawn(async move { ana.says(&room, &format!("{round}.{number}"), &[&bob]).await });
        }
        // One is answered; the rest hang up wherever they are.
        answered.push(callers.join_next().await.expect("a caller").expect("it does not panic"));
        callers.abort_all();
        while let Some(ended) = callers.join_next().await {
            answered.extend(ended.ok());
        }
    }
    let last = ana.says(&room, "the last", &[&bob]).await;
    answered.push(last.clone());

    let mut heard = Vec::new();
    while heard.last() != Some(&last) {
        heard.push(person.skip_to("message_created").await["id"].as_str().expect("an id").to_owned());
    }
    let mut served = Vec::new();
    let mut path = room.path("/messages?limit=100");
    loop {
        let page = bob.get(&path).await.assert_status(200);
        served.extend(page.strings("id"));
        match page.metadata()["next_cursor"].as_str() {
            Some(cursor) => path = room.path(&format!("/messages?limit=100&cursor={cursor}")),
            None => break,
        }
    }
    // A request that was on its way may still be carried out after the last one; whole, then, and announced.
    assert!(served.starts_with(&heard), "what is stored is announced, in order: {heard:?} {served:?}");
    assert!(answered.iter().all(|id| heard.contains(id)), "what was acknowledged is there");
}

async fn a_mention_may_be_by_handle(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for handle in ["olga/bob", "@olga/bob", " @Olga/BOB "] {
        let body = json!({"message": {"content": handle, "mentions": [{"handle": handle}]}});
        let reply = ana.post(&room.path("/messages"), body).await.assert_status(201);
        assert_eq!(reply.data()["recipients"][0]["id"], bob.id);
    }
    assert_eq!(bob.get(&room.path("/messages")).await.rows().len(), 3);
}

async fn every_refusal_of_a_mention_has_its_code(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &olga]).await;
    let nobody = "00000000-0000-4000-8000-00000000dead";
    let table = [
        (json!([]), "mentions_required"),
        (json!([{"id": bob.id, "kind": "reference"}]), "mentions_required"),
        (json!([{"id": bob.id}, {"id": bob.id}]), "duplicate_mentions"),
        (json!([{"id": bob.id}, {"handle": "@OLGA/bob"}]), "duplicate_mentions"),
        (json!([{"id": bob.id}, {"id": bob.id, "kind": "reference"}]), "duplicate_mentions"),
        (json!([{"id": cy.id}]), "mentioned_participant_not_in_room"),
        (json!([{"id": nobody}]), "mentioned_participant_not_in_room"),
        (json!([{"id": nobody, "handle": bob.handle}]), "mentioned_participant_not_in_room"),
        (json!([{"id": bob.id, "kind": "shout"}]), "invalid_mention_kind"),
        (json!([{"handle": cy.handle}]), "handle_not_found"),
        (json!([{"handle": "no\u{0}body"}]), "handle_not_found"),
        (json!([{"name": "bob"}]), "mention_missing_identifier"),
        (json!([{"handle": ""}]), "mention_missing_identifier"),
        (json!([{"handle": "@"}]), "mention_missing_identifier"),
        (json!([{"id": null, "handle": null}]), "mention_missing_identifier"),
    ];
    for sender in [&ana, &olga] {
        let itself = [
            (json!([{"id": sender.id}]), "cannot_mention_self"),
            (json!([{"handle": sender.handle}]), "cannot_mention_self"),
            (json!([{"id": bob.id}, {"id": sender.id, "kind": "reference"}]), "cannot_mention_self"),
        ];
        for (mentions, code) in table.iter().chain(&itself) {
            let body = json!({"message": {"content": "hi", "mentions": mentions}});
            let reply = sender.post(&room.path("/messages"), body).await.assert_error(422, code);
            if *code == "mentioned_participant_not_in_room" {
                assert_eq!(reply.error()["message"], *code, "band-sdk compares the message");
            }
        }
        sender
            .post(&room.path("/messages"), json!({"message": {"content": "hi"}}))
            .await
            .assert_error(422, "mentions_required");
    }
    assert_eq!(olga.get(&room.path("/messages")).await.rows().len(), 0);
}

async fn explicit_nulls_count_as_absent(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let body = json!({"message": {"content": "hi", "mentions": [{"id": bob.id, "handle": null, "name": null}], "metadata": null}});
    ana.post(&room.path("/messages"), body).await.assert_status(201);
    let body = json!({"message": {"content": "hi", "mentions": [{"id": bob.id, "handle": ""}]}});
    ana.post(&room.path("/messages"), body).await.assert_status(201);
    // These two the platform refuses.
    let body = json!({"message": {"content": "hi", "mentions": [{"id": bob.id, "kind": null}]}});
    ana.post(&room.path("/messages"), body).await.assert_invalid(&["/message/mentions/0/kind"]);
    let body = json!({"message": {"content": "hi", "mentions": [{"id": bob.id}], "attachment_ids": null}});
    ana.post(&room.path("/messages"), body).await.assert_invalid(&["/message/attachment_ids"]);
}

async fn unknown_properties_are_refused(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let body = json!({
        "message": {"content": "hi", "mentions": [{"id": bob.id, "loud": 1}], "a/b~c": 2},
        "more": true,
    });
    let reply = ana.post(&room.path("/messages"), body).await;
    let reply = reply.assert_invalid(&["/more", "/message/a~1b~0c", "/message/mentions/0/loud"]);
    assert_eq!(reply.error()["details"]["/more"], json!(["Unexpected field: more"]));
    for (body, places) in [
        (json!({}), &["/message"][..]),
        (json!([]), &["/"]),
        (json!({"message": "hi"}), &["/message"]),
        (json!({"message": {"content": 5, "mentions": {}}}), &["/message/content", "/message/mentions"]),
        (json!({"message": {"mentions": ["bob"]}}), &["/message/content", "/message/mentions/0"]),
        (json!({"message": {"content": "hi", "mentions": [{"id": "bob"}]}}), &["/message/mentions/0/id"]),
    ] {
        ana.post(&room.path("/messages"), body).await.assert_invalid(places);
    }
}

async fn tolerated_properties_are_ignored(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let body = json!({"message": {
        "content": "hi",
        "message_type": "text",
        "metadata": {"delegation": {"version": 1}, "status": "forged", "mentions": []},
        "mentions": [{"id": bob.id, "username": "bob"}],
    }});
    ana.post(&room.path("/messages"), body).await.assert_status(201);
    let metadata = bob.next(&room).await.expect("a message")["metadata"].clone();
    assert_eq!(metadata["status"], "sent");
    assert_eq!(metadata.get("delegation"), None);
    let body = json!({"message": {"content": "hi", "message_type": "thought", "mentions": [{"id": bob.id}]}});
    ana.post(&room.path("/messages"), body).await.assert_invalid(&["/message/message_type"]);
}

async fn content_must_be_visible_and_not_too_long(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let too_long = "x".repeat(524_289);
    let too_long_as_json = "\u{1}".repeat(100_000) + &"\"".repeat(200_000);
    for (content, what) in [
        ("", "can't be blank"),
        (" \n\t", "can't be blank"),
        ("\u{200b}\u{feff}\u{2060}", "can't be blank"),
        ("a\u{0}b", "must not contain the character NUL"),
        (too_long.as_str(), "should be at most 524288 byte(s)"),
        (too_long_as_json.as_str(), "should be at most 900000 byte(s) when written as JSON"),
    ] {
        let reply = ana.posts(&room, content, &[&bob]).await.assert_invalid(&["/message/content"]);
        assert_eq!(reply.error()["details"]["/message/content"], json!([what]));
    }
    for content in [".", "✓", "天", &"x".repeat(524_288), &"é".repeat(262_144)] {
        ana.says(&room, content, &[&bob]).await;
    }
    let stored = bob.contents(&room.path("/messages")).await;
    assert_eq!(stored.len(), 5);
    assert!(stored[3].ends_with(&"x".repeat(524_288)), "nothing is cut");
}

async fn a_refused_message_changes_nothing(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let before = olga.get(&room.path("")).await.json().clone();
    app.clock.advance(5);
    ana.posts(&room, "hi", &[&bob, &cy]).await.assert_error(422, "mentioned_participant_not_in_room");
    ana.posts(&room, "hi", &[]).await.assert_error(422, "mentions_required");
    assert_eq!(olga.get(&room.path("")).await.json(), &before);
    assert_eq!(bob.next(&room).await, None);
    assert_eq!(olga.get(&room.path("/messages")).await.rows().len(), 0);
}

async fn the_first_message_titles_the_room(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let title = async || ana.get(&room.path("")).await.data()["title"].clone();
    ana.records(&room, "thought", "events do not title it").await;
    assert_eq!(title().await, Value::Null);
    ana.says(&room, "  Plan the\n launch  of the very long named product line that nobody will ever remember", &[&bob])
        .await;
    assert_eq!(title().await, "Plan the launch of the very long named product line that nob");
    ana.says(&room, "another", &[&bob]).await;
    assert_eq!(title().await, "Plan the launch of the very long named product line that nob");

    let reply = ana.post("chats", json!({"chat": {"title": "  Given  "}})).await.assert_status(201);
    let titled = Room { id: reply.id() };
    ana.adds(&titled, &bob).await.assert_status(201);
    ana.says(&titled, "another", &[&bob]).await;
    assert_eq!(ana.get(&titled.path("")).await.data()["title"], "Given");
}

async fn an_archived_room_refuses_writes_and_is_read(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let message = ana.says(&room, "before", &[&bob]).await;
    let archived = olga.post_nothing(&room.path("/archive")).await.assert_status(200);
    assert_eq!(archived.data()["status"], "archived");
    assert_eq!(olga.post_nothing(&room.path("/archive")).await.assert_status(200).data(), archived.data());

    ana.posts(&room, "during", &[&bob]).await.assert_error(403, "forbidden");
    olga.posts(&room, "during", &[&bob]).await.assert_error(403, "forbidden");
    let event = json!({"event": {"content": "x", "message_type": "thought"}});
    ana.post(&room.path("/events"), event).await.assert_error(403, "forbidden");
    olga.adds(&room, &cy).await.assert_error(403, "forbidden");
    olga.removes(&room, &bob).await.assert_error(403, "forbidden");
    olga.patch(&room.path(""), json!({"chat": {"title": "new"}})).await.assert_error(403, "forbidden");

    // What was said before is still worked on.
    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    bob.handles(&room, &message).await;
    assert_eq!(olga.get(&room.path("/messages")).await.rows().len(), 1);
    assert_eq!(olga.get("chats?status=archived").await.strings("id"), std::slice::from_ref(&room.id));
    assert_eq!(olga.get("chats?status=active").await.strings("id"), [""; 0]);

    let opened = olga.post_nothing(&room.path("/unarchive")).await.assert_status(200);
    assert_eq!(opened.data()["status"], "active");
    ana.says(&room, "after", &[&bob]).await;
}

async fn whoever_is_not_in_the_room_cannot_post(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let eve = app.user("eve").await;
    let room = app.room_with(&ana, &[&bob]).await;
    // The owner of a participating agent reads, but is not in the room itself.
    olga.get(&room.path("/messages")).await.assert_status(200);
    for outsider in [&cy, &olga, &eve] {
        outsider.posts(&room, "hi", &[&bob]).await.assert_error(404, "not_found");
    }
    let event = json!({"event": {"content": "x", "message_type": "thought"}});
    cy.post(&room.path("/events"), event).await.assert_error(404, "not_found");
}

async fn events_are_recorded_and_reach_no_agent(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let mut bob_socket = bob.joins(&format!("chat_room:{}", room.id)).await;
    for kind in ["tool_call", "tool_result", "thought", "error", "task"] {
        let metadata = json!({"z": 1, "a": {"nested": [1.5, null, "x"]}, "number": 12_345_678_901_234_567_890_u64});
        let body = json!({"event": {"content": format!("@[[{}]] a {kind}", bob.id), "message_type": kind, "metadata": metadata}});
        let reply = ana.post(&room.path("/events"), body).await.assert_status(201);
        assert_eq!(app.names.replace(reply.data()), json!({"id": "<id>", "success": true, "message_type": kind}));
        let row = olga.get(&room.path("/messages?limit=1")).await.rows()[0].clone();
        assert_eq!((&row["message_type"], &row["metadata"]), (&json!(kind), &metadata));
        assert_eq!(row["metadata"].to_string(), metadata.to_string(), "exactly what was supplied, in its order");
    }
    bob_socket.assert_silent().await;
    assert_eq!(bob.next(&room).await, None);
    assert_eq!(bob.get(&room.path("/messages?status=all")).await.rows().len(), 0);
    assert_eq!(ana.get(&room.path("/context")).await.rows().len(), 5);
}

async fn events_are_checked(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    let post = async |event: Value| ana.post(&room.path("/events"), json!({"event": event})).await;
    for (event, place) in [
        (json!({"content": "x", "message_type": "text"}), "/event/message_type"),
        (json!({"content": "x", "message_type": "song"}), "/event/message_type"),
        (json!({"content": "x"}), "/event/message_type"),
        (json!({"message_type": "thought"}), "/event/content"),
        (json!({"content": " ", "message_type": "thought"}), "/event/content"),
        (json!({"content": "a\u{0}", "message_type": "thought"}), "/event/content"),
        (json!({"content": "x".repeat(16_385), "message_type": "thought"}), "/event/content"),
        (json!({"content": "x", "message_type": "thought", "metadata": []}), "/event/metadata"),
        (json!({"content": "x", "message_type": "thought", "metadata": {"k": "v".repeat(65_536)}}), "/event/metadata"),
        (json!({"content": "x", "message_type": "thought", "mentions": []}), "/event/mentions"),
    ] {
        post(event).await.assert_invalid(&[place]);
    }
    post(json!({"content": "é".repeat(16_384), "message_type": "thought"})).await.assert_status(201);
    post(json!({"content": "x", "message_type": "thought", "metadata": {"k": "\u{0}"}})).await.assert_status(201);
}

async fn an_attention_event_has_rules_of_its_own(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    let other = app.room_with(&ana, &[]).await;
    let post = async |room: &Room, metadata: Value| {
        let event = json!({"content": "look", "message_type": "attention", "metadata": metadata});
        ana.post(&room.path("/events"), json!({"event": event})).await
    };
    for metadata in [json!(null), json!({}), json!({"kind": "panic"})] {
        post(&room, metadata).await.assert_invalid(&["/event/metadata/kind"]);
    }
    post(&room, json!({"kind": "question", "blocking": "yes"})).await.assert_invalid(&["/event/metadata/blocking"]);
    let task = json!({"kind": "question", "task_id": room.id});
    post(&room, task).await.assert_invalid(&["/event/metadata/task_id"]);
    let question = post(&room, json!({"kind": "question", "blocking": true})).await.assert_status(201).id();
    let thought = ana.records(&room, "thought", "x").await;
    let resolves = |id: &str| json!({"kind": "review", "resolves": id});
    post(&room, resolves(&question)).await.assert_status(201);
    post(&room, resolves(&thought)).await.assert_invalid(&["/event/metadata/resolves"]);
    post(&other, resolves(&question)).await.assert_invalid(&["/event/metadata/resolves"]);
}

async fn activity_is_reported_and_echoed(app: TestApp) {
    let [ana, cy] = app.agents(["ana", "cy"]).await;
    let room = app.room_with(&ana, &[]).await;
    let path = room.path("/activity");
    for body in [
        json!({"working": true}),
        json!({"working": true, "activity": null}),
        json!({"working": true, "activity": {"kind": "reasoning"}}),
        json!({"working": true, "activity": {"kind": "tool_call", "name": "fs.read file"}}),
        json!({"working": false}),
    ] {
        let reply = ana.post(&path, body.clone()).await.assert_status(200);
        assert_eq!(reply.json(), &json!({"data": {"working": body["working"]}}));
    }
    for (body, place) in [
        (json!({}), "/working"),
        (json!({"working": "yes"}), "/working"),
        (json!({"working": true, "activity": {}}), "/activity/kind"),
        (json!({"working": true, "activity": {"kind": "sleep"}}), "/activity/kind"),
        (json!({"working": true, "activity": {"kind": "tool_call"}}), "/activity/name"),
        (json!({"working": true, "activity": {"kind": "memory", "name": "x"}}), "/activity/name"),
    ] {
        ana.post(&path, body).await.assert_invalid(&[place]);
    }
    cy.post(&path, json!({"working": true})).await.assert_error(404, "not_found");
}

async fn attachments_are_unknown(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let post = async |attachments: Value| {
        let message = json!({"content": "hi", "mentions": [{"id": bob.id}], "attachment_ids": attachments});
        ana.post(&room.path("/messages"), json!({"message": message})).await
    };
    post(json!([])).await.assert_status(201);
    post(json!([room.id])).await.assert_error(422, "unknown_attachment");
    post(json!(["x"])).await.assert_invalid(&["/message/attachment_ids/0"]);
    post(json!(vec![room.id.clone(); 11])).await.assert_invalid(&["/message/attachment_ids"]);
    assert_eq!(bob.get(&room.path("/messages")).await.rows().len(), 1);
}

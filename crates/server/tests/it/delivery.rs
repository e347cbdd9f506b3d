//! The life of a delivery: from stored to processed, and all the ways in between.

use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(
    a_message_is_worked_on_from_next_to_processed,
    the_delivery_status_tells_the_whole_story,
    a_second_processing_supersedes_the_first,
    a_processed_message_may_be_opened_again,
    a_mark_without_an_attempt_is_refused,
    a_failure_needs_a_reason,
    an_agent_may_mark_what_was_not_sent_to_it,
    marks_of_unknown_messages_are_not_found,
    lists_by_status_agree_with_what_happened,
    cursors_walk_everything_once,
    pages_walk_everything_once,
    pages_are_checked,
    next_serves_the_oldest_first,
    next_notes_that_the_message_was_delivered,
    a_push_notes_that_the_message_was_delivered,
    removal_ends_open_deliveries_for_good,
    removal_with_many_open_deliveries,
    a_deleted_room_serves_nothing,
    concurrent_marks_leave_one_open_attempt,
);

/// What became of a message for one agent, as people see it.
async fn status(of: &Caller, room: &Room, message: &str) -> Value {
    let olga = of.app.owner();
    let reply = olga.get(&room.path(&format!("/messages?around={message}&limit=1"))).await.assert_status(200);
    reply.rows()[0]["metadata"]["delivery_status"][&of.id].clone()
}

/// Until the batch of `delivered` marks is written; people are told.
async fn delivered(room: &Room, of: &Caller, by: impl AsyncFnOnce()) -> Value {
    let mut watcher = of.app.owner().joins(&format!("chat_room:{}", room.id)).await;
    by().await;
    loop {
        let update = watcher.skip_to("message_updated").await;
        let status = update["metadata"]["delivery_status"][&of.id].clone();
        if status["status"] == "delivered" {
            return status;
        }
    }
}

async fn a_message_is_worked_on_from_next_to_processed(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let first = ana.says(&room, "one", &[&bob]).await;
    let second = ana.says(&room, "two", &[&bob]).await;
    assert_eq!(bob.next_id(&room).await, Some(first.clone()));
    assert_eq!(bob.next_id(&room).await, Some(first.clone()), "asking claims nothing");

    let begun = bob.marks(&room, &first, "processing").await.assert_status(200);
    assert_eq!(
        begun.json(),
        &json!({"data": {"id": first, "success": true, "status": "processing", "attempt_number": 1}})
    );
    assert_eq!(bob.next_id(&room).await, Some(first.clone()), "what is being worked on is served: it may have died");
    let failed = bob.marks(&room, &first, "failed").await.assert_status(200);
    assert_eq!(
        failed.json(),
        &json!({"data": {"id": first, "success": true, "status": "failed", "attempt_number": 1}})
    );
    assert_eq!(bob.next_id(&room).await, Some(first.clone()), "what failed is served again");
    let again = bob.marks(&room, &first, "processing").await.assert_status(200);
    assert_eq!(again.data()["attempt_number"], 2);
    let done = bob.marks(&room, &first, "processed").await.assert_status(200);
    assert_eq!(
        done.json(),
        &json!({"data": {"id": first, "success": true, "status": "processed", "attempt_number": 2}})
    );

    assert_eq!(bob.next_id(&room).await, Some(second.clone()));
    bob.handles(&room, &second).await;
    assert_eq!(bob.next(&room).await, None);
}

async fn the_delivery_status_tells_the_whole_story(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    assert_eq!(status(&bob, &room, &message).await, Value::Null, "no entry before it is delivered");
    for (mark, seconds) in [("processing", 1), ("failed", 2), ("processing", 3), ("processed", 4)] {
        app.clock.advance(seconds);
        bob.marks(&room, &message, mark).await.assert_status(200);
    }
    assert_eq!(
        status(&bob, &room, &message).await,
        json!({
            "status": "processed",
            "delivered_at": null,
            "processed_at": "2026-01-01T00:00:10.000000Z",
            "current_attempt": 2,
            "attempts": [
                {
                    "attempt_number": 1,
                    "status": "failed",
                    "started_at": "2026-01-01T00:00:01.000000Z",
                    "completed_at": "2026-01-01T00:00:03.000000Z",
                    "error": "it broke",
                },
                {
                    "attempt_number": 2,
                    "status": "success",
                    "started_at": "2026-01-01T00:00:06.000000Z",
                    "completed_at": "2026-01-01T00:00:10.000000Z",
                    "error": null,
                },
            ],
        })
    );
}

async fn a_second_processing_supersedes_the_first(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    app.clock.advance(1);
    let second = bob.marks(&room, &message, "processing").await.assert_status(200);
    assert_eq!(second.data()["attempt_number"], 2);
    bob.marks(&room, &message, "processed").await.assert_status(200);
    let status = status(&bob, &room, &message).await;
    assert_eq!(
        status["attempts"],
        json!([
            {
                "attempt_number": 1,
                "status": "failed",
                "started_at": "2026-01-01T00:00:00.000000Z",
                "completed_at": "2026-01-01T00:00:01.000000Z",
                "error": "superseded",
            },
            {
                "attempt_number": 2,
                "status": "success",
                "started_at": "2026-01-01T00:00:01.000000Z",
                "completed_at": "2026-01-01T00:00:01.000000Z",
                "error": null,
            },
        ])
    );
}

async fn a_processed_message_may_be_opened_again(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.handles(&room, &message).await;
    assert_eq!(bob.next(&room).await, None);
    let again = bob.marks(&room, &message, "processing").await.assert_status(200);
    assert_eq!(again.data()["attempt_number"], 2);
    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    let reopened = status(&bob, &room, &message).await;
    assert_eq!((&reopened["status"], &reopened["processed_at"]), (&json!("processing"), &Value::Null));
    bob.marks(&room, &message, "failed").await.assert_status(200);
    assert_eq!(status(&bob, &room, &message).await["status"], "failed");
}

async fn a_mark_without_an_attempt_is_refused(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    for mark in ["processed", "failed"] {
        bob.marks(&room, &message, mark).await.assert_invalid(&["/processing_attempt"]);
    }
    bob.handles(&room, &message).await;
    for mark in ["processed", "failed"] {
        bob.marks(&room, &message, mark).await.assert_invalid(&["/processing_attempt"]);
    }
    assert_eq!(status(&bob, &room, &message).await["attempts"].as_array().map(Vec::len), Some(1));
}

async fn a_failure_needs_a_reason(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    let path = room.path(&format!("/messages/{message}/failed"));
    for body in [json!({}), json!({"error": ""}), json!({"error": " "}), json!({"error": null}), json!({"error": 5})] {
        bob.post(&path, body).await.assert_invalid(&["/error"]);
    }
    bob.post(&path, json!({"error": "a\u{0}"})).await.assert_invalid(&["/error"]);
    bob.post(&path, json!({"error": "x".repeat(16_385)})).await.assert_invalid(&["/error"]);
    bob.post(&path, json!({"error": "x", "why": "y"})).await.assert_invalid(&["/why"]);
    bob.post_nothing(&path).await.assert_error(400, "bad_request");
    bob.post(&path, json!({"error": "Zeitüberschreitung\n✗"})).await.assert_status(200);
    assert_eq!(status(&bob, &room, &message).await["attempts"][0]["error"], "Zeitüberschreitung\n✗");
}

async fn an_agent_may_mark_what_was_not_sent_to_it(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&bob, &cy]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    let thought = ana.records(&room, "thought", "hm").await;
    for (who, id) in [(&ana, &message), (&cy, &message), (&ana, &thought)] {
        who.handles(&room, id).await;
        who.marks(&room, id, "processing").await.assert_status(200);
        who.marks(&room, id, "failed").await.assert_status(200);
        assert_eq!(who.next(&room).await, None, "it is nevertheless no work");
        assert_eq!(who.get(&room.path("/messages?status=all")).await.rows().len(), 0);
        assert_eq!(who.get(&room.path("/messages?status=failed")).await.rows().len(), 0);
    }
    assert_eq!(bob.next_id(&room).await, Some(message));
}

async fn marks_of_unknown_messages_are_not_found(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let other = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    for mark in ["processing", "processed", "failed"] {
        bob.marks(&other, &message, mark).await.assert_error(404, "not_found");
        bob.marks(&room, &room.id, mark).await.assert_error(404, "not_found");
        bob.marks(&room, "no-uuid", mark).await.assert_error(404, "not_found");
        cy.marks(&room, &message, mark).await.assert_error(404, "not_found");
    }
    assert_eq!(status(&bob, &room, &message).await, Value::Null);
}

/// Four messages in every state that a recipient can bring about.
async fn in_every_state(app: &TestApp) -> (Caller, Room) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for (content, marks) in [
        ("fresh", &[][..]),
        ("working", &["processing"]),
        ("done", &["processing", "processed"]),
        ("broken", &["processing", "failed"]),
    ] {
        let message = ana.says(&room, content, &[&bob]).await;
        for mark in marks {
            bob.marks(&room, &message, mark).await.assert_status(200);
        }
    }
    (bob, room)
}

fn last_words(contents: &[String]) -> Vec<&str> {
    contents.iter().map(|content| content.rsplit(' ').next().unwrap_or_default()).collect()
}

async fn lists_by_status_agree_with_what_happened(app: TestApp) {
    let (bob, room) = in_every_state(&app).await;
    for (status, wanted) in [
        ("", &["fresh", "working", "broken"][..]),
        ("status=pending", &["fresh", "broken"]),
        ("status=processing", &["working"]),
        ("status=processed", &["done"]),
        ("status=failed", &["broken"]),
        ("status=all", &["fresh", "working", "done", "broken"]),
    ] {
        let filter = status.strip_prefix("status=").map_or(Value::Null, |status| json!(status));
        let plain = bob.get(&room.path(&format!("/messages?{status}"))).await.assert_status(200);
        assert_eq!(last_words(&plain.strings("content")), wanted, "{status}");
        let total = wanted.len();
        assert_eq!(
            plain.metadata(),
            &json!({
                "has_more": false, "limit": 20, "next_cursor": null,
                "page": 1, "page_size": 20, "total_count": total, "total_pages": 1, "status_filter": filter,
            })
        );
        let paged = bob.get(&room.path(&format!("/messages?{status}&page=1&page_size=1"))).await.assert_status(200);
        assert_eq!(last_words(&paged.strings("content")), wanted[..1]);
        assert_eq!(
            (&paged.metadata()["total_count"], &paged.metadata()["total_pages"]),
            (&json!(total), &json!(total))
        );
        let newest = bob.get(&room.path(&format!("/messages?{status}&sort_order=desc&limit=100"))).await;
        let backwards: Vec<&str> = wanted.iter().rev().copied().collect();
        assert_eq!(last_words(&newest.assert_status(200).strings("content")), backwards);
    }
}

async fn walk(who: &Caller, first: &str, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = format!("{first}limit={limit}");
    loop {
        let reply = who.get(&path).await.assert_status(200);
        let metadata = reply.metadata().clone();
        assert_eq!(metadata["has_more"], !metadata["next_cursor"].is_null(), "{reply:?}");
        assert!(reply.rows().len() <= limit, "{reply:?}");
        found.extend(reply.strings("content"));
        match metadata["next_cursor"].as_str() {
            Some(cursor) => path = format!("{first}limit={limit}&cursor={cursor}"),
            None => return found,
        }
    }
}

async fn cursors_walk_everything_once(app: TestApp) {
    let (bob, room) = in_every_state(&app).await;
    for limit in 1..=5 {
        for (query, wanted) in [
            ("/messages?", &["fresh", "working", "broken"][..]),
            ("/messages?sort_order=desc&", &["broken", "working", "fresh"]),
            ("/messages?status=all&", &["fresh", "working", "done", "broken"]),
            ("/messages?status=pending&sort_order=desc&", &["broken", "fresh"]),
            ("/context?", &["fresh", "working", "done", "broken"]),
        ] {
            assert_eq!(last_words(&walk(&bob, &room.path(query), limit).await), wanted, "{query} by {limit}");
        }
    }
    // A cursor is of one list: another filter or order is another list.
    let cursor = bob.get(&room.path("/messages?limit=1")).await.metadata()["next_cursor"].as_str().unwrap().to_owned();
    for other in ["/messages?status=failed", "/messages?sort_order=desc", "/context?limit=1"] {
        bob.get(&room.path(&format!("{other}&cursor={cursor}"))).await.assert_error(422, "cursor_filter_mismatch");
    }
    for damaged in ["x", "%00", "AAAA", &cursor[1..]] {
        let reply = bob.get(&room.path(&format!("/messages?cursor={damaged}"))).await;
        assert_eq!(reply.status, 422, "{reply:?}");
    }
}

async fn pages_walk_everything_once(app: TestApp) {
    let (bob, room) = in_every_state(&app).await;
    for size in 1..=5 {
        for (query, wanted) in [
            ("/messages?status=all&", &["fresh", "working", "done", "broken"][..]),
            ("/messages?", &["fresh", "working", "broken"]),
            ("/context?", &["fresh", "working", "done", "broken"]),
        ] {
            let mut found = Vec::new();
            let mut page = 1;
            loop {
                let path = room.path(&format!("{query}page={page}&page_size={size}"));
                let reply = bob.get(&path).await.assert_status(200);
                found.extend(reply.strings("content"));
                let metadata = reply.metadata();
                assert_eq!(metadata["page"], page);
                assert_eq!(metadata["total_count"], wanted.len());
                if metadata["total_pages"].as_i64() <= Some(page) {
                    assert_eq!(metadata["has_more"], false);
                    break;
                }
                assert_eq!(metadata["has_more"], true);
                page += 1;
            }
            assert_eq!(last_words(&found), wanted, "{query} by {size}");
        }
    }
    let beyond = bob.get(&room.path("/messages?page=9&page_size=9")).await.assert_status(200);
    assert_eq!(beyond.rows().len(), 0);
    assert_eq!(beyond.metadata()["total_count"], 3);
}

async fn pages_are_checked(app: TestApp) {
    let (bob, room) = in_every_state(&app).await;
    for list in ["/messages", "/context"] {
        for (query, place) in [
            ("page=0", "/page"),
            ("page=-1", "/page"),
            ("page=x", "/page"),
            ("page_size=0", "/page_size"),
            ("limit=0", "/limit"),
            ("limit=1.5", "/limit"),
            ("offset=1", "/offset"),
        ] {
            bob.get(&room.path(&format!("{list}?{query}"))).await.assert_invalid(&[place]);
        }
        for (query, limit) in [("limit=1000", 100), ("page_size=1000", 100), ("limit=99999999999999999999999", 100)] {
            let reply = bob.get(&room.path(&format!("{list}?{query}"))).await.assert_status(200);
            assert_eq!(reply.metadata()["limit"], limit, "above the maximum comes down to it");
        }
        bob.get(&room.path(&format!("{list}?page=99999999999999999999"))).await.assert_status(200);
    }
    bob.get(&room.path("/messages?status=lost")).await.assert_invalid(&["/status"]);
    bob.get(&room.path("/messages?sort_order=up")).await.assert_invalid(&["/sort_order"]);
    bob.get(&room.path("/messages?sort_order=desc&page=1")).await.assert_invalid(&["/sort_order"]);
}

async fn next_serves_the_oldest_first(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        // Order is the order of posting, whatever the clock says.
        app.clock.advance(if number == 2 { -3600 } else { 1 });
        ids.push(ana.says(&room, &format!("{number}"), &[&bob]).await);
    }
    // A later one that is done, and one that failed, change nothing about the order of the rest.
    bob.handles(&room, &ids[3]).await;
    bob.marks(&room, &ids[1], "processing").await.assert_status(200);
    bob.marks(&room, &ids[1], "failed").await.assert_status(200);
    for id in [&ids[0], &ids[1], &ids[2], &ids[4]] {
        assert_eq!(bob.next_id(&room).await.as_ref(), Some(id));
        bob.handles(&room, id).await;
    }
    assert_eq!(bob.next(&room).await, None);
}

async fn next_notes_that_the_message_was_delivered(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.get(&room.path("/messages")).await.assert_status(200);
    assert_eq!(status(&bob, &room, &message).await, Value::Null, "a list notes nothing");
    app.clock.advance(7);
    let written = delivered(&room, &bob, async || {
        let served = bob.next(&room).await.expect("a message");
        let own = &served["metadata"]["delivery_status"][&bob.id];
        assert_eq!(
            (&own["status"], &own["delivered_at"]),
            (&json!("delivered"), &json!("2026-01-01T00:00:07.000000Z"))
        );
    })
    .await;
    let wanted = json!({
        "status": "delivered",
        "delivered_at": "2026-01-01T00:00:07.000000Z",
        "processed_at": null,
        "current_attempt": null,
        "attempts": [],
    });
    assert_eq!(written, wanted);
    assert_eq!(status(&bob, &room, &message).await, wanted);
    app.clock.advance(7);
    bob.next(&room).await.expect("the same message");
    let pending = bob.get(&room.path("/messages?status=pending")).await;
    assert_eq!(pending.strings("id"), std::slice::from_ref(&message));
    assert_eq!(status(&bob, &room, &message).await, wanted, "the first time counts");
}

async fn a_push_notes_that_the_message_was_delivered(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut bob_socket = bob.joins(&format!("chat_room:{}", room.id)).await;
    let written = delivered(&room, &bob, async || {
        ana.says(&room, "work", &[&bob]).await;
    })
    .await;
    assert_eq!(written["status"], "delivered");
    let heard = bob_socket.next_event("message_created").await;
    assert_eq!(status(&bob, &room, heard["id"].as_str().unwrap()).await, written);
    assert_eq!(bob.next_id(&room).await.as_deref(), heard["id"].as_str(), "it is still work");
}

async fn removal_ends_open_deliveries_for_good(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let done = ana.says(&room, "done", &[&bob]).await;
    bob.handles(&room, &done).await;
    let working = ana.says(&room, "working", &[&bob]).await;
    bob.marks(&room, &working, "processing").await.assert_status(200);
    let fresh = ana.says(&room, "fresh", &[&bob]).await;

    olga.removes(&room, &bob).await.assert_status(200);
    bob.get(&room.path("/messages/next")).await.assert_error(404, "not_found");
    bob.marks(&room, &working, "processed").await.assert_error(404, "not_found");
    assert_eq!(status(&bob, &room, &fresh).await, Value::Null, "a cancelled delivery is not shown");

    olga.adds(&room, &bob).await.assert_status(201);
    assert_eq!(bob.next(&room).await, None, "coming back does not revive it");
    assert_eq!(bob.get(&room.path("/messages")).await.rows().len(), 0);
    assert_eq!(bob.get(&room.path("/messages?page=1")).await.metadata()["total_count"], 0);
    assert_eq!(bob.get(&room.path("/messages?status=processing")).await.rows().len(), 0);
    assert_eq!(bob.get(&room.path("/messages?status=processed")).await.strings("id"), [done]);
    let later = ana.says(&room, "later", &[&bob]).await;
    assert_eq!(bob.next_id(&room).await, Some(later));
}

async fn removal_with_many_open_deliveries(app: TestApp) {
    const MANY: usize = 505;
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let posts = (0..MANY).map(|number| {
        let (ana, bob, room) = (ana.clone(), bob.clone(), room.clone());
        async move { ana.says(&room, &number.to_string(), &[&bob]).await }
    });
    // Some at a time: a thousand sockets would only test the machine.
    let mut posts = futures_util::StreamExt::buffer_unordered(futures_util::stream::iter(posts), 16);
    while futures_util::StreamExt::next(&mut posts).await.is_some() {}
    assert_eq!(bob.get(&room.path("/messages?page=1&page_size=1")).await.metadata()["total_count"], MANY);

    olga.removes(&room, &bob).await.assert_status(200);
    olga.adds(&room, &bob).await.assert_status(201);
    assert_eq!(bob.next(&room).await, None);
    assert_eq!(bob.get(&room.path("/messages")).await.rows().len(), 0);
    let later = ana.says(&room, "later", &[&bob]).await;
    assert_eq!(bob.next_id(&room).await, Some(later.clone()));
    assert_eq!(bob.get(&room.path("/messages?status=pending")).await.strings("id"), std::slice::from_ref(&later));
    bob.handles(&room, &later).await;
    assert_eq!(bob.next(&room).await, None);
}

async fn a_deleted_room_serves_nothing(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    let deleted = olga.delete(&room.path("")).await.assert_status(200);
    assert_eq!(deleted.data()["id"], room.id);
    for who in [&ana, &bob] {
        who.get(&room.path("/messages/next")).await.assert_error(404, "not_found");
        who.get(&room.path("/messages")).await.assert_error(404, "not_found");
        who.get(&room.path("/context")).await.assert_error(404, "not_found");
        who.marks(&room, &message, "processing").await.assert_error(404, "not_found");
        who.get(&room.path("")).await.assert_error(404, "not_found");
        assert_eq!(who.get("chats").await.rows().len(), 0);
    }
    olga.get(&room.path("/messages")).await.assert_error(404, "not_found");
    olga.delete(&room.path("")).await.assert_error(404, "not_found");
    ana.posts(&room, "hi", &[&bob]).await.assert_error(404, "not_found");
}

async fn concurrent_marks_leave_one_open_attempt(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    let marks = (0..16).map(|_| bob.marks(&room, &message, "processing"));
    let replies = futures_util::future::join_all(marks).await;
    let mut numbers: Vec<i64> =
        replies.into_iter().map(|reply| reply.assert_status(200).data()["attempt_number"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
    let ends = futures_util::future::join_all((0..16).map(|_| bob.marks(&room, &message, "processed"))).await;
    let ended: Vec<u16> = ends.iter().map(|reply| reply.status).filter(|status| *status == 200).collect();
    assert_eq!(ended, [200], "one of them ends it");
    assert!(ends.iter().all(|reply| matches!(reply.status, 200 | 422)));
}

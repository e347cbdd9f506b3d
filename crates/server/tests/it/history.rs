//! What people read.

use serde_json::{Value, json};

use crate::support::{Caller, Room, TestApp, stories};

stories!(
    newest_first_and_everything,
    filters_by_type,
    since_a_moment,
    since_when_the_clock_went_back,
    anchors_after_before_and_around,
    walked_by_cursor_and_by_page,
    parameters_that_contradict_each_other,
    an_offset_other_than_zulu,
);

/// `m0` to `m9`, a second apart; every third one is a thought.
async fn ten(app: &TestApp) -> (Caller, Room, Vec<String>) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let room = app.room_with(&olga, &[&ana]).await;
    let mut ids = Vec::new();
    for number in 0..10 {
        app.clock.advance(1);
        let content = format!("m{number}");
        ids.push(if number % 3 == 2 {
            ana.records(&room, "thought", &content).await
        } else {
            olga.says(&room, &content, &[&ana]).await
        });
    }
    (olga, room, ids)
}

async fn shown(who: &Caller, room: &Room, query: &str) -> String {
    let reply = who.get(&room.path(&format!("/messages?{query}"))).await.assert_status(200);
    let word = |content: String| content.rsplit(' ').next().unwrap_or_default().trim_start_matches('m').to_owned();
    reply.strings("content").into_iter().map(word).collect()
}

async fn newest_first_and_everything(app: TestApp) {
    let (olga, room, ids) = ten(&app).await;
    assert_eq!(shown(&olga, &room, "").await, "9876543210");
    let reply = olga.get(&room.path("/messages?limit=1")).await;
    assert_eq!(
        reply.named()["data"],
        json!([{
            "id": "<id>",
            "content": "@[[<ana>]] m9",
            "message_type": "text",
            "sender_id": "<olga>",
            "sender_type": "User",
            "sender_name": "olga",
            "chat_room_id": "<room>",
            "thread_id": null,
            "metadata": {
                "mentions": [{"id": "<ana>", "handle": "olga/ana", "name": "ana"}],
                "status": "sent",
                "delivery_status": {},
            },
            "attachments": [],
            "inserted_at": "2026-01-01T00:00:10.000000Z",
            "updated_at": "2026-01-01T00:00:10.000000Z",
        }])
    );
    assert_eq!(reply.rows()[0]["id"], ids[9]);
    assert_eq!(olga.get(&room.path("")).await.data()["last_message_at"], "2026-01-01T00:00:10.000000Z");
}

async fn filters_by_type(app: TestApp) {
    let (olga, room, _) = ten(&app).await;
    for (query, wanted) in [
        ("message_type=text", "9764310"),
        ("message_type=thought", "852"),
        ("message_type=error", ""),
        ("message_type=system", ""),
        ("message_types=thought,text", "9876543210"),
        ("message_types=thought,error", "852"),
        ("message_types[]=thought&message_types[]=error", "852"),
        ("exclude_message_types=thought", "9764310"),
        ("exclude_message_types=text,thought,participant", ""),
        ("exclude_message_types=system", "9876543210"),
    ] {
        assert_eq!(shown(&olga, &room, query).await, wanted, "{query}");
    }
    for (query, place) in [
        ("message_type=song", "/message_type"),
        ("message_types=text,song", "/message_types/1"),
        ("exclude_message_types=song", "/exclude_message_types/0"),
    ] {
        olga.get(&room.path(&format!("/messages?{query}"))).await.assert_invalid(&[place]);
    }
    let two = "message_type=text&exclude_message_types=thought";
    olga.get(&room.path(&format!("/messages?{two}"))).await.assert_error(422, "invalid_params");
    let page = olga.get(&room.path("/messages?message_type=thought&page=1&page_size=2")).await.assert_status(200);
    assert_eq!((&page.metadata()["total_count"], &page.metadata()["total_pages"]), (&json!(3), &json!(2)));
}

async fn since_a_moment(app: TestApp) {
    let (olga, room, _) = ten(&app).await;
    for (moment, wanted) in [
        ("2025-12-31T23:59:59Z", "9876543210"),
        ("2026-01-01T00:00:01Z", "987654321"),
        ("2026-01-01T00:00:01.000000Z", "987654321"),
        ("2026-01-01T00:00:05.999999Z", "98765"),
        ("2026-01-01T00:00:06Z", "9876"),
        ("2026-01-01T00:00:09.5Z", "9"),
        ("2026-01-01T00:00:10Z", ""),
        ("2030-01-01T00:00:00Z", ""),
    ] {
        assert_eq!(shown(&olga, &room, &format!("since={moment}")).await, wanted, "{moment}");
    }
    assert_eq!(shown(&olga, &room, "since=2026-01-01T00:00:06Z&message_type=thought").await, "8");
    assert_eq!(shown(&olga, &room, "since=2026-01-01T00:00:06Z&limit=2").await, "98");
    assert_eq!(shown(&olga, &room, "since=2026-01-01T00:00:06Z&page=2&page_size=3").await, "6");
    for moment in ["yesterday", "2026-01-01", "2026-01-01T00:00:00", ""] {
        olga.get(&room.path(&format!("/messages?since={moment}"))).await.assert_invalid(&["/since"]);
    }
}

async fn an_offset_other_than_zulu(app: TestApp) {
    let (olga, room, _) = ten(&app).await;
    for moment in [
        "2026-01-01T02:00:06%2B02:00",
        "2026-01-01T02:00:06+02:00",
        "2025-12-31T18:30:06-05:30",
        "2026-01-01T00:00:06%2B00:00",
    ] {
        assert_eq!(shown(&olga, &room, &format!("since={moment}")).await, "9876", "{moment}");
    }
}

async fn since_when_the_clock_went_back(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let room = app.room_with(&olga, &[&ana]).await;
    for (number, seconds) in [(0, 10), (1, 10), (2, -15), (3, 1), (4, 30)] {
        app.clock.advance(seconds);
        olga.says(&room, &format!("m{number}"), &[&ana]).await;
    }
    let rows = olga.get(&room.path("/messages")).await.assert_status(200);
    assert_eq!(shown(&olga, &room, "").await, "43210", "the order is that of posting");
    let moments = rows.strings("inserted_at");
    // Within a room time never goes back nor stands still, so that a reader that asks for what is newer than the last
    // it saw misses nothing.
    assert!(moments.is_sorted_by(|newer, older| newer > older), "{moments:?}");
    assert_eq!((&*moments[0], &*moments[4]), ("2026-01-01T00:00:36.000000Z", "2026-01-01T00:00:10.000000Z"));
    for (moment, newer) in moments.iter().zip(["", "4", "43", "432", "4321"]) {
        assert_eq!(shown(&olga, &room, &format!("since={moment}")).await, newer);
    }
    assert_eq!(shown(&olga, &room, "since=2026-01-01T00:00:10Z").await, "4321");
    assert_eq!(ana.get(&room.path("/messages")).await.rows().len(), 5);
}

async fn anchors_after_before_and_around(app: TestApp) {
    let (olga, room, ids) = ten(&app).await;
    let ask = async |query: String| {
        let shown = shown(&olga, &room, &query).await;
        let metadata = olga.get(&room.path(&format!("/messages?{query}"))).await.metadata().clone();
        assert_eq!(metadata["next_cursor"], Value::Null);
        (shown, metadata["has_more"].clone(), metadata["has_older"].clone(), metadata["has_newer"].clone())
    };
    let answer = |shown: &str, more: bool| (shown.to_owned(), json!(more), Value::Null, Value::Null);
    let both =
        |shown: &str, more: bool, older: bool, newer: bool| (shown.to_owned(), json!(more), json!(older), json!(newer));
    assert_eq!(ask(format!("after={}", ids[6])).await, answer("789", false));
    assert_eq!(ask(format!("after={}&limit=2", ids[3])).await, answer("45", true));
    assert_eq!(ask(format!("after={}", ids[9])).await, answer("", false));
    assert_eq!(ask(format!("before={}", ids[3])).await, answer("210", false));
    assert_eq!(ask(format!("before={}&limit=2", ids[6])).await, answer("54", true));
    assert_eq!(ask(format!("before={}", ids[0])).await, answer("", false));
    assert_eq!(ask(format!("around={}&limit=5", ids[5])).await, both("76543", true, true, true));
    assert_eq!(ask(format!("around={}&limit=4", ids[0])).await, both("3210", false, false, true));
    assert_eq!(ask(format!("around={}&limit=4", ids[9])).await, both("9876", true, true, false));
    assert_eq!(ask(format!("around={}", ids[5])).await, both("9876543210", false, false, false));
    assert_eq!(ask(format!("around={}&limit=1", ids[5])).await, both("5", true, true, true));
    assert_eq!(ask(format!("after={}&message_type=thought", ids[3])).await, answer("58", false));

    let other = olga.creates_room().await;
    for anchor in ["after", "before", "around"] {
        let elsewhere = other.path(&format!("/messages?{anchor}={}", ids[3]));
        olga.get(&elsewhere).await.assert_error(404, "not_found");
        let unknown = room.path(&format!("/messages?{anchor}={}", room.id));
        olga.get(&unknown).await.assert_error(404, "not_found");
    }
}

async fn walked_by_cursor_and_by_page(app: TestApp) {
    let (olga, room, _) = ten(&app).await;
    for limit in [1, 3, 4, 10] {
        for filter in ["", "message_type=text&"] {
            let base = room.path(&format!("/messages?{filter}limit={limit}"));
            let (mut found, mut path) = (Vec::new(), base.clone());
            loop {
                let reply = olga.get(&path).await.assert_status(200);
                found.extend(reply.strings("id"));
                match reply.metadata()["next_cursor"].as_str() {
                    Some(cursor) => path = format!("{base}&cursor={cursor}"),
                    None => break,
                }
            }
            let all = olga.get(&room.path(&format!("/messages?{filter}limit=100"))).await.strings("id");
            assert_eq!(found, all);
            let mut paged = Vec::new();
            for page in 1..=10 {
                let path = room.path(&format!("/messages?{filter}page={page}&page_size={limit}"));
                paged.extend(olga.get(&path).await.assert_status(200).strings("id"));
            }
            assert_eq!(paged, all);
        }
    }
    // A page does not move when something new is said.
    let first = olga.get(&room.path("/messages?limit=3")).await.assert_status(200);
    let ana = olga.get(&room.path("/participants?participant_type=Agent")).await.rows()[0]["id"].clone();
    let body = json!({"message": {"content": "news", "mentions": [{"id": ana}]}});
    olga.post(&room.path("/messages"), body).await.assert_status(201);
    let cursor = first.metadata()["next_cursor"].as_str().expect("a cursor");
    assert_eq!(shown(&olga, &room, &format!("limit=3&cursor={cursor}")).await, "654");
    let elsewhere = format!("/messages?message_type=text&cursor={cursor}");
    olga.get(&room.path(&elsewhere)).await.assert_error(422, "cursor_filter_mismatch");
}

async fn parameters_that_contradict_each_other(app: TestApp) {
    let (olga, room, ids) = ten(&app).await;
    let cursor = olga.get(&room.path("/messages?limit=1")).await.metadata()["next_cursor"].as_str().unwrap().to_owned();
    let id = &ids[4];
    for query in [
        format!("after={id}&before={id}"),
        format!("around={id}&cursor={cursor}"),
        format!("around={id}&page=1"),
        format!("before={id}&page_size=5"),
        format!("after={id}&since=2026-01-01T00:00:00Z"),
    ] {
        olga.get(&room.path(&format!("/messages?{query}"))).await.assert_error(422, "invalid_params");
    }
    let query = format!("/messages?since=2026-01-01T00:00:00Z&cursor={cursor}");
    let reply = olga.get(&room.path(&query)).await;
    assert_eq!(reply.status, 422, "{reply:?}");
    olga.get(&room.path("/messages?after=x")).await.assert_invalid(&["/after"]);
}

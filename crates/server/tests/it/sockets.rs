//! The real-time side at frame level: the twelve rules that break clients when missed, and
//! what else the transport promises.

use std::time::Duration;

use bandstand_server::settings::Limits;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as RawFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::support::{Caller, Room, Socket, TestApp, stories};

stories!(
    rule_1_a_push_carries_the_join_ref_of_its_own_join,
    rule_2_a_reply_echoes_both_refs_as_they_came,
    rule_3_agent_control_is_joinable,
    rule_4_the_key_is_in_the_header_or_the_query,
    rule_5_frames_are_text_arrays_of_five,
    rule_6_the_longest_message_still_fits_a_frame,
    rule_7_a_restart_closes_with_1012,
    rule_8_no_unsolicited_close_of_a_channel,
    rule_9_bad_credentials_get_403_again_and_again,
    rule_10_the_join_reply_comes_first,
    rule_11_every_leave_is_answered,
    rule_12_pings_and_heartbeats_are_answered,
    a_newer_connection_supersedes_the_older,
    a_connection_may_give_way_instead,
    a_visitor_supersedes_nobody,
    an_owner_connects_as_its_agent,
    who_may_join_what,
    topics_are_compared_as_ids,
    a_second_join_replaces_the_first,
    channels_take_no_events,
    malformed_frames_close_the_connection,
    version_1_frames,
    refusals_before_the_upgrade,
    pushes_of_a_room_come_in_order,
    after_removal_there_is_silence,
    a_person_without_an_agent_left_hears_nothing_more,
    a_person_goes_on_reading_through_an_agent,
    a_leave_ends_the_pushes,
    a_room_is_deleted_under_its_listeners,
    a_deleted_agent_is_disconnected,
    many_topics_on_one_socket,
);
stories!(limits: Limits { socket_idle: Duration::from_millis(300), ..Limits::default() } => an_idle_socket_is_closed);
stories!(limits: Limits { frame_bytes: 2000, ..Limits::default() } => a_long_frame_closes_the_connection);
stories!(limits: Limits { socket_topics: 3, ..Limits::default() } => too_many_channels);
stories!(limits: Limits { upgrades_per_second: 1, ..Limits::default() } => too_many_upgrades);
stories!(limits: Limits { socket_queue_bytes: 700_000, ..Limits::default() } => a_slow_consumer_is_closed);

fn chat(room: &Room) -> String {
    format!("chat_room:{}", room.id)
}

fn control(of: &Caller) -> String {
    format!("agent_control:{}", of.id)
}

async fn rule_1_a_push_carries_the_join_ref_of_its_own_join(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let topic = chat(&room);
    let mut sockets = Vec::new();
    for (who, skipped) in [(&bob, 0), (&bob, 6), (&olga, 40)] {
        let mut socket = who.socket().await;
        for _ in 0..skipped {
            socket.fresh_ref();
        }
        socket.join(&topic).await;
        sockets.push(socket);
    }
    let id = ana.says(&room, "hi", &[&bob]).await;
    for (socket, own) in sockets.iter_mut().zip(["1", "7", "41"]) {
        let frame = socket.push().await;
        assert_eq!(frame.array(), json!([own, null, topic, "message_created", frame.payload]));
        assert_eq!(frame.payload["id"], id);
    }
}

async fn rule_2_a_reply_echoes_both_refs_as_they_came(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut socket = ana.socket().await;
    let ok = json!({"status": "ok", "response": {}});
    let error = |reason: &str| json!({"status": "error", "response": {"reason": reason}});
    let own = format!("agent_rooms:{}", ana.id);
    let foreign = "chat_room:00000000-0000-4000-8000-00000000dead";
    for (sent, payload) in [
        (json!(["1", "1", own, "phx_join", {}]), ok.clone()),
        (json!([7, 8, foreign, "phx_join", {}]), error("unauthorized")),
        (json!(["é\"", "x y", "chat_room:no-uuid", "phx_join", {}]), error("unauthorized")),
        (json!(["2", "3", "weather:berlin", "phx_join", {}]), error("unmatched topic")),
        (json!(["2", "3", "weather", "phx_join", {}]), error("unmatched topic")),
        (json!([null, "4", foreign, "phx_leave", {}]), ok.clone()),
        (json!(["5", "6", foreign, "shout", {"a": [1]}]), error("unmatched topic")),
        (json!(["1", "9", own, "shout", {}]), error("unmatched event")),
        (json!([null, "10", "phoenix", "heartbeat", {}]), ok.clone()),
        (json!([null, null, "phoenix", "heartbeat", {}]), ok.clone()),
        (json!([null, "11", "phoenix", "dance", {}]), error("unmatched topic")),
    ] {
        socket.send(sent.clone()).await;
        let reply = socket.frame().await;
        assert_eq!(reply.array(), json!([sent[0], sent[1], sent[2], "phx_reply", payload]));
    }
}

async fn rule_3_agent_control_is_joinable(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut socket = ana.socket().await;
    assert_eq!(socket.join(&control(&ana)).await, json!({}));
    assert_eq!(socket.join(&format!("agent_rooms:{}", ana.id)).await, json!({}));
    assert_eq!(socket.join(&format!("agent_contacts:{}", ana.id)).await, json!({}));
    socket.close().await;
}

async fn rule_4_the_key_is_in_the_header_or_the_query(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let keyless = Caller { key: String::new(), ..ana.clone() };
    for (caller, query) in [
        (&ana, "vsn=2.0.0".to_owned()),
        (&ana, format!("vsn=2.0.0&agent_id={}", ana.id)),
        (&ana, format!("vsn=2.0.0&agent_id={}", ana.id.to_uppercase())),
        (&keyless, format!("api_key={}&vsn=2.0.0", ana.key)),
        (&keyless, format!("api_key={}&agent_id={}&vsn=2.0.0", ana.key, ana.id)),
        (&ana, format!("api_key={}&vsn=2.0.0", ana.key)),
    ] {
        let mut socket = Socket::open(caller, &query).await;
        socket.join(&control(&ana)).await;
        socket.close().await;
    }
    for (query, key) in [
        (format!("?vsn=2.0.0&api_key={}", bob.key), Some(&ana.key)),
        (format!("?vsn=2.0.0&agent_id={}", bob.id), Some(&ana.key)),
        ("?vsn=2.0.0&agent_id=ana".to_owned(), Some(&ana.key)),
        ("?vsn=2.0.0".to_owned(), None),
        ("?vsn=2.0.0&api_key=".to_owned(), None),
        ("?vsn=2.0.0&token=jwt".to_owned(), Some(&ana.key)),
    ] {
        let headers: Vec<(&str, &str)> = key.map(|key| ("x-api-key", key.as_str())).into_iter().collect();
        let reply = Socket::refused(&app, &query, &headers).await.assert_status(403);
        assert_eq!(reply.body, None, "{query}");
    }
}

async fn rule_5_frames_are_text_arrays_of_five(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut socket = bob.socket().await;
    socket.send(json!(["1", "1", chat(&room), "phx_join", {}])).await;
    ana.says(&room, "hi", &[&bob]).await;
    socket.send(json!([null, "2", "phoenix", "heartbeat", {}])).await;
    socket.send(json!(["1", "3", chat(&room), "phx_leave", {}])).await;
    let mut events = Vec::new();
    while events.len() < 5 {
        let Some(Ok(Message::Text(text))) = socket.message().await else { panic!("only text frames") };
        let frame: Vec<Value> = serde_json::from_str(text.as_str()).expect("an array");
        assert_eq!(frame.len(), 5, "{text}");
        assert!(frame[4].is_object(), "{text}");
        events.push(frame[3].as_str().expect("an event").to_owned());
    }
    events.sort();
    assert_eq!(events, ["message_created", "phx_close", "phx_reply", "phx_reply", "phx_reply"]);
}

async fn rule_6_the_longest_message_still_fits_a_frame(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &olga]).await;
    let (mut bob_socket, mut olga_socket) = (bob.joins(&chat(&room)).await, olga.joins(&chat(&room)).await);
    // The largest by bytes, and the largest once written as JSON: the client looks at each frame's length.
    for content in ["x".repeat(524_288), "\"".repeat(449_990), "\u{1}".repeat(149_000) + "x"] {
        let id = ana.says(&room, &content, &[&bob]).await;
        for socket in [&mut bob_socket, &mut olga_socket] {
            let payload = socket.skip_to("message_created").await;
            assert_eq!(payload["id"], id);
            assert_eq!(payload["content"].as_str().map(str::len), Some(content.len() + 42));
        }
    }
}

async fn rule_7_a_restart_closes_with_1012(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob]).await;
    let mut listener = bob.joins(&chat(&room)).await;
    let mut idle = olga.socket().await;
    let id = ana.says(&room, "the last words", &[&bob]).await;
    app.begin_stop();
    // What was acknowledged before is announced before.
    assert_eq!(listener.next_event("message_created").await["id"], id);
    assert_eq!(listener.closed().await, 1012);
    assert_eq!(idle.closed().await, 1012);
}

async fn rule_8_no_unsolicited_close_of_a_channel(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut socket = bob.joins(&format!("agent_rooms:{}", bob.id)).await;
    socket.join_room(&room).await;
    ana.removes(&room, &bob).await.assert_status(200);
    // The raw frames: first what it is told, in the order of the commit, and no phx_close among it.
    let told = [socket.push().await.event, socket.push().await.event];
    assert_eq!(told, ["participant_removed", "room_removed"]);
    socket.assert_silent().await;
    // The client then leaves by itself, and is answered.
    for topic in [chat(&room), format!("room_participants:{}", room.id)] {
        assert_eq!(socket.leave(&topic).await.payload, json!({"status": "ok", "response": {}}));
        let close = socket.frame().await;
        assert_eq!((close.event.as_str(), close.topic.as_str()), ("phx_close", topic.as_str()));
    }
}

async fn rule_9_bad_credentials_get_403_again_and_again(app: TestApp) {
    let bearer = "band_a_0000000000000000000000000000000000000000000";
    for _ in 0..5 {
        let reply = Socket::refused(&app, "?vsn=2.0.0", &[("x-api-key", bearer)]).await.assert_status(403);
        assert_eq!(reply.body, None);
    }
}

async fn rule_10_the_join_reply_comes_first(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &olga]).await;
    for _ in 0..5 {
        let (mut agent, mut person) = (bob.socket().await, olga.socket().await);
        for socket in [&mut agent, &mut person] {
            socket.expect_join(&chat(&room)).await;
        }
        let posts = join_all((0..12).map(|number| {
            let text = number.to_string();
            let (ana, bob, room) = (&ana, &bob, &room);
            async move { ana.says(room, &text, &[bob]).await }
        }));
        let (joined, posted) = tokio::join!(
            async {
                for socket in [&mut agent, &mut person] {
                    let reply = socket.frame().await;
                    assert_eq!((reply.event.as_str(), &reply.payload["status"]), ("phx_reply", &json!("ok")));
                }
                // Its reply came: what is posted from here on is heard.
                ana.says(&room, "after the joins", &[&bob]).await
            },
            posts
        );
        // Everything committed after the join is pushed once, in order, up to the last.
        let mut waiting = Vec::new();
        while let Some(message) = bob.next_id(&room).await {
            bob.handles(&room, &message).await;
            waiting.push(message);
        }
        assert_eq!(waiting.len(), posted.len() + 1);
        let last = waiting.last().cloned();
        let at = waiting.iter().position(|id| *id == joined).expect("the post after the joins is there");
        for socket in [&mut agent, &mut person] {
            let mut heard: Vec<String> = Vec::new();
            while heard.last() != last.as_ref() {
                heard.push(socket.skip_to("message_created").await["id"].as_str().expect("an id").to_owned());
            }
            assert!(waiting.ends_with(&heard), "{heard:?} is no end of {waiting:?}");
            assert!(heard.len() >= waiting.len() - at, "{heard:?} misses what followed the join's reply");
        }
    }
}

async fn rule_11_every_leave_is_answered(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let (topic, ok) = (chat(&room), json!({"status": "ok", "response": {}}));
    let mut socket = bob.socket().await;
    // Not joined: nothing but the answer.
    socket.send(json!([null, "20", topic, "phx_leave", {}])).await;
    assert_eq!(socket.frame().await.array(), json!([null, "20", topic, "phx_reply", ok]));
    // Joined: the answer, then the channel's close.
    socket.send(json!(["21", "21", topic, "phx_join", {}])).await;
    assert_eq!(socket.frame().await.event, "phx_reply");
    socket.send(json!(["21", "22", topic, "phx_leave", {}])).await;
    assert_eq!(socket.frame().await.array(), json!(["21", "22", topic, "phx_reply", ok]));
    assert_eq!(socket.frame().await.array(), json!(["21", "21", topic, "phx_close", {}]));
    // Again.
    socket.send(json!(["21", "23", topic, "phx_leave", {}])).await;
    assert_eq!(socket.frame().await.array(), json!(["21", "23", topic, "phx_reply", ok]));
    // Of a refused join, of an unknown topic, and of one that is none.
    for topic in ["chat_room:00000000-0000-4000-8000-00000000dead", "weather:berlin", "weather", ""] {
        socket.send(json!(["24", "25", topic, "phx_leave", {}])).await;
        assert_eq!(socket.frame().await.array(), json!(["24", "25", topic, "phx_reply", ok]));
    }
    // Of an older join while another is current: nothing, as in Phoenix.
    socket.send(json!(["26", "26", topic, "phx_join", {}])).await;
    assert_eq!(socket.frame().await.event, "phx_reply");
    socket.send(json!(["21", "27", topic, "phx_leave", {}])).await;
    socket.send(json!([null, "28", "phoenix", "heartbeat", {}])).await;
    assert_eq!(socket.frame().await.reference, "28");
    // While the join is still being looked at.
    for number in 30..40 {
        let reference = number.to_string();
        socket.send(json!([reference, reference, topic, "phx_join", {}])).await;
        socket.send(json!([reference, format!("{reference}l"), topic, "phx_leave", {}])).await;
        loop {
            let frame = socket.frame().await;
            if frame.reference == format!("{reference}l") {
                assert_eq!(frame.payload, ok);
                break;
            }
        }
    }
    socket.close().await;
}

async fn rule_12_pings_and_heartbeats_are_answered(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut socket = ana.socket().await;
    socket.send_message(Message::Ping("are you there".into())).await;
    let Some(Ok(Message::Pong(pong))) = socket.message().await else { panic!("a pong, please") };
    assert_eq!(&pong[..], b"are you there");
    let beat = socket.heartbeat().await;
    assert_eq!(beat.array(), json!([null, "1", "phoenix", "phx_reply", {"status": "ok", "response": {}}]));
}

async fn a_newer_connection_supersedes_the_older(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&bob, &[&ana]).await;
    let mut older = ana.joins(&control(&ana)).await;
    older.join(&chat(&room)).await;
    let mut newer = ana.joins(&control(&ana)).await;
    newer.join(&chat(&room)).await;
    assert_eq!(
        older.next_event("supersede").await,
        json!({
            "reason": "session.already_connected",
            "message": "A newer connection of this agent took over.",
            "correlation_id": null,
            "retryable": false,
            "retry_after": 15,
            "target_socket_id": format!("agent_socket:{}", ana.id),
        })
    );
    assert_eq!(older.closed().await, 1000);
    let id = bob.says(&room, "hi", &[&ana]).await;
    assert_eq!(newer.next_event("message_created").await["id"], id);
    // Joining it again oneself supersedes nobody.
    newer.send(json!(["50", "50", control(&ana), "phx_join", {}])).await;
    assert_eq!(newer.frame().await.event, "phx_close");
    assert_eq!(newer.frame().await.payload["status"], "ok");
    newer.heartbeat().await;
    newer.close().await;
}

async fn a_connection_may_give_way_instead(app: TestApp) {
    let ana = app.agent("ana").await;
    let reject = "vsn=2.0.0&on_conflict=reject";
    let mut first = Socket::open(&ana, reject).await;
    // Nobody is live yet: this one is let in as well, and loses at the join.
    let mut second = Socket::open(&ana, reject).await;
    first.join(&control(&ana)).await;
    assert_eq!(second.try_join(&control(&ana)).await, Err("connection_conflict".to_owned()));
    for _ in 0..2 {
        let reply = Socket::refused(&app, &format!("?{reject}"), &[("x-api-key", &ana.key)]).await.assert_status(409);
        let error = reply.error();
        assert_eq!((&error["code"], &error["request_id"]), (&json!("connection_conflict"), &Value::Null));
        assert!(error["message"].is_string());
    }
    first.heartbeat().await;
    first.close().await;
    second.close().await;
    let mut third = Socket::open(&ana, reject).await;
    third.join(&control(&ana)).await;
    third.close().await;
}

async fn a_visitor_supersedes_nobody(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut live = ana.joins(&control(&ana)).await;
    let mut visitor = ana.joins(&format!("agent_rooms:{}", ana.id)).await;
    visitor.heartbeat().await;
    live.assert_silent().await;
    let marker = visitor.next_event("room_added").await;
    assert_eq!(marker["title"], "a marker", "both hear of new rooms");
}

async fn an_owner_connects_as_its_agent(app: TestApp) {
    let ana = app.agent("ana").await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let mut socket = Socket::open(&olga, &format!("vsn=2.0.0&agent_id={}", ana.id)).await;
    socket.join(&control(&ana)).await;
    assert_eq!(socket.try_join(&format!("user_rooms:{}", olga.id)).await, Err("unauthorized".into()));
    let as_agent = format!("?vsn=2.0.0&agent_id={}", ana.id);
    Socket::refused(&app, &as_agent, &[("x-api-key", &eve.key)]).await.assert_status(403);
    let as_itself = format!("?vsn=2.0.0&agent_id={}", olga.id);
    Socket::refused(&app, &as_itself, &[("x-api-key", &olga.key)]).await.assert_status(403);
    // It is the agent's connection, and ends with the owner's key.
    let mut newer = ana.joins(&control(&ana)).await;
    socket.next_event("supersede").await;
    assert_eq!(socket.closed().await, 1000);
    let mut again = Socket::open(&olga, &format!("vsn=2.0.0&agent_id={}", ana.id)).await;
    again.heartbeat().await;
    app.revoke_key(&olga).await;
    assert_eq!(again.closed().await, 1001);
    newer.heartbeat().await;
}

async fn who_may_join_what(app: TestApp) {
    let [ana, cy] = app.agents(["ana", "cy"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let helper = eve.registers("helper").await;
    let room = app.room_with(&olga, &[&ana]).await;
    let agents_room = app.room_with(&ana, &[&cy]).await;
    let refused = || Err("unauthorized".to_owned());
    let nowhere = "00000000-0000-4000-8000-00000000dead";

    let may = async |who: &Caller, topic: String| {
        let mut socket = who.socket().await;
        let answer = socket.try_join(&topic).await.map(|_| ());
        (topic, answer)
    };
    for (who, room, allowed) in [
        (&ana, &room.id, true),
        (&olga, &room.id, true),
        (&cy, &room.id, false),
        (&eve, &room.id, false),
        (&helper, &room.id, false),
        (&olga, &agents_room.id, true),
        (&eve, &agents_room.id, false),
        (&ana, &nowhere.to_owned(), false),
        (&olga, &nowhere.to_owned(), false),
        (&olga, &"x".to_owned(), false),
    ] {
        for family in ["chat_room", "room_participants", "room_tasks", "room_activity"] {
            let (topic, answer) = may(who, format!("{family}:{room}")).await;
            let for_people = family != "room_activity" || who.id == olga.id;
            let takes_part = family != "room_tasks" || !(who.id == olga.id && *room == agents_room.id);
            let wanted = if allowed && for_people && takes_part { Ok(()) } else { refused() };
            assert_eq!(answer, wanted, "{} {topic}", who.name);
        }
    }
    for family in ["agent_control", "agent_rooms", "agent_contacts"] {
        for (who, of, allowed) in [(&ana, &ana, true), (&ana, &cy, false), (&olga, &ana, false), (&olga, &olga, false)]
        {
            let (topic, answer) = may(who, format!("{family}:{}", of.id)).await;
            assert_eq!(answer.is_ok(), allowed, "{} {topic}", who.name);
        }
    }
    for family in ["user_rooms", "user_contacts", "tasks"] {
        for (who, of, allowed) in
            [(&olga, &olga, true), (&olga, &eve, false), (&ana, &ana, false), (&ana, &olga, false)]
        {
            let (topic, answer) = may(who, format!("{family}:{}", of.id)).await;
            assert_eq!(answer.is_ok(), allowed, "{} {topic}", who.name);
        }
    }
}

async fn topics_are_compared_as_ids(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let topic = format!("chat_room:{}", room.id.to_uppercase());
    let mut socket = bob.joins(&topic).await;
    let id = ana.says(&room, "hi", &[&bob]).await;
    let push = socket.push().await;
    assert_eq!((push.topic, &push.payload["id"]), (topic, &json!(id)), "named as the client wrote it");
}

async fn a_second_join_replaces_the_first(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let topic = chat(&room);
    let mut socket = bob.joins(&topic).await;
    let reference = socket.expect_join(&topic).await;
    let close = socket.frame().await;
    assert_eq!(close.array(), json!(["1", "1", topic, "phx_close", {}]));
    let reply = socket.frame().await;
    assert_eq!(reply.array(), json!([reference, reference, topic, "phx_reply", {"status": "ok", "response": {}}]));
    let id = ana.says(&room, "once", &[&bob]).await;
    assert_eq!(socket.next_event("message_created").await["id"], id);
    socket.assert_silent().await;
}

async fn channels_take_no_events(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let topic = chat(&room);
    let mut socket = bob.joins(&topic).await;
    for event in ["new_message", "message_created", "phx_reply", "phx_error", "phx_close", "heartbeat", ""] {
        socket.send(json!(["1", "77", topic, event, {"content": "x"}])).await;
        let reply = socket.frame().await;
        let error = json!({"status": "error", "response": {"reason": "unmatched event"}});
        assert_eq!(reply.array(), json!(["1", "77", topic, "phx_reply", error]), "{event}");
    }
    // The channel survives it.
    let id = ana.says(&room, "hi", &[&bob]).await;
    assert_eq!(socket.next_event("message_created").await["id"], id);
}

async fn malformed_frames_close_the_connection(app: TestApp) {
    let ana = app.agent("ana").await;
    for text in [
        "",
        "{",
        "nonsense",
        "null",
        "5",
        "[]",
        "{}",
        r#"["1","1","topic","phx_join"]"#,
        r#"["1","1","topic","phx_join",[]]"#,
        r#"["1","1","topic","phx_join",null]"#,
        r#"["1","1",5,"phx_join",{}]"#,
        r#"["1","1","topic",null,{}]"#,
        r#"[{},"1","topic","phx_join",{}]"#,
        r#"["1",true,"topic","phx_join",{}]"#,
        r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}"#,
    ] {
        let mut socket = ana.socket().await;
        socket.send_message(Message::text(text)).await;
        assert_eq!(socket.closed().await, 1007, "{text}");
    }
    let mut socket = ana.socket().await;
    socket.send_message(Message::binary(vec![0, 1, 2])).await;
    assert_eq!(socket.closed().await, 1003);
    let mut socket = ana.socket().await;
    let not_utf8 = RawFrame::message(vec![b'[', 0xff, b']'], OpCode::Data(Data::Text), true);
    socket.send_message(Message::Frame(not_utf8)).await;
    assert_eq!(socket.closed().await, 1007);
    let mut socket = ana.socket().await;
    let reserved = RawFrame::message(Vec::new(), OpCode::Data(Data::Reserved(5)), true);
    socket.send_message(Message::Frame(reserved)).await;
    assert_eq!(socket.closed().await, 1002);
}

async fn version_1_frames(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for query in ["vsn=1.0.0", ""] {
        let mut socket = Socket::open(&bob, query).await;
        let next = async |socket: &mut Socket| -> Value {
            let Some(Ok(Message::Text(text))) = socket.message().await else { panic!("a text frame, please") };
            serde_json::from_str(text.as_str()).expect("JSON")
        };
        let ok = json!({"status": "ok", "response": {}});
        let send = |event: &str, topic: &str, reference: &str| json!({"topic": topic, "event": event, "payload": {}, "ref": reference});
        socket.send(send("heartbeat", "phoenix", "1")).await;
        let beat = json!({"topic": "phoenix", "event": "phx_reply", "payload": ok, "ref": "1"});
        assert_eq!(next(&mut socket).await, beat);
        socket.send(send("phx_join", &chat(&room), "2")).await;
        let joined = json!({"topic": chat(&room), "event": "phx_reply", "payload": ok, "ref": "2"});
        assert_eq!(next(&mut socket).await, joined);
        let id = ana.says(&room, "hi", &[&bob]).await;
        let push = next(&mut socket).await;
        assert_eq!(push["payload"]["id"], id);
        let wanted = json!({"topic": chat(&room), "event": "message_created", "payload": push["payload"], "ref": null});
        assert_eq!(push, wanted);
        socket.send(send("phx_leave", &chat(&room), "3")).await;
        let left = json!({"topic": chat(&room), "event": "phx_reply", "payload": ok, "ref": "3"});
        assert_eq!(next(&mut socket).await, left);
        assert_eq!(next(&mut socket).await["event"], "phx_close");
        socket.send(json!(["1", "1", "phoenix", "heartbeat", {}])).await;
        assert_eq!(socket.closed().await, 1007, "version 2 on a connection of version 1");
    }
}

async fn refusals_before_the_upgrade(app: TestApp) {
    let ana = app.agent("ana").await;
    let key = [("x-api-key", ana.key.as_str())];
    let conflict = Socket::refused(&app, "?vsn=2.0.0&on_conflict=fight", &key).await.assert_status(400);
    let error = conflict.error();
    assert_eq!((&error["code"], &error["request_id"]), (&json!("invalid_on_conflict"), &Value::Null));
    assert_eq!(conflict.header("content-type"), Some("application/json"));
    for version in ["3.0.0", "9", "x", "2.x"] {
        let reply = Socket::refused(&app, &format!("?vsn={version}"), &key).await.assert_status(403);
        assert_eq!(reply.body, None);
    }
    // Not an upgrade at all.
    let path = "/api/v1/socket/websocket?vsn=2.0.0";
    let plain = app.request(reqwest::Method::GET, path, &key, None).await;
    assert_eq!(plain.status, 400, "{plain:?}");
    let posted = app.request(reqwest::Method::POST, path, &key, None).await;
    assert_eq!(posted.status, 400, "{posted:?}");
    // A wrong key is a wrong key before anything else.
    let wrong = Socket::refused(&app, "?vsn=2.0.0&on_conflict=fight", &[("x-api-key", "band_a_x")]).await;
    assert_eq!(wrong.status, 403);
}

async fn pushes_of_a_room_come_in_order(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let (mut agent, mut person) = (bob.joins(&chat(&room)).await, olga.joins(&chat(&room)).await);
    let posts = join_all((0..40).map(|number| {
        let (sender, bob, room) = (if number % 2 == 0 { &ana } else { &olga }, &bob, &room);
        async move { sender.says(room, &number.to_string(), &[bob]).await }
    }));
    let posted = posts.await;
    let mut stored = olga.get(&room.path("/messages?limit=100")).await.strings("id");
    stored.reverse();
    assert_eq!(stored.len(), posted.len());
    for socket in [&mut agent, &mut person] {
        let mut heard = Vec::new();
        while heard.len() < stored.len() {
            heard.push(socket.skip_to("message_created").await["id"].as_str().expect("an id").to_owned());
        }
        assert_eq!(heard, stored);
    }
    let mut served = Vec::new();
    while let Some(id) = bob.next_id(&room).await {
        bob.handles(&room, &id).await;
        served.push(id);
    }
    assert_eq!(served, stored);
}

async fn after_removal_there_is_silence(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob, &cy]).await;
    let mut socket = bob.joins(&format!("agent_rooms:{}", bob.id)).await;
    socket.join_room(&room).await;
    olga.removes(&room, &bob).await.assert_status(200);
    socket.next_event("participant_removed").await;
    socket.next_event("room_removed").await;
    ana.says(&room, "to cy", &[&cy]).await;
    olga.removes(&room, &cy).await.assert_status(200);
    socket.assert_silent().await;
    assert_eq!(socket.try_join(&format!("room_tasks:{}", room.id)).await, Err("unauthorized".into()));
    // Added again, it hears again, without joining anew.
    olga.adds(&room, &bob).await.assert_status(201);
    socket.next_event("room_added").await;
    assert_eq!(socket.next_event("participant_added").await["id"], bob.id);
    let id = ana.says(&room, "welcome back", &[&bob]).await;
    assert_eq!(socket.next_event("message_created").await["id"], id);
}

async fn a_person_without_an_agent_left_hears_nothing_more(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let global = app.global_agent(&eve, "global").await;
    olga.adds(&room, &global).await.assert_status(201);
    let mut person = eve.joins(&chat(&room)).await;
    let id = ana.says(&room, "eve reads", &[&global]).await;
    assert_eq!(person.next_event("message_created").await["id"], id);
    olga.removes(&room, &global).await.assert_status(200);
    ana.says(&room, "eve no longer reads", &[&bob]).await;
    person.assert_silent().await;
}

async fn a_person_goes_on_reading_through_an_agent(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&bob, &olga]).await;
    let mut socket = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    socket.join(&chat(&room)).await;
    olga.removes(&room, &olga).await.assert_status(200);
    socket.next_event("room_removed").await;
    let id = ana.says(&room, "still heard", &[&bob]).await;
    assert_eq!(socket.skip_to("message_created").await["id"], id);
    // One of its agents leaves, another stays.
    ana.removes(&room, &bob).await.assert_status(200);
    let event = ana.records(&room, "thought", "alone").await;
    assert_eq!(socket.skip_to("event_created").await["id"], event);
}

async fn a_leave_ends_the_pushes(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut socket = bob.joins(&chat(&room)).await;
    socket.leave(&chat(&room)).await;
    assert_eq!(socket.frame().await.event, "phx_close");
    let id = ana.says(&room, "unheard", &[&bob]).await;
    socket.assert_silent().await;
    // Joined again: older backlog is for /next only.
    socket.join(&chat(&room)).await;
    socket.assert_silent().await;
    assert_eq!(bob.next_id(&room).await, Some(id));
}

async fn a_room_is_deleted_under_its_listeners(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let mut agent = bob.joins(&format!("agent_rooms:{}", bob.id)).await;
    agent.join_room(&room).await;
    let mut person = olga.joins(&format!("user_rooms:{}", olga.id)).await;
    person.join_room(&room).await;
    olga.delete(&room.path("")).await.assert_status(200);
    for socket in [&mut agent, &mut person] {
        assert_eq!(socket.next_event("room_deleted").await, json!({"id": room.id}));
        assert_eq!(socket.next_event("room_removed").await["id"], room.id);
        socket.assert_silent().await;
        socket.leave(&chat(&room)).await;
        assert_eq!(socket.frame().await.event, "phx_close");
        assert_eq!(socket.try_join(&chat(&room)).await, Err("unauthorized".into()));
    }
}

async fn a_deleted_agent_is_disconnected(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let mut own = bob.joins(&control(&bob)).await;
    let mut other = ana.joins(&format!("room_participants:{}", room.id)).await;
    olga.delete(&format!("agents/{}", bob.id)).await.assert_status(200);
    assert_eq!(own.closed().await, 1001);
    assert_eq!(other.next_event("participant_removed").await["id"], bob.id);
    other.assert_silent().await;
}

async fn many_topics_on_one_socket(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let mut rooms = Vec::new();
    for _ in 0..30 {
        rooms.push(app.room_with(&ana, &[&bob]).await);
    }
    let mut socket = bob.socket().await;
    // All at once, as JavaScript clients rejoin.
    for room in &rooms {
        socket.expect_join(&chat(room)).await;
        socket.expect_join(&format!("room_participants:{}", room.id)).await;
    }
    for _ in 0..rooms.len() * 2 {
        assert_eq!(socket.frame().await.payload["status"], "ok");
    }
    for room in &rooms {
        let id = ana.says(room, "hi", &[&bob]).await;
        let push = socket.push().await;
        assert_eq!((push.topic, &push.payload["id"]), (chat(room), &json!(id)));
    }
    socket.close().await;
}

async fn an_idle_socket_is_closed(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut idle = ana.socket().await;
    let started = tokio::time::Instant::now();
    assert_eq!(idle.closed().await, 1001);
    assert!(started.elapsed() >= Duration::from_millis(250), "it had its time");
}

async fn a_long_frame_closes_the_connection(app: TestApp) {
    let ana = app.agent("ana").await;
    let frame = |length: usize| json!([null, "1", "phoenix", "heartbeat", {"padding": "x".repeat(length)}]);
    let mut socket = ana.socket().await;
    socket.send(frame(1900)).await;
    assert_eq!(socket.frame().await.payload["status"], "ok");
    for length in [2000, 7000, 100_000] {
        let mut socket = ana.socket().await;
        socket.send(frame(length)).await;
        assert_eq!(socket.closed().await, 1009, "{length}");
    }
}

async fn too_many_channels(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    let mut socket = ana.joins(&control(&ana)).await;
    socket.join_room(&room).await;
    let one_more = format!("agent_rooms:{}", ana.id);
    assert_eq!(socket.try_join(&one_more).await, Err("too many channels joined".into()));
    socket.leave(&chat(&room)).await;
    assert_eq!(socket.frame().await.event, "phx_close");
    socket.join(&one_more).await;
}

async fn too_many_upgrades(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let _first = ana.socket().await;
    let reply = Socket::refused(&app, "?vsn=2.0.0", &[("x-api-key", &ana.key)]).await.assert_status(429);
    let error = reply.error();
    assert_eq!((&error["code"], &error["retry_after"]), (&json!("too_many_requests"), &json!(1)));
    assert_eq!(reply.header("retry-after"), Some("1"));
    // Each key by itself.
    let _other = bob.socket().await;
}

async fn a_slow_consumer_is_closed(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut slow = bob.joins(&chat(&room)).await;
    let mut quick = bob.joins(&chat(&room)).await;
    let content = "x".repeat(500_000);
    // Nobody reads on the one side, until the kernel's buffers and the queue are full.
    let mut posted = 0;
    while app.state().hub.sockets() == 2 {
        assert!(posted < 100, "50 megabytes are nowhere");
        let id = ana.says(&room, &content, &[&bob]).await;
        posted += 1;
        assert_eq!(quick.next_event("message_created").await["id"], id, "the other one is not held up");
    }
    assert_eq!(slow.closes().await, 1012);
    // Nothing is lost: it is found through /next.
    assert_eq!(bob.get(&room.path("/messages?page=1&page_size=1")).await.metadata()["total_count"], posted);
    quick.close().await;
}

//! `Idempotency-Key`: what is sent twice happens once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bandstand_server::settings::Limits;
use bandstand_store::testing::{TestDatabase, TestEngine};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Caller, PATIENCE, Reply, Room, TestApp, contract, run_on, stories};

stories!(
    whatever_is_created_is_created_once,
    a_key_belongs_to_its_caller_and_path,
    a_key_must_be_one_visible_text,
    the_document_says_where_a_key_counts,
    a_refusal_is_not_remembered,
    a_replay_tells_what_was_told_then,
    a_registration_is_not_repeated_and_shows_its_key_once,
    an_upload_is_known_by_its_content,
    many_at_once_are_one,
    replies_are_forgotten_after_a_while,
    without_the_header_nothing_is_stored,
    a_connection_that_drops_replies_leaves_one_message_a_key,
);

const REPLAYED: &str = "idempotent-replayed";

/// Sends a request with a key.
async fn keyed(who: &Caller, method: Method, path: &str, key: &str, body: &Value) -> Reply {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let headers = [("x-api-key", who.key.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
    who.app.request(method, &who.path(path), &headers, Some(body)).await
}

async fn posted(who: &Caller, path: &str, key: &str, body: &Value) -> Reply {
    keyed(who, Method::POST, path, key, body).await
}

fn text(content: &str, to: &Caller) -> Value {
    json!({"message": {"content": content, "mentions": [{"id": to.id}]}})
}

fn stored(app: &TestApp) -> usize {
    app.database.query("SELECT scope FROM idempotent_requests").len()
}

async fn whatever_is_created_is_created_once(app: TestApp) {
    let owner = app.owner();
    let [ana, bob, eve] = app.agents(["ana", "bob", "eve"]).await;
    let ben = app.user("ben").await;
    let room = app.room_with(&owner, &[&ana, &bob]).await;
    let message = owner.says(&room, "go", &[&ana]).await;
    let other = json!({"something": "else"});
    let memory = json!({"memory": {"content": "likes tea", "system": "long_term", "type": "semantic", "segment": "user",
        "thought": "said so"}});
    let chats = json!({"chat": {"title": "once"}});
    let new = |who: &Caller| json!({"participant": {"participant_id": who.id}});
    let mark = |mark: &str| room.path(&format!("/messages/{message}/{mark}"));
    let task = ana.post(&room.path("/tasks"), json!({"subject": "first"})).await.assert_status(201).id();
    let doomed = owner.creates_room().await;
    let requests = [
        (&ana, Method::POST, room.path("/messages"), text("hi", &bob)),
        (&owner, Method::POST, room.path("/messages"), text("hi", &bob)),
        (&ana, Method::POST, room.path("/events"), json!({"event": {"content": "hm", "message_type": "thought"}})),
        (&ana, Method::POST, mark("processing"), Value::Null),
        (&ana, Method::POST, mark("failed"), json!({"error": "no"})),
        (&ana, Method::POST, "chats".to_owned(), chats.clone()),
        (&owner, Method::POST, "chats".to_owned(), chats),
        (&ana, Method::POST, room.path("/participants"), new(&eve)),
        (&owner, Method::POST, room.path("/participants"), new(&owner.registers("gil").await)),
        (&ana, Method::POST, room.path("/tasks"), json!({"subject": "dig"})),
        (&ana, Method::POST, room.path(&format!("/tasks/{task}")), json!({"status": "in_progress"})),
        (&ana, Method::PUT, room.path("/board"), json!({"goal_title": "a hole"})),
        (&ana, Method::POST, "memories".to_owned(), memory),
        (&ana, Method::POST, "contacts/add".to_owned(), json!({"handle": ben.handle})),
        (
            &ben,
            Method::POST,
            "contacts/requests".to_owned(),
            json!({"contact_request": {"recipient_handle": bob.handle}}),
        ),
        (
            &bob,
            Method::POST,
            "contacts/requests/respond".to_owned(),
            json!({"action": "approve", "handle": ben.handle}),
        ),
        (&owner, Method::POST, "chats/bulk-delete".to_owned(), json!({"ids": [doomed.id]})),
        (&owner, Method::POST, "agents/bulk-delete".to_owned(), json!({"ids": [ana.id]})),
    ];
    for (count, (who, method, path, body)) in requests.iter().enumerate() {
        let first = keyed(who, method.clone(), path, "k1", body).await;
        assert!((200..300).contains(&first.status), "{first:?}");
        assert_eq!(first.header(REPLAYED), None, "{first:?}");
        for _ in 0..2 {
            let again = keyed(who, method.clone(), path, "k1", body).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{again:?}");
            assert_eq!(again.header(REPLAYED), Some("true"), "{again:?}");
            assert_eq!(again.header("location"), first.header("location"));
            assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
        }
        // A route that reads no body does not tell one from another.
        if *body != Value::Null {
            let reused = keyed(who, method.clone(), path, "k1", &other).await;
            reused.assert_error(422, "idempotency_key_reused");
        }
        assert_eq!(stored(&app), count + 1, "{method} {path}");
    }
    // Texts of ana and of the owner, and the one before: each once. So is all else.
    assert_eq!(owner.contents(&room.path("/messages?message_type=text")).await.len(), 3);
    assert_eq!(owner.contents(&room.path("/messages?message_type=thought")).await, ["hm"]);
    assert_eq!(ana.get(&room.path("/tasks")).await.rows().len(), 2);
    assert_eq!(ana.get("memories").await.rows().len(), 1);
    let history = owner.get(&room.path("/messages?message_type=text")).await;
    let marked = history.rows().iter().find(|row| row["id"] == message.as_str()).expect("the message");
    let attempts = &marked["metadata"]["delivery_status"][&ana.id]["attempts"];
    assert_eq!(attempts.as_array().map(Vec::len), Some(1), "{marked}");
}

async fn a_key_belongs_to_its_caller_and_path(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let rooms = [app.room_with(&ana, &[&bob]).await, app.room_with(&ana, &[&bob]).await];
    let body = json!({"event": {"content": "hm", "message_type": "thought"}});
    let mut ids = Vec::new();
    for who in [&ana, &bob] {
        for room in &rooms {
            ids.push(posted(who, &room.path("/events"), "same", &body).await.assert_status(201).id());
        }
    }
    ids.push(posted(&ana, &rooms[0].path("/events"), "Same", &body).await.assert_status(201).id());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    // A rotated key is the same caller's.
    let first = posted(&ana, &rooms[0].path("/events"), "same", &body).await;
    let (_, fresh) = app.state().services.rotate_key(&ana.id).await.expect("a new key");
    let rotated = Caller { key: fresh.reveal().to_owned(), ..ana.clone() };
    let again = posted(&rotated, &rooms[0].path("/events"), "same", &body).await;
    assert_eq!((again.header(REPLAYED), &again.body), (Some("true"), &first.body));
}

async fn a_key_must_be_one_visible_text(app: TestApp) {
    let ana = app.agent("ana").await;
    let (longest, too_long) = ("k".repeat(255), "k".repeat(256));
    for bad in ["", "two words", "\u{fc}", too_long.as_str()] {
        posted(&ana, "chats", bad, &json!({})).await.assert_invalid(&["/idempotency-key"]);
    }
    let twice = [("x-api-key", ana.key.as_str()), ("idempotency-key", "a"), ("idempotency-key", "a")];
    app.request(Method::POST, "/api/v1/agent/chats", &twice, None).await.assert_invalid(&["/idempotency-key"]);
    posted(&ana, "chats", &longest, &json!({})).await.assert_status(201);
    // A stranger hears of nothing but the missing key.
    app.request(Method::POST, "/api/v1/agent/chats", &[("idempotency-key", "two words")], None)
        .await
        .assert_error(401, "unauthorized");
    assert_eq!(stored(&app), 1);
}

/// A route honours the header exactly where the API document says so.
async fn the_document_says_where_a_key_counts(app: TestApp) {
    let (owner, ana) = (app.owner(), app.agent("ana").await);
    let document = bandstand_server::http::api_document();
    let mut honoured = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let who = if path.starts_with("/api/v1/agent/") { &ana } else { &owner };
        let concrete: Vec<&str> = path
            .split('/')
            .map(|part| if part.starts_with('{') { "00000000-0000-4000-8000-000000000000" } else { part })
            .collect();
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            let declared = parameters.iter().any(|one| one["name"] == "Idempotency-Key");
            let method: Method = method.to_uppercase().parse().unwrap();
            if path.starts_with("/api/v1/admin/") || !(declared || matches!(method, Method::POST | Method::PUT)) {
                continue;
            }
            let headers = [("x-api-key", who.key.as_str()), ("idempotency-key", "two words")];
            let reply = app.request(method.clone(), &concrete.join("/"), &headers, None).await;
            let counts = reply.status == 422 && reply.error()["details"].get("/idempotency-key").is_some();
            assert_eq!(counts, declared, "{method} {path}: {reply:?}");
            honoured += u32::from(counts);
        }
    }
    assert!(honoured > 20, "{honoured}");
}

async fn a_refusal_is_not_remembered(app: TestApp) {
    let owner = app.owner();
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&owner, &[&ana]).await;
    let body = text("hi", &bob);
    posted(&ana, &room.path("/messages"), "k", &body).await.assert_error(422, "mentioned_participant_not_in_room");
    posted(&ana, &room.path("/messages"), "k", &json!({"message": {}})).await.assert_status(422);
    assert_eq!(stored(&app), 0);
    owner.adds(&room, &bob).await.assert_status(201);
    let first = posted(&ana, &room.path("/messages"), "k", &body).await.assert_status(201);
    assert_eq!(first.header(REPLAYED), None);
    assert_eq!(posted(&ana, &room.path("/messages"), "k", &body).await.id(), first.id());
}

async fn a_replay_tells_what_was_told_then(app: TestApp) {
    let owner = app.owner();
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&owner, &[&ana, &bob]).await;
    let body = text("hi", &bob);
    let first = posted(&ana, &room.path("/messages"), "k", &body).await.assert_status(201);
    // What would be refused now was done then.
    owner.removes(&room, &bob).await.assert_status(200);
    assert_eq!(posted(&ana, &room.path("/messages"), "k", &body).await.body, first.body);
    owner.removes(&room, &ana).await.assert_status(200);
    assert_eq!(posted(&ana, &room.path("/messages"), "k", &body).await.body, first.body);
    posted(&ana, &room.path("/messages"), "other", &body).await.assert_error(404, "not_found");
    // But nobody without a valid key is told anything.
    app.revoke_key(&ana).await;
    posted(&ana, &room.path("/messages"), "k", &body).await.assert_error(401, "unauthorized");
}

async fn a_registration_is_not_repeated_and_shows_its_key_once(app: TestApp) {
    let owner = app.owner();
    let body = json!({"agent": {"name": "ana", "description": "an agent of a test"}});
    let first = posted(&owner, "agents/register", "k", &body).await.assert_status(201);
    let key = first.data()["credentials"]["api_key"].as_str().expect("a key").to_owned();
    let again = posted(&owner, "agents/register", "k", &body).await.assert_error(422, "api_key_shown_once");
    assert_eq!(again.error()["details"], json!({"agent_id": first.data()["agent"]["id"]}));
    posted(&owner, "agents/register", "k", &json!({})).await.assert_error(422, "idempotency_key_reused");
    assert_eq!(owner.get("agents").await.rows().len(), 1);
    // The reply is stored as hexadecimal bytes or as text, depending on the engine: the key is in neither.
    let rows = format!("{:?}", app.database.query("SELECT body FROM idempotent_requests"));
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let plain = rows.replace(", ", "");
    assert!(!rows.contains(&key) && !plain.contains(&hex), "{rows}");
    assert_eq!(stored(&app), 1);
}

async fn an_upload_is_known_by_its_content(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    let upload = async |key: &str, name: &str, bytes: &[u8], announced: &[u8]| {
        let hash: String = Sha256::digest(announced).iter().map(|byte| format!("{byte:02x}")).collect();
        let headers = [
            ("x-api-key", ana.key.as_str()),
            ("x-file-name", name),
            ("x-file-sha256", hash.as_str()),
            ("idempotency-key", key),
        ];
        app.request(Method::PUT, &ana.path(&room.path("/files")), &headers, Some(bytes.to_vec())).await
    };
    upload("k", "a.txt", b"bytes", b"other bytes").await.assert_invalid(&["/x-file-sha256"]);
    let first = upload("k", "a.txt", b"bytes", b"bytes").await.assert_status(201);
    let again = upload("k", "a.txt", b"bytes", b"bytes").await.assert_status(201);
    assert_eq!((again.header(REPLAYED), &again.body), (Some("true"), &first.body));
    upload("k", "b.txt", b"bytes", b"bytes").await.assert_error(422, "idempotency_key_reused");
    upload("k", "a.txt", b"more bytes", b"more bytes").await.assert_error(422, "idempotency_key_reused");
    // A key of its own: a request of its own, which finds the same bytes.
    upload("l", "a.txt", b"bytes", b"bytes").await.assert_status(200);
    assert_eq!(app.database.query("SELECT key FROM files").len(), 1);
}

async fn many_at_once_are_one(app: TestApp) {
    let owner = app.owner();
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&owner, &[&ana, &bob]).await;
    for (path, body) in [(room.path("/messages"), text("hi", &bob)), ("chats".to_owned(), json!({}))] {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let (ana, path, body) = (ana.clone(), path.clone(), body.clone());
            tasks.spawn(async move { posted(&ana, &path, "k", &body).await.assert_status(201) });
        }
        let replies = tasks.join_all().await;
        let fresh = replies.iter().filter(|reply| reply.header(REPLAYED).is_none()).count();
        assert_eq!(fresh, 1);
        assert!(replies.iter().all(|reply| reply.body == replies[0].body));
    }
    assert_eq!(owner.contents(&room.path("/messages")).await.len(), 1);
    assert_eq!(ana.get("chats").await.rows().len(), 2);
}

async fn replies_are_forgotten_after_a_while(app: TestApp) {
    const DAY: i64 = 24 * 60 * 60;
    let ana = app.agent("ana").await;
    let first = posted(&ana, "chats", "k", &json!({})).await.assert_status(201);
    app.clock.advance(DAY - 1);
    assert_eq!(posted(&ana, "chats", "k", &json!({})).await.id(), first.id());
    app.clock.advance(1);
    // Forgotten on time, also where it is not removed yet.
    let second = posted(&ana, "chats", "k", &json!({"chat": {}})).await.assert_status(201);
    assert_ne!(second.id(), first.id());
    assert_eq!(stored(&app), 1);
    assert_eq!(app.state().services.forget_idempotent_requests().await, Ok(0));
    app.clock.advance(DAY);
    assert_eq!(app.state().services.forget_idempotent_requests().await, Ok(1));
    assert_eq!(stored(&app), 0);
}

async fn without_the_header_nothing_is_stored(app: TestApp) {
    let owner = app.owner();
    let ana = app.agent("ana").await;
    let room = app.room_with(&owner, &[&ana]).await;
    let first = owner.says(&room, "hi", &[&ana]).await;
    assert_ne!(owner.says(&room, "hi", &[&ana]).await, first);
    // Where nothing is created, the header means nothing.
    posted(&owner, "contacts/resolve", "k", &json!({"handle": ana.handle})).await.assert_status(200);
    let headers = [("x-api-key", owner.key.as_str()), ("idempotency-key", "two words")];
    app.request(Method::GET, "/api/v1/me/profile", &headers, None).await.assert_status(200);
    assert_eq!(stored(&app), 0);
}

/// How one exchange through the bad line ends.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// The reply arrives.
    Not,
    /// The client is gone as soon as the request was passed on; it may not be carried out yet.
    AfterRequest,
    /// The client is gone when the reply came back.
    AfterReply,
}

/// Reads a whole HTTP message.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut some = [0; 4096];
    loop {
        let count = stream.read(&mut some).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&some[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        if bytes.len() >= end + 4 + length.trim().parse::<usize>().ok()? {
            return Some(bytes);
        }
    }
}

/// A proxy in front of the server that passes one request on for each connection, and drops every third reply.
async fn bad_line(listener: TcpListener, server: std::net::SocketAddr) {
    let mut count = 0_u64;
    loop {
        let Ok((mut client, _)) = listener.accept().await else { return };
        count += 1;
        let cut = match count % 6 {
            0 => Cut::AfterRequest,
            3 => Cut::AfterReply,
            _ => Cut::Not,
        };
        tokio::spawn(async move {
            let request = message(&mut client).await?;
            let mut upstream = TcpStream::connect(server).await.ok()?;
            upstream.write_all(&request).await.ok()?;
            let mut client = Some(client).filter(|_| cut != Cut::AfterRequest);
            let reply = message(&mut upstream).await?;
            if cut == Cut::Not {
                client.as_mut()?.write_all(&reply).await.ok()?;
            }
            Some(())
        });
    }
}

async fn a_connection_that_drops_replies_leaves_one_message_a_key(app: TestApp) {
    const RETRIES: u64 = 1000;
    const CLIENTS: usize = 8;
    let owner = app.owner();
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let line = listener.local_addr().unwrap();
    let proxy = tokio::spawn(bad_line(listener, app.address));
    let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(PATIENCE).build().unwrap();
    let retries = Arc::new(AtomicU64::new(0));
    let mut clients = tokio::task::JoinSet::new();
    let mut rooms = Vec::new();
    for client in 0..CLIENTS {
        let room = app.room_with(&owner, &[&ana, &bob]).await;
        let url = format!("http://{line}{}", ana.path(&room.path("/messages")));
        rooms.push(room);
        let (http, retries, key, bob) = (http.clone(), Arc::clone(&retries), ana.key.clone(), bob.clone());
        clients.spawn(async move {
            let mut acknowledged = Vec::new();
            while retries.load(Ordering::Relaxed) < RETRIES {
                let content = format!("{client}-{}", acknowledged.len());
                let body = text(&content, &bob).to_string();
                let id = loop {
                    let request = http.post(&url).header("x-api-key", &key).header("idempotency-key", &content);
                    let sent = request.header("content-type", "application/json").body(body.clone()).send().await;
                    if let Ok(reply) = sent {
                        assert_eq!(reply.status(), 201);
                        let reply: Value = serde_json::from_slice(&reply.bytes().await.unwrap()).unwrap();
                        break reply["data"]["id"].as_str().unwrap().to_owned();
                    }
                    retries.fetch_add(1, Ordering::Relaxed);
                };
                acknowledged.push((id, content));
            }
            acknowledged
        });
    }
    let mut acknowledged: Vec<(String, String)> = clients.join_all().await.into_iter().flatten().collect();
    proxy.abort();
    assert!(retries.load(Ordering::Relaxed) >= RETRIES);
    let mut there = Vec::new();
    for room in &rooms {
        there.extend(whole_room(&owner, room).await);
    }
    acknowledged.sort();
    there.sort();
    assert_eq!(there.len(), acknowledged.len(), "as many messages as keys");
    assert_eq!(there, acknowledged);
    assert_eq!(stored(&app), acknowledged.len());
}

/// Id and text of each message of a room, without the mentions before it.
async fn whole_room(owner: &Caller, room: &Room) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = owner.get(&room.path(&format!("/messages?message_type=text&limit=100{cursor}"))).await;
        for row in page.rows() {
            let content = row["content"].as_str().unwrap().rsplit_once("]] ").unwrap().1.to_owned();
            all.push((row["id"].as_str().unwrap().to_owned(), content));
        }
        match page.metadata()["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// What was answered before a restart is answered after it.
async fn survives_a_restart(engine: TestEngine) {
    let database = Arc::new(TestDatabase::create(engine).await);
    let body = json!({"chat": {"title": "once"}});
    let kept = Arc::new(std::sync::Mutex::new(None));
    let first = run_on(&database, Limits::default(), None, {
        let (kept, body) = (Arc::clone(&kept), body.clone());
        async move |app: TestApp| {
            let reply = posted(&app.owner(), "chats", "k", &body).await.assert_status(201);
            *kept.lock().unwrap() = reply.body;
        }
    })
    .await;
    run_on(&database, Limits { request_timeout: Duration::from_secs(10), ..Limits::default() }, Some(&first), {
        async move |app: TestApp| {
            let again = posted(&app.owner(), "chats", "k", &body).await.assert_status(201);
            assert_eq!((again.header(REPLAYED), &again.body), (Some("true"), &*kept.lock().unwrap()));
            contract::check(&again);
        }
    })
    .await;
}

#[tokio::test]
async fn survives_a_restart_on_sqlite() {
    survives_a_restart(TestEngine::Sqlite).await;
}

#[tokio::test]
async fn survives_a_restart_on_postgres() {
    survives_a_restart(TestEngine::Postgres).await;
}

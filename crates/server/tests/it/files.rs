//! Files of rooms: what is taken, what comes back and how, who may, and what goes away.

use bandstand_server::settings::Limits;
use reqwest::header::{HeaderMap, RANGE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{Caller, Reply, Room, TestApp, stories};

stories!(
    a_file_comes_back_as_it_was,
    the_same_bytes_are_one_file_of_the_room,
    a_part_of_a_file_can_be_had,
    nothing_in_a_browser_runs_it,
    a_message_carries_files_of_its_room,
    what_was_announced_must_arrive,
    files_of_other_rooms_do_not_exist,
    an_archived_room_takes_no_files,
);

mod limited {
    use super::{
        Limits, a_file_that_is_too_large_is_refused_and_leaves_nothing, a_type_that_is_not_taken_is_refused,
        an_expired_file_is_gone,
    };
    use std::time::Duration;

    fn limits() -> Limits {
        Limits {
            file_bytes: 1000,
            file_types: Some("text/, image/png".into()),
            file_retention: Some(Duration::from_secs(60)),
            ..Limits::default()
        }
    }

    crate::support::stories!(limits: super::limits() =>
        a_file_that_is_too_large_is_refused_and_leaves_nothing,
        a_type_that_is_not_taken_is_refused,
        an_expired_file_is_gone,
    );
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn uploads(who: &Caller, room: &Room, name: &str, bytes: &[u8]) -> Reply {
    uploads_as(who, room, name, &hash(bytes), bytes).await
}

async fn uploads_as(who: &Caller, room: &Room, name: &str, hash: &str, bytes: &[u8]) -> Reply {
    let headers = [("x-api-key", who.key.as_str()), ("x-file-name", name), ("x-file-sha256", hash)];
    let path = who.path(&room.path("/files"));
    who.app.request(reqwest::Method::PUT, &path, &headers, Some(bytes.to_vec())).await
}

/// The status, headers and bytes of a download. Bytes are no JSON, so the contract has nothing to say about them.
async fn downloads(who: &Caller, room: &Room, id: &str, range: Option<&str>) -> (u16, HeaderMap, Vec<u8>) {
    let path = who.path(&room.path(&format!("/files/{id}")));
    let mut request = who.app.http.get(format!("http://{}{path}", who.app.address)).header("x-api-key", &who.key);
    if let Some(range) = range {
        request = request.header(RANGE, range);
    }
    let reply = request.send().await.unwrap();
    let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
    (status, headers, reply.bytes().await.unwrap().to_vec())
}

/// Files below the server's folder of files, and uploads that did not end.
fn kept(app: &TestApp) -> (usize, usize) {
    fn count(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    (count(&app.database.folder().join("files")), count(&app.database.folder().join("uploads")))
}

async fn room_of_two(app: &TestApp) -> (Caller, Caller, Room) {
    let owner = app.owner();
    let ana = app.agent("ana").await;
    let room = app.room_with(&owner, &[&ana]).await;
    (owner, ana, room)
}

async fn a_file_comes_back_as_it_was(app: TestApp) {
    let (owner, ana, room) = room_of_two(&app).await;
    // More than one read of the body, and no text.
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let file = uploads(&ana, &room, "numbers.bin", &bytes).await.assert_status(201).data().clone();
    assert_eq!(
        file,
        json!({
            "id": file["id"], "name": "numbers.bin", "content_type": "application/octet-stream",
            "bytes": 1_200_000, "sha256": hash(&bytes), "has_thumb": false, "expires_at": null,
        })
    );
    for who in [&owner, &ana] {
        let (status, headers, body) = downloads(who, &room, file["id"].as_str().unwrap(), None).await;
        assert_eq!((status, body.len()), (200, bytes.len()));
        assert!(body == bytes);
        assert_eq!(headers["content-length"], "1200000");
    }
    let empty = uploads(&owner, &room, "empty", b"").await.assert_status(201).data().clone();
    assert_eq!(downloads(&ana, &room, empty["id"].as_str().unwrap(), None).await.2, b"");
    assert_eq!(kept(&app), (2, 0));
}

async fn the_same_bytes_are_one_file_of_the_room(app: TestApp) {
    let (owner, ana, room) = room_of_two(&app).await;
    let first = uploads(&ana, &room, "a.txt", b"the same").await.assert_status(201).data().clone();
    let again = uploads(&owner, &room, "b.txt", b"the same").await.assert_status(200).data().clone();
    assert_eq!(again, first);
    let uploads = (0..16).map(|_| uploads(&ana, &room, "c.txt", b"at once"));
    let mut statuses: Vec<u16> =
        futures_util::future::join_all(uploads).await.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 15].as_slice(), &[201]].concat());
    assert_eq!(kept(&app), (2, 0));
}

async fn a_part_of_a_file_can_be_had(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    let file = uploads(&ana, &room, "digits.txt", b"0123456789").await.assert_status(201).id();
    for (range, status, expected, stands) in [
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=7-", 206, "789", "bytes 7-9/10"),
        ("bytes=-2", 206, "89", "bytes 8-9/10"),
        ("bytes=0-0", 206, "0", "bytes 0-0/10"),
        ("nonsense", 200, "0123456789", ""),
        ("bytes=0-1,4-5", 200, "0123456789", ""),
    ] {
        let (found, headers, body) = downloads(&ana, &room, &file, Some(range)).await;
        assert_eq!((found, String::from_utf8(body).unwrap().as_str()), (status, expected), "{range}");
        let part = headers.get("content-range").map_or("", |value| value.to_str().unwrap());
        assert_eq!(part, stands, "{range}");
    }
    let (status, _, body) = downloads(&ana, &room, &file, Some("bytes=10-")).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &body["error"]["code"]), (416, &json!("range_not_satisfiable")));
}

async fn nothing_in_a_browser_runs_it(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    let page = b"<!DOCTYPE html><script>alert(document.cookie)</script>";
    let file = uploads(&ana, &room, "../../x/page \"1\".html", page).await.assert_status(201).data().clone();
    assert_eq!((&file["name"], &file["content_type"]), (&json!("page \"1\".html"), &json!("text/plain")));
    let (_, headers, _) = downloads(&ana, &room, file["id"].as_str().unwrap(), None).await;
    assert_eq!(headers["content-type"], "text/plain");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["content-security-policy"], "sandbox; default-src 'none'");
    assert_eq!(
        headers["content-disposition"],
        "attachment; filename=\"page _1_.html\"; filename*=UTF-8''page%20%221%22.html"
    );
}

async fn a_message_carries_files_of_its_room(app: TestApp) {
    let (owner, ana, room) = room_of_two(&app).await;
    let file = uploads(&owner, &room, "plan.txt", b"the plan").await.assert_status(201).data().clone();
    let elsewhere = owner.creates_room().await;
    let foreign = uploads(&owner, &elsewhere, "other.txt", b"other").await.assert_status(201).id();
    let mut socket = ana.joins(&format!("chat_room:{}", room.id)).await;
    let message =
        |ids: Vec<&Value>| json!({"message": {"content": "see", "mentions": [{"id": ana.id}], "attachment_ids": ids}});

    let refused = owner.post(&room.path("/messages"), message(vec![&file["id"], &json!(foreign)])).await;
    refused.assert_error(422, "unknown_attachment");
    owner.post(&room.path("/messages"), message(vec![&file["id"], &file["id"]])).await.assert_status(201);

    assert_eq!(socket.next_event("message_created").await["attachments"], json!([file]));
    let context = ana.get(&room.path("/context")).await.assert_status(200).data().clone();
    assert_eq!(context.as_array().unwrap().len(), 1, "the refused message left nothing");
    assert_eq!(context[0]["attachments"], json!([file]));
}

async fn what_was_announced_must_arrive(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    let other = hash(b"something else");
    let refused = uploads_as(&ana, &room, "a.txt", &other, b"this").await.assert_status(422);
    assert_eq!(refused.error()["details"], json!({"/x-file-sha256": ["does not match the bytes that arrived"]}));
    for (name, hash) in [("", other.as_str()), ("..", &other), ("a", "ABC"), ("a", &other.to_uppercase())] {
        uploads_as(&ana, &room, name, hash, b"this").await.assert_status(422);
    }
    assert_eq!(kept(&app), (0, 0));
}

async fn files_of_other_rooms_do_not_exist(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    let file = uploads(&ana, &room, "a.txt", b"ours").await.assert_status(201).id();
    let bob = app.user("bob").await;
    let own = bob.creates_room().await;
    uploads(&bob, &room, "b.txt", b"b").await.assert_status(404);
    assert_eq!(downloads(&bob, &room, &file, None).await.0, 404);
    assert_eq!(downloads(&bob, &own, &file, None).await.0, 404);
    assert_eq!(downloads(&ana, &room, "..%2F..%2Fbandstand.db", None).await.0, 404);
}

async fn an_archived_room_takes_no_files(app: TestApp) {
    let (owner, ana, room) = room_of_two(&app).await;
    let file = uploads(&ana, &room, "a.txt", b"before").await.assert_status(201).id();
    owner.post_nothing(&room.path("/archive")).await.assert_status(200);
    uploads(&ana, &room, "b.txt", b"after").await.assert_status(403);
    assert_eq!(downloads(&ana, &room, &file, None).await.0, 200);
}

async fn a_file_that_is_too_large_is_refused_and_leaves_nothing(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    uploads(&ana, &room, "a.txt", &[b'a'; 1001]).await.assert_status(413);
    uploads(&ana, &room, "a.txt", &[b'a'; 1000]).await.assert_status(201);
    assert_eq!(kept(&app), (1, 0));
}

async fn a_type_that_is_not_taken_is_refused(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    uploads(&ana, &room, "a.pdf", b"%PDF-1.7\n").await.assert_status(422);
    uploads(&ana, &room, "a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").await.assert_status(201);
    assert_eq!(kept(&app), (1, 0));
}

async fn an_expired_file_is_gone(app: TestApp) {
    let (_, ana, room) = room_of_two(&app).await;
    let file = uploads(&ana, &room, "a.txt", b"for a minute").await.assert_status(201).data().clone();
    assert_eq!(file["expires_at"], json!("2026-01-01T00:01:00.000000Z"));
    app.clock.advance(30);
    let again = uploads(&ana, &room, "a.txt", b"for a minute").await.assert_status(200).data().clone();
    assert_eq!((&again["id"], &again["expires_at"]), (&file["id"], &json!("2026-01-01T00:01:30.000000Z")));
    app.clock.advance(61);
    assert_eq!(downloads(&ana, &room, file["id"].as_str().unwrap(), None).await.0, 404);
    app.state().services.remove_doomed_files().await.unwrap();
    assert_eq!(kept(&app), (0, 0));
}

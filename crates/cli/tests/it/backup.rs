//! Backups that are taken while agents post and work, and what becomes of them.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Method;
use serde_json::Value;

use crate::crash::{Door, OWNER_KEY, WRITERS, prepare, start, whole_history};
use crate::program::{Installation, http_client, mode};

/// Posts that are acknowledged before the backup begins, and while it is taken at least.
const POSTS: usize = 60;

async fn a_backup_taken_under_load_restores(from: Installation, to: Installation) {
    let server = start(&from);
    let client = http_client();
    let door = Door { client: client.clone(), address: server.address.clone() };
    let story = Arc::new(prepare(&door).await);
    let file = upload(&door, &story.room).await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (story, door) = (Arc::clone(&story), door.clone());
        tasks.spawn(async move { story.write(&door, writer).await });
    }
    let (reader, behind) = (Arc::clone(&story), door.clone());
    tasks.spawn(async move { reader.work(&behind, false).await });
    let posted = async |at_least: usize| {
        while story.acknowledged.lock().await.posted.len() < at_least {
            tokio::task::yield_now().await;
        }
    };
    posted(POSTS).await;
    let before = story.acknowledged.lock().await.posted.clone();
    let path = from.path("the.backup");
    let taken = {
        let mut command = from.command(&["backup", path.to_str().unwrap(), "--json"]);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    };
    let taken = crate::program::Said::from(taken).json();
    // The server has not stopped for it.
    posted(before.len() + POSTS).await;
    tasks.shutdown().await;
    server.stop();
    assert!(taken["tables"]["messages"].as_u64().unwrap() >= before.len() as u64);
    assert_eq!(taken["files"]["count"], 1, "{taken}");
    assert_eq!(mode(&path), 0o600);

    let restored = to.json(&["restore", path.to_str().unwrap()]);
    assert_eq!(restored["manifest_sha256"], taken["manifest_sha256"]);
    let doctor = to.run(&["doctor", "--json", "--listen", "127.0.0.1:0"]);
    assert_eq!(doctor.code, Some(0), "{}{}", doctor.out, doctor.err);
    let findings: Value = serde_json::from_str(&doctor.out).unwrap();
    for check in ["database", "rows", "audit", "files of rooms", "owner"] {
        let found = findings["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == check);
        assert_eq!(found.unwrap_or_else(|| panic!("no {check}: {findings}"))["level"], "ok", "{findings}");
    }

    let server = start(&to);
    let door = Door { client, address: server.address.clone() };
    let history = whole_history(&door, &story.room).await;
    let ids: Vec<&str> = history.iter().map(|message| message["id"].as_str().unwrap()).collect();
    for id in before.keys() {
        assert!(ids.contains(&id.as_str()), "{id} was acknowledged before the backup began, and is not in it");
    }
    // It goes on where it was: what was open is worked off, and no message is without its delivery.
    // What was processed after the backup is open again in its copy.
    story.acknowledged.lock().await.processed.clear();
    story.work(&door, true).await;
    for message in &whole_history(&door, &story.room).await {
        assert_eq!(message["metadata"]["delivery_status"][&story.reader_id]["status"], "processed", "{message}");
    }
    let downloaded = door.client.get(format!("http://{}/api/v1/me/chats/{}/files/{file}", door.address, story.room));
    let downloaded = downloaded.header("x-api-key", OWNER_KEY).send().await.unwrap();
    assert_eq!(downloaded.bytes().await.unwrap(), "the bytes of a file");
    let agent = serde_json::json!({"agent": {"name": "newcomer", "description": "an agent after the restore"}});
    door.must(OWNER_KEY, Method::POST, "/me/agents/register", Some(agent)).await;

    let log = to.json(&["audit", "list"]);
    let acts: Vec<&str> =
        log["entries"].as_array().unwrap().iter().map(|entry| entry["act"].as_str().unwrap()).collect();
    assert_eq!(acts, ["server.set_up", "backup.take", "backup.restore"]);
    let entry = &log["entries"][2];
    assert_eq!((&entry["target"], &entry["door"]), (&taken["manifest_sha256"], &Value::from("restore")));
    assert_eq!(to.json(&["audit", "verify"])["ok"], true);
    server.stop();
}

pub(crate) async fn upload(door: &Door, room: &str) -> String {
    let request = door.client.put(format!("http://{}/api/v1/me/chats/{room}/files", door.address));
    let request = request
        .header("x-api-key", OWNER_KEY)
        .header("x-file-name", "a.txt")
        .header("x-file-sha256", "0f599b9451f725bfe1eb79476b36417380d4c36212d2644b43685e53d70ceb2e")
        .body("the bytes of a file");
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status(), 201);
    let reply: Value = serde_json::from_str(&reply.text().await.unwrap()).unwrap();
    reply["data"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_sqlite_to_sqlite() {
    a_backup_taken_under_load_restores(Installation::new(), Installation::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_sqlite_to_postgres() {
    a_backup_taken_under_load_restores(Installation::new(), Installation::on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_postgres_to_sqlite() {
    a_backup_taken_under_load_restores(Installation::on_postgres().await, Installation::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_postgres_to_postgres() {
    a_backup_taken_under_load_restores(Installation::on_postgres().await, Installation::on_postgres().await).await;
}

/// An installation and a backup of it, taken without a server.
fn backed_up() -> (Installation, PathBuf) {
    let installation = Installation::used();
    installation.json(&["agent", "add", "Bot"]);
    let path = installation.path("the.backup");
    installation.json(&["backup", path.to_str().unwrap()]);
    (installation, path)
}

/// Where a part's content begins.
fn place_of(archive: &Path, part: &str) -> u64 {
    let bytes = fs::read(archive).unwrap();
    let header = bytes.windows(part.len()).position(|window| window == part.as_bytes()).unwrap();
    header as u64 + 512
}

fn damage(archive: &Path, at: u64) {
    let mut file = fs::File::options().read(true).write(true).open(archive).unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte[0] ^ 1]).unwrap();
}

#[test]
fn a_damaged_byte_is_refused_with_the_name_of_its_part() {
    let (installation, path) = backed_up();
    let copy = installation.path("copy.backup");
    let target = Installation::new();
    for (part, within) in
        [("tables/identities/000001.jsonl", 40), ("tables/api_keys/000001.jsonl", 5), ("manifest.json", 9)]
    {
        fs::copy(&path, &copy).unwrap();
        damage(&copy, place_of(&copy, part) + within);
        let said = target.run(&["restore", copy.to_str().unwrap()]);
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains(&format!("the part {part} is damaged")), "{}", said.err);
        assert!(!target.data().exists(), "nothing was begun");
    }
    // A header, and the end.
    fs::copy(&path, &copy).unwrap();
    damage(&copy, place_of(&copy, "tables/api_keys/000001.jsonl") - 510);
    assert_eq!(target.run(&["restore", copy.to_str().unwrap()]).code, Some(1));
    let file = fs::File::options().write(true).open(&copy).unwrap();
    file.set_len(fs::metadata(&path).unwrap().len() / 2).unwrap();
    let said = target.run(&["restore", copy.to_str().unwrap()]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(!target.data().exists());
    assert_eq!(target.run(&["restore", path.to_str().unwrap()]).code, Some(0));
}

#[tokio::test]
async fn it_is_restored_into_an_empty_place_only() {
    let (installation, path) = backed_up();
    let before = installation.json(&["agent", "list"]);
    let said = installation.run(&["restore", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("not empty"), "{}", said.err);
    assert_eq!(installation.json(&["agent", "list"]), before);

    let postgres = Installation::on_postgres().await;
    postgres.up().stop();
    fs::remove_dir_all(postgres.data()).unwrap();
    let said = postgres.run(&["restore", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("not empty"), "{}", said.err);
    assert!(!postgres.data().exists(), "no folder is left behind");

    // While a server has the place, nobody restores into it.
    let server = postgres.up();
    let said = postgres.run(&["restore", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    server.stop();
}

#[test]
fn a_backup_takes_the_place_of_nothing() {
    let (installation, path) = backed_up();
    let bytes = fs::read(&path).unwrap();
    let said = installation.run(&["backup", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("exists already"), "{}", said.err);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let folder = installation.path("backups");
    fs::create_dir(&folder).unwrap();
    installation.json(&["backup", folder.to_str().unwrap()]);
    let names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() == 1 && names[0].starts_with("bandstand-") && names[0].ends_with("Z.backup"), "{names:?}");
}

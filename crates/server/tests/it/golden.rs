//! Golden stores: what earlier builds wrote opens in this one, and nothing in it has changed.
//!
//! `crates/store/tests/golden/` has a folder for each schema version that was released: the SQLite file, the same data as
//! a backup, and what must be found in it. A new one is written by
//! `BANDSTAND_WRITE_GOLDEN=1 cargo nextest run -p bandstand-server --test it golden::write`; an old one is never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bandstand_domain::clock::Clock;
use bandstand_server::backup::{Archive, RestoreOptions, restore, stream};
use bandstand_server::settings::Limits;
use bandstand_server::start::{AppOptions, services_only};
use bandstand_server::state::Services;
use bandstand_store::examine::{examine_rows, newest_version};
use bandstand_store::testing::{NOW_MICROS, TestDatabase, TestEngine};
use bandstand_store::{Database, MIGRATIONS, archive};
use bandstand_wire::time::Timestamp;
use futures_util::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::support::{Caller, TestApp, without_jobs};

/// What must be found, however the schema changed since: each a query over columns that stay.
const FACTS: &[(&str, &str)] = &[
    ("identities", "SELECT handle, name, kind, role, is_global, deleted_at IS NOT NULL FROM identities ORDER BY key"),
    ("rooms", "SELECT title, status, kind, sequence, participants FROM rooms ORDER BY key"),
    ("messages", "SELECT sequence, kind, content, mentions FROM messages ORDER BY room_key, sequence"),
    ("deliveries", "SELECT sequence, state, reason, attempts FROM deliveries ORDER BY room_key, sequence, member_key"),
    ("attempts", "SELECT number, state, error FROM attempts ORDER BY room_key, sequence, member_key, number"),
    ("participants", "SELECT role, status, sent, processed FROM participants ORDER BY room_key, member_key"),
    ("contacts", "SELECT identity_key, contact_key FROM contacts ORDER BY key"),
    ("contact_requests", "SELECT status, message FROM contact_requests ORDER BY key"),
    ("organizations", "SELECT name FROM organizations ORDER BY key"),
    ("memories", "SELECT content, scope, status, search_text FROM memories ORDER BY key"),
    ("tasks", "SELECT number, subject, state FROM tasks ORDER BY room_key, number"),
    ("task_assignments", "SELECT number, status FROM task_assignments ORDER BY room_key, number, member_key"),
    ("boards", "SELECT goal_title, last_number FROM boards ORDER BY room_key"),
    ("files", "SELECT name, content_type, bytes FROM files ORDER BY key"),
    ("keys", "SELECT hint, revoked_at IS NOT NULL FROM api_keys ORDER BY key"),
    ("audit", "SELECT sequence, actor, door, act, target, details FROM audit_entries ORDER BY sequence"),
];

/// Rows of tables that a server empties by itself, or fills in ways that would make this long: only into empty ones.
const BY_HAND: &[(&str, &str)] = &[
    (
        "removals",
        "INSERT INTO removals (room_key, member_key, up_to, reason) \
         SELECT room_key, member_key, 0, 'recipient removed' FROM participants WHERE left_at IS NOT NULL LIMIT 1",
    ),
    (
        "task_departures",
        "INSERT INTO task_departures (room_key, member_key, up_to, looked_at) \
         SELECT room_key, member_key, 0, 0 FROM participants WHERE left_at IS NOT NULL LIMIT 1",
    ),
    (
        "stays",
        "INSERT INTO stays (room_key, member_key, joined_sequence, left_sequence, left_at) \
         SELECT room_key, member_key, 1, 2, 1767225600000000 FROM participants LIMIT 1",
    ),
    ("runs", "INSERT INTO runs (started_at, alive_at) VALUES (1767225600000000, 1767225600000000)"),
    (
        "sightings",
        "INSERT INTO sightings (agent_key, run_key, connected_at) \
         SELECT i.key, r.key, 1767225600000000 FROM identities i, runs r WHERE i.kind = 1 LIMIT 1",
    ),
    (
        "idempotent_requests",
        "INSERT INTO idempotent_requests (caller_id, scope, fingerprint, status, body, inserted_at) \
         SELECT id, x'01', x'02', 201, x'7b7d', 1767225600000000 FROM identities LIMIT 1",
    ),
    ("quotas", "INSERT INTO quotas (identity_key, resource, most) SELECT key, 0, 100 FROM identities LIMIT 1"),
    (
        "quota_uses",
        "INSERT INTO quota_uses (identity_key, resource, day, used) SELECT key, 3, 20454, 7 FROM identities LIMIT 1",
    ),
    (
        "signing_keys",
        "INSERT INTO signing_keys (name, algorithm, seed, public, inserted_at, retired_at, expires_at) \
         VALUES ('golden', 'EdDSA', zeroblob(32), zeroblob(32), 1767225600000000, 1767225600000001, 1767225600000002)",
    ),
    (
        "identity_links",
        "INSERT INTO identity_links (id, identity_key, issuer, subject, inserted_at) \
         SELECT x'0190000000007000800000000000ffff', key, 'https://issuer.example', 'golden', 1767225600000000 \
         FROM identities LIMIT 1",
    ),
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden")
}

fn facts(database: &TestDatabase) -> Value {
    // One engine says t and f where the other says 1 and 0.
    let plain = |text: String| match text.as_str() {
        "t" => "1".to_owned(),
        "f" => "0".to_owned(),
        _ => text,
    };
    let rows = |sql: &str| -> Vec<Vec<String>> {
        database.query(sql).into_iter().map(|row| row.into_iter().map(plain).collect()).collect()
    };
    FACTS.iter().map(|(name, sql)| ((*name).to_owned(), json!(rows(sql)))).collect::<serde_json::Map<_, _>>().into()
}

/// What the migrations up to a version are, as a hash.
fn schema_hash(version: usize) -> String {
    let mut hasher = Sha256::new();
    for migration in &MIGRATIONS[..version] {
        for text in [migration.name, migration.sqlite, migration.postgres] {
            hasher.update(text.len().to_be_bytes());
            hasher.update(text);
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A little of everything.
async fn furnish(app: &TestApp) {
    let olga = app.owner();
    let (eve, zoe) = (app.user("eve").await, app.user("zoe").await);
    app.organization("Acme", &[&olga, &eve]).await;
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    app.global_agent(&eve, "everywhere").await;
    let room = app.room_with(&olga, &[&ana, &bob, &cy, &eve]).await;
    olga.patch(&room.path(""), json!({"chat": {"title": "The golden room – ünï 🚀"}})).await.assert_status(200);

    // Every state that a delivery can be in.
    let done = olga.says(&room, "first", &[&ana]).await;
    ana.next(&room).await;
    ana.handles(&room, &done).await;
    let failed = olga.says(&room, "second", &[&ana, &bob]).await;
    ana.marks(&room, &failed, "processing").await.assert_status(200);
    ana.marks(&room, &failed, "failed").await.assert_status(200);
    bob.marks(&room, &failed, "processing").await.assert_status(200);
    olga.says(&room, "third, \"quoted\"\nand on two lines", &[&bob, &cy]).await;
    ana.says(&room, "an answer", &[&olga]).await;
    ana.records(&room, "thought", "hm").await;
    ana.records(&room, "tool_call", "look").await;
    olga.removes(&room, &cy).await.assert_status(200);

    ana.post(&room.path("/tasks"), json!({"subject": "a task", "detail": "of some length"})).await.assert_status(201);
    ana.post(&room.path("/tasks/1"), json!({"status": "in_progress"})).await.assert_status(200);
    ana.put(&room.path("/board"), json!({"goal_title": "be golden"})).await.assert_status(200);
    ana.post(
        "memories",
        json!({"memory": {
            "content": "Über die Brücke, 東京", "system": "long_term", "type": "semantic", "segment": "user",
            "thought": "keep", "scope": "organization",
        }}),
    )
    .await
    .assert_status(201);
    olga.post("contacts/requests", json!({"contact_request": {"recipient_handle": "zoe", "message": "hello"}})).await;
    ana.post("contacts/add", json!({"handle": "@eve"})).await;
    befriend(&zoe, &olga).await;
    upload(&olga, &room.path("/files")).await;

    let doomed = app.room_with(&olga, &[&bob]).await;
    let body = json!({"ids": [doomed.id, "nonsense"]});
    olga.post("chats/bulk-delete", body).await.assert_status(202);
    app.until_none("SELECT key FROM bulk_deletions WHERE completed_at IS NULL").await;
    olga.post("/api/v1/admin/keys", json!({"key": {"holder": "eve"}})).await.assert_status(201);
    olga.delete("/api/v1/admin/keys/zoe").await.assert_status(200);
}

/// One asks and the other, who asked as well, thereby consents.
async fn befriend(one: &Caller, other: &Caller) {
    let body = json!({"contact_request": {"recipient_handle": other.handle}});
    one.post("contacts/requests", body).await;
}

async fn upload(by: &Caller, path: &str) {
    let hash = "3fc9b689459d738f8c88a3a48aa9e33542016b7a4052e001aaa536fca74813cb";
    let headers = [("x-api-key", by.key.as_str()), ("x-file-name", "a.txt"), ("x-file-sha256", hash)];
    let (path, bytes) = (by.path(path), Some(b"something".to_vec()));
    by.app.request(reqwest::Method::PUT, &path, &headers, bytes).await.assert_status(201);
}

/// Writes the golden store of this build's schema, when it is asked to.
#[tokio::test]
async fn write() {
    if std::env::var_os("BANDSTAND_WRITE_GOLDEN").is_none() {
        return;
    }
    let database = Arc::new(TestDatabase::create(TestEngine::Sqlite).await);
    let app = crate::support::run_on(&database, Limits::default(), None, async |app| furnish(&app).await).await;
    for (table, sql) in BY_HAND {
        let known = database.query(&format!("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '{table}'"));
        if !known.is_empty() && database.query(&format!("SELECT 1 FROM {table} LIMIT 1")).is_empty() {
            database.execute(sql);
        }
    }
    let services = without_jobs(&app).await;
    let tables: Vec<archive::Table> =
        services.store.snapshot(|tx| Box::pin(archive::tables(tx))).await.expect("the tables");
    for table in tables {
        let rows = database.query(&format!("SELECT 1 FROM {} LIMIT 1", table.name));
        assert!(!rows.is_empty(), "the golden store has nothing in {}: add it to what furnishes it", table.name);
    }
    let folder = golden().join(format!("{:04}", newest_version()));
    fs::create_dir_all(&folder).expect("a folder");
    let mut pieces = Box::pin(stream(&services).await.expect("a backup"));
    let mut backup = Vec::new();
    while let Some(piece) = pieces.next().await {
        backup.extend_from_slice(&piece.expect("a piece"));
    }
    fs::write(folder.join("bandstand.backup"), backup).expect("written");
    services.store.close().await;
    let Database::Sqlite { path } = database.database() else { return };
    fs::copy(path, folder.join("bandstand.db")).expect("copied");
    fs::write(folder.join("schema.sha256"), schema_hash(MIGRATIONS.len()) + "\n").expect("written");
    let text = serde_json::to_string_pretty(&facts(&database)).expect("JSON");
    fs::write(folder.join("facts.json"), text + "\n").expect("written");
}

struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(NOW_MICROS)
    }
}

/// Opens the store as a server does, and closes it again.
async fn opened(database: &TestDatabase) {
    let options = AppOptions {
        store: database.options(),
        files: bandstand_server::service::files::FileOptions {
            spool: database.folder().join("uploads"),
            place: bandstand_server::service::files::FilePlace::Folder(database.folder().join("files")),
        },
        limits: Limits::default(),
        clock: Arc::new(StillClock),
        ids: Arc::new(bandstand_server::system::SystemIds::default()),
    };
    let services: Services = services_only(options).await.expect("an old store opens");
    assert_eq!(services.store.schema_version().await.expect("a version"), newest_version());
    assert_eq!(services.show_user("olga").await.expect("the owner").role.as_str(), "admin");
    // It can be written as well.
    services.add_organization("After the upgrade").await.expect("an act");
    services.store.close().await;
}

async fn check(database: &TestDatabase, wanted: &Value) {
    let found = facts(database);
    for (name, wanted) in wanted.as_object().expect("facts") {
        // The newer log begins with the older one.
        let found = match found[name].as_array() {
            Some(rows) if name == "audit" => &Value::from(rows[..wanted.as_array().expect("rows").len()].to_vec()),
            _ => &found[name],
        };
        assert_eq!(found, wanted, "{name}");
    }
    let examined = examine_rows(database.database(), NOW_MICROS).await.expect("it can be read");
    assert_eq!(examined.faults, []);
    examined.audit.expect("the log is whole");
}

/// Every golden store, as its folder.
fn stores() -> Vec<PathBuf> {
    let mut stores: Vec<PathBuf> =
        fs::read_dir(golden()).expect("golden stores").map(|entry| entry.expect("an entry").path()).collect();
    stores.retain(|path| path.is_dir());
    stores.sort();
    assert!(!stores.is_empty(), "no golden store is there");
    for store in &stores {
        let version = store.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a version");
        let written = fs::read_to_string(store.join("schema.sha256")).unwrap_or_default();
        assert_eq!(
            written.trim_end(),
            schema_hash(version),
            "the migrations up to {version} are others than those that made the golden store. A released migration never \
             changes; while none is released, write the store anew: BANDSTAND_WRITE_GOLDEN=1 cargo nextest run \
             -p bandstand-server --test it golden::write"
        );
    }
    stores
}

fn wanted(store: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(store.join("facts.json")).expect("facts")).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_file_opens() {
    for store in stores() {
        let database = TestDatabase::create(TestEngine::Sqlite).await;
        let Database::Sqlite { path } = database.database() else { continue };
        fs::copy(store.join("bandstand.db"), path).expect("copied");
        opened(&database).await;
        let mut wanted = wanted(&store);
        // What was done to it just now.
        wanted["organizations"].as_array_mut().expect("rows").push(json!(["After the upgrade"]));
        check(&database, &wanted).await;
    }
}

async fn every_golden_backup_restores(engine: TestEngine) {
    for store in stores() {
        let database = TestDatabase::create(engine).await;
        let data = database.folder().join("restored");
        fs::create_dir(&data).expect("a folder");
        let archive = Archive::open(&store.join("bandstand.backup"), &|_, _, _| {}).expect("a whole backup");
        let options = RestoreOptions {
            database: database.database(),
            files: Some(data.join("files")),
            data,
            now: Timestamp::from_micros(NOW_MICROS),
            stop: CancellationToken::new(),
        };
        restore(archive, options, Arc::new(|_, _, _| {})).await.expect("an old backup restores");
        opened(&database).await;
        let mut wanted = wanted(&store);
        wanted["organizations"].as_array_mut().expect("rows").push(json!(["After the upgrade"]));
        check(&database, &wanted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_backup_restores_into_sqlite() {
    every_golden_backup_restores(TestEngine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_backup_restores_into_postgres() {
    every_golden_backup_restores(TestEngine::Postgres).await;
}

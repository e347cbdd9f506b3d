//! Opening: migrations, and what is refused.

use std::sync::Arc;

use bandstand_store::testing::{NOW_MICROS, Recorder, TestDatabase, TestEngine};
use bandstand_store::{Database, Migration, Store, StoreError, StoreOptions};

use crate::support::{SCHEMA, numbers, on_both_engines, open, post};

on_both_engines!(
    migrations_are_applied_once,
    a_newer_database_is_refused,
    a_failed_migration_leaves_nothing,
    a_failed_upgrade_leaves_the_old_store_as_it_was,
    two_that_open_at_once_migrate_once,
);

async fn migrations_are_applied_once(database: TestDatabase) {
    let older = SCHEMA.get(..1).unwrap();
    let store = database.open_with(Recorder::new(), older).await;
    assert_eq!(store.schema_version().await.unwrap(), 1);
    store.close().await;
    for _ in 0..2 {
        let (store, _) = open(&database).await;
        assert_eq!(store.schema_version().await.unwrap(), 2);
        store.close().await;
    }
    let noted = database.query("SELECT number, name, applied_at FROM schema_migrations ORDER BY number");
    let now = NOW_MICROS.to_string();
    assert_eq!(noted, [["1", "rooms", &now], ["2", "notes", &now]]);
}

async fn a_newer_database_is_refused(database: TestDatabase) {
    let (store, _) = open(&database).await;
    post(&store, 1).await.unwrap();
    store.close().await;
    let older = SCHEMA.get(..1).unwrap();
    let refused = Store::open_with_migrations(database.options(), Recorder::new(), older).await.err().unwrap();
    assert!(matches!(refused, StoreError::Migration(_)), "{refused:?}");
    assert!(refused.to_string().contains("newer version of the server"), "{refused}");
    let (store, _) = open(&database).await;
    assert_eq!(numbers(&store).await.unwrap(), [1], "nothing was touched, and the lock is free");
    store.close().await;
}

async fn a_failed_migration_leaves_nothing(database: TestDatabase) {
    const BROKEN: &[Migration] = &[Migration {
        number: 1,
        name: "broken",
        sqlite: "CREATE TABLE half (id BIGINT); INSERT INTO nowhere VALUES (1);",
        postgres: "CREATE TABLE half (id BIGINT); INSERT INTO nowhere VALUES (1);",
    }];
    let failed = Store::open_with_migrations(database.options(), Recorder::new(), BROKEN).await.err().unwrap();
    assert!(failed.to_string().contains("0001_broken"), "{failed}");
    let (store, _) = open(&database).await;
    store.close().await;
    let tables = match database.engine() {
        TestEngine::Sqlite => "SELECT name FROM sqlite_schema WHERE name = 'half'",
        TestEngine::Postgres => "SELECT table_name FROM information_schema.tables WHERE table_name = 'half'",
    };
    assert!(database.query(tables).is_empty());
}

async fn a_failed_upgrade_leaves_the_old_store_as_it_was(database: TestDatabase) {
    const BROKEN: Migration = Migration {
        number: 3,
        name: "broken",
        sqlite: "ALTER TABLE notes ADD COLUMN more BIGINT; DELETE FROM rooms; INSERT INTO nowhere VALUES (1);",
        postgres: "ALTER TABLE notes ADD COLUMN more BIGINT; DELETE FROM rooms; INSERT INTO nowhere VALUES (1);",
    };
    const UPGRADE: &[Migration] = &[SCHEMA[0], SCHEMA[1], BROKEN];
    let (store, _) = open(&database).await;
    post(&store, 1).await.unwrap();
    store.close().await;
    for _ in 0..2 {
        let failed = Store::open_with_migrations(database.options(), Recorder::new(), UPGRADE).await.err().unwrap();
        assert!(failed.to_string().contains("0003_broken"), "{failed}");
    }
    let (store, _) = open(&database).await;
    assert_eq!(store.schema_version().await.unwrap(), 2);
    assert_eq!(numbers(&store).await.unwrap(), [1]);
    store.close().await;
}

async fn two_that_open_at_once_migrate_once(database: TestDatabase) {
    let database = Arc::new(database);
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let options = database.options();
            tokio::spawn(async move { Store::open_with_migrations(options, Recorder::new(), SCHEMA).await })
        })
        .collect();
    let mut owners = Vec::new();
    for task in opening {
        match task.await.unwrap() {
            Ok(store) => owners.push(store),
            Err(StoreError::Locked { .. } | StoreError::DatabaseLocked { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(owners.len(), 1);
    assert_eq!(database.query("SELECT COUNT(*) FROM schema_migrations"), [["2"]]);
    owners.pop().unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_that_does_not_sync_is_refused() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let name = database.query("SELECT current_database()").remove(0).remove(0);
    database.execute(&format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    let refused = Store::open_with_migrations(database.options(), Recorder::new(), SCHEMA).await.err().unwrap();
    assert!(matches!(&refused, StoreError::Setup(text) if text.contains("synchronous_commit = off")), "{refused}");
    database.execute(&format!("ALTER DATABASE {name} SET synchronous_commit = on"));
    let (store, _) = open(&database).await;
    post(&store, 1).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_says_why_and_keeps_the_password() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x".repeat(5000)).unwrap();
    for (database, expected) in [
        (Database::Postgres { url: "postgres://ana:s3cret@127.0.0.1:1/x".to_owned() }, "refused"),
        (Database::Postgres { url: "postgres://ana:s3cret@127.0.0.1:port/x".to_owned() }, "cannot be read"),
        (Database::Sqlite { path: folder.path().join("file") }, "not a database"),
        (Database::Sqlite { path: folder.path().join("file/below") }, "cannot make the folder"),
    ] {
        let options = StoreOptions::new(database, NOW_MICROS);
        assert!(!format!("{options:?}").contains("s3cret"));
        let error = Store::open(options, Recorder::new()).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

//! A disk that is full: writes are refused, reads go on, nothing acknowledged is lost.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bandstand_store::testing::{NOW_MICROS, Recorder, TestDatabase, TestEngine};
use bandstand_store::{Database, Store, StoreError, StoreOptions};

use crate::support::{SCHEMA, count, insert, numbers, open};

/// A file system of one megabyte, in memory.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).output();
        let mounted = mounted.expect("the program `mount`");
        assert!(
            mounted.status.success(),
            "this test mounts a file system of one megabyte, for which it must run as root: {}",
            String::from_utf8_lossy(&mounted.stderr)
        );
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
    }
}

async fn post(store: &Store, number: i64, bytes: usize) -> Result<(), StoreError> {
    store.write("post", move |tx| Box::pin(async move { insert(tx, number, Some(&vec![1; bytes])).await })).await
}

/// Writes until the disk has refused for a while; answers what was acknowledged, and the next free number.
async fn fill(store: &Store) -> (Vec<i64>, i64) {
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    let mut next = 0;
    while refused < 200 {
        // Many at once, small and large.
        let posts: Vec<_> = (next..next + 20)
            .map(|number| {
                let store = store.clone();
                let bytes = if number % 7 == 0 { 60_000 } else { 500 };
                (number, tokio::spawn(async move { post(&store, number, bytes).await }))
            })
            .collect();
        next += 20;
        for (number, task) in posts {
            match task.await.unwrap() {
                Ok(()) => acknowledged.push(number),
                Err(error) => {
                    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
                    refused += 1;
                }
            }
        }
        let there = numbers(store).await.expect("reads go on");
        assert_eq!(there, acknowledged, "what is there is what was acknowledged");
    }
    assert!(!acknowledged.is_empty());
    (acknowledged, next)
}

/// Writes until it works again.
async fn recover(store: &Store, number: i64) {
    let freed = Instant::now();
    while let Err(error) = post(store, number, 500).await {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(freed.elapsed() < Duration::from_secs(10), "writing does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_refuses_writes_goes_on_reading_and_loses_nothing() {
    let disk = SmallDisk::mount();
    let path = disk.path().join("bandstand.db");
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 300 << 10]).unwrap();
    let options = StoreOptions::new(Database::Sqlite { path }, NOW_MICROS);
    let recorder = Recorder::new();
    let store = Store::open_with_migrations(options.clone(), recorder, SCHEMA).await.unwrap();

    let (mut acknowledged, next) = fill(&store).await;

    // An operation larger than the page cache spills, so that its own statement hits the end of the disk and the
    // database rolls back all.
    let spilled = post(&store, -1, 8 << 20).await.unwrap_err();
    assert!(matches!(spilled, StoreError::Unavailable(_)), "{spilled:?}");
    store.ping().await.expect("nothing is written by it");

    std::fs::remove_file(&ballast).unwrap();
    recover(&store, next).await;
    acknowledged.push(next);
    // The same in the middle of a batch: whoever shared it is refused as well, and whoever did not is kept.
    for round in 1..=10 {
        let spilling = store.clone();
        let spilling = tokio::spawn(async move { post(&spilling, -round, 8 << 20).await });
        let posts: Vec<_> = (next + round * 100..next + round * 100 + 5)
            .map(|number| {
                let store = store.clone();
                (number, tokio::spawn(async move { post(&store, number, 50).await }))
            })
            .collect();
        for (number, task) in posts {
            match task.await.unwrap() {
                Ok(()) => acknowledged.push(number),
                Err(error) => assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}"),
            }
        }
        assert!(matches!(spilling.await.unwrap(), Err(StoreError::Unavailable(_))));
    }
    assert_eq!(numbers(&store).await.unwrap(), acknowledged);
    store.close().await;

    let store = Store::open_with_migrations(options, Recorder::new(), SCHEMA).await.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), acknowledged);
    let counted = store.read::<_, StoreError, _>("count", |tx| Box::pin(count(tx))).await.unwrap();
    assert_eq!(usize::try_from(counted).unwrap(), acknowledged.len());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_refuses_writes_goes_on_reading_and_loses_nothing() {
    let disk = SmallDisk::mount();
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, recorder) = open(&database).await;
    // The table lies on the small disk.
    let folder = disk.path().join("space");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.display();
    let handed = Command::new("sh").args(["-c", &format!("chmod 755 {folder}/.. && chown postgres {folder}")]).status();
    assert!(handed.unwrap().success(), "there is no user `postgres`");
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 300 << 10]).unwrap();
    let space = database.query("SELECT current_database() || '_space'").remove(0).remove(0);
    database.execute(&format!("CREATE TABLESPACE {space} LOCATION '{folder}'"));
    // Without TOAST the space is gone row by row.
    database.execute(&format!("ALTER TABLE notes SET TABLESPACE {space}"));

    let (mut acknowledged, next) = fill(&store).await;
    store.ping().await.expect("nothing is written by it");
    std::fs::remove_file(&ballast).unwrap();
    recover(&store, next).await;
    acknowledged.push(next);
    assert_eq!(numbers(&store).await.unwrap(), acknowledged);
    assert!(recorder.commits().is_empty());
    store.close().await;
    let (store, _) = open(&database).await;
    assert_eq!(numbers(&store).await.unwrap(), acknowledged);
    store.close().await;
    database.execute("ALTER TABLE notes SET TABLESPACE pg_default");
    database.execute(&format!("DROP TABLESPACE {space}"));
}

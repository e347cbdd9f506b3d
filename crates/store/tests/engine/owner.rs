//! One server owns the data.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{Store, StoreError, params};

use crate::support::{SCHEMA, event, numbers, on_both_engines, open, post};

on_both_engines!(a_second_server_is_refused);

async fn a_second_server_is_refused(database: TestDatabase) {
    let (store, _) = open(&database).await;
    let asked = Instant::now();
    let refused = Store::open_with_migrations(database.options(), Recorder::new(), SCHEMA).await.err().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(3), "at once");
    match (&refused, database.engine()) {
        (StoreError::Locked { folder, holder }, TestEngine::Sqlite) => {
            assert_eq!(folder, database.folder());
            assert_eq!(*holder, format!("pid {}", std::process::id()));
        }
        (StoreError::DatabaseLocked { database, holder }, TestEngine::Postgres) => {
            assert!(database.starts_with("bandstand_test_"), "{database}");
            assert!(holder.contains("bandstand, connected from"), "{holder}");
        }
        _ => panic!("{refused:?}"),
    }
    post(&store, 1).await.expect("the owner goes on");
    store.close().await;
    let (next, _) = open(&database).await;
    assert_eq!(numbers(&next).await.unwrap(), [1]);
    next.close().await;
}

const LOCK_HOLDER: &str = "FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid \
    WHERE l.locktype = 'advisory' AND a.datname = current_database()";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writing_stops_while_the_database_lock_is_lost() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, recorder) = open(&database).await;
    post(&store, 1).await.unwrap();
    let ended = database.query(&format!("SELECT pg_terminate_backend(a.pid) {LOCK_HOLDER}"));
    assert_eq!(ended, [["t"]]);

    let lost = Instant::now();
    let error = loop {
        match store.ping().await {
            Ok(()) => assert!(lost.elapsed() < Duration::from_secs(5), "nobody noticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, StoreError::Unavailable(text) if text.contains("lock on the database")), "{error}");
    assert!(post(&store, 2).await.unwrap_err().is_unavailable());
    assert_eq!(numbers(&store).await.unwrap(), [1], "reads go on");
    while post(&store, 3).await.is_err() {
        assert!(lost.elapsed() < Duration::from_secs(10), "it does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(numbers(&store).await.unwrap(), [1, 3]);
    assert_eq!(recorder.commits().len(), 2);
    assert_eq!(database.query(&format!("SELECT COUNT(*) {LOCK_HOLDER}")), [["1"]]);
    store.close().await;
    assert_eq!(database.query(&format!("SELECT COUNT(*) {LOCK_HOLDER}")), [["0"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_connections_cost_only_what_ran_on_them() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, recorder) = open(&database).await;
    for round in 0..10 {
        let posts: Vec<_> = (0..20)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move { post(&store, round * 100 + number).await })
            })
            .collect();
        database.query(
            "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.datname = current_database() \
             AND a.pid <> pg_backend_pid() AND a.pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')",
        );
        for task in posts {
            if let Err(error) = task.await.unwrap() {
                assert!(error.is_unavailable(), "{error:?}");
            }
        }
    }
    // The pool may hold a connection whose end was not seen yet.
    while post(&store, 5000).await.is_err() {}
    let rows = numbers(&store).await.unwrap().len();
    assert!(recorder.commits().len() <= rows, "no event without its row");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deadlock_costs_one_of_the_two() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, recorder) = open(&database).await;
    post(&store, 1).await.unwrap();
    post(&store, 2).await.unwrap();
    let both_began = Arc::new(tokio::sync::Barrier::new(2));
    let lock = |first: i64, second: i64| {
        let (store, both_began) = (store.clone(), Arc::clone(&both_began));
        tokio::spawn(async move {
            store
                .write::<(), StoreError, _>("locks", move |tx| {
                    Box::pin(async move {
                        let touch = "UPDATE notes SET data = NULL WHERE number = ?1";
                        tx.execute(touch, params![first]).await?;
                        both_began.wait().await;
                        tx.execute(touch, params![second]).await?;
                        tx.emit(event(first + 10));
                        Ok(())
                    })
                })
                .await
        })
    };
    let (one, two) = (lock(1, 2), lock(2, 1));
    let results = [one.await.unwrap(), two.await.unwrap()];
    let lost: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(lost.len(), 1, "{results:?}");
    assert!(matches!(lost[0], StoreError::Unavailable(text) if text.contains("40P01")), "{results:?}");
    assert_eq!(recorder.commits().len(), 3, "the loser announces nothing");
    store.close().await;
}

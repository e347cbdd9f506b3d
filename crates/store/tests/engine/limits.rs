//! A full queue, a log that must not grow, the end.

use std::sync::mpsc;
use std::time::Duration;

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{Store, StoreError};

use crate::support::{SCHEMA, count, insert, numbers, on_both_engines, open, post};

on_both_engines!(a_full_queue_answers_busy, closing_finishes_what_waits, dropping_the_store_loses_nothing);

async fn a_full_queue_answers_busy(database: TestDatabase) {
    let options = bandstand_store::StoreOptions { queue: 4, readers: 1, ..database.options() };
    let store = Store::open_with_migrations(options, Recorder::new(), SCHEMA).await.unwrap();
    let (go_on, wait) = mpsc::channel::<()>();
    let (began, begun) = mpsc::channel();
    let blocker = store.clone();
    let blocker = tokio::spawn(async move {
        blocker
            .write::<(), StoreError, _>("blocks", move |_| {
                Box::pin(async move {
                    began.send(()).unwrap();
                    tokio::task::block_in_place(|| wait.recv_timeout(Duration::from_secs(10))).unwrap();
                    Ok(())
                })
            })
            .await
    });
    tokio::task::block_in_place(|| begun.recv_timeout(Duration::from_secs(10))).unwrap();
    // On PostgreSQL they do not wait for each other; so each waits for the end of the story.
    let (end, _) = tokio::sync::broadcast::channel::<()>(1);
    let posts: Vec<_> = (0..20)
        .map(|number| {
            let (store, mut ended) = (store.clone(), end.subscribe());
            let postgres = database.engine() == TestEngine::Postgres;
            tokio::spawn(async move {
                store
                    .write::<_, StoreError, _>("waits", move |tx| {
                        Box::pin(async move {
                            if postgres {
                                ended.recv().await.unwrap();
                            }
                            insert(tx, number, None).await
                        })
                    })
                    .await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let busy = post(&store, 100).await.unwrap_err();
    assert_eq!(busy, StoreError::Busy);
    assert!(busy.is_unavailable());
    numbers(&store).await.expect("reads are counted apart");
    go_on.send(()).unwrap();
    // On SQLite all may have ended by now.
    let _ = end.send(());
    blocker.await.unwrap().unwrap();
    let mut done = 0;
    for task in posts {
        match task.await.unwrap() {
            Ok(()) => done += 1,
            Err(error) => assert_eq!(error, StoreError::Busy),
        }
    }
    assert!((3..=4).contains(&done), "{done} of a queue of four");
    assert_eq!(numbers(&store).await.unwrap().len(), done);
    post(&store, 100).await.expect("there is room again");
    store.close().await;
}

async fn closing_finishes_what_waits(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    store.ping().await.unwrap();
    assert_eq!(store.schema_version().await.unwrap(), 2);
    let posts: Vec<_> = (0..100)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { post(&store, number).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(2)).await;
    tokio::join!(store.close(), store.close());
    let mut done = 0;
    for task in posts {
        match task.await.unwrap() {
            Ok(()) => done += 1,
            Err(error) => assert_eq!(error, StoreError::Closed),
        }
    }
    assert_eq!(post(&store, 1000).await, Err(StoreError::Closed));
    assert_eq!(numbers(&store).await, Err(StoreError::Closed));
    assert_eq!(store.ping().await, Err(StoreError::Closed));
    assert_eq!(database.query("SELECT COUNT(*) FROM notes"), [[done.to_string()]]);
    assert_eq!(recorder.commits().len(), done);
    if database.engine() == TestEngine::Sqlite {
        let log = database.folder().join("bandstand.db-wal");
        assert!(!log.exists(), "the log was moved into the database");
    }
    let (again, _) = open(&database).await;
    assert_eq!(numbers(&again).await.unwrap().len(), done, "the lock was released");
    again.close().await;
}

async fn dropping_the_store_loses_nothing(database: TestDatabase) {
    let (store, _) = open(&database).await;
    for number in 0..10 {
        post(&store, number).await.unwrap();
    }
    drop(store);
    // Its threads end a moment later.
    let mut tries = 0;
    let again = loop {
        match Store::open_with_migrations(database.options(), Recorder::new(), SCHEMA).await {
            Ok(store) => break store,
            Err(error) => assert!(tries < 100, "{error}"),
        }
        tries += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(numbers(&again).await.unwrap().len(), 10);
    again.close().await;
}

/// Only SQLite has a log of ours to look after.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_stays_small_under_load() {
    let database = TestDatabase::create(TestEngine::Sqlite).await;
    let (store, _) = open(&database).await;
    let log = database.folder().join("bandstand.db-wal");
    let writers: Vec<_> = (0..64_i64)
        .map(|writer| {
            let (store, log) = (store.clone(), log.clone());
            tokio::spawn(async move {
                let mut longest = 0;
                for note in 0..100 {
                    let number = writer * 1000 + note;
                    store
                        .write::<_, StoreError, _>("large", move |tx| {
                            Box::pin(async move { insert(tx, number, Some(&[0; 16_000])).await })
                        })
                        .await
                        .unwrap();
                    // Readers hold the log up as well.
                    store.read::<_, StoreError, _>("count", |tx| Box::pin(count(tx))).await.unwrap();
                    longest = longest.max(std::fs::metadata(&log).unwrap().len());
                }
                longest
            })
        })
        .collect();
    let mut longest = 0;
    for task in writers {
        longest = longest.max(task.await.unwrap());
    }
    // 100 MiB were written.
    assert!(longest < 40 << 20, "the log grew to {} MiB", longest >> 20);
    store.close().await;
    assert_eq!(database.query("SELECT COUNT(*) FROM notes"), [["6400"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slow_reader_does_not_stop_the_writer() {
    let database = TestDatabase::create(TestEngine::Sqlite).await;
    let (store, _) = open(&database).await;
    let (go_on, wait) = mpsc::channel::<()>();
    let reading = store.clone();
    let reading = tokio::spawn(async move {
        reading
            .read::<_, StoreError, _>("slow", move |tx| {
                Box::pin(async move {
                    let before = count(tx).await?;
                    wait.recv_timeout(Duration::from_secs(60)).unwrap();
                    assert_eq!(count(tx).await?, before);
                    Ok(())
                })
            })
            .await
    });
    // Several times as much as the log may hold, while it cannot start over.
    let started = std::time::Instant::now();
    for number in 0..300 {
        let large = store.write::<_, StoreError, _>("large", move |tx| {
            Box::pin(async move { insert(tx, number, Some(&vec![0; 200_000])).await })
        });
        large.await.unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let log = database.folder().join("bandstand.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 40 << 20);
    go_on.send(()).unwrap();
    reading.await.unwrap().unwrap();
    // Without the reader the log starts over, and gives its space back.
    let mut number = 1000;
    while std::fs::metadata(&log).unwrap().len() > 20 << 20 {
        post(&store, number).await.unwrap();
        number += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(number < 2000, "the log stays large");
    }
    store.close().await;
}

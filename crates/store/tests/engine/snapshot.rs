//! What a reader sees.

use std::sync::mpsc;
use std::time::Duration;

use bandstand_store::StoreError;
use bandstand_store::testing::TestDatabase;

use crate::support::{count, numbers, on_both_engines, open, post};

on_both_engines!(a_read_sees_one_moment, a_read_sees_every_answered_write, reads_run_beside_each_other);

async fn a_read_sees_one_moment(database: TestDatabase) {
    let (store, _) = open(&database).await;
    post(&store, 1).await.unwrap();
    let (began, begun) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let reading = store.clone();
    let reading = tokio::spawn(async move {
        reading
            .read::<_, StoreError, _>("twice", move |tx| {
                Box::pin(async move {
                    let before = count(tx).await?;
                    began.send(()).unwrap();
                    tokio::task::block_in_place(|| wait.recv_timeout(Duration::from_secs(10))).unwrap();
                    Ok((before, count(tx).await?))
                })
            })
            .await
    });
    tokio::task::block_in_place(|| begun.recv_timeout(Duration::from_secs(10))).unwrap();
    post(&store, 2).await.expect("readers do not keep the writer waiting");
    go_on.send(()).unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), (1, 1));
    assert_eq!(numbers(&store).await.unwrap(), [1, 2]);
    store.close().await;
}

async fn a_read_sees_every_answered_write(database: TestDatabase) {
    let (store, _) = open(&database).await;
    let both: Vec<_> = (0..50)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                post(&store, number).await.unwrap();
                assert!(numbers(&store).await.unwrap().contains(&number));
            })
        })
        .collect();
    for task in both {
        task.await.unwrap();
    }
    store.close().await;
}

async fn reads_run_beside_each_other(database: TestDatabase) {
    let (store, _) = open(&database).await;
    // Each waits for the other: with one reader at a time neither would end.
    let meeting = std::sync::Arc::new(std::sync::Barrier::new(2));
    let meet = || {
        let (store, meeting) = (store.clone(), meeting.clone());
        tokio::spawn(async move {
            store
                .read::<_, StoreError, _>("meets", move |tx| {
                    Box::pin(async move {
                        // On PostgreSQL this is a worker of the runtime, whose other tasks must go on.
                        tokio::task::block_in_place(|| meeting.wait());
                        count(tx).await
                    })
                })
                .await
        })
    };
    let (one, two) = (meet(), meet());
    assert_eq!(one.await.unwrap().unwrap(), 0);
    assert_eq!(two.await.unwrap().unwrap(), 0);
    store.close().await;
}

//! Operations that go wrong beside operations that do not.

use std::time::Duration;

use bandstand_store::testing::{TestDatabase, TestEngine};
use bandstand_store::{StoreError, params};

use crate::support::{NoteError, announced, event, insert, numbers, on_both_engines, open, post};

on_both_engines!(
    one_that_fails_costs_only_itself,
    a_slow_one_delays_and_spoils_nothing,
    nothing_goes_on_after_a_failed_statement,
    a_dropped_statement_spoils_its_operation_alone,
    a_panic_while_reading_costs_only_itself,
);

async fn one_that_fails_costs_only_itself(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    // Many of each, so that each kind has neighbours of each other kind in its batch.
    let mut good = Vec::new();
    let mut refused = Vec::new();
    let mut panicking = Vec::new();
    let mut failing = Vec::new();
    let mut pending = Vec::new();
    for number in (0..200).step_by(5) {
        let write = |at: i64, end: fn() -> Result<(), NoteError>| {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .write("ends", move |tx| {
                        Box::pin(async move {
                            insert(tx, at, None).await?;
                            tx.emit(event(at));
                            end()
                        })
                    })
                    .await
            })
        };
        let good_one = store.clone();
        good.push(tokio::spawn(async move { post(&good_one, number).await }));
        refused.push(write(number + 1, || Err(NoteError::Refused)));
        panicking.push(write(number + 2, || panic!("as the story wants")));
        let again = store.clone();
        failing.push(tokio::spawn(async move {
            again
                .write::<(), NoteError, _>("fails", move |tx| {
                    Box::pin(async move {
                        insert(tx, number + 3, None).await?;
                        tx.emit(event(number + 3));
                        Ok(insert(tx, number + 3, None).await?)
                    })
                })
                .await
        }));
        let waiting = store.clone();
        pending.push(tokio::spawn(async move {
            waiting
                .write::<(), NoteError, _>("waits", move |tx| {
                    Box::pin(async move {
                        insert(tx, number + 4, None).await?;
                        tx.emit(event(number + 4));
                        tokio::task::yield_now().await;
                        Err(NoteError::Refused)
                    })
                })
                .await
        }));
    }
    for task in good {
        task.await.unwrap().expect("a good one is committed");
    }
    for task in refused {
        assert_eq!(task.await.unwrap(), Err(NoteError::Refused));
    }
    for task in panicking {
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(&error, NoteError::Store(StoreError::Bug(text)) if text.contains("as the story wants")));
    }
    for task in failing {
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(error, NoteError::Store(StoreError::Conflict(_))), "{error}");
    }
    for task in pending {
        let error = task.await.unwrap().unwrap_err();
        match database.engine() {
            TestEngine::Sqlite => {
                assert!(matches!(&error, NoteError::Store(StoreError::Bug(text)) if text.contains("something else")));
            }
            // It does no harm there, which is why each story runs on SQLite as well.
            TestEngine::Postgres => assert_eq!(error, NoteError::Refused),
        }
    }
    let kept: Vec<i64> = (0..200).step_by(5).collect();
    assert_eq!(numbers(&store).await.unwrap(), kept);
    let mut events = announced(&recorder);
    events.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(events, kept.into_iter().map(event).collect::<Vec<_>>());
    post(&store, 1000).await.expect("the store lives on");
    store.close().await;
}

async fn a_slow_one_delays_and_spoils_nothing(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    let slow = store.clone();
    let slow = tokio::spawn(async move {
        slow.write::<(), StoreError, _>("slow", |tx| {
            Box::pin(async move {
                insert(tx, 0, None).await?;
                tx.emit(event(0));
                std::thread::sleep(Duration::from_millis(60));
                Ok(())
            })
        })
        .await
    });
    let posts: Vec<_> = (1..50)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { post(&store, number).await })
        })
        .collect();
    slow.await.unwrap().unwrap();
    for task in posts {
        task.await.unwrap().unwrap();
    }
    assert_eq!(numbers(&store).await.unwrap(), (0..50).collect::<Vec<_>>());
    assert_eq!(announced(&recorder).len(), 50);
    store.close().await;
}

async fn nothing_goes_on_after_a_failed_statement(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    post(&store, 1).await.unwrap();
    // SQLite itself would carry on, and commit the second half.
    let went_on = store
        .write::<(), StoreError, _>("goes_on", |tx| {
            Box::pin(async move {
                let first = insert(tx, 1, None).await;
                assert!(matches!(first, Err(StoreError::Conflict(_))), "{first:?}");
                let second = insert(tx, 2, None).await;
                assert_eq!(second, first, "each further statement fails likewise");
                tx.emit(event(2));
                Ok(())
            })
        })
        .await;
    assert!(matches!(went_on, Err(StoreError::Bug(_))), "{went_on:?}");
    assert_eq!(numbers(&store).await.unwrap(), [1]);
    assert_eq!(announced(&recorder), [event(1)]);
    let wrong = store
        .write::<(), StoreError, _>("wrong", |tx| {
            Box::pin(async move { tx.execute("INSERT INTO nowhere VALUES (?1)", params![1]).await.map(drop) })
        })
        .await;
    assert!(matches!(wrong, Err(StoreError::Bug(_))), "{wrong:?}");
    store.close().await;
}

async fn a_dropped_statement_spoils_its_operation_alone(database: TestDatabase) {
    let (store, _) = open(&database).await;
    let dropped = store
        .write::<(), StoreError, _>("drops", |tx| {
            Box::pin(async move {
                let statement = tx.query("SELECT number FROM notes", &[]);
                // Polled once: on PostgreSQL it is on its way now, and its failure would go unseen.
                let polled = {
                    let mut statement = Box::pin(statement);
                    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                    statement.as_mut().poll(&mut context).is_ready()
                };
                if polled { Err(StoreError::Bug("finished at once".to_owned())) } else { Ok(()) }
            })
        })
        .await;
    assert!(matches!(dropped, Err(StoreError::Bug(_))), "{dropped:?}");
    for number in 0..20 {
        post(&store, number).await.expect("the connection is sound");
    }
    store.close().await;
}

async fn a_panic_while_reading_costs_only_itself(database: TestDatabase) {
    let (store, _) = open(&database).await;
    post(&store, 1).await.unwrap();
    for _ in 0..10 {
        let panicked = store
            .read::<(), StoreError, _>("panics", |tx| {
                Box::pin(async move {
                    crate::support::count(tx).await?;
                    panic!("as the story wants")
                })
            })
            .await;
        assert!(matches!(panicked, Err(StoreError::Bug(_))), "{panicked:?}");
    }
    assert_eq!(numbers(&store).await.unwrap(), [1]);
    let write = store
        .read::<(), StoreError, _>("writes", |tx| {
            Box::pin(async move { tx.query("DELETE FROM notes", &[]).await.map(drop) })
        })
        .await;
    assert!(write.is_err(), "a reader cannot write");
    assert_eq!(numbers(&store).await.unwrap(), [1]);
    store.close().await;
}

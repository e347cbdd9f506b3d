//! What is announced, and when.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandstand_store::testing::{TestDatabase, TestEngine};
use bandstand_store::{Commit, CommitSink, Store, StoreError, params};

use crate::support::{SCHEMA, announced, event, insert, numbers, on_both_engines, open, post, post_in_room, room};

on_both_engines!(
    groups_keep_their_order_and_their_emptiness,
    an_event_is_announced_after_its_commit_and_before_the_answer,
    a_room_has_no_holes,
    callers_that_hang_up_leave_no_commit_without_its_events,
    a_sink_that_panics_harms_nobody,
);

async fn groups_keep_their_order_and_their_emptiness(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    let work = |refuse: bool| {
        let store = store.clone();
        async move {
            store
                .write::<(), StoreError, _>("groups", move |tx| {
                    Box::pin(async move {
                        tx.emit(event(1));
                        tx.emit(event(2));
                        tx.enter_room(room(), 7);
                        tx.enter_room(room(), 8);
                        tx.emit(event(3));
                        if refuse { Err(StoreError::Busy) } else { Ok(()) }
                    })
                })
                .await
        }
    };
    work(true).await.unwrap_err();
    assert!(recorder.commits().is_empty(), "nothing of what was refused");
    work(false).await.unwrap();
    post(&store, 4).await.unwrap();
    let groups: Vec<_> = recorder.commits().into_iter().map(|commit| (commit.room, commit.events)).collect();
    let wanted = vec![
        (None, vec![event(1), event(2)]),
        (Some((room(), 7)), vec![]),
        (Some((room(), 8)), vec![event(3)]),
        // A group of its own: the room before it was another operation's.
        (None, vec![event(4)]),
    ];
    assert_eq!(groups, wanted);
    store.close().await;
}

/// Looks into the database, from outside, for each event.
struct Witness {
    database: Arc<TestDatabase>,
    seen: Mutex<Vec<i64>>,
}

impl CommitSink for Witness {
    fn publish(&self, commits: Vec<Commit>) {
        for (_, number) in commits.into_iter().filter_map(|commit| commit.room) {
            let rows = self.database.query(&format!("SELECT number FROM notes WHERE number = {number}"));
            assert_eq!(rows, [[number.to_string()]], "committed before it is announced");
            self.seen.lock().unwrap().push(number);
        }
    }
}

async fn an_event_is_announced_after_its_commit_and_before_the_answer(database: TestDatabase) {
    let database = Arc::new(database);
    let witness = Arc::new(Witness { database: Arc::clone(&database), seen: Mutex::default() });
    let sink = Arc::clone(&witness);
    let store = Store::open_with_migrations(database.options(), sink, SCHEMA).await.unwrap();
    for wanted in 1..=5 {
        assert_eq!(post_in_room(&store).await.unwrap(), wanted);
        assert_eq!(witness.seen.lock().unwrap().last(), Some(&wanted));
    }
    store.close().await;
}

async fn a_room_has_no_holes(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    let posts: Vec<_> = (0..100)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                if number % 10 == 0 {
                    // Takes a number and gives it back.
                    let refused = store
                        .write::<(), StoreError, _>("refused", |tx| {
                            Box::pin(async move {
                                let next = "UPDATE rooms SET sequence = sequence + 1 WHERE id = ?1";
                                assert_eq!(tx.execute(next, params![room()]).await?, 1);
                                tx.enter_room(room(), -1);
                                Err(StoreError::Busy)
                            })
                        })
                        .await;
                    assert!(refused.is_err());
                } else {
                    post_in_room(&store).await.unwrap();
                }
            })
        })
        .collect();
    for task in posts {
        task.await.unwrap();
    }
    let mut groups: Vec<i64> = recorder.commits().iter().map(|commit| commit.room.unwrap().1).collect();
    if database.engine() == TestEngine::Postgres {
        // Tasks publish side by side; whoever needs an order has the numbers.
        groups.sort_unstable();
    }
    assert_eq!(groups, (1..=90).collect::<Vec<_>>());
    store.close().await;
}

async fn callers_that_hang_up_leave_no_commit_without_its_events(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    let mut hung_up = 0;
    for number in 0..200_u64 {
        let mut call = Box::pin(post_in_room(&store));
        // Handed over to the store, and then dropped: half of them at once, the others each at another moment.
        let handed_over = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let answered = match handed_over {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending if number % 2 == 0 => tokio::time::timeout(Duration::from_micros(number * 20), call).await,
            Poll::Pending => {
                hung_up += 1;
                continue;
            }
        };
        match answered {
            Ok(answer) => assert!(answer.is_ok(), "{answer:?}"),
            Err(_) => hung_up += 1,
        }
    }
    assert!(hung_up >= 90, "only {hung_up} of 200");
    store.close().await;
    let mut groups: Vec<i64> = recorder.commits().iter().map(|commit| commit.room.unwrap().1).collect();
    groups.sort_unstable();
    let rows = database.query("SELECT number FROM notes ORDER BY number");
    let rows: Vec<i64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(rows, groups);
    assert_eq!(rows, (1..=200).collect::<Vec<_>>(), "who hangs up after handing over stops nothing");
}

/// Fails at its first call.
#[derive(Default)]
struct Clumsy {
    calls: Mutex<u32>,
}

impl CommitSink for Clumsy {
    fn publish(&self, _: Vec<Commit>) {
        let mut calls = self.calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *calls += 1;
        let first = *calls == 1;
        drop(calls);
        assert!(!first, "as the story wants");
    }
}

async fn a_sink_that_panics_harms_nobody(database: TestDatabase) {
    let sink = Arc::new(Clumsy::default());
    let store = database.open_with(sink.clone(), SCHEMA).await;
    post(&store, 1).await.expect("it is committed");
    post(&store, 2).await.expect("the store lives on");
    assert_eq!(*sink.calls.lock().unwrap(), 2);
    assert_eq!(numbers(&store).await.unwrap(), [1, 2]);
    // An operation without events calls nobody.
    let quiet = store.write::<(), StoreError, _>("quiet", |tx| Box::pin(insert(tx, 3, None))).await;
    quiet.unwrap();
    assert_eq!(*sink.calls.lock().unwrap(), 2);
    let (other, recorder) = (store.clone(), bandstand_store::testing::Recorder::new());
    assert!(announced(&recorder).is_empty());
    other.close().await;
}

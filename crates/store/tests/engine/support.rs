//! A small schema, and operations on it.

use std::sync::Arc;

use bandstand_domain::event::Event;
use bandstand_store::testing::{Recorder, TestDatabase};
use bandstand_store::{Migration, Reader, Store, StoreError, Writer, params};
use bandstand_wire::ids::{KeyId, RoomId};
use uuid::Uuid;

/// A room with a sequence, and notes in it.
pub(crate) const SCHEMA: &[Migration] = &[
    Migration {
        number: 1,
        name: "rooms",
        sqlite: "CREATE TABLE rooms (id BLOB PRIMARY KEY, sequence BIGINT NOT NULL) WITHOUT ROWID;
                 INSERT INTO rooms VALUES (x'00000000000000000000000000000001', 0);",
        postgres: "CREATE TABLE rooms (id UUID PRIMARY KEY, sequence BIGINT NOT NULL);
                   INSERT INTO rooms VALUES ('00000000-0000-0000-0000-000000000001', 0);",
    },
    Migration {
        number: 2,
        name: "notes",
        sqlite: "CREATE TABLE notes (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, data BLOB);",
        postgres: "CREATE TABLE notes (number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, data BYTEA);",
    },
];

/// Makes a test of each story for each engine.
macro_rules! on_both_engines {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $story() {
                use bandstand_store::testing::{TestDatabase, TestEngine};
                super::$story(TestDatabase::create(TestEngine::Sqlite).await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $story() {
                use bandstand_store::testing::{TestDatabase, TestEngine};
                super::$story(TestDatabase::create(TestEngine::Postgres).await).await;
            })*
        }
    };
}
pub(crate) use on_both_engines;

pub(crate) async fn open(database: &TestDatabase) -> (Store, Arc<Recorder>) {
    let recorder = Recorder::new();
    let sink = Arc::clone(&recorder);
    (database.open_with(sink, SCHEMA).await, recorder)
}

/// What a service's error looks like.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoteError {
    #[error("refused")]
    Refused,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) fn room() -> RoomId {
    RoomId(Uuid::from_u128(1))
}

/// An event that can be told from others.
pub(crate) fn event(number: i64) -> Event {
    Event::KeyRevoked { key: KeyId(Uuid::from_u128(u128::try_from(number).unwrap())) }
}

pub(crate) async fn insert(tx: &mut Writer, number: i64, data: Option<&[u8]>) -> Result<(), StoreError> {
    let name = format!("note {number}");
    tx.execute("INSERT INTO notes (number, name, data) VALUES (?1, ?2, ?3)", params![number, &name, data]).await?;
    Ok(())
}

/// Writes a note and announces it.
pub(crate) async fn post(store: &Store, number: i64) -> Result<(), StoreError> {
    store
        .write("post", move |tx| {
            Box::pin(async move {
                insert(tx, number, None).await?;
                tx.emit(event(number));
                Ok(())
            })
        })
        .await
}

/// Writes a note under the room's next sequence number and announces it there.
pub(crate) async fn post_in_room(store: &Store) -> Result<i64, StoreError> {
    const NEXT: &str = "UPDATE rooms SET sequence = sequence + 1 WHERE id = ?1 RETURNING sequence";
    store
        .write("post_in_room", move |tx| {
            Box::pin(async move {
                let sequence = tx.query_one(NEXT, params![room()]).await?.int(0)?;
                tx.enter_room(room(), sequence);
                insert(tx, sequence, None).await?;
                tx.emit(event(sequence));
                Ok(sequence)
            })
        })
        .await
}

pub(crate) async fn count(tx: &mut Reader) -> Result<i64, StoreError> {
    tx.query_one("SELECT COUNT(*) FROM notes", &[]).await?.int(0)
}

/// The numbers of all notes.
pub(crate) async fn numbers(store: &Store) -> Result<Vec<i64>, StoreError> {
    store
        .read("numbers", |tx| {
            Box::pin(async move {
                let rows = tx.query("SELECT number FROM notes ORDER BY number", &[]).await?;
                rows.iter().map(|row| row.int(0)).collect()
            })
        })
        .await
}

/// The events of all groups, in order.
pub(crate) fn announced(recorder: &Recorder) -> Vec<Event> {
    recorder.commits().into_iter().flat_map(|commit| commit.events).collect()
}

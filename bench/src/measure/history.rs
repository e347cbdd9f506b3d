//! A long history: one room with a million messages for one agent, nearly all of them done.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use bandstand_domain::delivery::{AttemptState, DeliveryState};
use bandstand_domain::message::{Mention, MessageKind};
use bandstand_store::deliveries::{self, Outcome, Place, Standing};
use bandstand_store::messages::{self, NewMessage};
use bandstand_store::{Database, Store, StoreError, Writer, participants, rooms};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use tokio::time::Instant;

use crate::bench::Bench;
use crate::http::{Http, request};
use crate::latency::Latencies;
use crate::process::Process;
use crate::report::{Expected, Figure};
use crate::setup::{self, Agent, TEXT};
use crate::world::{self, Ids, now};

const NEXT_MS: f64 = 3.0;
const READY_MS: f64 = 300.0;

/// Messages of one operation.
const BATCH: usize = 500;

/// The newest messages, which are not done.
const OPEN: usize = 10;

/// Starts that are timed.
const STARTS: usize = 7;

pub(crate) async fn run(bench: &mut Bench) -> Result<()> {
    let server = world::start_server(bench, "history", &[])?;
    let mut agents = setup::agents(server.address, "agent", 2).await?;
    let room = setup::room(server.address, &agents.iter().collect::<Vec<_>>()).await?;
    let (sender, agent) = agents.pop().zip(agents.pop()).ok_or_else(|| anyhow!("no agents"))?;
    let post = setup::post(&sender, &room, &[&agent]);
    let mut http = Http::connect(server.address).await?;
    for _ in 0..OPEN {
        ensure!(http.send(&post).await?.status == 201, "a post was refused");
    }
    let small = read(bench, server.address, &agent, &room).await?;
    drop(http);
    server.stop()?;

    let count: usize = bench.amount(1_000_000, 5_000);
    bench.say(&format!("inserting {count} messages"));
    let inserting = Instant::now();
    fill(bench, &room, &sender, &agent, count).await?;
    bench.say(&format!("inserted in {:.0} s", inserting.elapsed().as_secs_f64()));

    let mut ready = Latencies::new()?;
    let mut server = world::start_server(bench, "history", &[])?;
    ready.record(server.ready_after);
    for _ in 1..STARTS {
        server.stop()?;
        server = world::start_server(bench, "history", &[])?;
        ready.record(server.ready_after);
    }
    let large = read(bench, server.address, &agent, &room).await?;
    let killed = start_after_kill(bench, server, &sender, &room, &agent).await?;

    bench.report.section(format!("A room with {count} messages for one agent, {OPEN} of them open"));
    for (before, after) in small.iter().zip(&large) {
        let expected = after.judged.then(|| Expected::at_most(after.took.p99_ms(), NEXT_MS, "ms").because("p99"));
        bench.report.row(after.what, after.took.figures(), expected);
        bench.report.row(format!("{}, {OPEN} messages in all", before.what), before.took.figures(), None);
    }
    let figures = vec![Figure::new("p50", ready.p50_ms(), "ms"), Figure::new("max", ready.max_ms(), "ms")];
    let expected = Expected::at_most(ready.max_ms(), READY_MS, "ms").because("max");
    bench.report.row(format!("ready after start, {STARTS} starts"), figures, Some(expected));
    let figures = vec![Figure::new("", killed.as_secs_f64() * 1000.0, "ms")];
    bench.report.row("ready after a kill under load, 1 start", figures, None);
    Ok(())
}

/// How long one kind of request took.
struct Read {
    what: &'static str,
    judged: bool,
    took: Latencies,
}

async fn read(bench: &Bench, address: SocketAddr, agent: &Agent, room: &str) -> Result<Vec<Read>> {
    let messages = format!("/api/v1/agent/chats/{room}/messages");
    let mut http = Http::connect(address).await?;
    let mut reads = Vec::new();
    for (what, path, judged) in [
        ("/messages/next", format!("{messages}/next"), true),
        ("unprocessed messages, first page", messages.clone(), false),
        ("context, first page", format!("/api/v1/agent/chats/{room}/context"), false),
    ] {
        let request = request("GET", &path, &agent.key, None);
        let mut took = Latencies::new()?;
        for number in 0..bench.amount(2000, 100) {
            let started = Instant::now();
            let reply = http.send(&request).await?;
            ensure!(reply.status == 200, "{what}: {}", reply.status);
            // The first ones fill caches.
            if number >= 20 {
                took.record(started.elapsed());
            }
        }
        reads.push(Read { what, judged, took });
    }
    Ok(reads)
}

/// Stores messages without a server, through the same queries.
async fn fill(bench: &Bench, room: &str, sender: &Agent, agent: &Agent, count: usize) -> Result<()> {
    let store = world::open_store(Database::Sqlite { path: bench.folder("history").join("bandstand.db") }).await?;
    let (room, sender, recipient): (RoomId, IdentityId, IdentityId) =
        (room.parse()?, sender.id.parse()?, agent.id.parse()?);
    let keys: Result<_, StoreError> = store
        .read("keys", move |tx| {
            Box::pin(async move {
                Ok((participants::member_key(tx, sender).await?, participants::member_key(tx, recipient).await?))
            })
        })
        .await;
    let (sender_key, member_key) = keys?;
    let filling = Filling {
        room,
        sender_key: sender_key.context("no sender")?,
        member_key: member_key.context("no recipient")?,
        mention: Mention {
            id: recipient,
            handle: "owner/agent-0".to_owned(),
            name: "agent-0".to_owned(),
            reference: false,
        },
    };
    let ids = Ids::default();
    // The messages that were posted before are open as well; done from here on are all but them.
    finish_open(&store, &filling).await?;
    let mut left = count;
    while left > 0 {
        let batch: Vec<MessageId> = (0..left.min(BATCH)).map(|_| MessageId(ids.next())).collect();
        let open_from = left.saturating_sub(OPEN);
        left -= batch.len();
        let filling = filling.clone();
        let stored: Result<(), StoreError> = store
            .write("fill", move |tx| {
                Box::pin(async move {
                    for (number, id) in batch.into_iter().enumerate() {
                        filling.insert(tx, id, number < open_from).await?;
                    }
                    Ok(())
                })
            })
            .await;
        stored?;
    }
    store.close().await;
    Ok(())
}

/// Ends the deliveries that the posts before left open.
async fn finish_open(store: &Store, filling: &Filling) -> Result<(), StoreError> {
    let filling = filling.clone();
    store
        .write("finish", move |tx| {
            Box::pin(async move {
                let advanced = rooms::advance(tx, filling.room).await?.ok_or_else(missing)?;
                for sequence in 1..=advanced.sequence {
                    let place = Place { room_key: advanced.key, sequence, member_key: filling.member_key };
                    if let Some(standing) = deliveries::standing(tx, place).await? {
                        work_off(tx, place, standing).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}

#[derive(Clone)]
struct Filling {
    room: RoomId,
    sender_key: i64,
    member_key: i64,
    mention: Mention,
}

impl Filling {
    /// What a post does, and, when `done`, what the recipient's marks do.
    async fn insert(&self, tx: &mut Writer, id: MessageId, done: bool) -> Result<(), StoreError> {
        let advanced = rooms::advance(tx, self.room).await?.ok_or_else(missing)?;
        let (room_key, sequence) = (advanced.key, advanced.sequence);
        let at = rooms::message_posted(tx, room_key, MessageKind::Text, now()).await?;
        let message = NewMessage {
            room_key,
            sequence,
            id,
            kind: MessageKind::Text,
            sender_key: self.sender_key,
            content: TEXT,
            mentions: std::slice::from_ref(&self.mention),
            attachments: &[],
            metadata: None,
            at,
        };
        messages::insert(tx, &message).await?;
        let place = Place { room_key, sequence, member_key: self.member_key };
        deliveries::insert(tx, place, at).await?;
        participants::tally_sent(tx, room_key, self.sender_key, Some(sequence), at).await?;
        if done {
            let stored = Standing {
                recipient: true,
                state: DeliveryState::Stored,
                last_attempt: None,
                lapsed: false,
                counted: 0,
            };
            work_off(tx, place, stored).await?;
        }
        Ok(())
    }
}

/// One attempt, successful.
async fn work_off(tx: &mut Writer, place: Place, before: Standing) -> Result<(), StoreError> {
    deliveries::begin(tx, place, Some(before), 1, None, place.sequence, now()).await?;
    let working = Standing {
        recipient: true,
        state: DeliveryState::Processing,
        last_attempt: Some((1, AttemptState::Processing)),
        lapsed: false,
        counted: 0,
    };
    deliveries::end(tx, place, working, 1, Outcome::Processed, now()).await
}

fn missing() -> StoreError {
    StoreError::Bug("the room is not there".to_owned())
}

/// Kills the server while it is posted to, and starts it on what that leaves: a log to be read.
async fn start_after_kill(
    bench: &Bench,
    server: Process,
    sender: &Agent,
    room: &str,
    recipient: &Agent,
) -> Result<Duration> {
    let mut http = Http::connect(server.address).await?;
    let post = setup::post(sender, room, &[recipient]);
    for _ in 0..bench.amount(1000, 20) {
        ensure!(http.send(&post).await?.status == 201, "a post was refused");
    }
    // Dropping it kills it.
    drop(server);
    let server = world::start_server(bench, "history", &[])?;
    let ready = server.ready_after;
    server.stop()?;
    Ok(ready)
}

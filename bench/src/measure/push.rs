//! From a post to its pushes, on a server with little to do.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep_until, timeout};

use super::disk;
use crate::bench::Bench;
use crate::http::Http;
use crate::latency::Latencies;
use crate::report::Expected;
use crate::setup::{self, Agent};
use crate::socket::{self, Socket};
use crate::world;

const RECIPIENTS: usize = 50;

/// How much longer than an fsync a push may take, in milliseconds.
const ALLOWED_MS: f64 = 6.0;

/// The mean time between two posts.
const EVERY: Duration = Duration::from_millis(50);

/// How long after the last post a push may arrive.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(bench: &mut Bench) -> Result<()> {
    disk::sample(bench, "before the pushes")?;
    let server = world::start_server(bench, "push", &[])?;
    let sender = setup::agents(server.address, "sender", 1).await?.remove(0);
    let recipients = setup::agents(server.address, "recipient", RECIPIENTS).await?;
    let members: Vec<&Agent> = recipients.iter().chain([&sender]).collect();
    let room = setup::room(server.address, &members).await?;
    let mut measured = Vec::new();
    for count in [1, RECIPIENTS] {
        bench.say(&format!("{count} recipients"));
        let recipients: Vec<&Agent> = recipients.iter().take(count).collect();
        let posts = bench.amount(500, 20);
        let mut listeners = Vec::new();
        for agent in &recipients {
            let mut socket = Socket::connect(server.address, &agent.key).await?;
            let topics = [format!("agent_control:{}", agent.id), format!("chat_room:{room}")];
            socket.join(&topics).await?;
            listeners.push(socket::listen(socket, posts));
        }
        let (sent, replies) = post(&server, &setup::post(&sender, &room, &recipients), posts).await?;
        let mut pushes = Latencies::new()?;
        for listener in listeners {
            for (arrived, sent) in timeout(PATIENCE, listener).await???.into_iter().zip(&sent) {
                pushes.record(arrived - *sent);
            }
        }
        measured.push((count, replies, pushes));
    }
    server.stop()?;
    disk::sample(bench, "after the pushes")?;
    let fsync = disk::p99_ms(bench)?;
    bench.report.section("From a post to its pushes, 20 posts a second");
    for (count, replies, pushes) in measured {
        let expected = Expected::at_most(pushes.p99_ms(), fsync + ALLOWED_MS, "ms")
            .because(&format!("p99: fsync's {fsync:.2} + {ALLOWED_MS}"));
        bench.report.row(format!("push, {count} mentioned"), pushes.figures(), Some(expected));
        bench.report.row(format!("reply, {count} mentioned"), replies.figures(), None);
    }
    Ok(())
}

/// Posts at the rate; when each was sent, and how long each reply took.
async fn post(server: &crate::process::Process, request: &[u8], posts: usize) -> Result<(Vec<Instant>, Latencies)> {
    let mut http = Http::connect(server.address).await?;
    let (mut sent, mut replies) = (Vec::with_capacity(posts), Latencies::new()?);
    let mut due = Instant::now();
    for number in 0..posts {
        sleep_until(due).await;
        // Never in step with what the server does every 50 ms.
        due += EVERY.mul_f64(0.5 + f64::from(u32::try_from(number * 37 % 101)?) / 100.0);
        let started = Instant::now();
        sent.push(started);
        let reply = http.send(request).await?;
        ensure!(reply.status == 201, "{} {}", reply.status, String::from_utf8_lossy(reply.body));
        replies.record(started.elapsed());
    }
    Ok((sent, replies))
}

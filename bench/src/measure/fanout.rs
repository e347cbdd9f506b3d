//! The last copy of one message that a thousand sockets hear.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::bench::Bench;
use crate::http::Http;
use crate::latency::Latencies;
use crate::report::{Expected, Figure};
use crate::setup::{self, Agent};
use crate::socket::{self, Socket};
use crate::world::{self, OWNER_KEY};

/// How soon the last copy is expected, in milliseconds after the post was sent.
const EXPECTED_MS: f64 = 60.0;

/// Between two posts, so that each finds the server at rest.
const PAUSE: Duration = Duration::from_millis(250);

const PATIENCE: Duration = Duration::from_secs(30);

type Listener = JoinHandle<Result<Vec<Instant>>>;

pub(crate) async fn run(bench: &mut Bench) -> Result<()> {
    // All sockets of people are the owner's here, and a key may open only so many a second.
    let server = world::start_server(bench, "fanout", &["--upgrades-per-second", "1000000"])?;
    let address = server.address;
    let (users, mentioned) = (bench.amount(1000, 100), bench.amount(500, 50));
    let sender = setup::agents(address, "sender", 1).await?.remove(0);
    let agents = setup::agents(address, "recipient", mentioned).await?;
    let everybody: Vec<&Agent> = agents.iter().chain([&sender]).collect();
    let room = setup::room(address, &everybody).await?;
    bench.report.section("The last copy of one message, after its post was sent");

    let posts = bench.amount(40, 3);
    let listeners = listen(address, &room, users, &[], posts).await?;
    let request = setup::post(&sender, &room, &[&agents[0]]);
    let (last, spread) = post(address, &request, listeners, posts).await?;
    let expected = Expected::at_most(last.p99_ms(), EXPECTED_MS, "ms").because("p99");
    let what = format!("{users} people's sockets");
    bench.report.row(&what, figures(&last), Some(expected));
    bench.report.row(format!("{what}, from the first copy"), figures(&spread), None);

    // The other extreme, for information: half of them agents, each of which is mentioned and gets its delivery.
    let posts = bench.amount(20, 3);
    let listeners = listen(address, &room, users - mentioned, &agents, posts).await?;
    let request = setup::post(&sender, &room, &agents.iter().collect::<Vec<_>>());
    let (last, spread) = post(address, &request, listeners, posts).await?;
    let what = format!("{mentioned} mentioned agents + {} people", users - mentioned);
    bench.report.row(&what, figures(&last), None);
    bench.report.row(format!("{what}, from the first copy"), figures(&spread), None);
    server.stop()
}

fn figures(took: &Latencies) -> Vec<Figure> {
    let mut figures = took.figures();
    figures.push(Figure::new("max", took.max_ms(), "ms"));
    figures
}

/// Sockets of the owner, and one of each agent, that hear the room.
async fn listen(
    address: SocketAddr,
    room: &str,
    users: usize,
    agents: &[Agent],
    posts: usize,
) -> Result<Vec<Listener>> {
    let topic = [format!("chat_room:{room}")];
    let keys = std::iter::repeat_n(OWNER_KEY, users).chain(agents.iter().map(|agent| agent.key.as_str()));
    let mut listeners = Vec::new();
    for key in keys {
        let mut socket = Socket::connect(address, key).await?;
        socket.join(&topic).await?;
        listeners.push(socket::listen(socket, posts));
    }
    Ok(listeners)
}

/// Posts so many times; from each post, and from its first copy, to its last copy.
async fn post(
    address: SocketAddr,
    request: &[u8],
    listeners: Vec<Listener>,
    posts: usize,
) -> Result<(Latencies, Latencies)> {
    let mut http = Http::connect(address).await?;
    let mut sent = Vec::with_capacity(posts);
    for _ in 0..posts {
        sleep(PAUSE).await;
        sent.push(Instant::now());
        let reply = http.send(request).await?;
        ensure!(reply.status == 201, "{} {}", reply.status, String::from_utf8_lossy(reply.body));
    }
    let mut copies = Vec::new();
    for listener in listeners {
        copies.push(timeout(PATIENCE, listener).await???);
    }
    let (mut last, mut spread) = (Latencies::new()?, Latencies::new()?);
    for (number, sent) in sent.iter().enumerate() {
        let arrived = || copies.iter().filter_map(|socket| socket.get(number));
        if let (Some(first), Some(end)) = (arrived().min(), arrived().max()) {
            last.record(*end - *sent);
            spread.record(*end - *first);
        }
    }
    Ok((last, spread))
}

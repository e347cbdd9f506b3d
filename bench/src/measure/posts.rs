//! Durable posts a second: agents that post one message after the other, each of which mentions one agent. The server and
//! the ceiling take turns under the same client.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use crate::bench::Bench;
use crate::http::{Http, request};
use crate::latency::Latencies;
use crate::process::{Process, own_cpu};
use crate::report::{Expected, Figure};
use crate::setup::{self, TEXT};
use crate::{ceiling, database, world};

/// Rooms among which the senders are spread. One more room has all of them.
pub(crate) const ROOMS: usize = 8;

/// Most senders.
pub(crate) const SENDERS: usize = 64;

/// The server's part of the ceiling that is expected, in per cent.
const EXPECTED: f64 = 65.0;

/// Each turn begins with so long that does not count.
const WARM_UP: Duration = Duration::from_millis(500);

const DATABASES: [&str; 2] = ["bandstand_bench_server", "bandstand_bench_ceiling"];

struct Case {
    what: &'static str,
    senders: usize,
    one_room: bool,
    /// Whether the server is held to its part of the ceiling.
    judged: bool,
}

const CASES: [Case; 4] = [
    Case { what: "1 sender", senders: 1, one_room: false, judged: false },
    Case { what: "8 senders", senders: 8, one_room: false, judged: true },
    Case { what: "64 senders", senders: 64, one_room: false, judged: true },
    Case { what: "64 in one room", senders: 64, one_room: true, judged: false },
];

pub(crate) async fn run(bench: &mut Bench) -> Result<()> {
    let Some(url) = bench.database.clone() else { return Box::pin(compare(bench, None)).await };
    let urls = [database::create(&url, DATABASES[0]).await?, database::create(&url, DATABASES[1]).await?];
    let compared = Box::pin(compare(bench, Some(&urls))).await;
    for name in DATABASES {
        database::drop(&url, name).await?;
    }
    compared
}

async fn compare(bench: &mut Bench, databases: Option<&[String; 2]>) -> Result<()> {
    let server = match databases {
        Some([url, _]) => world::start_server(bench, "posts", &["--database", url])?,
        None => world::start_server(bench, "posts", &[])?,
    };
    let ceiling = start_ceiling(bench, databases.map(|[_, url]| url.as_str()))?;
    let requests = Requests::prepare(server.address).await?;
    let engine = if databases.is_some() { "PostgreSQL" } else { "the embedded database" };
    bench.report.section(format!("Durable posts on {engine}: an agent mentions one agent, {ROOMS} rooms"));
    let turn = bench.amount(Duration::from_secs(4), Duration::from_millis(700));
    for case in &CASES {
        bench.say(case.what);
        let (mut ours, mut bare) = (Load::new()?, Load::new()?);
        // Turn and turn about, so that a disk that slows down slows both.
        for round in 0..bench.amount(4, 1) {
            for of_server in [round % 2 == 0, round % 2 != 0] {
                let (sum, process) = if of_server { (&mut ours, &server) } else { (&mut bare, &ceiling) };
                sum.add(&load(process, &requests.of(case, of_server), turn).await?)?;
            }
        }
        let ratio = ours.rate() / bare.rate() * 100.0;
        let expected = case.judged.then(|| Expected::at_least(ratio, EXPECTED, "%"));
        bench.report.row(case.what, ours.figures(), None);
        bench.report.row(format!("{}, ceiling", case.what), bare.figures(), None);
        bench.report.row(format!("{}, of the ceiling", case.what), vec![Figure::new("", ratio, "%")], expected);
    }
    server.stop()
}

fn start_ceiling(bench: &Bench, postgres: Option<&str>) -> Result<Process> {
    let data = bench.folder("ceiling");
    std::fs::create_dir_all(&data)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("ceiling").arg("--data").arg(&data);
    if let Some(url) = postgres {
        command.args(["--postgres", url]);
    }
    Process::start(&mut command, &bench.folder("ceiling.log"))
}

/// What each sender sends, again and again.
struct Requests {
    spread: Vec<Vec<u8>>,
    one_room: Vec<Vec<u8>>,
}

impl Requests {
    async fn prepare(address: SocketAddr) -> Result<Self> {
        let senders = setup::agents(address, "sender", SENDERS).await?;
        let recipients = setup::agents(address, "recipient", ROOMS + 1).await?;
        // As at the ceiling: every sender in every room, and a recipient of its own in each.
        let groups: Vec<Vec<_>> = recipients.iter().map(|one| senders.iter().chain([one]).collect()).collect();
        let rooms = setup::rooms(address, &groups).await?;
        let post = |sender: usize, room: usize| setup::post(&senders[sender], &rooms[room], &[&recipients[room]]);
        Ok(Self {
            spread: (0..SENDERS).map(|sender| post(sender, sender % ROOMS)).collect(),
            one_room: (0..SENDERS).map(|sender| post(sender, ROOMS)).collect(),
        })
    }

    fn of(&self, case: &Case, server: bool) -> Vec<Vec<u8>> {
        let room = |sender: usize| if case.one_room { ROOMS } else { sender % ROOMS };
        if server {
            let all = if case.one_room { &self.one_room } else { &self.spread };
            return all.iter().take(case.senders).cloned().collect();
        }
        // A body as long as the server's; the ceiling reads it and looks no further.
        let mention = json!({ "id": uuid::Uuid::nil() });
        let body = json!({ "message": { "content": TEXT, "mentions": [mention] } });
        let post = |sender| request("POST", &ceiling::path(room(sender), sender), "", Some(&body));
        (0..case.senders).map(post).collect()
    }
}

/// What was posted in one or more turns.
struct Load {
    latencies: Latencies,
    /// The time in which they were posted.
    lasted: Duration,
    /// All posts, those of the warm-up included, and the processor time that they took.
    posts: u32,
    server_cpu: Duration,
    client_cpu: Duration,
}

impl Load {
    fn new() -> Result<Self> {
        let zero = Duration::ZERO;
        Ok(Self { latencies: Latencies::new()?, lasted: zero, posts: 0, server_cpu: zero, client_cpu: zero })
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.lasted += other.lasted;
        self.posts += other.posts;
        self.server_cpu += other.server_cpu;
        self.client_cpu += other.client_cpu;
        self.latencies.add(&other.latencies)
    }

    fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let posts = self.latencies.count() as f64;
        posts / self.lasted.as_secs_f64()
    }

    fn figures(&self) -> Vec<Figure> {
        let micros = |cpu: Duration| cpu.as_secs_f64() * 1e6 / f64::from(self.posts.max(1));
        let mut figures = vec![Figure::new("", self.rate(), "posts/s")];
        figures.extend(self.latencies.figures());
        figures.push(Figure::new("cpu", micros(self.server_cpu), "µs/post"));
        figures.push(Figure::new("client's cpu", micros(self.client_cpu), "µs/post"));
        figures
    }
}

/// One turn: every request by a sender of its own on a connection of its own, each as soon as the last is answered.
async fn load(process: &Process, requests: &[Vec<u8>], turn: Duration) -> Result<Load> {
    let mut connections = Vec::new();
    for request in requests {
        connections.push((Http::connect(process.address).await?, request.clone()));
    }
    let (server_cpu, client_cpu) = (process.cpu()?, own_cpu()?);
    let begin = Instant::now() + WARM_UP;
    let end = begin + turn;
    let senders: Vec<_> = connections
        .into_iter()
        .map(|(mut http, request)| {
            tokio::spawn(async move {
                let (mut latencies, mut posts) = (Latencies::new()?, 0);
                loop {
                    let started = Instant::now();
                    if started >= end {
                        return anyhow::Ok((latencies, posts));
                    }
                    let reply = http.send(&request).await?;
                    ensure!(reply.status == 201, "{} {}", reply.status, String::from_utf8_lossy(reply.body));
                    let now = Instant::now();
                    posts += 1;
                    if now >= begin && now < end {
                        latencies.record(now - started);
                    }
                }
            })
        })
        .collect();
    let mut sum = Load { lasted: turn, ..Load::new()? };
    for sender in senders {
        let (latencies, posts) = sender.await??;
        sum.latencies.add(&latencies)?;
        sum.posts += posts;
    }
    sum.server_cpu = process.cpu()? - server_cpu;
    sum.client_cpu = own_cpu()? - client_cpu;
    Ok(sum)
}

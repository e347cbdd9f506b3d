//! What an agent costs beside the server: the same answers by our SDK and by band-sdk, in one run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::Bench;
use crate::http::Http;
use crate::process::{anonymous_kib_of, cpu_of, pss_kib_of};
use crate::report::{Expected, Figure};
use crate::setup::{self, Agent, post};
use crate::socket::Socket;
use crate::world;

/// How many times less our SDK is to take.
const RATIO: f64 = 10.0;

/// An agent that has not answered by then never will.
const PATIENCE: Duration = Duration::from_secs(120);

/// After the last room has answered, before memory is looked at.
const SETTLE: Duration = Duration::from_secs(3);

/// What one SDK took.
struct Cost {
    cpu_per_turn: Duration,
    turn_p50: Duration,
    kib: f64,
    kib_with_rooms: f64,
    /// Of that, what is not mapped from the disk.
    own_kib_with_rooms: f64,
}

pub(crate) async fn run(bench: &mut Bench) -> Result<()> {
    let turns = bench.amount(1_000, 20);
    let rooms = bench.amount(1_000, 20);
    let python = bench.python.clone().unwrap_or_else(|| PathBuf::from("compat/.venv-sdk/bin/python"));
    ensure!(python.exists(), "there is no {}; name a Python that has band-sdk with --python", python.display());
    let own = std::env::current_exe()?.with_file_name("bandstand-bench-agent");
    ensure!(own.exists(), "there is no {}: cargo build --release -p bandstand-bench", own.display());
    let ours = measure(bench, "ours", turns, rooms, |seat, url| agent(&mut Command::new(&own), seat, url)).await?;
    let theirs = measure(bench, "band-sdk", turns, rooms, |seat, url| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/band_sdk_echo.py");
        agent(Command::new(&python).arg(script), seat, url)
    })
    .await?;

    bench.report.section(format!("An agent that answers, {turns} turns one after the other, then {rooms} rooms"));
    for (name, cost) in [("ours", &ours), ("band-sdk", &theirs)] {
        let figures = vec![
            Figure::new("cpu", cost.cpu_per_turn.as_secs_f64() * 1e3, "ms/turn"),
            Figure::new("p50", cost.turn_p50.as_secs_f64() * 1e3, "ms"),
            Figure::new("alone", cost.kib / 1024.0, "MiB"),
            Figure::new("in all rooms", cost.kib_with_rooms / 1024.0, "MiB"),
            Figure::new("of it its own", cost.own_kib_with_rooms / 1024.0, "MiB"),
        ];
        bench.report.row(name, figures, None);
    }
    let cpu = theirs.cpu_per_turn.as_secs_f64() / ours.cpu_per_turn.as_secs_f64();
    let memory = theirs.kib_with_rooms / ours.kib_with_rooms;
    for (what, ratio) in [("processor time a turn, ratio", cpu), ("memory in all rooms, ratio", memory)] {
        let expected = Expected::at_least(ratio, RATIO, "times less");
        bench.report.row(what, vec![Figure::new("", ratio, "times less")], Some(expected));
    }
    Ok(())
}

/// Starts an agent's program, so that it dies with the measurement.
fn agent(command: &mut Command, seat: &Agent, url: &str) -> std::io::Result<Child> {
    command
        .env("BENCH_URL", url)
        .env("BENCH_AGENT", &seat.id)
        .env("BENCH_KEY", &seat.key)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// A child that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn measure(
    bench: &Bench,
    name: &str,
    turns: usize,
    rooms: usize,
    start: impl Fn(&Agent, &str) -> std::io::Result<Child>,
) -> Result<Cost> {
    bench.say(name);
    let server = world::start_server(bench, &format!("agents-{name}"), &["--socket-idle", "600s"])?;
    let url = format!("http://{}", server.address);
    let agents = setup::agents(server.address, "agent", 2).await?;
    let [seat, asker] = &agents[..] else { bail!("two agents, please") };

    // In one room: what a turn costs.
    let room = setup::room(server.address, &[seat, asker]).await?;
    let child = Running(start(seat, &url)?);
    let mut asking = Asking::new(server.address, asker, std::slice::from_ref(&room)).await?;
    asking.ask(&post(asker, &room, &[seat])).await?;
    sleep(SETTLE).await;
    let pid = child.0.id().to_string();
    let kib = pss_kib_of(&pid)?;
    let before = cpu_of(&pid)?;
    let mut took = Vec::with_capacity(turns);
    for _ in 0..turns {
        let begun = Instant::now();
        asking.ask(&post(asker, &room, &[seat])).await?;
        took.push(begun.elapsed());
    }
    // The last turn's mark.
    sleep(Duration::from_millis(200)).await;
    let used = cpu_of(&pid)?.saturating_sub(before);
    drop(child);
    took.sort_unstable();
    let turn_p50 = *took.get(turns / 2).ok_or_else(|| anyhow!("no turns"))?;

    // In many rooms: what they weigh. Each has answered once.
    let groups: Vec<Vec<&Agent>> = (0..rooms).map(|_| vec![seat, asker]).collect();
    let rooms = setup::rooms(server.address, &groups).await?;
    let child = Running(start(seat, &url)?);
    let mut asking = Asking::new(server.address, asker, &rooms).await?;
    for room in &rooms {
        asking.ask(&post(asker, room, &[seat])).await?;
    }
    sleep(SETTLE).await;
    let pid = child.0.id().to_string();
    let (kib_with_rooms, own_kib_with_rooms) = (pss_kib_of(&pid)?, anonymous_kib_of(&pid)?);
    drop(child);
    server.stop()?;
    let cpu_per_turn = used / u32::try_from(turns).context("so many turns")?;
    Ok(Cost { cpu_per_turn, turn_p50, kib, kib_with_rooms, own_kib_with_rooms })
}

/// Asks in rooms, one question after the other, and waits for each answer.
struct Asking {
    http: Http,
    socket: Socket,
}

impl Asking {
    async fn new(address: std::net::SocketAddr, asker: &Agent, rooms: &[String]) -> Result<Self> {
        let mut socket = Socket::connect(address, &asker.key).await?;
        let topics: Vec<String> = rooms.iter().map(|room| format!("chat_room:{room}")).collect();
        for topics in topics.chunks(100) {
            socket.join(topics).await?;
        }
        Ok(Self { http: Http::connect(address).await?, socket })
    }

    async fn ask(&mut self, question: &[u8]) -> Result<()> {
        let reply = self.http.send(question).await?;
        ensure!(reply.status == 201, "{}: {}", reply.status, String::from_utf8_lossy(reply.body));
        let answered = async {
            loop {
                let text = self.socket.next().await?;
                if text.windows(17).any(|window| window == br#""message_created""#) {
                    return anyhow::Ok(());
                }
            }
        };
        timeout(PATIENCE, answered).await.context("the agent does not answer")?
    }
}

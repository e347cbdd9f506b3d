//! Memory of the idle server, and what each connected agent adds.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

use crate::bench::Bench;
use crate::report::{Expected, Figure};
use crate::setup::{self, Agent};
use crate::socket::Socket;
use crate::world;

const IDLE_MIB: f64 = 15.0;
const AGENT_KIB: f64 = 12.0;

/// Agents in one room.
const TOGETHER: usize = 10;

/// Connections that are made side by side.
const CONNECTING: usize = 64;

/// After starting or connecting, before memory is looked at.
const SETTLE: Duration = Duration::from_secs(3);

pub(crate) async fn run(bench: &mut Bench) -> Result<()> {
    // The sockets are quiet, and this client sends no heartbeats.
    let flags = ["--socket-idle", "600s"];
    let count = bench.amount(5000, 200);
    let settle = bench.amount(SETTLE, Duration::from_millis(500));
    let server = world::start_server(bench, "memory", &flags)?;
    sleep(settle).await;
    let fresh = server.pss_kib()?;

    bench.say(&format!("registering {count} agents"));
    let started = Instant::now();
    let agents = setup::agents(server.address, "agent", count).await?;
    let registered = started.elapsed();
    let groups: Vec<Vec<&Agent>> = agents.chunks(TOGETHER).map(|chunk| chunk.iter().collect()).collect();
    let rooms = setup::rooms(server.address, &groups).await?;
    // Started again, so that only what the connections cost lies between the two figures.
    server.stop()?;
    let server = world::start_server(bench, "memory", &flags)?;
    sleep(settle).await;
    let idle = server.pss_kib()?;

    bench.say("connecting them");
    let started = Instant::now();
    let sockets = connect(server.address, &agents, &rooms).await?;
    let connected = started.elapsed();
    sleep(settle).await;
    let full = server.pss_kib()?;
    drop(sockets);
    sleep(settle).await;
    let after = server.pss_kib()?;
    server.stop()?;

    #[expect(clippy::cast_precision_loss, reason = "some thousand agents")]
    let agents = agents.len() as f64;
    let each = (full - idle) / agents;
    let mib = |kib: f64| vec![Figure::new("", kib / 1024.0, "MiB")];
    let a_second = |time: Duration| Figure::new("", agents / time.as_secs_f64(), "/s");
    bench.report.section("Memory of the server (PSS)");
    bench.report.row("idle, no data", mib(fresh), Some(Expected::at_most(fresh / 1024.0, IDLE_MIB, "MiB")));
    bench.report.row(format!("idle, {agents} agents registered"), mib(idle), None);
    bench.report.row(format!("{agents} agents connected, 4 topics each"), mib(full), None);
    let expected = Expected::at_most(each, AGENT_KIB, "KiB");
    bench.report.row("each connected agent", vec![Figure::new("", each, "KiB")], Some(expected));
    bench.report.row("after all have gone", mib(after), None);
    bench.report.row("agents registered", vec![a_second(registered)], None);
    bench.report.row("agents connected and joined", vec![a_second(connected)], None);
    Ok(())
}

/// Connects every agent and joins what an agent usually joins. The sockets, which stay open until they are dropped.
async fn connect(address: SocketAddr, agents: &[Agent], rooms: &[String]) -> Result<Vec<Socket>> {
    let mut tasks = Vec::new();
    for worker in 0..CONNECTING {
        let share: Vec<(Agent, Vec<String>)> = (agents.iter().enumerate())
            .filter(|(number, _)| number % CONNECTING == worker)
            .map(|(number, agent)| (agent.clone(), topics(agent, &rooms[number / TOGETHER])))
            .collect();
        tasks.push(tokio::spawn(async move {
            let mut sockets = Vec::with_capacity(share.len());
            for (agent, topics) in share {
                let mut socket = Socket::connect(address, &agent.key).await?;
                socket.join(&topics).await?;
                sockets.push(socket);
            }
            anyhow::Ok(sockets)
        }));
    }
    let mut sockets = Vec::with_capacity(agents.len());
    for task in tasks {
        sockets.extend(task.await??);
    }
    Ok(sockets)
}

fn topics(agent: &Agent, room: &str) -> Vec<String> {
    let id = &agent.id;
    vec![
        format!("agent_control:{id}"),
        format!("agent_rooms:{id}"),
        format!("chat_room:{room}"),
        format!("room_participants:{room}"),
    ]
}

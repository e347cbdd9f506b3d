//! Measures the release server over real connections, beside the disk's own fsync and beside a handler that does
//! nothing but the same inserts. `docs/performance.md` has the figures and how they were made.

mod bench;
mod ceiling;
mod database;
mod http;
mod latency;
mod limits;
mod machine;
mod measure;
mod options;
mod process;
mod report;
mod setup;
mod socket;
mod world;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::bench::Bench;
use crate::measure::{agents, disk, fanout, history, memory, posts, push, transcripts};
use crate::options::{Cli, Command, Options};

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command.unwrap_or(Command::All) {
        Command::Ceiling(options) => ceiling::run(&options).map(|()| ExitCode::SUCCESS),
        command => {
            limits::raise_open_files().context("cannot raise the number of open files")?;
            // One thread: the machine is to be left to the server, and one thread is enough to drive it.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(Box::pin(measure(command, &cli.options)))
        }
    }
}

/// Runs the measurements. A missed expectation is a result, not a failure; a measurement that could not be made is one.
async fn measure(command: Command, options: &Options) -> Result<ExitCode> {
    let mut bench = Bench::new(options)?;
    let all = matches!(command, Command::All);
    let mut failed = false;
    disk::sample(&mut bench, "before")?;
    for (name, wanted) in [
        ("posts", matches!(command, Command::Posts)),
        ("push", matches!(command, Command::Push)),
        ("fanout", matches!(command, Command::Fanout)),
        ("memory", matches!(command, Command::Memory)),
        ("history", matches!(command, Command::History)),
        ("agents", matches!(command, Command::Agents)),
        ("transcripts", matches!(command, Command::Transcripts)),
    ] {
        if !wanted && !all {
            continue;
        }
        bench.say(name);
        let made = match name {
            "posts" => Box::pin(posts::run(&mut bench)).await,
            "push" => Box::pin(push::run(&mut bench)).await,
            "fanout" => Box::pin(fanout::run(&mut bench)).await,
            "memory" => Box::pin(memory::run(&mut bench)).await,
            "agents" => Box::pin(agents::run(&mut bench)).await,
            "transcripts" => transcripts::run(&mut bench),
            _ => Box::pin(history::run(&mut bench)).await,
        };
        if let Err(error) = made {
            failed = true;
            bench.report.failed(name, &format!("{error:#}"));
        }
    }
    disk::sample(&mut bench, "after")?;
    disk::report(&mut bench)?;
    bench.report.print(options.json.as_deref())?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

//! A server in a process of its own, and what the kernel knows about it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

/// What a server prints once it accepts connections.
pub(crate) const LISTENING: &str = "listening on http://";

/// The kernel counts processor time in hundredths of a second, on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// Killed when dropped; [`Process::stop`] lets it end in order.
pub(crate) struct Process {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// From starting the program to its line that it listens.
    pub(crate) ready_after: Duration,
}

impl Process {
    /// Starts it and waits until it listens. What it logs goes to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let errors = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        let started = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        let output = child.stdout.take().ok_or_else(|| anyhow!("the child has no output"))?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let address = loop {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                let status = child.wait()?;
                let why = fs::read_to_string(log).unwrap_or_default();
                bail!("{} did not start ({status}): {why}", command.get_program().display());
            }
            if let Some(address) = line.trim().strip_prefix(LISTENING) {
                break address.parse()?;
            }
        };
        let ready_after = started.elapsed();
        // Read on, so that it never waits for a full pipe; ends with the process.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(Self { child, address, ready_after })
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        ensure!(Command::new("kill").args(["-TERM", &pid]).status()?.success(), "cannot signal process {pid}");
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }

    /// Its memory in KiB, with its share of what it shares.
    pub(crate) fn pss_kib(&self) -> Result<f64> {
        pss_kib_of(&self.child.id().to_string())
    }

    /// Processor time that it has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu_of(&self.child.id().to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time that this process has used.
pub(crate) fn own_cpu() -> Result<Duration> {
    cpu_of("self")
}

/// A process's memory in KiB, with its share of what it shares.
pub(crate) fn pss_kib_of(pid: &str) -> Result<f64> {
    rollup_kib(pid, "Pss:")
}

/// Of a process's memory what it made itself, in KiB: without the program and its libraries, which lie on the disk.
pub(crate) fn anonymous_kib_of(pid: &str) -> Result<f64> {
    rollup_kib(pid, "Pss_Anon:")
}

fn rollup_kib(pid: &str, key: &str) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next());
    Ok(value.ok_or_else(|| anyhow!("smaps_rollup has no {key}"))?.parse()?)
}

/// Processor time that a process has used.
pub(crate) fn cpu_of(pid: &str) -> Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses and may hold anything.
    let (_, fields) = text.rsplit_once(") ").ok_or_else(|| anyhow!("an unknown form of /proc/{pid}/stat"))?;
    let ticks: u32 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap_or(0)).sum();
    Ok(TICK * ticks)
}

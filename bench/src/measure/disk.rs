//! What one fsync costs here, without any database: nothing durable can be quicker.

use std::fs::File;
use std::io::{Seek, Write};
use std::time::Instant;

use anyhow::Result;

use crate::bench::Bench;
use crate::latency::Latencies;

/// As SQLite's log is written: a page after the other, each on the disk before the next.
const PAGE: [u8; 4096] = [0x5a; 4096];

/// Pages that the file has, before it is written over from its start: the log does so as well.
const PAGES: u64 = 1024;

/// The fsyncs of one moment of the run.
pub(crate) struct Samples {
    when: &'static str,
    took: Latencies,
}

/// Syncs a few hundred times, and keeps how long it took.
pub(crate) fn sample(bench: &mut Bench, when: &'static str) -> Result<()> {
    let path = bench.folder("fsync");
    let mut file = File::create(&path)?;
    let mut took = Latencies::new()?;
    for number in 0..bench.amount(500, 50) {
        if number % PAGES == 0 {
            file.rewind()?;
        }
        let started = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        took.record(started.elapsed());
    }
    std::fs::remove_file(path)?;
    bench.disk.push(Samples { when, took });
    Ok(())
}

/// The 99th percentile of all that was sampled so far, in milliseconds.
pub(crate) fn p99_ms(bench: &Bench) -> Result<f64> {
    Ok(all(bench)?.p99_ms())
}

fn all(bench: &Bench) -> Result<Latencies> {
    let mut all = Latencies::new()?;
    bench.disk.iter().try_for_each(|samples| all.add(&samples.took))?;
    Ok(all)
}

pub(crate) fn report(bench: &mut Bench) -> Result<()> {
    let all = all(bench)?;
    bench.report.section("The disk: append 4 KiB and fdatasync");
    for Samples { when, took } in std::mem::take(&mut bench.disk) {
        bench.report.row(when, took.figures(), None);
    }
    bench.report.row("all together", all.figures(), None);
    Ok(())
}

//! What a conversation costs between two APIs: conversions, streams, and a large history read and checked. No server.

mod history;
mod streams;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bandstand_transcript::lint::lint_bytes;
use bandstand_transcript::{EncodeOptions, Format, LintOptions, decode_history, encode_history};
use serde::Deserialize;
use serde_json::Value;

use self::streams::Stream;
use crate::bench::Bench;
use crate::report::{Expected, Figure};

/// The same history in every run.
const SEED: u64 = 20_261_130;

/// A history of 10 MB is to be read and checked within that, in milliseconds.
const LINT_WITHIN: f64 = 1_000.0;

/// As a network would deliver a stream, in bytes.
const PACKET: usize = 1_400;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let rounds = bench.amount(9, 1);
    let histories = histories(bench.amount(10_000_000, 100_000))?;
    lints(bench, &histories, rounds)?;
    conversions(bench, &histories, rounds)?;
    drop(histories);
    assemblies(bench, rounds)
}

/// One conversation, as bytes of each format.
fn histories(bytes: usize) -> Result<Vec<(Format, Vec<u8>)>> {
    let transcript = history::make(SEED, bytes);
    let options = EncodeOptions::default();
    Format::ALL
        .into_iter()
        .map(|format| Ok((format, serde_json::to_vec(&encode_history(&transcript, format, &options).payload)?)))
        .collect()
}

/// How long something took, over several rounds. On a machine that does other things the quickest round says most.
struct Times(Vec<Duration>);

impl Times {
    fn of(rounds: usize, mut work: impl FnMut() -> Result<()>) -> Result<Self> {
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let started = Instant::now();
            work()?;
            times.push(started.elapsed());
        }
        Ok(Self::sorted(times))
    }

    fn sorted(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    fn best(&self) -> f64 {
        self.0.first().map_or(0.0, Duration::as_secs_f64)
    }

    fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).map_or(0.0, Duration::as_secs_f64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of files are far below what a double holds exactly")]
fn exact(number: usize) -> f64 {
    number as f64
}

fn megabytes(bytes: &[u8]) -> f64 {
    exact(bytes.len()) / 1e6
}

fn lints(bench: &mut Bench, histories: &[(Format, Vec<u8>)], rounds: usize) -> Result<()> {
    bench.report.section("A history, read and checked");
    for (format, bytes) in histories {
        bench.say(&format!("read and lint {format}"));
        let times = Times::of(rounds, || {
            let report = lint_bytes(bytes, None, LintOptions::new);
            ensure!(report.format == *format, "{format} was taken for {}", report.format);
            ensure!(report.findings.is_empty(), "{format}: {:?}", report.findings.first());
            Ok(())
        })?;
        let figures = vec![
            Figure::new("", megabytes(bytes), "MB"),
            Figure::new("median", times.median() * 1e3, "ms"),
            Figure::new("best", times.best() * 1e3, "ms"),
        ];
        let expected = Expected::at_most(times.median() * 1e3, LINT_WITHIN, "ms");
        bench.report.row(format.name(), figures, Some(expected));
    }
    Ok(())
}

fn conversions(bench: &mut Bench, histories: &[(Format, Vec<u8>)], rounds: usize) -> Result<()> {
    bench.report.section("A history from one format to another, bytes to bytes; MB of the first a second");
    for (from, bytes) in histories {
        for to in Format::ALL.into_iter().filter(|to| to != from) {
            bench.say(&format!("{from} to {to}"));
            let times = Times::of(rounds, || {
                let payload: Value = serde_json::from_slice(bytes)?;
                let decoded = decode_history(&payload, *from)?;
                let encoded = encode_history(&decoded.transcript, to, &EncodeOptions::default());
                let written = serde_json::to_vec(&encoded.payload)?;
                ensure!(written.len() > bytes.len() / 2, "{from} to {to}: most of it is gone");
                Ok(())
            })?;
            let figures = vec![
                Figure::new("median", megabytes(bytes) / times.median(), "MB/s"),
                Figure::new("best", megabytes(bytes) / times.best(), "MB/s"),
            ];
            bench.report.row(format!("{from} to {to}"), figures, None);
        }
    }
    Ok(())
}

fn assemblies(bench: &mut Bench, rounds: usize) -> Result<()> {
    let (words, fragments) = (bench.amount(3_000, 100), bench.amount(300, 20));
    let default = PathBuf::from("compat/.venv-transcript/bin/python");
    let python = bench.transcript_python.clone().unwrap_or(default);
    ensure!(
        python.exists(),
        "there is no {}; name a Python that has openai and anthropic with --transcript-python",
        python.display()
    );
    bench.report.section(format!(
        "A streamed reply, bytes to reply: {words} pieces of text and three calls in {fragments} pieces each; a piece"
    ));
    for format in Format::ALL {
        bench.say(&format!("streams of {format}"));
        let stream = streams::make(SEED, format, words, fragments)?;
        let ours = Times::of(rounds, || stream.assemble(PACKET))?;
        let theirs = by_sdk(bench, &python, &stream, rounds)?;
        let each = |seconds: f64| seconds * 1e6 / exact(stream.events);
        for (name, times) in [("ours", &ours), ("the Python SDK", &theirs)] {
            let figures =
                vec![Figure::new("median", each(times.median()), "µs"), Figure::new("best", each(times.best()), "µs")];
            bench.report.row(format!("{format}, {name}"), figures, None);
        }
        let ratio = Figure::new("", theirs.median() / ours.median(), "times less");
        bench.report.row(format!("{format}, ratio"), vec![ratio], None);
    }
    Ok(())
}

/// What the program says of a stream that a Python SDK has put together.
#[derive(Deserialize)]
struct Told {
    seconds: Vec<f64>,
    text: String,
    arguments: Vec<Value>,
}

/// The same bytes through the provider's own client. It must come to the same reply.
fn by_sdk(bench: &Bench, python: &Path, stream: &Stream, rounds: usize) -> Result<Times> {
    let file = bench.folder("stream");
    std::fs::write(&file, &stream.wire)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/sdk_streams.py");
    let output = Command::new(python)
        .arg(script)
        .arg(stream.format.name())
        .arg(&file)
        .arg(rounds.to_string())
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    ensure!(output.status.success(), "sdk_streams.py: {}", String::from_utf8_lossy(&output.stderr));
    let told: Told = serde_json::from_slice(&output.stdout).context("sdk_streams.py")?;
    ensure!(told.text == stream.text, "{}: the SDK reads another text", stream.format);
    ensure!(told.arguments == stream.arguments, "{}: the SDK reads other calls", stream.format);
    let times: Result<Vec<Duration>> = told
        .seconds
        .into_iter()
        .map(|seconds| Duration::try_from_secs_f64(seconds).map_err(|error| anyhow!(error)))
        .collect();
    Ok(Times::sorted(times?))
}

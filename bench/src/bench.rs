//! What all measurements share: where the server and the data are, how long to measure, and the report.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::machine;
use crate::measure::disk::Samples;
use crate::options::Options;
use crate::report::Report;

pub(crate) struct Bench {
    /// The server's program.
    pub(crate) server: PathBuf,
    /// A PostgreSQL server, for those measurements that can use one.
    pub(crate) database: Option<String>,
    /// A Python that has band-sdk, if another one is to be used.
    pub(crate) python: Option<PathBuf>,
    /// A Python that has the providers' packages, if another one is to be used.
    pub(crate) transcript_python: Option<PathBuf>,
    /// What the disk itself takes.
    pub(crate) disk: Vec<Samples>,
    /// The figures.
    pub(crate) report: Report,
    quick: bool,
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let program = std::env::current_exe()?;
        let beside = program.parent().unwrap_or(Path::new("."));
        let server = options.server.clone().unwrap_or_else(|| beside.join("bandstand"));
        ensure!(
            server.exists(),
            "there is no server at {}; build it with `cargo build --release -p bandstand`, or name it with --server",
            server.display()
        );
        let parent = options.folder.as_deref().unwrap_or(beside);
        let folder = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        let mut report = Report::new(machine::summary(folder.path(), options));
        if let Some(note) = machine::busy() {
            report.note(note);
        }
        if options.quick {
            report.note("--quick: a smoke run; its figures mean nothing");
        }
        if cfg!(debug_assertions) {
            report.note("a debug build; its figures mean nothing");
        }
        Ok(Self {
            server,
            database: options.database.clone(),
            python: options.python.clone(),
            transcript_python: options.transcript_python.clone(),
            disk: Vec::new(),
            report,
            quick: options.quick,
            folder,
        })
    }

    /// The full amount, or the one of a smoke run.
    pub(crate) fn amount<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A folder for data, by name.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Tells whoever waits what is going on; standard output is for figures.
    pub(crate) fn say(&self, what: &str) {
        eprintln!("# {what}");
    }
}

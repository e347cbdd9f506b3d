//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Measures a bandstand server. Exit code 0 also when an expectation is missed: the table says so.
#[derive(Debug, Parser)]
#[command(name = "bandstand-bench", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Everything, one after the other (the default)
    All,
    /// The disk's own fsync only
    Disk,
    /// Durable posts a second, beside the ceiling
    Posts,
    /// From a post to its pushes
    Push,
    /// The last copy to 1,000 sockets
    Fanout,
    /// Memory of the idle server and of each connected agent
    Memory,
    /// /next, pages and start-up time with 1,000,000 messages
    History,
    /// An agent of our SDK beside one of band-sdk (needs the environment that ./test makes, or --python)
    Agents,
    /// Conversions, streams and lints of histories, beside the providers' own Python packages (needs the environment that
    /// ./test makes, or --transcript-python)
    Transcripts,
    /// The handler that the server is compared with (started by `posts`)
    #[command(hide = true)]
    Ceiling(CeilingOptions),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// A few seconds of everything, to see that it works; its figures mean nothing
    #[arg(long, global = true)]
    pub(crate) quick: bool,
    /// Write the figures as JSON too: to FILE, or, without one, to standard output instead of the table
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// The server [default: `bandstand` beside this program]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// Where the data goes, in a folder that is removed at the end: name one on the disk that is to be measured
    /// [default: beside this program]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Measure `posts` on PostgreSQL, postgres://USER:PASSWORD@HOST/NAME: in two fresh databases beside that one,
    /// dropped at the end
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// The Python of `agents`, one that has band-sdk [default: compat/.venv-sdk/bin/python]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// The Python of `transcripts`, one that has openai and anthropic [default: compat/.venv-transcript/bin/python]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) transcript_python: Option<PathBuf>,
    /// The date to print with the figures
    #[arg(long, global = true, value_name = "DATE")]
    pub(crate) date: Option<String>,
    /// The revision to print with the figures [default: what git says]
    #[arg(long, global = true, value_name = "REVISION")]
    pub(crate) revision: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CeilingOptions {
    /// The folder of its own SQLite store
    #[arg(long)]
    pub(crate) data: PathBuf,
    /// Its own PostgreSQL database instead
    #[arg(long)]
    pub(crate) postgres: Option<String>,
}

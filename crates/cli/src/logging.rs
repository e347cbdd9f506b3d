//! Log lines on standard error; standard output is for answers.

use std::io::{self, IsTerminal};

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, Settings};

/// Starts logging as the settings say.
pub(crate) fn init(settings: &Settings) -> anyhow::Result<()> {
    let mut filter = EnvFilter::try_new(&settings.log_level)?;
    if !settings.log_level.contains("rmcp") {
        // Below that it tells what clients and tools say to each other.
        filter = filter.add_directive("rmcp=warn".parse()?);
    }
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match settings.log_format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).try_init(),
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}

/// Starts logging as lines of text with this filter.
pub(crate) fn init_plain(filter: &str) -> anyhow::Result<()> {
    let mut rules = EnvFilter::try_new(filter)?;
    if !filter.contains("rmcp") && filter != "off" {
        // Below that it tells what servers of tools are asked and answer.
        rules = rules.add_directive("rmcp=warn".parse()?);
    }
    let lines = tracing_subscriber::fmt().with_env_filter(rules).with_writer(io::stderr);
    lines.with_ansi(io::stderr().is_terminal()).try_init().map_err(|error| anyhow!("cannot start logging: {error}"))
}

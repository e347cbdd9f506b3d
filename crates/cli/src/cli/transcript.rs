//! What people type about a history in a file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands on histories.
#[derive(Debug, Subcommand)]
pub(crate) enum TranscriptCommand {
    /// Say what a provider would refuse in a history, and why
    #[command(after_help = "Exit code 1 when something would be refused, 0 otherwise, 2 when the file cannot be read.")]
    Lint(HistoryArguments),
    /// Write a copy that is not refused
    #[command(after_help = "The copy goes to standard output, what was wrong to standard error. Exit code 1 when \
                            something is left that cannot be repaired.")]
    Repair(HistoryArguments),
    /// Write the history in another format
    #[command(after_help = "What is lost or changed is said on standard error.")]
    Convert {
        #[command(flatten)]
        history: HistoryArguments,
        /// The format to write: openai.chat, openai.responses, anthropic or canonical
        #[arg(long)]
        to: String,
    },
    /// Show the conversation, with each call beside its result
    Show(HistoryArguments),
}

/// A history, and whose it is.
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// A request, a reply, a list of messages, JSON lines or a log that holds one; `-` for standard input
    pub(crate) file: PathBuf,
    /// The format: openai.chat, openai.responses or anthropic [default: found out]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// The server it is for: deepseek, mistral, vllm … [default: the format as its owner documents it]
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Answer with JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl TranscriptCommand {
    /// Whether the answer, and so a failure as well, is to be JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Lint(history) | Self::Repair(history) | Self::Convert { history, .. } | Self::Show(history) => {
                history.json
            }
        }
    }
}

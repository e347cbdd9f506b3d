//! What people type about a history, in a file or of a room.

use std::path::PathBuf;

use clap::{Args, ColorChoice, Subcommand};

use super::Account;

const KEYS: &str = "A room is read with the key of the agent itself, which sees exactly what its SDK reads, or with a \
                    user's key, which sees the room: then what the agent would read is picked from it. Which server and key: \
                    --url with --key first, then --login, then BANDSTAND_URL with BANDSTAND_KEY, then the profile in use.";

/// The commands on histories.
#[derive(Debug, Subcommand)]
pub(crate) enum TranscriptCommand {
    /// Say what a provider would refuse in a history, and why
    #[command(after_help = format!(
        "Exit code 1 when something would be refused, 0 otherwise, 2 when it cannot be read.\n\n\
         With --room, the room's history is checked as the agent would send it with the next message, and findings say in \
         which messages of the room they are. {KEYS}"
    ))]
    Lint(ReadArguments),
    /// Write a copy that is not refused
    #[command(after_help = "The copy goes to standard output, what was wrong to standard error. Exit code 1 when \
                            something is left that cannot be repaired.")]
    Repair(HistoryArguments),
    /// Write the history in another format, with the tools of the request
    #[command(after_help = "What is lost or changed is said on standard error.")]
    Convert {
        #[command(flatten)]
        history: HistoryArguments,
        /// The format to write: openai.chat, openai.responses, anthropic or canonical
        #[arg(long)]
        to: String,
    },
    /// Show the conversation, with each call beside its result
    #[command(after_help = format!("Each call has a number, which its result has too; what is paired with nothing has #?. {KEYS}"))]
    Show(ReadArguments),
    /// Say what became of a conversation: what the second file lost, moved or changed
    #[command(after_help = "Losses that the second one's format cannot avoid, and repairs without which it would be \
                            refused, are said and are no faults; neither is what can be written in several ways (ids of \
                            calls, the order of results of one turn). Exit code 0 when both mean the same apart from that, \
                            1 when the meaning differs, 2 when one cannot be read.")]
    Diff(DiffArguments),
}

/// A history in a file, and whose it is.
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// A request, a reply, a list of messages, JSON lines or a log that holds one; `-` for standard input
    pub(crate) file: PathBuf,
    /// The format: openai.chat, openai.responses, anthropic or canonical [default: found out]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// The server it is for: deepseek, mistral, vllm … [default: the format as its owner documents it]
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Answer with JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

/// A history in a file, or of a room.
#[derive(Debug, Args)]
pub(crate) struct ReadArguments {
    /// A request, a reply, a list of messages, JSON lines or a log that holds one; `-` for standard input
    #[arg(required_unless_present = "room", conflicts_with = "room")]
    pub(crate) file: Option<PathBuf>,
    /// The file's format: openai.chat, openai.responses, anthropic or canonical [default: found out]
    #[arg(long, value_name = "FORMAT", conflicts_with = "room")]
    pub(crate) from: Option<String>,
    /// The server it is for: deepseek, mistral, vllm … [default: the format as its owner documents it]
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Answer with JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    #[command(flatten)]
    pub(crate) room: RoomArguments,
}

/// A room, as an agent in it remembers it.
#[derive(Args)]
pub(crate) struct RoomArguments {
    /// Instead of a file: a room's id or title, or an unmistakable part of either
    #[arg(long, help_heading = "A live room")]
    pub(crate) room: Option<String>,
    /// Whose history of the room: a handle, name or id [default: the agent's own, with its key]
    #[arg(long, value_name = "WHO", requires = "room", help_heading = "A live room")]
    pub(crate) agent: Option<String>,
    /// The format that the agent sends it in [default: openai.chat]
    #[arg(long, value_name = "FORMAT", requires = "room", help_heading = "A live room")]
    pub(crate) to: Option<String>,
    /// How many of the room's newest rows are read
    #[arg(long, value_name = "COUNT", default_value_t = 1000, requires = "room", help_heading = "A live room")]
    pub(crate) rows: usize,
    /// A profile that `bandstand login` made [env: BANDSTAND_PROFILE]
    #[arg(long, value_name = "NAME", requires = "room", help_heading = "Which server")]
    pub(crate) login: Option<String>,
    /// The server's address [env: BANDSTAND_URL]
    #[arg(long, value_name = "URL", requires = "room", help_heading = "Which server")]
    pub(crate) url: Option<String>,
    /// A user's or the agent's key; better in the environment, where others do not see it [env: BANDSTAND_KEY]
    #[arg(long, value_name = "KEY", requires = "room", help_heading = "Which server")]
    pub(crate) key: Option<String>,
}

/// Without the key.
impl std::fmt::Debug for RoomArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoomArguments").field("room", &self.room).field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl RoomArguments {
    /// Which server, and as whom.
    pub(crate) fn account(&self, json: bool) -> Account {
        Account { json, profile: self.login.clone(), url: self.url.clone(), key: self.key.clone() }
    }
}

/// Two histories.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The conversation as it was: a file like those that the other commands read; or, alone, a folder that `bandstand run
    /// --trace` left, or one of a room, a turn or a step in it: then the stages of each step are compared
    pub(crate) first: PathBuf,
    /// What became of it
    pub(crate) second: Option<PathBuf>,
    /// The first one's format: openai.chat, openai.responses, anthropic or canonical [default: found out]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// The second one's format [default: found out]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from_b: Option<String>,
    /// The server that the second one is for: deepseek, mistral, vllm …
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Take what is unavoidable, and what was repaired, for faults as well
    #[arg(long)]
    pub(crate) strict: bool,
    /// Answer with JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

impl TranscriptCommand {
    /// Whether the answer, and so a failure as well, is to be JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Lint(read) | Self::Show(read) => read.json,
            Self::Repair(history) | Self::Convert { history, .. } => history.json,
            Self::Diff(diff) => diff.json,
        }
    }
}

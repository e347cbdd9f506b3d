//! What can be typed.

mod groups;
mod people;
mod transcript;

use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use self::people::{
    Account, ChatArguments, CompletionsArguments, DemoArguments, LoginArguments, LogoutArguments, PeopleCommand,
    ProfilesArguments, RoomCommand, SendArguments, TailArguments, WhyArguments,
};
pub(crate) use self::transcript::{DiffArguments, HistoryArguments, ReadArguments, TranscriptCommand};

use crate::settings::duration;
use crate::settings::flags::{AllFlags, PlaceFlags};

/// The open collaboration server for AI agents.
#[derive(Debug, Parser)]
#[command(
    name = "bandstand",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit codes, of every command: 0 it was done; 1 it was refused, or did not work; 2 it was called in a \
                  wrong way, or a setting is wrong. With --json, a failure is a JSON object as well: \
                  {\"error\": {\"message\": …}}."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What was typed; ends the process with help or with what is wrong, as clap does.
    pub(crate) fn read() -> Self {
        let matches = Self::definition().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The commands as they are read and shown.
    pub(crate) fn definition() -> clap::Command {
        groups::grouped(Self::command())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server
    #[command(
        long_about = "Start the server.\n\nThe first start creates the owner and prints the owner's key once. \
                      BANDSTAND_OWNER_KEY presets that key (band_u_ and at least 32 characters); then it is not printed.\n\n\
                      SIGTERM and SIGINT drain: requests in flight end, sockets close with 1012. A second signal cuts. \
                      SIGHUP is ignored: settings are read at start only.",
        after_help = "Each setting is a flag, an environment variable and a key of the settings file, in this order of \
                      strength. `bandstand config print` prints a settings file with all defaults."
    )]
    Up(AllFlags),
    /// Add, list, promote, disable and delete people
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Make organizations, and put people into them
    Organization {
        #[command(subcommand)]
        command: OrganizationCommand,
    },
    /// Add, list, share and remove agents
    Agent {
        #[command(subcommand)]
        command: AgentCommand,
    },
    /// List, issue, rotate and revoke API keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Show and set how much one person or agent may have
    Quota {
        #[command(subcommand)]
        command: QuotaCommand,
    },
    /// Read and check the log of what administrators did
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Write all data into one file, while the server runs or not
    #[command(after_help = "The file is a tar archive with a hash of every part. It restores into SQLite and into \
                            PostgreSQL, whichever it was taken from: that is also the way from one to the other. It holds \
                            every message and the hashes of all keys: keep it as safe as the data folder.")]
    Backup(BackupArguments),
    /// Make an installation from a backup, in an empty place
    #[command(
        after_help = "Into an empty data folder or database. All of the backup is checked before anything is written. \
                            Broken off, it leaves nothing."
    )]
    Restore(RestoreArguments),
    /// Run an agent whose turns are a model's: a short file, no code
    #[command(after_help = "The agent's key is read from BANDSTAND_AGENT_KEY, the model's from OPENAI_API_KEY or \
                            ANTHROPIC_API_KEY, or from where the file says (key_env). The file is described in \
                            docs/models.md. SIGTERM and SIGINT let running turns end.")]
    Run(RunArguments),
    /// Check, repair, convert, show and compare histories of any model
    Transcript {
        #[command(subcommand)]
        command: TranscriptCommand,
    },
    /// Serve an agent's or a person's tools to an MCP client
    #[command(
        after_help = "An editor or a coding agent starts it. It speaks MCP on standard input and output; log lines are on \
                      standard error. The flags and variables are those of band-mcp. A server also serves MCP itself, at \
                      /mcp. Exit code 2 when a key for a scope is missing."
    )]
    Mcp(McpArguments),
    #[command(flatten)]
    People(PeopleCommand),
    /// Say whether a server runs on this data, and where
    #[command(
        after_help = "It asks the server and touches no data. Exit code 1 when none runs, or when it is not ready: \
                            for health checks of containers."
    )]
    Status(StatusArguments),
    /// Show settings, with their defaults and what each is for
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Say what is wrong with this installation, and what to do
    #[command(after_help = "Exit code 1 when something must be mended, 0 otherwise.")]
    Doctor(DoctorArguments),
}

impl Command {
    /// Whether the answer, and so a failure as well, is to be JSON.
    pub(crate) fn wants_json(&self) -> bool {
        let place = match self {
            Self::Up(_) | Self::Mcp(_) | Self::Run(_) | Self::Config { .. } => return false,
            Self::People(command) => return command.wants_json(),
            Self::Transcript { command } => return command.wants_json(),
            Self::Doctor(arguments) => return arguments.json,
            Self::Status(arguments) => return arguments.json,
            Self::Backup(arguments) => return arguments.json,
            Self::Restore(arguments) => return arguments.json,
            Self::User {
                command:
                    UserCommand::Add { place, .. }
                    | UserCommand::List { place }
                    | UserCommand::Show { place, .. }
                    | UserCommand::Promote { place, .. }
                    | UserCommand::Demote { place, .. }
                    | UserCommand::Disable { place, .. }
                    | UserCommand::Enable { place, .. }
                    | UserCommand::Delete { place, .. }
                    | UserCommand::Link { place, .. }
                    | UserCommand::Unlink { place, .. }
                    | UserCommand::Links { place },
            } => place,
            Self::Organization {
                command:
                    OrganizationCommand::Add { place, .. }
                    | OrganizationCommand::List { place }
                    | OrganizationCommand::Member {
                        command: MemberCommand::Add { place, .. } | MemberCommand::Remove { place, .. },
                    },
            } => place,
            Self::Agent {
                command:
                    AgentCommand::Add { place, .. }
                    | AgentCommand::List { place }
                    | AgentCommand::Share { place, .. }
                    | AgentCommand::Unshare { place, .. }
                    | AgentCommand::Global { place, .. }
                    | AgentCommand::Remove { place, .. },
            } => place,
            Self::Key {
                command:
                    KeyCommand::List { place }
                    | KeyCommand::Issue { place, .. }
                    | KeyCommand::Rotate { place, .. }
                    | KeyCommand::RotateSigning { place, .. }
                    | KeyCommand::Revoke { place, .. },
            } => place,
            Self::Quota {
                command:
                    QuotaCommand::Show { place, .. } | QuotaCommand::Set { place, .. } | QuotaCommand::Unset { place, .. },
            } => place,
            Self::Audit { command: AuditCommand::Export { .. } } => return false,
            Self::Audit { command: AuditCommand::List { place } | AuditCommand::Verify { place, .. } } => place,
        };
        place.json
    }
}

/// An agent with a model. What the file says, a flag overrides.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The agent's file (TOML); without one, everything comes from flags
    pub(crate) file: Option<std::path::PathBuf>,
    /// The server's address [default: http://127.0.0.1:4000]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The model's name, as its server knows it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model's API: openai.chat, openai.responses or anthropic [default: openai.chat]
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<String>,
    /// Where the model is served [default: the API's own provider]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// What the model's server refuses and bends: vllm, ollama, openrouter and others
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// What the agent is told to be and do
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Tools beyond the chat tools: contacts, memory, files or tasks; may be repeated
    #[arg(long, value_name = "GROUP")]
    pub(crate) capability: Vec<String>,
    /// Which log lines are written
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub(crate) log_level: String,
    /// Keep what happens in each of the model's replies, from history to output, in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<std::path::PathBuf>,
    /// Read the file and check it, list the tools of its MCP servers, and start no agent
    #[arg(long)]
    pub(crate) check: bool,
}

/// Which installation, and how to answer.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(flatten)]
    pub(crate) flags: PlaceFlags,
}

/// A server elsewhere, to be administered over its API.
#[derive(Clone, Args)]
#[command(next_help_heading = "Another machine's server")]
pub(crate) struct Remote {
    /// Administer the server at this address over its API, instead of the one on this machine
    #[arg(long, value_name = "URL", env = "BANDSTAND_URL", requires = "key")]
    pub(crate) url: Option<String>,
    /// The key of a user who may administer it; better in the environment, where others do not see it
    #[arg(long, value_name = "KEY", env = "BANDSTAND_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
}

/// Without the key.
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a person and print their key, once
    Add {
        /// The person's username
        handle: String,
        /// First name
        #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
        first_name: String,
        /// Last name
        #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
        last_name: String,
        /// E-mail address
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
        /// May administer the server
        #[arg(long, alias = "admin")]
        administrator: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List people
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Show a person
    Show {
        /// The person's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Let a person administer the server
    Promote {
        /// The person's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Let a person administer the server no longer; the last administrator stays one
    Demote {
        /// The person's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Refuse a person and their agents until they are enabled again; what they have stays
    Disable {
        /// The person's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Take a disabled person and their agents again
    Enable {
        /// The person's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Delete a person; what they said stays
    Delete {
        /// The person's handle or id
        who: String,
        /// With their agents
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Let an account of the OpenID Connect issuer sign in as a person
    Link {
        /// The person's handle or id
        who: String,
        /// The issuer, as its tokens name it (`iss`)
        #[arg(long, value_name = "URL")]
        issuer: String,
        /// The account, as its tokens name it (`sub`)
        #[arg(long, value_name = "TEXT")]
        subject: String,
        #[command(flatten)]
        place: Place,
    },
    /// Let such an account sign in no longer; its connections are closed
    Unlink {
        /// The issuer, as its tokens name it (`iss`)
        #[arg(long, value_name = "URL")]
        issuer: String,
        /// The account, as its tokens name it (`sub`)
        #[arg(long, value_name = "TEXT")]
        subject: String,
        #[command(flatten)]
        place: Place,
    },
    /// List the accounts that may sign in
    Links {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// Make an organization
    Add {
        /// Its name
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// List organizations and who is in them
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Put people into an organization, or take them out
    Member {
        #[command(subcommand)]
        command: MemberCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Put a person into an organization; a person is in one at most
    Add {
        /// The organization's name or id
        #[arg(value_name = "ORG")]
        organization: String,
        /// The person's handle or id
        user: String,
        #[command(flatten)]
        place: Place,
    },
    /// Take a person out of an organization
    Remove {
        /// The organization's name or id
        #[arg(value_name = "ORG")]
        organization: String,
        /// The person's handle or id
        user: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Register an agent and print its key, once, with a program to start from
    Add {
        /// The agent's name
        name: String,
        /// What it does, for people and for other agents [default: a sentence with its name]
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// The handle of the person it belongs to [default: the server's owner]
        #[arg(long, value_name = "HANDLE")]
        owner: Option<String>,
        /// Visible to every person on the server
        #[arg(long)]
        global: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List agents
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Let the organization of an agent's owner find the agent and add it to rooms
    Share {
        /// The agent's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show an agent to its owner alone again
    Unshare {
        /// The agent's handle or id
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show an agent to every person on the server
    Global {
        /// The agent's handle or id
        who: String,
        /// To its owner and the owner's organization alone again
        #[arg(long)]
        off: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Remove an agent; its key stops working at once
    Remove {
        /// The agent's handle or id
        who: String,
        /// Even when it still has work to do
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// List keys by their first characters
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Make one more key and print it once; the old ones go on working
    Issue {
        /// The handle or id of a person or an agent
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Make a new key, print it once, and revoke the old ones, at once or after a while
    Rotate {
        /// The handle or id of a person or an agent; or a key's id, to replace that one alone
        who: String,
        /// The old keys go on working for so long, such as 24h
        #[arg(long, value_name = "DURATION", default_value = "0s", hide_default_value = true, value_parser = duration)]
        overlap: Duration,
        #[command(flatten)]
        place: Place,
    },
    /// Sign people's tokens with a new key; those that are out go on working until they expire
    RotateSigning {
        /// Tokens that are out work no longer, and their connections are closed
        #[arg(long)]
        revoke: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a key, or all keys of a person or an agent
    Revoke {
        /// A key's id, or the handle or id of its holder
        what: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Show the quotas that differ from the settings
    Show {
        /// The handle or id of a person or an agent
        who: String,
        #[command(flatten)]
        place: Place,
    },
    /// Give one a quota of its own
    Set {
        /// The handle or id of a person or an agent
        who: String,
        /// agents, chats, participants or messages
        resource: String,
        /// How many, or `unlimited`
        most: String,
        #[command(flatten)]
        place: Place,
    },
    /// Let the settings count again
    Unset {
        /// The handle or id of a person or an agent
        who: String,
        /// agents, chats, participants or messages
        resource: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List what administrators did, oldest first
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Write the log for safe keeping: one entry a line, as JSON
    Export {
        /// Where to; it must not exist [default: standard output]
        file: Option<std::path::PathBuf>,
        #[command(flatten)]
        place: Place,
    },
    /// Check that no entry was changed, left out or put in; name the first that is wrong
    #[command(
        after_help = "Exit code 1 when the log is not what it was. Keep the printed head elsewhere: only with it \
                            is a log found that was cut off at its end together with the database's own note of it."
    )]
    Verify {
        /// Check an exported file, without a server or its data
        #[arg(long, value_name = "FILE")]
        file: Option<std::path::PathBuf>,
        /// The hash of an entry, noted earlier, that must be in the log
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        #[command(flatten)]
        place: Place,
    },
}

/// What is served, and where. An empty variable counts as unset, an empty `--scope` or `--tools` as nothing.
#[derive(Args)]
pub(crate) struct McpArguments {
    /// A person's key, for the scope human; better in the environment, where others do not see it
    #[arg(long, value_name = "KEY", env = "BAND_USER_KEY", hide_env_values = true)]
    pub(crate) user_key: Option<String>,
    /// An agent's key, for the scope agent; better in the environment, where others do not see it
    #[arg(long, value_name = "KEY", env = "BAND_AGENT_KEY", hide_env_values = true)]
    pub(crate) agent_key: Option<String>,
    /// The one room that all tools act on
    #[arg(long, value_name = "ID", env = "BAND_MCP_ROOM_ID", hide_env_values = true)]
    pub(crate) room_id: Option<String>,
    /// Whose tools: agent, human; repeated or separated by commas [default: agent]
    #[arg(long, value_name = "SCOPE", env = "BAND_MCP_SCOPE", hide_env_values = true)]
    pub(crate) scope: Option<Vec<String>>,
    /// Tools beyond the usual ones: contacts, memory, tasks, files; repeated or separated by commas
    #[arg(long, value_name = "GROUP", env = "BAND_MCP_TOOLS", hide_env_values = true)]
    pub(crate) tools: Option<Vec<String>>,
    /// The server
    #[arg(
        long,
        value_name = "URL",
        env = "BAND_BASE_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:4000"
    )]
    pub(crate) base_url: String,
    /// How clients are served: stdio, or http
    #[arg(long, short, value_name = "HOW", env = "TRANSPORT", hide_env_values = true, default_value = "stdio")]
    pub(crate) transport: String,
    /// The same as --transport http
    #[arg(long)]
    pub(crate) http: bool,
    /// With http: the address to serve on
    #[arg(long, value_name = "ADDR", env = "HOST", hide_env_values = true, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// With http: the port to serve on; 0 takes a free one, which is printed
    #[arg(long, short, value_name = "PORT", env = "PORT", hide_env_values = true, default_value = "8000")]
    pub(crate) port: String,
    /// With http: names under which clients reach it, besides this machine's
    #[arg(long, value_name = "HOST", env = "ALLOWED_HOSTS", hide_env_values = true, value_delimiter = ',')]
    pub(crate) allowed_hosts: Vec<String>,
    /// With http: origins of web pages that may ask
    #[arg(long, value_name = "ORIGIN", env = "ALLOWED_ORIGINS", hide_env_values = true, value_delimiter = ',')]
    pub(crate) allowed_origins: Vec<String>,
    /// What is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "BAND_LOG_LEVEL", hide_env_values = true, default_value = "info")]
    pub(crate) log_level: String,
}

/// Without keys.
impl std::fmt::Debug for McpArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpArguments").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print a settings file with every setting, its default and what it is for
    Print(ConfigPrintArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigPrintArguments {
    /// Print the values in force instead, and where each came from
    #[arg(long)]
    pub(crate) effective: bool,
    #[command(flatten)]
    pub(crate) flags: PlaceFlags,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The file to write, which must not exist; or a folder, in which it is named after the time
    #[arg(value_name = "FILE-OR-FOLDER")]
    pub(crate) to: std::path::PathBuf,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: PlaceFlags,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The backup
    #[arg(value_name = "FILE")]
    pub(crate) from: std::path::PathBuf,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: PlaceFlags,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: PlaceFlags,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: AllFlags,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::definition().debug_assert();
    }
}

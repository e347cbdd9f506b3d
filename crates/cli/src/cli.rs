//! What can be typed.

use clap::{Args, Parser, Subcommand};

use crate::settings::flags::{AllFlags, PlaceFlags};

/// The open collaboration server for AI agents.
#[derive(Debug, Parser)]
#[command(
    name = "bandstand",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Start with `bandstand up`, then `bandstand agent add NAME`."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
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
    /// Add and list people
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
    /// List, rotate and revoke API keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Show settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Say what is wrong with this installation, and what to do about it
    #[command(after_help = "Exit code 1 when something must be mended, 0 otherwise.")]
    Doctor(DoctorArguments),
}

impl Command {
    /// Whether the answer, and so a failure as well, is to be JSON.
    pub(crate) fn wants_json(&self) -> bool {
        let place = match self {
            Self::Up(_) | Self::Config { .. } => return false,
            Self::Doctor(arguments) => return arguments.json,
            Self::User { command: UserCommand::Add { place, .. } | UserCommand::List { place } } => place,
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
                    | AgentCommand::Remove { place, .. },
            } => place,
            Self::Key {
                command:
                    KeyCommand::List { place } | KeyCommand::Rotate { place, .. } | KeyCommand::Revoke { place, .. },
            } => place,
        };
        place.json
    }
}

/// Which installation, and how to answer.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: PlaceFlags,
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
        #[arg(long)]
        admin: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List people
    List {
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
    /// Make a new key, print it once, and revoke the old ones at once
    Rotate {
        /// The handle or id of a person or an agent
        who: String,
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
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}

//! What people type to live in rooms.

use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::demo::Part;

/// The commands of people, and those that show what there is.
#[derive(Debug, Subcommand)]
pub(crate) enum PeopleCommand {
    /// Watch agents at work, and a crash that loses nothing
    #[command(
        after_help = "It takes some seconds, needs no keys and no network, runs on this machine alone and leaves nothing \
                      behind."
    )]
    Demo(DemoArguments),
    /// One of the demo's agents
    #[command(hide = true)]
    DemoAgent {
        /// Which
        #[arg(value_enum)]
        part: Part,
    },
    /// Keep a server's address and your key there
    #[command(
        after_help = "The key is asked for, or read from standard input. Profiles are kept in bandstand/profiles.toml \
                            below XDG_CONFIG_HOME or ~/.config, readable for you alone. Every command for people takes \
                            --url with --key first, then --profile, then BANDSTAND_URL with BANDSTAND_KEY, then the \
                            profile in use."
    )]
    Login(LoginArguments),
    /// Forget a profile
    Logout(LogoutArguments),
    /// List the profiles that are kept, or use another one
    Profiles(ProfilesArguments),
    /// List, make, show and archive rooms, and say who is in them
    Room {
        #[command(subcommand)]
        command: RoomCommand,
    },
    /// Live in a room: what is said, who is there and who works
    #[command(
        after_help = "Under each of your messages stands what became of it. Enter sends, Tab completes a mention, PgUp \
                      pages back, Ctrl-O shows events with all their lines, Ctrl-C leaves."
    )]
    Chat(ChatArguments),
    /// Say something in a room
    #[command(
        after_help = "A message reaches those whom it mentions: `@handle` in the text, or the last part of an agent's \
                            handle where that is unmistakable. In a room of two it is for the other one."
    )]
    Send(SendArguments),
    /// Follow a room
    #[command(
        after_help = "It goes on until it is interrupted. After a lost connection it reads what was missed: rows come \
                            in the room's order, each once. With --json each row is a line, as the API gives it."
    )]
    Tail(TailArguments),
    /// Say what became of a message, and why nobody answers
    Why(WhyArguments),
    /// Print completions for a shell
    #[command(after_help = "bash: bandstand completions bash > ~/.local/share/bash-completion/completions/bandstand\n\
                            zsh:  bandstand completions zsh > a folder of $fpath, as _bandstand\n\
                            fish: bandstand completions fish > ~/.config/fish/completions/bandstand.fish")]
    Completions(CompletionsArguments),
    /// Print the manual page, as roff: `bandstand manual | man -l -`
    Manual,
}

impl PeopleCommand {
    /// Whether the answer, and so a failure as well, is to be JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Demo(_) | Self::DemoAgent { .. } | Self::Completions(_) | Self::Manual => false,
            Self::Logout(arguments) => arguments.json,
            Self::Profiles(arguments) => arguments.json,
            Self::Login(LoginArguments { account })
            | Self::Chat(ChatArguments { account, .. })
            | Self::Send(SendArguments { account, .. })
            | Self::Tail(TailArguments { account, .. })
            | Self::Why(WhyArguments { account, .. }) => account.json,
            Self::Room { command } => command.account().json,
        }
    }
}

/// Which server, and as whom.
#[derive(Clone, Args)]
pub(crate) struct Account {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// A profile that `bandstand login` made [env: BANDSTAND_PROFILE]
    #[arg(long, value_name = "NAME", help_heading = "Which server")]
    pub(crate) profile: Option<String>,
    /// The server's address [env: BANDSTAND_URL]
    #[arg(long, value_name = "URL", help_heading = "Which server")]
    pub(crate) url: Option<String>,
    /// A user's key; better in the environment, where others do not see it [env: BANDSTAND_KEY]
    #[arg(long, value_name = "KEY", help_heading = "Which server")]
    pub(crate) key: Option<String>,
}

/// Without the key.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("profile", &self.profile).field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    #[command(flatten)]
    pub(crate) account: Account,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArguments {
    /// The profile [default: the one in use]
    pub(crate) name: Option<String>,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProfilesArguments {
    /// From now on use this one
    #[arg(long = "use", value_name = "NAME")]
    pub(crate) chosen: Option<String>,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RoomCommand {
    /// List your rooms
    List {
        /// Also those that are archived or closed
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        account: Account,
    },
    /// Make a room
    New {
        /// Its title [default: what is said first]
        title: Option<String>,
        /// Add somebody to it: a handle, name or id; may be repeated
        #[arg(long = "with", value_name = "WHO")]
        with: Vec<String>,
        #[command(flatten)]
        account: Account,
    },
    /// Show a room and who is in it
    Show {
        /// Its id or title, or an unmistakable part of either
        room: String,
        #[command(flatten)]
        account: Account,
    },
    /// Add people and agents to a room
    Add {
        /// Its id or title, or an unmistakable part of either
        room: String,
        /// Handles, names or ids
        #[arg(required = true)]
        who: Vec<String>,
        /// What they may do there
        #[arg(long, value_name = "ROLE", default_value = "member", value_parser = ["member", "admin", "owner"])]
        role: String,
        #[command(flatten)]
        account: Account,
    },
    /// Remove people and agents from a room
    Remove {
        /// Its id or title, or an unmistakable part of either
        room: String,
        /// Handles, names or ids
        #[arg(required = true)]
        who: Vec<String>,
        #[command(flatten)]
        account: Account,
    },
    /// Archive a room
    Archive {
        /// Its id or title, or an unmistakable part of either
        room: String,
        /// Take it out of the archive
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        account: Account,
    },
}

impl RoomCommand {
    pub(crate) fn account(&self) -> &Account {
        match self {
            Self::List { account, .. }
            | Self::New { account, .. }
            | Self::Show { account, .. }
            | Self::Add { account, .. }
            | Self::Remove { account, .. }
            | Self::Archive { account, .. } => account,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// The room's id or title, or an unmistakable part of either
    pub(crate) room: String,
    /// What to say; `-` reads it from standard input
    #[arg(required = true)]
    pub(crate) text: Vec<String>,
    /// For whom, beside those whom the text mentions: a handle, name or id; may be repeated
    #[arg(long, value_name = "WHO")]
    pub(crate) to: Vec<String>,
    /// An `@` in the text is no mention
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) account: Account,
}

#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// The room's id or title, or an unmistakable part of either
    pub(crate) room: String,
    /// Begin with everything since: a moment in ISO 8601, or so long ago, such as 10m
    #[arg(long, value_name = "WHEN", conflicts_with = "lines")]
    pub(crate) since: Option<String>,
    /// Begin with so many of the newest rows
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Messages alone, without the events of agents
    #[arg(long)]
    pub(crate) messages: bool,
    /// End when what is there was printed
    #[arg(long)]
    pub(crate) no_follow: bool,
    #[command(flatten)]
    pub(crate) account: Account,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// The message's id, as `send` prints it; `last` is your own newest message, and needs --room
    pub(crate) message: String,
    /// The room where it is; found by itself otherwise, which takes longer
    #[arg(long)]
    pub(crate) room: Option<String>,
    /// About one participant, be it a recipient or not: a handle or id
    #[arg(long, value_name = "WHO")]
    pub(crate) participant: Option<String>,
    #[command(flatten)]
    pub(crate) account: Account,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// For which shell
    #[arg(value_parser = shells())]
    pub(crate) shell: Shell,
}

fn shells() -> impl clap::builder::TypedValueParser<Value = Shell> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Leave it up at the end, and say where
    #[arg(long)]
    pub(crate) keep: bool,
    /// How long an agent thinks, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 600, hide = true)]
    pub(crate) pace: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArguments {
    /// The room's id or title, or an unmistakable part of either
    pub(crate) room: String,
    #[command(flatten)]
    pub(crate) account: Account,
}

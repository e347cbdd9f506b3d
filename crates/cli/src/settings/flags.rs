//! Flags for settings, made from the table.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::{CONFIG, Setting, Settings, TABLE};

/// The settings that flags gave.
#[derive(Clone, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) given: Vec<(&'static Setting, String)>,
}

impl std::fmt::Debug for Flags {
    /// Names only: a value may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.given.iter().map(|(setting, _)| setting.name)).finish()
    }
}

/// A flag for every setting: for `up`.
#[derive(Clone, Debug)]
pub(crate) struct AllFlags(pub(crate) Flags);

/// Flags that say which installation is meant: for all other commands.
#[derive(Clone, Debug)]
pub(crate) struct PlaceFlags(pub(crate) Flags);

const PLACE: [&str; 2] = ["data", "database"];

fn augment(command: Command, wanted: fn(&Setting) -> bool) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help_heading("Settings file")
        .help(format!("Settings file [default: DATA/{}, if it exists] [env: {CONFIG}]", super::FILE_NAME));
    let defaults = Settings::default();
    let settings = TABLE.iter().filter(|setting| wanted(setting)).map(|setting| {
        let default = setting.text(&defaults).map(|text| format!(" [default: {text}]")).unwrap_or_default();
        let arg = Arg::new(setting.name)
            .long(setting.long())
            .value_name(setting.form())
            .help_heading(setting.group)
            .help(format!("{}{default} [env: {}]", setting.doc, setting.environment()));
        if setting.is_switch() { arg.num_args(0..=1).require_equals(true).default_missing_value("true") } else { arg }
    });
    command.args(settings).arg(config)
}

fn given(matches: &ArgMatches) -> Result<Flags, clap::Error> {
    let mut flags = Flags { config: matches.get_one::<PathBuf>("config").cloned(), given: Vec::new() };
    for setting in TABLE {
        // A command without this flag answers an error here, which means the same as not given.
        if let Ok(Some(text)) = matches.try_get_one::<String>(setting.name) {
            flags.given.push((setting, text.clone()));
        }
    }
    Ok(flags)
}

macro_rules! flags {
    ($name:ident, $wanted:expr) => {
        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                augment(command, $wanted)
            }

            fn augment_args_for_update(command: Command) -> Command {
                augment(command, $wanted)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                given(matches).map(Self)
            }

            fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
                Err(clap::Error::raw(ErrorKind::InvalidSubcommand, "flags are read once"))
            }
        }
    };
}

flags!(AllFlags, |_| true);
flags!(PlaceFlags, |setting| PLACE.contains(&setting.name));

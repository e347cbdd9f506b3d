//! `bandstand`: the server and its administration on the command line.

mod admin;
mod chat;
mod cli;
mod commands;
mod demo;
mod doctor;
mod logging;
mod output;
mod people;
mod remote;
mod settings;
mod sys;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{Cli, Command, ConfigCommand};
use crate::output::{Failure, report};

/// The environment of this process.
fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn main() -> ExitCode {
    let cli = Cli::read();
    let json = cli.command.wants_json();
    run(cli).unwrap_or_else(|failure| report(&failure, json))
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Up(flags) => commands::up::run(&flags.0),
        Command::User { command } => commands::user::run(command),
        Command::Organization { command } => commands::organization::run(command),
        Command::Agent { command } => commands::agent::run(command),
        Command::Key { command } => commands::key::run(command),
        Command::Quota { command } => commands::quota::run(command),
        Command::Audit { command } => commands::audit::run(command),
        Command::Backup(arguments) => commands::backup::back_up(&arguments),
        Command::Restore(arguments) => commands::backup::restore_backup(&arguments),
        Command::Mcp(arguments) => commands::mcp::run(&arguments),
        Command::People(command) => commands::people(command),
        Command::Transcript { command } => commands::transcript::run(&command),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Config { command: ConfigCommand::Print(arguments) } => commands::config::print(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
    }
}

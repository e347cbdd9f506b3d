//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod config;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod organization;
pub(crate) mod quota;
pub(crate) mod room;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod shell;
pub(crate) mod status;
pub(crate) mod tail;
pub(crate) mod transcript;
pub(crate) mod up;
pub(crate) mod user;
pub(crate) mod why;

use std::process::ExitCode;

use bandstand_server::admin::Operation;

use crate::admin::{Performed, perform};
use crate::cli::{Account, PeopleCommand, Place};
use crate::environment;
use crate::output::Failure;
use crate::people::account::credentials;
use crate::people::client::Client;
use crate::remote;
use crate::settings::{Settings, load};

/// Does an administrative operation on the installation that the flags name, or on the server at an address.
fn administer(place: &Place, operation: Operation) -> Result<(Performed, Settings), Failure> {
    let settings = load(&place.flags.0, &environment)?.settings;
    if let (Some(url), Some(key)) = (&place.remote.url, &place.remote.key) {
        let outcome = remote::perform(url, key, operation)?;
        return Ok((Performed { outcome, url: Some(url.trim_end_matches('/').to_owned()) }, settings));
    }
    Ok((perform(&settings, operation)?, settings))
}

/// Runs a command of people.
pub(crate) fn people(command: PeopleCommand) -> Result<ExitCode, Failure> {
    match command {
        PeopleCommand::Demo(arguments) => crate::demo::run(&arguments),
        PeopleCommand::DemoAgent { part } => crate::demo::run_agent(part),
        PeopleCommand::Login(arguments) => login::login(&arguments),
        PeopleCommand::Logout(arguments) => login::logout(&arguments),
        PeopleCommand::Profiles(arguments) => login::profiles(&arguments),
        PeopleCommand::Room { command } => room::run(&command),
        PeopleCommand::Chat(arguments) => crate::chat::run(&arguments),
        PeopleCommand::Send(arguments) => send::run(&arguments),
        PeopleCommand::Tail(arguments) => tail::run(&arguments),
        PeopleCommand::Why(arguments) => why::run(&arguments),
        PeopleCommand::Completions(arguments) => shell::completions(&arguments),
        PeopleCommand::Manual => shell::manual(),
    }
}

/// Runs what a person asked of a server.
pub(crate) fn with_client<T>(
    account: &Account,
    work: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let client = Client::new(credentials(account)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from)?;
    runtime.block_on(Box::pin(work(client)))
}

/// The server answered something that does not belong to the question.
fn unexpected() -> Failure {
    Failure::Failed(anyhow::anyhow!("the server answered something unexpected; is it another version?"))
}

//! `bandstand user`.

use std::process::ExitCode;

use bandstand_server::admin::{Operation, Outcome};
use serde_json::json;

use super::{administer, unexpected};
use crate::cli::UserCommand;
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: UserCommand) -> Result<ExitCode, Failure> {
    match command {
        UserCommand::Add { handle, first_name, last_name, email, admin, place } => {
            let operation = Operation::AddUser { handle, first_name, last_name, email, admin };
            let (performed, _) = administer(&place, operation)?;
            let Outcome::UserAdded(added) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&added)?;
            } else {
                say(&format!(
                    "Added {} (id {}).\n\nTheir key, shown this once:\n\n  {}\n\n\
                     Lost it? `bandstand key rotate {}` makes a new one.",
                    added.who.handle, added.who.id, added.api_key, added.who.handle
                ));
            }
        }
        UserCommand::List { place } => {
            let (performed, _) = administer(&place, Operation::ListUsers)?;
            let Outcome::Users(users) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&json!({ "users": users }))?;
            } else {
                let rows: Vec<_> = users
                    .into_iter()
                    .map(|user| [user.handle, user.name, user.role, user.email, user.id.to_string()])
                    .collect();
                say(&columns(["HANDLE", "NAME", "ROLE", "EMAIL", "ID"], &rows));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

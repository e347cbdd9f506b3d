//! `bandstand user`.

use std::process::ExitCode;

use bandstand_server::admin::{Operation, Outcome, UserRow};
use bandstand_wire::time::Timestamp;
use serde_json::json;

use super::{administer, unexpected};
use crate::cli::{Place, UserCommand};
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: UserCommand) -> Result<ExitCode, Failure> {
    match command {
        UserCommand::Add { handle, first_name, last_name, email, administrator, place } => {
            let operation = Operation::AddUser { handle, first_name, last_name, email, admin: administrator };
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
                    .map(|user| {
                        let state = state(&user).to_owned();
                        [user.handle, user.name, user.role, state, user.email, user.id.to_string()]
                    })
                    .collect();
                say(&columns(["HANDLE", "NAME", "ROLE", "STATE", "EMAIL", "ID"], &rows));
            }
        }
        UserCommand::Show { who, place } => {
            let user = changed(&place, Operation::ShowUser { who })?;
            let lines = [
                ["handle".to_owned(), user.handle.clone()],
                ["name".to_owned(), user.name.clone()],
                ["role".to_owned(), user.role.clone()],
                ["state".to_owned(), state(&user).to_owned()],
                ["email".to_owned(), user.email.clone()],
                ["added".to_owned(), user.inserted_at.to_string()],
            ];
            tell(&place, &user, &columns(["id", &user.id.to_string()], &lines))?;
        }
        UserCommand::Promote { who, place } => {
            let user = changed(&place, Operation::SetRole { who, admin: true })?;
            tell(&place, &user, &format!("{} may administer the server now.", user.handle))?;
        }
        UserCommand::Demote { who, place } => {
            let user = changed(&place, Operation::SetRole { who, admin: false })?;
            tell(&place, &user, &format!("{} may no longer administer the server.", user.handle))?;
        }
        UserCommand::Disable { who, place } => {
            let user = changed(&place, Operation::DisableUser { who, disabled: true })?;
            let told = format!(
                "{0} and their agents are refused from now on. `bandstand user enable {0}` undoes it.",
                user.handle
            );
            tell(&place, &user, &told)?;
        }
        UserCommand::Enable { who, place } => {
            let user = changed(&place, Operation::DisableUser { who, disabled: false })?;
            tell(
                &place,
                &user,
                &format!("{} and their agents are taken again, with the keys they have.", user.handle),
            )?;
        }
        UserCommand::Delete { who, force, place } => {
            let (performed, _) = administer(&place, Operation::DeleteUser { who, force })?;
            let Outcome::UserDeleted(user) = performed.outcome else { return Err(unexpected()) };
            tell(&place, &user, &format!("Deleted {}. Their keys no longer work.", user.handle))?;
        }
        UserCommand::Link { who, issuer, subject, place } => {
            let (performed, _) = administer(&place, Operation::LinkUser { who, issuer, subject })?;
            let Outcome::UserLinked(link) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&link)?;
            } else {
                say(&format!("{} of {} signs in as {}.", link.subject, link.issuer, link.user.handle));
            }
        }
        UserCommand::Unlink { issuer, subject, place } => {
            let (performed, _) = administer(&place, Operation::UnlinkUser { issuer, subject })?;
            let Outcome::UserUnlinked(ended) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&ended)?;
            } else {
                let told =
                    format!("{} of {} signs in no longer. Its connections are closed.", ended.subject, ended.issuer);
                say(&told);
            }
        }
        UserCommand::Links { place } => {
            let (performed, _) = administer(&place, Operation::ListLinks)?;
            let Outcome::Links(links) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&json!({ "links": links }))?;
            } else {
                let used = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
                let rows: Vec<_> = links
                    .into_iter()
                    .map(|link| [link.user.handle, link.issuer, link.subject, used(link.last_used_at)])
                    .collect();
                say(&columns(["HANDLE", "ISSUER", "SUBJECT", "LAST USED"], &rows));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Has an operation done whose outcome is a person.
fn changed(place: &Place, operation: Operation) -> Result<UserRow, Failure> {
    let (performed, _) = administer(place, operation)?;
    let Outcome::User(user) = performed.outcome else { return Err(unexpected()) };
    Ok(user)
}

fn tell(place: &Place, user: &UserRow, text: &str) -> Result<(), Failure> {
    if place.json {
        return say_json(user);
    }
    say(text);
    Ok(())
}

fn state(user: &UserRow) -> &'static str {
    if user.disabled_at.is_some() { "disabled" } else { "active" }
}

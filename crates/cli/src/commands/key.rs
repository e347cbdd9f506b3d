//! `bandstand key`.

use std::process::ExitCode;

use bandstand_server::admin::{KeyRow, Operation, Outcome, RevokedRow};
use serde_json::json;

use super::{administer, unexpected};
use crate::cli::KeyCommand;
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: KeyCommand) -> Result<ExitCode, Failure> {
    match command {
        KeyCommand::List { place } => {
            let (performed, _) = administer(&place, Operation::ListKeys)?;
            let Outcome::Keys(keys) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&json!({ "keys": keys }))?;
            } else {
                let rows: Vec<_> = keys.into_iter().map(row).collect();
                say(&columns(["KEY", "HOLDER", "STATE", "ID"], &rows));
            }
        }
        KeyCommand::Issue { who, place } => {
            let (performed, _) = administer(&place, Operation::IssueKey { who })?;
            let Outcome::KeyIssued(issued) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&issued)?;
            } else {
                let (key, handle) = (&issued.api_key, &issued.who.holder.handle);
                say(&format!("One more key of {handle}, shown this once; the others go on working:\n\n  {key}"));
            }
        }
        KeyCommand::Rotate { who, place } => {
            let (performed, _) = administer(&place, Operation::RotateKey { who })?;
            let Outcome::KeyRotated(rotated) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&rotated)?;
            } else {
                say(&format!(
                    "New key of {}, shown this once; the old ones no longer work:\n\n  {}",
                    rotated.who.handle, rotated.api_key
                ));
            }
        }
        KeyCommand::Revoke { what, place } => {
            let (performed, _) = administer(&place, Operation::RevokeKey { what: what.clone() })?;
            let Outcome::KeysRevoked(RevokedRow { revoked }) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&json!({ "revoked": revoked }))?;
            } else if revoked == 1 {
                say("Revoked 1 key. Its connections are closed.");
            } else {
                say(&format!("Revoked {revoked} keys. Their connections are closed."));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(key: KeyRow) -> [String; 4] {
    let state = key.revoked_at.map_or_else(|| "valid".to_owned(), |at| format!("revoked {at}"));
    [format!("{}…", key.hint), key.holder.handle, state, key.id.to_string()]
}

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
                say(&columns(["KEY", "HOLDER", "STATE", "LAST USED", "ID"], &rows));
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
        KeyCommand::Rotate { who, overlap, place } => {
            let overlap_seconds = overlap.as_secs();
            let (performed, _) = administer(&place, Operation::RotateKey { who, overlap_seconds })?;
            let Outcome::KeyRotated(rotated) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&rotated)?;
            } else {
                let old = match overlap_seconds {
                    0 => "what it replaces no longer works".to_owned(),
                    _ => format!("what it replaces works until {}", rotated.who.old_until),
                };
                say(&format!(
                    "New key of {}, shown this once; {old}:\n\n  {}",
                    rotated.who.holder.handle, rotated.api_key
                ));
            }
        }
        KeyCommand::RotateSigning { revoke, place } => {
            let (performed, _) = administer(&place, Operation::RotateSigningKey { revoke })?;
            let Outcome::SigningKeyRotated(signing) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&signing)?;
            } else {
                let old =
                    if revoke { "Tokens that are out work no longer." } else { "Tokens that are out still work." };
                say(&format!("Tokens are signed with the new key {}. {old}", signing.kid));
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

fn row(key: KeyRow) -> [String; 5] {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) => format!("valid until {at}"),
        (None, None) => "valid".to_owned(),
    };
    let used = key.last_used_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    [format!("{}…", key.hint), key.holder.handle, state, used, key.id.to_string()]
}

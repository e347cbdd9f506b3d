//! `bandstand organization`.

use std::process::ExitCode;

use bandstand_server::admin::{Operation, OrganizationRow, Outcome};
use serde_json::json;

use super::{administer, unexpected};
use crate::cli::{MemberCommand, OrganizationCommand};
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: OrganizationCommand) -> Result<ExitCode, Failure> {
    match command {
        OrganizationCommand::Add { name, place } => {
            let (performed, _) = administer(&place, Operation::AddOrganization { name })?;
            let Outcome::OrganizationAdded(added) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&added)?;
            } else {
                let (name, id) = (&added.name, added.id);
                say(&format!(
                    "Added the organization {name} (id {id}).\n\n\
                     `bandstand organization member add {name:?} USER` puts people into it."
                ));
            }
        }
        OrganizationCommand::List { place } => {
            let (performed, _) = administer(&place, Operation::ListOrganizations)?;
            let Outcome::Organizations(organizations) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&json!({ "organizations": organizations }))?;
            } else {
                let rows: Vec<_> = organizations.into_iter().map(row).collect();
                say(&columns(["NAME", "MEMBERS", "ID"], &rows));
            }
        }
        OrganizationCommand::Member { command: MemberCommand::Add { organization, user, place } } => {
            let (performed, _) = administer(&place, Operation::AddOrganizationMember { organization, user })?;
            let Outcome::OrganizationMemberAdded(added) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&added)?;
            } else {
                say(&format!("{} is in {} now.", added.user.handle, added.organization));
            }
        }
        OrganizationCommand::Member { command: MemberCommand::Remove { organization, user, place } } => {
            let (performed, _) = administer(&place, Operation::RemoveOrganizationMember { organization, user })?;
            let Outcome::OrganizationMemberRemoved(removed) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&removed)?;
            } else {
                say(&format!("{} is no longer in {}.", removed.user.handle, removed.organization));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(organization: OrganizationRow) -> [String; 3] {
    let members: Vec<String> = organization.members.into_iter().map(|member| member.handle).collect();
    [organization.name, members.join(", "), organization.id.to_string()]
}

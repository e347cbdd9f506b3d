//! `bandstand quota`.

use std::process::ExitCode;

use bandstand_server::admin::{Operation, Outcome, QuotaRows, QuotaWish};

use super::{administer, unexpected};
use crate::cli::{Place, QuotaCommand};
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: QuotaCommand) -> Result<ExitCode, Failure> {
    let (place, operation) = match command {
        QuotaCommand::Show { who, place } => (place, Operation::ShowQuotas { who }),
        QuotaCommand::Set { who, resource, most, place } => {
            let quota = match most.as_str() {
                "unlimited" => QuotaWish::Unlimited,
                text => match text.parse::<u32>() {
                    Ok(most) => QuotaWish::Most(most.into()),
                    Err(_) => return Err(Failure::Usage(format!("{text:?} is neither a number nor `unlimited`"))),
                },
            };
            (place, Operation::SetQuota { who, resource, quota })
        }
        QuotaCommand::Unset { who, resource, place } => {
            (place, Operation::SetQuota { who, resource, quota: QuotaWish::AsSettings })
        }
    };
    show(&place, operation)
}

fn show(place: &Place, operation: Operation) -> Result<ExitCode, Failure> {
    let (performed, _) = administer(place, operation)?;
    let Outcome::Quotas(QuotaRows { holder, quotas }) = performed.outcome else { return Err(unexpected()) };
    if place.json {
        say_json(&QuotaRows { holder, quotas })?;
    } else if quotas.is_empty() {
        say(&format!("For {} the settings count.", holder.handle));
    } else {
        let most = |most: Option<i64>| most.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
        let rows: Vec<_> = quotas.into_iter().map(|quota| [quota.resource, most(quota.most)]).collect();
        say(&columns(["RESOURCE", "MOST"], &rows));
    }
    Ok(ExitCode::SUCCESS)
}

//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod config;
pub(crate) mod key;
pub(crate) mod mcp;
pub(crate) mod organization;
pub(crate) mod up;
pub(crate) mod user;

use bandstand_server::admin::Operation;

use crate::admin::{Performed, perform};
use crate::cli::Place;
use crate::environment;
use crate::output::Failure;
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

/// The server answered something that does not belong to the question.
fn unexpected() -> Failure {
    Failure::Failed(anyhow::anyhow!("the server answered something unexpected; is it another version?"))
}

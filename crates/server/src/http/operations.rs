//! Every operation, in one table: the router and the API document are made of it. To add one, add a line here (and rows
//! to `tests/it/authorization.txt`); `docs/openapi.json` then changes, and a test says how to write it anew.

mod administration;
mod agent;
mod human;
mod shared;
mod system;

use crate::http::operation::Operation;

/// All operations, in the order of the document.
pub(crate) fn all() -> Vec<Operation> {
    [agent::operations(), human::operations(), administration::operations(), system::operations()]
        .into_iter()
        .flatten()
        .collect()
}

//! What is the same for each request: who is calling, ids in the path, query parameters, pages and bodies.

pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod cursor;
pub(crate) mod page;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod task;

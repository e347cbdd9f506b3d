//! The two REST APIs over HTTP. A handler knows HTTP and who is calling; rules and storage are the services' business.

mod admin;
mod agent;
mod api_document;
mod deliveries;
mod docs_page;
mod error;
mod extract;
mod files;
mod human;
mod idempotency;
mod memories;
mod middleware;
mod operation;
mod operations;
mod parameter;
pub(crate) mod reply;
mod router;
mod sign_in;
pub(crate) mod system;
mod unread;

pub use api_document::document as api_document;
pub use error::ApiError;
pub(crate) use extract::caller::{ClientAddress, bearer};
pub use middleware::RequestId;
pub use router::router;

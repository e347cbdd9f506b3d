//! The two REST APIs over HTTP. A handler knows HTTP and who is calling; rules and storage are the services' business.

mod admin;
mod agent;
mod deliveries;
mod error;
mod extract;
mod files;
mod human;
mod memories;
mod middleware;
mod reply;
mod router;
mod system;
mod unread;

pub use error::ApiError;
pub use middleware::RequestId;
pub use router::router;

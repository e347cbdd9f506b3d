//! What people do on a server from their terminal: a typed client of the Human API, their socket, and where their keys
//! are kept.

pub(crate) mod account;
pub(crate) mod client;
pub(crate) mod feed;
pub(crate) mod mentions;
pub(crate) mod model;
pub(crate) mod places;
pub(crate) mod profiles;
pub(crate) mod socket;
pub(crate) mod text;
pub(crate) mod tls;

//! What needs no key: the server's version, and the check that the n8n credential makes.

use axum::response::Response;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::reply;

/// What runs here.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Version {
    /// Of the server.
    version: &'static str,
    /// Always `bandstand`.
    name: &'static str,
}

/// One word.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// How it is.
    pub(crate) status: &'static str,
}

/// `GET /api/version`.
pub(crate) async fn version() -> Response {
    reply::json(StatusCode::OK, &Version { version: env!("CARGO_PKG_VERSION"), name: "bandstand" })
}

/// `GET /api/v1/test`.
pub(crate) async fn test() -> Response {
    reply::json(StatusCode::OK, &Status { status: "ok" })
}

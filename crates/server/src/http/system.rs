//! What needs no key: the server's version, and the check that the n8n credential makes.

use axum::response::Response;
use hyper::StatusCode;
use serde_json::json;

use crate::http::reply;

/// `GET /api/version`.
pub(crate) async fn version() -> Response {
    reply::json(StatusCode::OK, &json!({ "version": env!("CARGO_PKG_VERSION"), "name": "bandstand" }))
}

/// `GET /api/v1/test`.
pub(crate) async fn test() -> Response {
    reply::json(StatusCode::OK, &json!({ "status": "ok" }))
}

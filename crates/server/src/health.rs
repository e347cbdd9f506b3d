//! `/healthz` and `/readyz`: for whoever starts, stops and routes to this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bandstand_store::Store;

use crate::http::{reply, system};
use crate::state::AppState;

/// A store that has not answered by then counts as unavailable.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the server is going down.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicBool>);

impl Draining {
    /// From now on it is.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// `GET /healthz`. Neither route asks for a key or tells anything of the data.
pub(crate) async fn live() -> Response {
    reply::json(StatusCode::OK, &system::Status { status: "alive" })
}

/// `GET /readyz`.
pub(crate) async fn ready(State(app): State<AppState>) -> Response {
    let (status, word) = readiness(&app.store, &app.draining).await;
    reply::json(status, &system::Status { status: word })
}

/// Whether requests would be served now.
pub async fn readiness(store: &Store, draining: &Draining) -> (StatusCode, &'static str) {
    if draining.is_on() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining");
    }
    match tokio::time::timeout(PING_TIMEOUT, store.ping()).await {
        Ok(Ok(())) => (StatusCode::OK, "ready"),
        Ok(Err(_)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "store unavailable"),
    }
}

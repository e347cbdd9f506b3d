//! `/healthz` and `/readyz`: for whoever starts, stops and routes to this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bandstand_store::Store;

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

/// The two routes. They ask for no key and tell nothing of the data.
pub fn routes<S: Clone + Send + Sync + 'static>(store: Store, draining: Draining) -> Router<S> {
    Router::new()
        .route("/healthz", get(|| async { reply(StatusCode::OK, "alive") }))
        .route("/readyz", get(move || ready(store.clone(), draining.clone())))
}

async fn ready(store: Store, draining: Draining) -> Response {
    let (status, word) = readiness(&store, &draining).await;
    reply(status, word)
}

fn reply(status: StatusCode, word: &str) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], format!("{{\"status\":\"{word}\"}}")).into_response()
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

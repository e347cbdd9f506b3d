//! What surrounds each request: its id, its span and log line, its time limit, and a net under panics.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderName, HeaderValue};
use tokio::time::Instant;
use tracing::Instrument;

use crate::http::{ApiError, idempotency, unread};
use crate::rates::Standing;
use crate::state::AppState;

/// The id of a request: in its log lines, in the reply's `x-request-id` header, and in an error's body.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// How the caller's key stands, once it is known.
pub(crate) type StandingSlot = Arc<OnceLock<Standing>>;

/// Runs a request. The path is logged as its pattern, without ids or query: a socket's query holds a key.
pub(crate) async fn around(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let id = app.ids.uuid().to_string();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("", |path| path.as_str()).to_owned();
    request.extensions_mut().insert(RequestId(id.clone()));
    let span = tracing::info_span!("request", request.id = %id, http.method = %method, http.route = route);
    let started = Instant::now();
    // The bytes of a file may take their time.
    let limit = if route.ends_with("/files") { app.limits.upload_timeout } else { app.limits.request_timeout };
    let standing = app.rates.counts_requests().then(StandingSlot::default);
    if let Some(slot) = &standing {
        request.extensions_mut().insert(Arc::clone(slot));
    }
    let attempt = idempotency::begin(&mut request);
    let (request, unread) = unread::lend(request);
    let run = async {
        let run = async {
            let response = next.run(request).await;
            match attempt {
                None => response,
                Some(attempt) => attempt.settle(&app, response).await,
            }
        };
        let run = AssertUnwindSafe(run).catch_unwind();
        match tokio::time::timeout(limit, run).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => ApiError::internal("the handler panicked").into_response(),
            Err(_) => ApiError::unavailable("the request took longer than its time limit").into_response(),
        }
    };
    let mut response = run.instrument(span.clone()).await;
    let ends = match unread {
        Some(unread) => !unread.throw_away(app.limits.file_bytes.max(app.limits.body_bytes) as u64).await,
        None => false,
    };
    let entered = span.enter();
    let error = response.extensions_mut().remove::<ApiError>();
    let code = error.as_ref().map(ApiError::code);
    if let Some(error) = error {
        if let Some(cause) = error.cause() {
            tracing::error!(http.status = error.status().as_u16(), error.code = error.code(), cause, "request failed");
        }
        let allow = response.headers_mut().remove(ALLOW);
        response = error.into_reply(&id);
        // Which methods the path does take: a 405 must say.
        response.headers_mut().extend(allow.map(|methods| (ALLOW, methods)));
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    if let Some(standing) = standing.as_ref().and_then(|slot| slot.get()) {
        tell_standing(&mut response, *standing);
    }
    if ends {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let status = response.status();
    let duration = started.elapsed();
    metrics::counter!("http_requests_total", "method" => method.to_string(), "route" => route.clone(), "status" => status.as_u16().to_string()).increment(1);
    metrics::histogram!("http_request_seconds", "route" => route).record(duration.as_secs_f64());
    let duration_ms = duration.as_secs_f64() * 1000.0;
    if status == StatusCode::SWITCHING_PROTOCOLS || status.is_success() {
        tracing::debug!(http.status = status.as_u16(), duration_ms, "request");
    } else {
        tracing::info!(http.status = status.as_u16(), error.code = code, duration_ms, "request refused");
    }
    drop(entered);
    response
}

/// Says how the caller's key stands. Not beside other errors: clients take the reset for the time to wait.
fn tell_standing(response: &mut Response, standing: Standing) {
    let status = response.status();
    if !(status.is_success() || status == StatusCode::TOO_MANY_REQUESTS) {
        return;
    }
    let headers = response.headers_mut();
    headers.insert("x-ratelimit-limit", standing.limit.into());
    headers.insert("x-ratelimit-remaining", standing.remaining.into());
    headers.insert("x-ratelimit-reset", standing.reset.into());
}

//! `Idempotency-Key`: a request that creates something, sent again with the same key, creates nothing more and is
//! answered as the first time.
//!
//! The reply is stored in the transaction of what the request did (`bandstand_store::idempotency`), so whatever was
//! committed has its row, and the row's primary key decides which of many at once is carried out. Nothing is looked up
//! beforehand: a request that comes for the second time fails in its transaction, or earlier because of what the first
//! one did, and only then is the first reply fetched. Without the header none of this costs anything.
//!
//! Only success is remembered. A refusal changed nothing, so the same request may be tried again and is judged anew.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use bandstand_store::StoreError;
use bandstand_store::idempotency::{self, Earlier, RequestName, StoredReply, Ticket};
use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::http::ApiError;
use crate::state::{AppState, Services};

const KEY: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const LONGEST: usize = 255;

/// The code of a reply that showed a secret and cannot be given again.
const SHOWN_ONCE: &str = "api_key_shown_once";

/// A request that came with a key, as far as it is known by now.
pub(crate) struct Attempt {
    /// Hash of method, path and key; `None` when the key is malformed.
    scope: Option<[u8; 32]>,
    caller: OnceLock<IdentityId>,
    fingerprint: OnceLock<[u8; 32]>,
}

/// Takes notice of the header, of a method that may create something.
pub(crate) fn begin(request: &mut Request) -> Option<Arc<Attempt>> {
    let mut keys = request.headers().get_all(KEY).iter();
    let key = keys.next()?.as_bytes();
    if !matches!(*request.method(), Method::POST | Method::PUT) {
        return None;
    }
    let sound = keys.next().is_none() && (1..=LONGEST).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    let scope = sound.then(|| {
        // Neither a method nor a path holds a NUL.
        hash(&[request.method().as_str().as_bytes(), b"\0", request.uri().path().as_bytes(), b"\0", key])
    });
    let attempt = Arc::new(Attempt { scope, caller: OnceLock::new(), fingerprint: OnceLock::new() });
    request.extensions_mut().insert(Arc::clone(&attempt));
    Some(attempt)
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    parts.iter().fold(Sha256::new(), |hasher, part| hasher.chain_update(part)).finalize().into()
}

/// Notes who calls. Whoever identifies the caller says it here.
pub(crate) fn note_caller(parts: &Parts, caller: IdentityId) {
    if let Some(attempt) = parts.extensions.get::<Arc<Attempt>>() {
        attempt.caller.get_or_init(|| caller);
    }
}

impl Attempt {
    /// Notes what the body says, or for a file its name and hash.
    pub(crate) fn note_body(&self, parts: &[&[u8]]) {
        self.fingerprint.get_or_init(|| hash(parts));
    }

    fn name(&self) -> Option<RequestName> {
        let (scope, caller) = self.scope.zip(self.caller.get().copied())?;
        Some(RequestName { caller, scope, fingerprint: *self.fingerprint.get()? })
    }

    /// Ends the request: what failed because it was carried out before is answered as it was then.
    pub(crate) async fn settle(&self, app: &AppState, response: Response) -> Response {
        let failed = response.extensions().get::<ApiError>().is_some();
        if !failed || response.status() == StatusCode::TOO_MANY_REQUESTS {
            return response;
        }
        let Some(name) = self.name() else { return response };
        let forgotten = forgotten(app, app.clock.now());
        let found: Result<Option<Earlier>, StoreError> = app
            .store
            .read("find_idempotent_request", move |tx| {
                Box::pin(async move { idempotency::find(tx, &name, forgotten).await })
            })
            .await;
        match found {
            Ok(Some(Earlier::Same(reply))) => {
                metrics::counter!("idempotent_requests_total", "outcome" => "replayed").increment(1);
                replay(reply)
            }
            Ok(Some(Earlier::Other)) => {
                metrics::counter!("idempotent_requests_total", "outcome" => "reused").increment(1);
                let message = "this idempotency key was used for a request with another body";
                ApiError::unprocessable("idempotency_key_reused", message).into_response()
            }
            Ok(None) => response,
            Err(error) => {
                tracing::warn!(%error, "cannot look up an idempotent request");
                response
            }
        }
    }
}

fn forgotten(services: &Services, now: Timestamp) -> Timestamp {
    let kept = i64::try_from(services.limits.idempotency_retention.as_micros()).unwrap_or(i64::MAX);
    now.plus_micros(kept.saturating_neg())
}

fn replay(reply: StoredReply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    if status.is_success() {
        let empty = reply.body.is_empty();
        let mut response = Response::new(Body::from(reply.body));
        *response.status_mut() = status;
        if !empty {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(location) = reply.location.and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert(LOCATION, location);
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    } else {
        let message = "the agent was registered by this request before; its key was shown then and is stored nowhere: \
                       make a new key for it, or delete it and register again";
        let details = match serde_json::from_slice(&reply.body) {
            Ok(Value::Object(details)) => details,
            _ => serde_json::Map::new(),
        };
        ApiError::unprocessable(SHOWN_ONCE, message).with_details(details).into_response()
    }
}

/// What may be remembered of a request whose reply shows a key: not the key, but whose it is.
pub(crate) fn shown_once(agent: IdentityId) -> Response {
    crate::http::reply::json(StatusCode::UNPROCESSABLE_ENTITY, &serde_json::json!({ "agent_id": agent }))
}

/// A route that honours the header takes this, behind the caller and before the body.
pub(crate) struct Once(Option<Arc<Attempt>>);

impl<S: Sync> FromRequestParts<S> for Once {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let attempt = parts.extensions.get::<Arc<Attempt>>().cloned();
        match attempt {
            Some(attempt) if attempt.scope.is_none() => {
                let must = format!("must be one value of 1 to {LONGEST} visible ASCII characters");
                Err(ApiError::invalid_at("/idempotency-key", must))
            }
            // A route that reads the caller later would quietly do things twice.
            Some(attempt) if attempt.caller.get().is_none() => {
                Err(ApiError::internal("a keyed request without its caller"))
            }
            attempt => Ok(Self(attempt)),
        }
    }
}

/// The use cases for one request.
pub(crate) enum Scoped<'a> {
    /// As they are.
    Plain(&'a Services),
    /// Storing the reply with what they do.
    Once(Box<Services>),
}

impl Deref for Scoped<'_> {
    type Target = Services;

    fn deref(&self) -> &Services {
        match self {
            Self::Plain(services) => services,
            Self::Once(services) => services,
        }
    }
}

impl Once {
    /// The use cases, of which the next that writes stores the reply to this request. `render` makes it of what that
    /// operation of the store returns.
    pub(crate) fn services<'a, T: 'static>(
        &self,
        app: &'a AppState,
        render: impl Fn(&T) -> Response + Send + Sync + 'static,
    ) -> Scoped<'a> {
        let Some(attempt) = &self.0 else { return Scoped::Plain(&app.services) };
        // A request without a body has noted none.
        attempt.note_body(&[]);
        // Never missing: the extractor looked for the rest.
        let Some(request) = attempt.name() else { return Scoped::Plain(&app.services) };
        let at = app.clock.now();
        let reply = move |value: &dyn Any| stored(render(value.downcast_ref::<T>()?));
        let ticket = Ticket { request, at, forgotten: forgotten(app, at), reply: Box::new(reply) };
        Scoped::Once(Box::new(Services { store: app.store.with_ticket(ticket), ..app.services.clone() }))
    }

    /// For a route whose body is a file: what names the bytes takes their place.
    pub(crate) fn note_content(&self, parts: &[&[u8]]) {
        if let Some(attempt) = &self.0 {
            attempt.note_body(parts);
        }
    }
}

/// A reply of ours as it is stored; a refusal is not. Its body is there already, so nothing is waited for.
fn stored(response: Response) -> Option<Option<StoredReply>> {
    if response.extensions().get::<ApiError>().is_some() {
        return Some(None);
    }
    let (parts, body) = response.into_parts();
    let location = parts.headers.get(LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = body.collect().now_or_never()?.ok()?.to_bytes().to_vec();
    Some(Some(StoredReply { status: parts.status.as_u16(), location, body }))
}

//! Who is calling: 401 is answered here and nowhere else, and so is the wrong kind of key.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use bandstand_wire::ids::IdentityKind;
use hyper::Method;
use hyper::http::request::Parts;

use crate::auth::Caller;
use crate::http::middleware::StandingSlot;
use crate::http::{ApiError, idempotency};
use crate::serve::PeerAddress;
use crate::state::AppState;

/// The header that holds the key.
const HEADER: &str = "x-api-key";

/// The calling agent.
pub(crate) struct CallerAgent(pub(crate) Caller);

/// The calling user.
pub(crate) struct CallerUser(pub(crate) Caller);

/// Paths that end an attempt or report on it: clients send each once, whatever the reply.
const SETTLING: [&str; 3] = ["/processed", "/failed", "/activity"];

pub(crate) async fn caller(parts: &Parts, app: &AppState) -> Result<Caller, ApiError> {
    let key = parts.headers.get(HEADER).and_then(|value| value.to_str().ok()).ok_or_else(ApiError::unauthorized)?;
    let from = client_address(parts, app);
    // Who is known already is not held up by strangers behind the same address.
    if let Err(wait) = app.rates.may_try(from)
        && app.auth.remembered(key).is_none()
    {
        app.rates.refused_stranger();
        return Err(ApiError::rate_limited("unknown API keys from this address", wait));
    }
    let Some(caller) = app.auth.authenticate(key).await? else {
        app.rates.failed(from);
        return Err(ApiError::unauthorized());
    };
    idempotency::note_caller(parts, caller.identity);
    count(parts, app, caller)?;
    Ok(caller)
}

/// Counts the request for its key.
fn count(parts: &Parts, app: &AppState, caller: Caller) -> Result<(), ApiError> {
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    let settles = SETTLING.iter().any(|end| parts.uri.path().ends_with(end));
    let Some(standing) = app.rates.take(caller, reads, settles) else { return Ok(()) };
    if let Some(slot) = parts.extensions.get::<StandingSlot>() {
        slot.get_or_init(|| standing);
    }
    match standing.wait {
        None => Ok(()),
        Some(wait) => {
            if caller.kind == IdentityKind::Agent {
                app.sightings.rate_limited(caller.identity, Duration::from_secs(wait));
            }
            Err(ApiError::rate_limited("requests with this API key", wait))
        }
    }
}

/// The address that a request comes from, if that is known.
pub(crate) struct ClientAddress(pub(crate) Option<IpAddr>);

impl FromRequestParts<AppState> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        Ok(Self(client_address(parts, app)))
    }
}

/// Whose request it is: the address of the connection, or what the trusted proxy says.
fn client_address(parts: &Parts, app: &AppState) -> Option<IpAddr> {
    let connection = parts.extensions.get::<PeerAddress>().map(|peer| peer.0);
    let Some(header) = &app.limits.client_address_header else { return connection };
    // The last address is the one that the proxy itself saw; those before it are hearsay.
    let last = parts.headers.get_all(header.as_str()).iter().next_back().and_then(|value| value.to_str().ok());
    let told = last.and_then(|text| text.rsplit(',').next()).and_then(|text| text.trim().parse().ok());
    told.or(connection)
}

impl FromRequestParts<AppState> for CallerAgent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let caller = caller(parts, app).await?;
        match caller.kind {
            IdentityKind::Agent => Ok(Self(caller)),
            IdentityKind::User => Err(ApiError::forbidden("agent authentication required")),
        }
    }
}

impl FromRequestParts<AppState> for CallerUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let caller = caller(parts, app).await?;
        match caller.kind {
            IdentityKind::User => Ok(Self(caller)),
            IdentityKind::Agent => Err(ApiError::forbidden("agent authentication not allowed")),
        }
    }
}

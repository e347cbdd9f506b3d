//! Who is calling: 401 is answered here and nowhere else, and so is the wrong kind of key.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use bandstand_wire::ids::IdentityKind;
use hyper::Method as HttpMethod;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

use crate::auth::{Authenticated, Caller, Credential, Method};
use crate::http::middleware::StandingSlot;
use crate::http::{ApiError, idempotency};
use crate::serve::PeerAddress;
use crate::state::AppState;

/// The header that holds the key.
const HEADER: &str = "x-api-key";

/// What an `Authorization` header with a token starts with, in any case.
const BEARER: &str = "bearer ";

/// The calling agent.
pub(crate) struct CallerAgent(pub(crate) Caller);

/// The calling user.
pub(crate) struct CallerUser(pub(crate) Caller);

/// Paths that end an attempt or report on it: clients send each once, whatever the reply.
const SETTLING: [&str; 3] = ["/processed", "/failed", "/activity"];

/// A user who shows its key, and no token: a token is not exchanged for another. With when the key ends.
pub(crate) struct KeyHolderUser(pub(crate) Authenticated);

/// What the request shows. On the Human API a token outranks a key, as it does on sockets: the generated clients send
/// both when they have a token. Agents have keys alone, and an `Authorization` header beside a key is then a proxy's.
fn credential(parts: &Parts, preferred: Preferred) -> Option<Credential> {
    let key = parts.headers.get(HEADER).and_then(|value| value.to_str().ok()).filter(|key| !key.is_empty());
    let key = key.map(|key| Credential::Key(key.to_owned()));
    let token = bearer(&parts.headers).map(|token| Credential::Token(token.to_owned()));
    match preferred {
        Preferred::Key => key.or(token),
        Preferred::Token => token.or(key),
    }
}

/// Which of two credentials counts.
#[derive(Clone, Copy)]
enum Preferred {
    Key,
    Token,
}

/// The token of an `Authorization: Bearer` header.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let scheme = value.get(..BEARER.len())?;
    let token = value.get(BEARER.len()..)?.trim();
    (scheme.eq_ignore_ascii_case(BEARER) && !token.is_empty()).then_some(token)
}

/// Somebody on an API of people.
pub(crate) async fn person(parts: &Parts, app: &AppState) -> Result<Caller, ApiError> {
    Ok(caller(parts, app, Preferred::Token).await?.caller)
}

async fn caller(parts: &Parts, app: &AppState, preferred: Preferred) -> Result<Authenticated, ApiError> {
    let credential = credential(parts, preferred).ok_or_else(ApiError::unauthorized)?;
    let from = client_address(parts, app);
    // Who is known already is not held up by strangers behind the same address.
    if let Err(wait) = app.rates.may_try(from)
        && app.auth.remembered(&credential).is_none()
    {
        app.rates.refused_stranger();
        return Err(ApiError::rate_limited("unknown API keys from this address", wait));
    }
    let Some(who) = app.auth.authenticate(&credential).await? else {
        app.rates.failed(from);
        return Err(ApiError::unauthorized());
    };
    idempotency::note_caller(parts, who.caller.identity);
    count(parts, app, who.caller)?;
    Ok(who)
}

fn is_user(who: &Authenticated) -> Result<(), ApiError> {
    match who.caller.kind {
        IdentityKind::User => Ok(()),
        IdentityKind::Agent => Err(ApiError::forbidden("agent authentication not allowed")),
    }
}

/// Counts the request for its key.
fn count(parts: &Parts, app: &AppState, caller: Caller) -> Result<(), ApiError> {
    let reads = matches!(parts.method, HttpMethod::GET | HttpMethod::HEAD);
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
        let caller = caller(parts, app, Preferred::Key).await?.caller;
        match caller.kind {
            IdentityKind::Agent => Ok(Self(caller)),
            IdentityKind::User => Err(ApiError::forbidden("agent authentication required")),
        }
    }
}

impl FromRequestParts<AppState> for CallerUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let who = caller(parts, app, Preferred::Token).await?;
        is_user(&who)?;
        Ok(Self(who.caller))
    }
}

impl FromRequestParts<AppState> for KeyHolderUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let who = caller(parts, app, Preferred::Key).await?;
        is_user(&who)?;
        if who.method != Method::Key {
            return Err(ApiError::unauthorized());
        }
        Ok(Self(who))
    }
}

//! The handshake: who is it, may it connect now, and what it is told when not.
//!
//! The query string holds secrets: nothing here logs it.

use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bandstand_wire::error::{ErrorBody, ErrorEnvelope};
use bandstand_wire::ids::IdentityKind;

use super::connection::{self, Welcome};
use super::identify::{Claim, OnConflict, SUBPROTOCOL, Unusable, Wishes};
use crate::http::ClientAddress;
use crate::state::AppState;

/// Bytes read at a time. Frames of clients are about a hundred bytes, and every connection keeps such a buffer.
const READ_BUFFER: usize = 1024;

/// Bytes of frames gathered before they are written; a batch ends with a flush anyway. The library keeps the buffer's
/// largest size for as long as the connection lives.
const WRITE_BUFFER: usize = 4 * 1024;

/// The path of Phoenix's JavaScript client, and the one without its suffix. Any method, as Phoenix answers others than
/// GET itself.
pub fn routes() -> Router<AppState> {
    Router::new().route("/api/v1/socket/websocket", any(upgrade)).route("/api/v1/socket", any(upgrade))
}

/// A refusal before the upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// No usable credential.
    Forbidden,
    /// Not a WebSocket handshake.
    NotAnUpgrade,
    /// A value of `on_conflict` that nobody knows.
    InvalidOnConflict,
    /// The agent is connected, and this connection asked to give way.
    Conflict,
    /// Too many upgrades with this key; seconds to wait.
    TooMany(u64),
    /// The server cannot look it up now, or is stopping.
    Unavailable,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Forbidden => return StatusCode::FORBIDDEN.into_response(),
            Self::NotAnUpgrade => return StatusCode::BAD_REQUEST.into_response(),
            Self::InvalidOnConflict => {
                (StatusCode::BAD_REQUEST, "invalid_on_conflict", "on_conflict must be supersede or reject")
            }
            Self::Conflict => (StatusCode::CONFLICT, "connection_conflict", "this agent is already connected"),
            Self::TooMany(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many connection attempts; wait and try again")
            }
            Self::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "tracking_failed", "connections cannot be tracked now; try again")
            }
        };
        let retry_after = match self {
            Self::TooMany(seconds) => Some(seconds),
            _ => None,
        };
        let error =
            ErrorBody { code: code.into(), message: message.into(), request_id: None, details: None, retry_after };
        let body = serde_json::to_string(&ErrorEnvelope { error }).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<Unusable> for Refusal {
    fn from(_: Unusable) -> Self {
        Self::Forbidden
    }
}

async fn upgrade(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    ClientAddress(from): ClientAddress,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    if state.hub.is_draining() {
        return Err(Refusal::Unavailable);
    }
    let (claim, wishes) = Claim::read(&headers, query.as_deref())?;
    let welcome = admit(&state, claim, &wishes, from).await?;
    let upgrade = upgrade.map_err(|_| Refusal::NotAnUpgrade)?;
    let limit = state.limits.frame_bytes;
    // From here the connection counts, so that a shutdown waits for it even before it is registered.
    let token = state.hub.track();
    Ok(upgrade
        // Phoenix's JavaScript client names it beside its token, and a browser gives up without an answer to it.
        .protocols([SUBPROTOCOL])
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(limit)
        // A frame somewhat above the limit is read to its end, so that the close with 1009 is not lost in a reset.
        .max_frame_size(limit.saturating_mul(4))
        .on_upgrade(move |socket: WebSocket| async move {
            connection::run(socket, state, welcome).await;
            drop(token);
        }))
}

async fn admit(state: &AppState, claim: Claim, wishes: &Wishes, from: Option<IpAddr>) -> Result<Welcome, Refusal> {
    if let Err(wait) = state.rates.may_try(from)
        && !claim.is_remembered(&state.auth)
    {
        state.rates.refused_stranger();
        return Err(Refusal::TooMany(wait));
    }
    let who = claim.resolve(&state.auth).await.map_err(|error| {
        tracing::warn!(%error, "cannot look up a key");
        Refusal::Unavailable
    })?;
    let Some(who) = who else {
        state.rates.failed(from);
        return Err(Refusal::Forbidden);
    };
    let caller = who.caller;
    let on_conflict = wishes.on_conflict.ok_or(Refusal::InvalidOnConflict)?;
    if let Err(seconds) = state.hub.admit(caller.key) {
        metrics::counter!("requests_limited_total", "limit" => "upgrades").increment(1);
        if caller.kind == IdentityKind::Agent {
            state.sightings.rate_limited(caller.identity, Duration::from_secs(seconds));
        }
        return Err(Refusal::TooMany(seconds));
    }
    let gives_way = on_conflict == OnConflict::Reject;
    if gives_way && caller.kind == IdentityKind::Agent && state.hub.is_live(caller.identity) {
        return Err(Refusal::Conflict);
    }
    Ok(Welcome { who, claim, version: wishes.version, gives_way })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn answer(refusal: Refusal) -> (u16, String) {
        let response = refusal.into_response();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn every_refusal_says_what_clients_look_for() {
        assert_eq!(answer(Refusal::Forbidden).await, (403, String::new()));
        assert_eq!(answer(Refusal::NotAnUpgrade).await, (400, String::new()));
        for (refusal, status, code) in [
            (Refusal::InvalidOnConflict, 400, "invalid_on_conflict"),
            (Refusal::Conflict, 409, "connection_conflict"),
            (Refusal::Unavailable, 503, "tracking_failed"),
        ] {
            let (got, body) = answer(refusal).await;
            assert_eq!(got, status);
            assert!(body.starts_with(&format!(r#"{{"error":{{"code":"{code}","message":""#)), "{body}");
            assert!(body.ends_with(r#","request_id":null}}"#), "{body}");
        }
        let (status, body) = answer(Refusal::TooMany(1)).await;
        assert_eq!(status, 429);
        assert!(body.ends_with(r#","request_id":null,"retry_after":1}}"#), "{body}");
    }
}

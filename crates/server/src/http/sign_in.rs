//! Signing in: a token for a key, and the keys that tokens are verified with.

use axum::extract::State;
use axum::response::Response;
use bandstand_wire::time::Timestamp;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::extract::caller::KeyHolderUser;
use crate::http::extract::query::NoQuery;
use crate::http::{ApiError, reply};
use crate::sign_in::tokens::{IssueError, IssuedToken, PublishedKey};
use crate::state::AppState;

/// Verifiers may keep the keys for so long: shorter than a token's life, so that a new key is known in time.
const KEYS_MAX_AGE: &str = "public, max-age=60";

/// A token of a user.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Token {
    /// The token itself.
    access_token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// For how many seconds it counts.
    expires_in: i64,
    /// When it ends.
    expires_at: Timestamp,
}

/// A JSON Web Key Set.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeySet {
    /// The keys, the one that signs first.
    keys: Vec<PublishedKey>,
}

/// `POST /api/v1/sign-in`: a token in exchange for the key in `X-API-Key`. It is renewed in the same way.
pub(crate) async fn sign_in(
    State(app): State<AppState>,
    KeyHolderUser(who): KeyHolderUser,
    _: NoQuery,
) -> Result<Response, ApiError> {
    let id = app.ids.uuid();
    let issued = app.tokens.issue(who.caller.identity, who.caller.key, who.until, id).await?;
    let IssuedToken { token, expires_at } = issued;
    let left = expires_at.as_micros().saturating_sub(app.clock.now().as_micros()).max(0) / 1_000_000;
    let mut response = reply::ok(Token { access_token: token, token_type: "Bearer", expires_in: left, expires_at });
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// `GET /.well-known/jwks.json`: for whoever wants to verify a token of this server.
pub(crate) async fn keys(State(app): State<AppState>) -> Result<Response, ApiError> {
    let keys = app.tokens.published().await?;
    let mut response = reply::json(StatusCode::OK, &KeySet { keys });
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(KEYS_MAX_AGE));
    Ok(response)
}

impl From<IssueError> for ApiError {
    fn from(error: IssueError) -> Self {
        match error {
            IssueError::NoKey | IssueError::Signature(_) => Self::internal(error),
            IssueError::Store(cause) => cause.into(),
        }
    }
}

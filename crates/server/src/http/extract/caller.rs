//! Who is calling: 401 is answered here and nowhere else, and so is the wrong kind of key.

use axum::extract::FromRequestParts;
use bandstand_wire::ids::IdentityKind;
use hyper::http::request::Parts;

use crate::auth::Caller;
use crate::http::ApiError;
use crate::state::AppState;

/// The header that holds the key.
const HEADER: &str = "x-api-key";

/// The calling agent.
pub(crate) struct CallerAgent(pub(crate) Caller);

/// The calling user.
pub(crate) struct CallerUser(pub(crate) Caller);

pub(crate) async fn caller(parts: &Parts, app: &AppState) -> Result<Caller, ApiError> {
    let key = parts.headers.get(HEADER).and_then(|value| value.to_str().ok()).ok_or_else(ApiError::unauthorized)?;
    app.auth.authenticate(key).await?.ok_or_else(ApiError::unauthorized)
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

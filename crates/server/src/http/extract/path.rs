//! Ids in the path. One that is no UUID names nothing, so it is answered like an unknown one: 404.

use axum::extract::{FromRequestParts, RawPathParams};
use hyper::http::request::Parts;
use uuid::Uuid;

use crate::http::ApiError;

/// The ids of the path, in order.
pub(crate) struct PathIds<const N: usize>(pub(crate) [Uuid; N]);

/// The only id of the path, where clients tell a malformed one from an unknown one: 422.
pub(crate) struct PathId(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let id = params.ok().and_then(|params| params.iter().next().and_then(|(_, text)| text.parse().ok()));
        id.map(Self).ok_or_else(|| ApiError::invalid_at("/id", "must be a UUID"))
    }
}

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for PathIds<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found())?;
        let ids: Result<Vec<Uuid>, _> = params.iter().map(|(_, text)| text.parse()).collect();
        let ids = ids.map_err(|_| ApiError::not_found())?;
        ids.try_into().map(Self).map_err(|_| ApiError::not_found())
    }
}

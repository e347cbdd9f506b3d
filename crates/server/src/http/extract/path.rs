//! Ids in the path. One that is no UUID names nothing, so it is answered like an unknown one: 404.

use axum::extract::{FromRequestParts, RawPathParams};
use hyper::http::request::Parts;
use uuid::Uuid;

use crate::http::ApiError;

/// The ids of the path, in order.
pub(crate) struct PathIds<const N: usize>(pub(crate) [Uuid; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for PathIds<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found())?;
        let ids: Result<Vec<Uuid>, _> = params.iter().map(|(_, text)| text.parse()).collect();
        let ids = ids.map_err(|_| ApiError::not_found())?;
        ids.try_into().map(Self).map_err(|_| ApiError::not_found())
    }
}

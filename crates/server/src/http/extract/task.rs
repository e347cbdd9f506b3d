//! What the routes of a room's board share: they are there only while tasks are on, and a task is named by its id or its
//! number.

use axum::extract::{FromRequestParts, RawPathParams};
use bandstand_domain::task::TaskRef;
use bandstand_wire::ids::RoomId;
use hyper::http::request::Parts;

use crate::auth::Caller;
use crate::http::ApiError;
use crate::http::extract::caller::CallerAgent;
use crate::state::AppState;

/// The calling agent. While tasks are off, whoever may call at all finds nothing.
pub(crate) struct BoardCaller(pub(crate) Caller);

impl FromRequestParts<AppState> for BoardCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let CallerAgent(caller) = CallerAgent::from_request_parts(parts, app).await?;
        if app.limits.tasks { Ok(Self(caller)) } else { Err(ApiError::not_found()) }
    }
}

/// A room and one of its tasks in the path. What can name no task is answered like an unknown one: 404.
pub(crate) struct TaskPath(pub(crate) RoomId, pub(crate) TaskRef);

impl FromRequestParts<AppState> for TaskPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app).await.map_err(|_| ApiError::not_found())?;
        let mut params = params.iter().map(|(_, text)| text);
        let room = params.next().and_then(|text| text.parse().ok());
        let task = params.next().and_then(TaskRef::parse);
        room.zip(task).map(|(room, task)| Self(room, task)).ok_or_else(ApiError::not_found)
    }
}

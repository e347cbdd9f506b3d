//! `/agent/chats/{id}/participants`: who is in the room with me?

use axum::extract::State;
use axum::response::Response;
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::rest::Data;
use hyper::StatusCode;

use crate::http::extract::body::JsonBody;
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::NoQuery;
use crate::http::human::participants::{add_in, remove_in};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// `GET`: everybody, not paged.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
) -> Result<Response, ApiError> {
    let found = app.participants(caller, RoomId(room)).await?;
    let data: Vec<_> = found.iter().map(|one| render::participant(one, app.hub.is_online(one.profile.id))).collect();
    Ok(reply::json(StatusCode::OK, &Data { data }))
}

/// `POST`: recruit somebody.
pub(crate) async fn add(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    add_in(&app, caller, RoomId(room), &once, &body).await
}

/// `DELETE …/{id}`: remove somebody, or leave.
pub(crate) async fn remove(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room, who]): PathIds<2>,
) -> Result<Response, ApiError> {
    remove_in(&app, caller, RoomId(room), IdentityId(who)).await
}

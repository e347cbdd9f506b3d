//! `GET /agent/me`: who am I?

use axum::extract::State;
use axum::response::Response;

use crate::http::extract::caller::CallerAgent;
use crate::http::extract::query::NoQuery;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// The calling agent.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
) -> Result<Response, ApiError> {
    let agent = app.agent(caller.identity).await?.ok_or_else(ApiError::unauthorized)?;
    Ok(reply::ok(render::agent_me(&agent, app.limits.tasks)))
}

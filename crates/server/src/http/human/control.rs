//! `/me/chats/{id}/agents/…` and `/me/agents/{id}/executions`: stop, go on, interrupt, and who does what.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_wire::ids::{ExecutionId, IdentityId, RoomId};
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::control::{Interrupted, RoomAgentsState};

use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::{DualPage, MAX};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};
use crate::render::control as render;
use crate::state::AppState;

/// `POST …/stop`: the room's agents do nothing more.
pub(crate) async fn stop(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
) -> Result<Response, ApiError> {
    app.stop_agents(caller, RoomId(room)).await?;
    Ok(reply::ok(RoomAgentsState { stopped: true }))
}

/// `POST …/play`: they go on, with what they missed.
pub(crate) async fn play(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
) -> Result<Response, ApiError> {
    app.play_agents(caller, RoomId(room)).await?;
    Ok(reply::ok(RoomAgentsState { stopped: false }))
}

/// `GET …/executions`: an agent's work, in the newest rooms first. A client that asks for no page sees the first hundred.
pub(crate) async fn executions(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathIds([agent]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["cursor", "limit"]);
    let list = format!("executions {agent}");
    let page = DualPage::<i64>::read(&mut query, MAX, &list)?;
    query.finish()?;
    let agent = IdentityId(agent);
    let mut rows = app.executions(caller.identity, agent, page.after().copied(), page.fetch()).await?;
    // This list is paged by cursor only, and counts nothing.
    let metadata = CursorMetadata::from(page.close(&mut rows, 0, &list, |(_, room_key)| *room_key)?);
    let works_in = |room| app.hub.activity(room).iter().any(|one| one.agent_id == agent);
    let data = rows.iter().map(|(one, _)| render::execution(one, works_in(one.room))).collect();
    Ok(reply::page(&Page { data, metadata }))
}

/// `POST …/executions/{execution_id}/interrupt`: the agent gives up its turn, wherever it is in one.
pub(crate) async fn interrupt(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([agent, execution]): PathIds<2>,
) -> Result<Response, ApiError> {
    let id = ExecutionId(execution);
    app.interrupt_agent(caller.identity, IdentityId(agent), id).await?;
    Ok(reply::ok(Interrupted { id }))
}

//! `GET /agent/chats/{id}/context`: what do I have to remember?

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_wire::ids::RoomId;
use bandstand_wire::rest::PageWithMeta;

use crate::http::agent::messages::window;
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::page::{DUAL, DualPage};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::Query;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// All that the agent sent and all texts that mention it, oldest first.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &DUAL);
    let list = format!("agent context {room}");
    let page = DualPage::<i64>::read(&mut query, 50, &list)?;
    query.finish()?;
    let found = app.agent_context(caller, RoomId(room), window(&page, false)).await?;
    let mut rows = found.rows;
    let metadata = page.close(&mut rows, found.total.unwrap_or_default(), &list, |message| message.sequence)?;
    let data = rows.iter().map(render::message).collect();
    Ok(page.mark(reply::page(&PageWithMeta { data, meta: metadata.clone(), metadata })))
}

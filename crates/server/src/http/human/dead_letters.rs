//! `/me/dead-letters` and `/me/chats/{id}/messages/{id}/redeliver`: what was given up, and having it delivered again.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_store::dead_letters::DeadLetterQuery;
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::dead_letter::Redelivered;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::DualPage;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};
use crate::render::dead_letter as render;
use crate::state::AppState;

/// Rows a page when the client does not say.
const DEFAULT: i64 = 20;

/// `GET …/dead-letters`: those of the rooms that the caller is in, and of its own agents; the newest rooms first.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["cursor", "limit", "agent_id", "chat_id"]);
    let (agent, room) = (query.uuid("agent_id").map(IdentityId), query.uuid("chat_id").map(RoomId));
    let list = format!("dead letters {agent:?} {room:?}");
    let page = DualPage::<(i64, i64, i64)>::read(&mut query, DEFAULT, &list)?;
    query.finish()?;
    let wanted =
        DeadLetterQuery { user: caller.identity, agent, room, after: page.after().copied(), limit: page.fetch() };
    let mut rows = app.dead_letters(wanted).await?;
    // This list is paged by cursor only, and counts nothing.
    let metadata = CursorMetadata::from(page.close(&mut rows, 0, &list, |(_, position)| *position)?);
    let data = rows.iter().map(|(letter, _)| render::dead_letter(letter)).collect();
    Ok(reply::page(&Page { data, metadata }))
}

/// `POST …/redeliver`: the message is served to the agent again, and told to it at once when it is connected.
pub(crate) async fn redeliver(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room, message]): PathIds<2>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["agent_id"], &mut problems);
    let agent = IdentityId(root.uuid("agent_id", &mut problems));
    problems.finish()?;
    let id = MessageId(message);
    app.redeliver(caller, RoomId(room), id, agent).await?;
    Ok(reply::ok(Redelivered { id, agent_id: agent, redelivered: true }))
}

//! `/agent/chats`: the agent's rooms.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::room::Room;
use bandstand_wire::ids::RoomId;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::room::{AgentChatRoomListItem, Roster};

use crate::http::extract::body::{JsonBody, OptionalJsonBody, Problems};
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::page::OffsetPage;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::human::rooms::{new_room, new_title};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// `GET`: the rooms that the agent is in, oldest first.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["page", "page_size", "include"]);
    let page = OffsetPage::read(&mut query, 20);
    let include =
        query.list("include", "is not an include of this list", |item| (item == "participants").then_some(()));
    query.finish()?;
    let found = app.agent_rooms(caller.identity, page.size, page.offset(), !include.is_empty()).await?;
    let data = found
        .rows
        .iter()
        .map(|row| AgentChatRoomListItem {
            room: render::room(&row.room),
            roster: row.roster.as_ref().map(|(shown, count)| Roster {
                participants: shown
                    .iter()
                    .map(|one| render::participant(one, app.hub.is_online(one.profile.id)))
                    .collect(),
                participant_count: *count,
                participants_truncated: i64::try_from(shown.len()).is_ok_and(|shown| shown < *count),
            }),
        })
        .collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

/// `POST`: a new room, owned by the agent. A bare `{}` and an empty body mean a room without a title.
pub(crate) async fn create(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    once: Once,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, ApiError> {
    let created = |room: &Room| reply::created(render::room(room));
    let (title, task_id) = new_room(body.as_ref())?;
    Ok(created(&once.services(&app, created).create_room(caller, title, task_id).await?))
}

/// `GET …/{id}`.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let (room, _) = app.room(caller, RoomId(id)).await?;
    Ok(reply::ok(render::room(&room)))
}

/// `PATCH …/{id}`: rename.
pub(crate) async fn rename(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let title = new_title(&body, &mut problems);
    problems.finish()?;
    Ok(reply::ok(render::room(&app.rename_room(caller, RoomId(id), title).await?)))
}

//! `/me/memories`: what agents remember about the user, share with its organization, or keep to themselves.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_wire::ids::{IdentityId, MemoryId};

use crate::auth::Caller;
use crate::http::extract::caller::CallerUser;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::memories::{MemoriesOn, filters, page, parameters, slice, with_meta};
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::memories::{MemoryChange, UserView};
use crate::state::AppState;

/// `GET`: newest first.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: MemoriesOn,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &parameters(&["chat_room_id", "scope", "source_agent_id"]));
    let mut filters = filters(&mut query);
    filters.source = query.uuid("source_agent_id").map(IdentityId);
    let view = query.parsed("scope", "must be one of about_me, organization, room, all", |text| match text {
        "about_me" => Some(UserView::AboutMe),
        "organization" => Some(UserView::Organization),
        "room" => Some(UserView::Room),
        "all" => Some(UserView::All),
        _ => None,
    });
    // No memory comes from a room here, so one room's memories are none.
    let view = match query.uuid("chat_room_id") {
        Some(_) => UserView::Room,
        None => view.unwrap_or(UserView::All),
    };
    let list = format!("user memories {} {view:?} {filters:?}", caller.identity);
    let page = page(&mut query, &list)?;
    query.finish()?;
    let found = app.user_memories(caller, view, filters, slice(&page)).await?;
    let mut rows = found.rows;
    let metadata = page.close(&mut rows, found.total.unwrap_or_default(), &list, |row| {
        (row.memory.inserted_at.as_micros(), row.memory.id.0)
    })?;
    Ok(reply::page(&with_meta(rows.iter().map(render::memory::user).collect(), metadata)))
}

/// `GET …/{id}`.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    Ok(reply::ok(render::memory::user(&app.user_memory(caller, MemoryId(id)).await?)))
}

/// `DELETE …/{id}`: for good.
pub(crate) async fn delete(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    app.delete_memory(caller, MemoryId(id)).await?;
    Ok(reply::no_content())
}

/// `POST …/{id}/supersede`: it no longer holds.
pub(crate) async fn supersede(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    change(&app, caller, MemoryId(id), MemoryChange::Supersede).await
}

/// `POST …/{id}/archive`: it is not needed now.
pub(crate) async fn archive(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    change(&app, caller, MemoryId(id), MemoryChange::Archive).await
}

/// `POST …/{id}/restore`: an archived one is needed again.
pub(crate) async fn restore(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    change(&app, caller, MemoryId(id), MemoryChange::Restore).await
}

async fn change(app: &AppState, caller: Caller, id: MemoryId, change: MemoryChange) -> Result<Response, ApiError> {
    Ok(reply::ok(render::memory::user(&app.change_user_memory(caller, id, change).await?)))
}

//! `/me/chats/{id}/participants`: who is in the room?

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::membership::{Participant, Role};
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::rest::Page;
use serde_json::Value;

use crate::auth::Caller;
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::{DUAL, DualPage};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::human::peers::kind;
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// `GET`: in id order, paged.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &[&DUAL[..], &["participant_type"]].concat());
    let kind = kind(&mut query, "participant_type");
    let list = format!("participants {room} {kind:?}");
    let page = DualPage::<IdentityId>::read(&mut query, 20, &list)?;
    query.finish()?;
    let after = page.after().copied();
    let found = app.participants_page(caller, RoomId(room), kind, after, page.fetch(), page.offset()).await?;
    let mut rows = found.rows;
    let metadata = page.close(&mut rows, found.total.unwrap_or_default(), &list, |one| one.profile.id)?;
    let data = rows.iter().map(|one| render::participant_details(one, app.hub.is_online(one.profile.id))).collect();
    Ok(page.mark(reply::page(&Page { data, metadata })))
}

/// Reads `{"participant":{"participant_id", "role"?}}`.
fn new_participant(body: &Value) -> Result<(IdentityId, Role), ApiError> {
    let mut problems = Problems::default();
    let participant = Object::wrapped(body, "participant", &["participant_id", "role"], &mut problems);
    let who = participant.uuid("participant_id", &mut problems);
    let role = participant.optional_text("role", &mut problems);
    let parsed = role.as_deref().map_or(Some(Role::Member), Role::parse);
    if parsed.is_none() {
        problems.add("/participant/role", "must be one of owner, admin, member");
    }
    problems.finish()?;
    Ok((IdentityId(who), parsed.unwrap_or(Role::Member)))
}

/// `POST`: invite somebody.
pub(crate) async fn add(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
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
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room, who]): PathIds<2>,
) -> Result<Response, ApiError> {
    remove_in(&app, caller, RoomId(room), IdentityId(who)).await
}

/// Adds somebody; the same in both APIs.
pub(crate) async fn add_in(
    app: &AppState,
    caller: Caller,
    room: RoomId,
    once: &Once,
    body: &Value,
) -> Result<Response, ApiError> {
    let (who, role) = new_participant(body)?;
    let hub = app.hub.clone();
    let created = move |added: &Participant| reply::created(render::participant(added, hub.is_online(who)));
    let services = once.services(app, created.clone());
    Ok(created(&services.add_participant(caller, room, who, role).await?))
}

/// Removes somebody; the same in both APIs.
pub(crate) async fn remove_in(
    app: &AppState,
    caller: Caller,
    room: RoomId,
    who: IdentityId,
) -> Result<Response, ApiError> {
    let removed = app.remove_participant(caller, room, who).await?;
    Ok(reply::ok(render::participant(&removed, app.hub.is_online(removed.profile.id))))
}

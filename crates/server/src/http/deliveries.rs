//! `…/chats/{id}/messages/{id}/deliveries` of both APIs: what became of a message for each participant, and why.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::handle;
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::Page;

use crate::auth::Caller;
use crate::http::extract::caller::{CallerAgent, CallerUser};
use crate::http::extract::page::{DualPage, MAX};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::Query;
use crate::http::{ApiError, reply};
use crate::render::delivery as render;
use crate::service::ledger::Asked;
use crate::state::AppState;

/// `GET` of an agent: all of what it sent, its own part of what it received.
pub(crate) async fn of_agent(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    PathIds(ids): PathIds<2>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    list(&app, caller, ids, raw.as_deref()).await
}

/// `GET` of a person who may read the room.
pub(crate) async fn of_user(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathIds(ids): PathIds<2>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    list(&app, caller, ids, raw.as_deref()).await
}

async fn list(app: &AppState, caller: Caller, ids: [uuid::Uuid; 2], raw: Option<&str>) -> Result<Response, ApiError> {
    let mut query = Query::new(raw, &["participant", "cursor", "limit"]);
    let asked = query.parsed("participant", "must be an id, or a handle with or without @", asked);
    let list = format!("deliveries {}", ids[1]);
    let page = DualPage::<i64>::read(&mut query, MAX, &list)?;
    query.finish()?;
    let (room, message) = (RoomId(ids[0]), MessageId(ids[1]));
    let mut rows = match asked {
        Some(asked) => vec![(app.message_delivery(caller, room, message, asked).await?, 0)],
        None => app.message_deliveries(caller, room, message, page.after().copied(), page.fetch()).await?,
    };
    // This list is paged by cursor only, and counts nothing.
    let metadata = CursorMetadata::from(page.close(&mut rows, 0, &list, |(_, key)| *key)?);
    let data = rows.iter().map(|(accounted, _)| render::row(accounted)).collect();
    Ok(reply::page(&Page { data, metadata }))
}

/// Reads whom it is asked about.
fn asked(text: &str) -> Option<Asked> {
    if let Ok(id) = text.parse() {
        return Some(Asked::Id(IdentityId(id)));
    }
    let handle = handle::folded(text);
    (!handle.is_empty() && !handle.contains('\0')).then_some(Asked::Handle(handle))
}

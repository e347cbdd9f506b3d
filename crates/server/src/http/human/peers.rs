//! `GET /me/peers`: whom can I invite?

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_store::peers::PeerQuery;
use bandstand_wire::ids::{IdentityKind, RoomId};
use bandstand_wire::rest::Page;

use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::OffsetPage;
use crate::http::extract::query::Query;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// Reads a parameter that is `User` or `Agent`.
pub(crate) fn kind(query: &mut Query<'_>, name: &str) -> Option<IdentityKind> {
    query.parsed(name, "must be User or Agent", |text| match text {
        "User" => Some(IdentityKind::User),
        "Agent" => Some(IdentityKind::Agent),
        _ => None,
    })
}

/// The caller's own agents and the global ones; after them whoever is nothing but a contact.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["not_in_chat", "type", "page", "page_size"]);
    let not_in = query.uuid("not_in_chat").map(RoomId);
    let kind = kind(&mut query, "type");
    let page = OffsetPage::read(&mut query, 20);
    query.finish()?;
    let me = caller.identity;
    let wanted = PeerQuery { me, owner: me, not_in, kind, offset: page.offset(), limit: page.size };
    let found = app.peers(caller, wanted).await?;
    let data = found.rows.iter().map(|peer| render::peer(peer, app.hub.is_online(peer.profile.id))).collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

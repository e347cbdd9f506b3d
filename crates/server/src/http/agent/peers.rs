//! `GET /agent/peers`: whom can I recruit?

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_store::peers::PeerQuery;
use bandstand_wire::ids::RoomId;
use bandstand_wire::rest::Page;

use crate::http::extract::caller::CallerAgent;
use crate::http::extract::page::OffsetPage;
use crate::http::extract::query::Query;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// The agent's owner, its siblings and the global agents; after them whoever is nothing but a contact.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["not_in_chat", "page", "page_size"]);
    let not_in = query.uuid("not_in_chat").map(RoomId);
    let page = OffsetPage::read(&mut query, 20);
    query.finish()?;
    let agent = app.agent(caller.identity).await?.ok_or_else(ApiError::unauthorized)?;
    let wanted = PeerQuery {
        me: caller.identity,
        owner: agent.owner,
        not_in,
        kind: None,
        offset: page.offset(),
        limit: page.size,
    };
    let found = app.peers(caller, wanted).await?;
    let data = found.rows.iter().map(|peer| render::peer(peer, app.hub.is_online(peer.profile.id))).collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

//! `/me/chats/{id}/messages`: read everything, post texts.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::file;
use bandstand_domain::mention::Requested;
use bandstand_domain::message::MessageKind;
use bandstand_wire::ids::{FileId, IdentityId, MessageId, RoomId};
use bandstand_wire::page::DualMetadata;
use bandstand_wire::rest::Page;
use bandstand_wire::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::auth::Caller;
use crate::http::agent::messages::{posted, window};
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::{DUAL, DualPage};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::lists::Place;
use crate::service::messages::PostMessage;
use crate::state::AppState;

/// Types that a list may ask for although no row here has them.
const WITHOUT_ROWS: [&str; 2] = ["system", "participant"];

/// Metadata of the list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RoomHistoryMetadata")]
pub(crate) struct ListMetadata {
    #[serde(flatten)]
    page: DualMetadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// With `after`, `before` or `around`.
    has_older: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Likewise.
    has_newer: Option<bool>,
}

fn kind(word: &str) -> Option<Option<MessageKind>> {
    MessageKind::parse(word).map(Some).or_else(|| WITHOUT_ROWS.contains(&word).then_some(None))
}

/// The kinds of rows that are asked for.
fn kinds(query: &mut Query<'_>) -> Result<Vec<MessageKind>, ApiError> {
    const MUST: &str = "is not a message type";
    let given = ["message_type", "message_types", "exclude_message_types"]
        .into_iter()
        .filter(|name| query.has(name) || query.has(&format!("{name}[]")))
        .count();
    if given > 1 {
        let message = "give at most one of message_type, message_types and exclude_message_types";
        return Err(ApiError::unprocessable("invalid_params", message));
    }
    if let Some(one) = query.parsed("message_type", MUST, kind) {
        return Ok(one.into_iter().collect());
    }
    let wanted = query.list("message_types", MUST, kind);
    if !wanted.is_empty() {
        let mut wanted: Vec<MessageKind> = wanted.into_iter().flatten().collect();
        wanted.sort_unstable();
        wanted.dedup();
        return Ok(wanted);
    }
    let excluded: Vec<MessageKind> = query.list("exclude_message_types", MUST, kind).into_iter().flatten().collect();
    Ok(MessageKind::ALL.iter().copied().filter(|kind| !excluded.contains(kind)).collect())
}

/// `GET`: texts and events, newest first.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let own = ["message_type", "message_types", "exclude_message_types", "since", "after", "before", "around"];
    let mut query = Query::new(raw.as_deref(), &[&DUAL[..], &own].concat());
    let kinds = kinds(&mut query)?;
    let since = query.parsed("since", "must be an ISO 8601 date and time", |text| {
        // A `+` that was not percent-encoded arrives as a space.
        Timestamp::parse(&text.replace(' ', "+")).or_else(|_| Timestamp::parse(text)).ok()
    });
    let anchors: Vec<(&str, MessageId)> = ["after", "before", "around"]
        .into_iter()
        .filter_map(|name| query.uuid(name).map(|id| (name, MessageId(id))))
        .collect();
    let list = format!("messages {room} {kinds:?} {since:?}");
    let page = DualPage::<i64>::read(&mut query, 20, &list)?;
    check_combination(&query, anchors.len(), since.is_some())?;
    query.finish()?;
    let limit = page.limit();
    let place = match (anchors.first(), since) {
        (Some(("after", id)), _) => Place::After(*id, limit),
        (Some(("before", id)), _) => Place::Before(*id, limit),
        (Some((_, id)), _) => Place::Around(*id, limit),
        (None, Some(moment)) => Place::Since(moment, window(&page, true)),
        (None, None) => Place::Window(window(&page, true)),
    };
    let found = app.history(caller, RoomId(room), kinds, place).await?;
    let mut rows = found.rows;
    let metadata = if anchors.is_empty() {
        // The total counts the whole room; how much is newer than a moment is known only where a page ends it.
        let total = if since.is_some() { page.offset() + i64::try_from(rows.len()).unwrap_or(0) } else { found.total };
        page.close(&mut rows, total, &list, |message| message.sequence)?
    } else {
        let shown = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = found.beyond.map_or(rows.len() > shown, |(older, _)| older);
        rows.truncate(shown);
        DualMetadata { has_more, limit, next_cursor: None, offset: None }
    };
    let (has_older, has_newer) = found.beyond.unzip();
    let data = rows.iter().map(render::message).collect();
    let metadata = ListMetadata { page: metadata, has_older, has_newer };
    Ok(page.mark(reply::page(&Page { data, metadata })))
}

/// Refuses parameters that contradict each other.
fn check_combination(query: &Query<'_>, anchors: usize, since: bool) -> Result<(), ApiError> {
    let refuse = |message: &str| Err(ApiError::unprocessable("invalid_params", message));
    let paged = query.has("cursor") || query.has("page") || query.has("page_size");
    if anchors > 1 {
        return refuse("give at most one of after, before and around");
    }
    if anchors == 1 && (since || paged) {
        return refuse("after, before and around go neither with since nor with cursor, page or page_size");
    }
    if since && query.has("cursor") {
        return refuse("since does not go with cursor");
    }
    Ok(())
}

/// `POST`: say something to somebody.
pub(crate) async fn post(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    posted(&app, caller, RoomId(room), &once, &body).await
}

/// Reads `{"message":{"content", "mentions", "attachment_ids"?}}`. `message_type` and `metadata` are tolerated, as the
/// TypeScript SDK may send them, and ignored.
pub(crate) fn new_message(body: &Value, caller: Caller, room: RoomId) -> Result<PostMessage, ApiError> {
    let mut problems = Problems::default();
    let message = Object::wrapped(
        body,
        "message",
        &["content", "mentions", "attachment_ids", "message_type", "metadata"],
        &mut problems,
    );
    let content = message.text("content", &mut problems);
    if message.optional_text("message_type", &mut problems).is_some_and(|kind| kind != "text") {
        problems.add("/message/message_type", "must be text");
    }
    message.optional_object("metadata", &mut problems);
    let mut mentions = Vec::new();
    for (place, value) in message.list("mentions", &mut problems) {
        let mention = Object::at(place, value, &mut problems);
        mention.only(&["id", "handle", "name", "username", "kind"], &mut problems);
        mention.optional_text("name", &mut problems);
        if mention.has("kind") && mention.get("kind").is_none() {
            problems.add(&mention.place("kind"), "must be mention or reference");
        }
        mentions.push(Requested {
            id: mention.optional_uuid("id", &mut problems).map(IdentityId),
            handle: mention.optional_text("handle", &mut problems),
            kind: mention.optional_text("kind", &mut problems),
        });
    }
    if message.has("attachment_ids") && message.get("attachment_ids").is_none() {
        problems.add("/message/attachment_ids", "must be a list");
    }
    let listed = message.list("attachment_ids", &mut problems);
    if listed.len() > file::ATTACHMENTS_MAX {
        problems.add("/message/attachment_ids", "should have at most 10 item(s)");
    }
    let mut attachments = Vec::with_capacity(listed.len());
    for (place, value) in &listed {
        match value.as_str().and_then(|text| text.parse().ok()) {
            Some(id) => attachments.push(FileId(id)),
            None => problems.add(place, "must be a UUID"),
        }
    }
    problems.finish()?;
    Ok(PostMessage { room, caller, content, mentions, attachments })
}

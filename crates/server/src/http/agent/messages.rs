//! `/agent/chats/{id}/messages`: post, list by status, next, and the three marks.

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use bandstand_domain::content;
use bandstand_domain::delivery::{Mark, StatusFilter};
use bandstand_store::walk::Window;
use bandstand_wire::ids::{MessageId, RoomId};
use bandstand_wire::page::DualMetadata;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::message::{MessageSent, MessageStatusChange};
use schemars::JsonSchema;
use serde::Serialize;

use crate::auth::Caller;
use crate::http::extract::body::{JsonBody, Object, OptionalJsonBody, Problems};
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::page::{DUAL, DualPage};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::human::messages::new_message;
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::marks::{MarkError, Marked};
use crate::service::messages::Posted;
use crate::state::AppState;

/// Metadata of the list: paging, and the status that applied.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentMessagesMetadata")]
pub(crate) struct ListMetadata {
    #[serde(flatten)]
    page: DualMetadata,
    /// Null when no status was asked for.
    #[schemars(with = "Option<bandstand_wire::rest::words::DeliveryFilter>")]
    status_filter: Option<&'static str>,
}

/// `GET`: the messages that mention the agent, by what became of them.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &[&DUAL[..], &["status", "sort_order"]].concat());
    let filter =
        query.parsed("status", "must be one of pending, processing, processed, failed, all", StatusFilter::parse);
    let filter = filter.unwrap_or(StatusFilter::Unprocessed);
    let descending = query.parsed("sort_order", "must be asc or desc", |text| match text {
        "asc" => Some(false),
        "desc" => Some(true),
        _ => None,
    });
    let descending = descending.unwrap_or(false);
    let list = format!("agent messages {room} {} {descending}", filter.wire().unwrap_or(""));
    let page = DualPage::<i64>::read(&mut query, 20, &list)?;
    if descending && matches!(page, DualPage::Offset(_)) {
        query.problem("/sort_order", "desc goes with cursor and limit, not with page and page_size");
    }
    query.finish()?;
    let window = window(&page, descending);
    let found = app.agent_messages(caller, RoomId(room), filter, window).await?;
    let mut rows = found.rows;
    let total = found.total.unwrap_or_default();
    let metadata = page.close(&mut rows, total, &list, |message| message.sequence)?;
    let data = rows.iter().map(render::message).collect();
    let metadata = ListMetadata { page: metadata, status_filter: filter.wire() };
    Ok(page.mark(reply::page(&Page { data, metadata })))
}

/// The part of an ordered history that a page shows, and one row more.
pub(crate) fn window(page: &DualPage<i64>, descending: bool) -> Window {
    let whole = if descending { Window::newest(page.fetch()) } else { Window::oldest(page.fetch()) };
    let whole = Window { offset: page.offset(), ..whole };
    match (page.after(), descending) {
        (None, _) => whole,
        (Some(sequence), false) => Window { after: *sequence, ..whole },
        (Some(sequence), true) => Window { before: *sequence, ..whole },
    }
}

/// `POST`: say something to somebody.
pub(crate) async fn post(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    posted(&app, caller, RoomId(room), &once, &body).await
}

/// Posts a message for either kind of caller.
pub(crate) async fn posted(
    app: &AppState,
    caller: Caller,
    room: RoomId,
    once: &Once,
    body: &serde_json::Value,
) -> Result<Response, ApiError> {
    let sent = |posted: &Posted| {
        let recipients = render::recipients(&posted.mentions);
        reply::created(MessageSent { id: posted.id, success: true, recipients })
    };
    Ok(sent(&once.services(app, sent).post_message(new_message(body, caller, room)?).await?))
}

/// `GET …/next`: the oldest message that is not done, or 204.
pub(crate) async fn next(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
) -> Result<Response, ApiError> {
    let found = app.next_message(caller, RoomId(room), &app.delivered).await?;
    Ok(found.map_or_else(reply::no_content, |message| reply::ok(render::message(&message))))
}

async fn mark(
    app: &AppState,
    caller: Caller,
    ids: [uuid::Uuid; 2],
    once: &Once,
    mark: Mark,
) -> Result<Response, ApiError> {
    let id = MessageId(ids[1]);
    let status = mark.state().wire().unwrap_or_default();
    let marked = move |attempt_number| reply::ok(MessageStatusChange { id, success: true, status, attempt_number });
    // What gives a message up is written and refused all the same: such a refusal is not remembered.
    let remembered = move |outcome: &Marked| match outcome.attempt() {
        Ok(number) => marked(number),
        Err(refused) => ApiError::from(refused).into_response(),
    };
    match once.services(app, remembered).mark(caller, RoomId(ids[0]), id, mark).await {
        // Clients know by it that they are stopped in this room.
        Err(MarkError::Stopped) => Ok(reply::no_content()),
        number => Ok(marked(number?)),
    }
}

/// `POST …/{id}/processing`: I start to work on this.
pub(crate) async fn processing(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds(ids): PathIds<2>,
    once: Once,
) -> Result<Response, ApiError> {
    mark(&app, caller, ids, &once, Mark::Processing).await
}

/// `POST …/{id}/processed`: I am done with this. With a body, which no Band client sends: it was not for me.
pub(crate) async fn processed(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds(ids): PathIds<2>,
    once: Once,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, ApiError> {
    let done = body.map_or(Ok(Mark::Processed), |body| finished(&body))?;
    mark(&app, caller, ids, &once, done).await
}

/// What the body of a `processed` mark says.
fn finished(body: &serde_json::Value) -> Result<Mark, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(body, &mut problems);
    root.only(&["outcome", "reason"], &mut problems);
    let outcome = root.optional_text("outcome", &mut problems);
    let reason = root.optional_text("reason", &mut problems);
    match (outcome.as_deref(), &reason) {
        (Some("declined"), _) | (None, None) => {}
        (Some(_), _) => problems.add("/outcome", "must be declined"),
        (None, Some(_)) => problems.add("/reason", "goes with the outcome declined only"),
    }
    if let Some(reason) = &reason {
        check_words("/reason", reason, &mut problems);
    }
    problems.finish()?;
    Ok(outcome.map_or(Mark::Processed, |_| Mark::Declined(reason)))
}

/// What an agent says of a message, for people to read.
fn check_words(place: &str, text: &str, problems: &mut Problems) {
    if text.trim().is_empty() {
        problems.add(place, "can't be blank");
    } else if text.contains('\0') {
        problems.add(place, "must not contain the character NUL");
    } else if text.chars().count() > content::EVENT_MAX_CHARACTERS {
        problems.add(place, "should be at most 16384 character(s)");
    }
}

/// `POST …/{id}/failed`: I could not do this.
pub(crate) async fn failed(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds(ids): PathIds<2>,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["error"], &mut problems);
    let error = root.text("error", &mut problems);
    if root.get("error").is_some_and(serde_json::Value::is_string) {
        check_words("/error", &error, &mut problems);
    }
    problems.finish()?;
    mark(&app, caller, ids, &once, Mark::Failed(error)).await
}

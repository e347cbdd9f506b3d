//! `/me/contacts`: whom do I know, and who asks?

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::contact::{self, Answer, ContactRequest, RequestStatus};
use bandstand_domain::handle;
use bandstand_wire::ids::ContactRequestId;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::contact::{ContactRemoved, ResolvedEntity};
use serde_json::Value;

use crate::auth::Caller;
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::OffsetPage;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render::contact as render;
use crate::service::contacts::{ContactTarget, RequestTarget};
use crate::state::AppState;

/// Reads only the parameters of an offset page.
pub(crate) fn page_only(raw: Option<&str>) -> Result<OffsetPage, ApiError> {
    let mut query = Query::new(raw, &["page", "page_size"]);
    let page = OffsetPage::read(&mut query, 20);
    query.finish()?;
    Ok(page)
}

/// Reads which requests to list: of a status, or `all`.
pub(crate) fn status(query: &mut Query<'_>, name: &str, default: Option<RequestStatus>) -> Option<RequestStatus> {
    let must = "must be one of all, pending, approved, rejected, cancelled";
    let wanted = query.parsed(name, must, |text| match RequestStatus::parse(text) {
        // A word of the platform that no request here ever has, and none of those to choose from.
        Some(RequestStatus::Expired) => None,
        Some(status) => Some(Some(status)),
        None => (text == "all").then_some(None),
    });
    wanted.unwrap_or(default)
}

/// A handle, with or without `@`: folded.
///
/// # Errors
/// 400 with its place.
pub(crate) fn parse_handle(place: &str, text: &str) -> Result<String, ApiError> {
    handle::parse(text).map_err(|why| ApiError::bad_request_at(place, why.to_string()))
}

/// Reads the `message` of a request.
pub(crate) fn message(of: &Object<'_>, problems: &mut Problems) -> Option<String> {
    let text = of.optional_text("message", problems)?;
    match contact::message(&text) {
        Ok(message) => message.map(str::to_owned),
        Err(why) => {
            problems.add(&of.place("message"), why.to_string());
            None
        }
    }
}

/// Reads `{"handle"}` or `{"contact_id"}`; of both, the id wins.
pub(crate) fn contact_target(body: &Value) -> Result<ContactTarget, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(body, &mut problems);
    root.only(&["handle", "contact_id"], &mut problems);
    let id = root.optional_uuid("contact_id", &mut problems);
    let handle = root.optional_text("handle", &mut problems);
    problems.finish()?;
    let handle = handle.map(|text| parse_handle("/handle", &text)).transpose()?;
    match (id, handle) {
        (Some(id), _) => Ok(ContactTarget::Id(id)),
        (None, Some(handle)) => Ok(ContactTarget::Handle(handle)),
        (None, None) => Err(ApiError::bad_request("either handle or contact_id must be provided")),
    }
}

/// `GET`.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let page = page_only(raw.as_deref())?;
    let found = app.contacts(caller.identity, page.size, page.offset()).await?;
    let data = found.rows.iter().map(|one| render::contact(one, app.hub.is_online(one.profile.id))).collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

/// `POST …/remove`: for both.
pub(crate) async fn remove(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    app.remove_contact(caller, contact_target(&body)?).await?;
    Ok(reply::ok(ContactRemoved { status: "removed" }))
}

/// `POST …/resolve`: who has this handle?
pub(crate) async fn resolve(
    State(app): State<AppState>,
    CallerUser(_): CallerUser,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["handle"], &mut problems);
    let text = root.text("handle", &mut problems);
    problems.finish()?;
    let handle = parse_handle("/handle", &text)?;
    let found = app.resolve_handle(handle).await?.ok_or_else(ApiError::not_found)?;
    Ok(reply::ok(ResolvedEntity { kind: found.kind, name: found.name, handle: found.handle }))
}

/// `GET …/requests`: what others ask, as long as it is pending.
pub(crate) async fn received(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let page = page_only(raw.as_deref())?;
    let found = app.received_requests(caller.identity, page.size, page.offset()).await?;
    let data = found.rows.iter().map(render::contact_request).collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

/// `GET …/requests/sent`: what the caller asks of others.
pub(crate) async fn sent(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["status", "page", "page_size"]);
    let status = status(&mut query, "status", None);
    let page = OffsetPage::read(&mut query, 20);
    query.finish()?;
    let found = app.sent_requests(caller.identity, status, page.size, page.offset()).await?;
    let data = found.rows.iter().map(render::contact_request).collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

/// `POST …/requests`: ask somebody. When it has asked already, its request is approved and is the answer.
pub(crate) async fn create(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let request = Object::wrapped(&body, "contact_request", &["recipient_handle", "message"], &mut problems);
    let text = request.text("recipient_handle", &mut problems);
    let message = message(&request, &mut problems);
    problems.finish()?;
    let handle = parse_handle("/contact_request/recipient_handle", &text)?;
    let created = |asked: &ContactRequest| reply::created(render::contact_request(asked));
    Ok(created(&once.services(&app, created).ask_contact(caller, handle, message).await?))
}

/// `POST …/requests/{id}/approve`.
pub(crate) async fn approve(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
    once: Once,
) -> Result<Response, ApiError> {
    answer(&app, caller, ContactRequestId(id), Answer::Approve, &once).await
}

/// `POST …/requests/{id}/reject`.
pub(crate) async fn reject(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
    once: Once,
) -> Result<Response, ApiError> {
    answer(&app, caller, ContactRequestId(id), Answer::Reject, &once).await
}

/// `DELETE …/requests/{id}`: take it back.
pub(crate) async fn cancel(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
    once: Once,
) -> Result<Response, ApiError> {
    answer(&app, caller, ContactRequestId(id), Answer::Cancel, &once).await
}

async fn answer(
    app: &AppState,
    caller: Caller,
    id: ContactRequestId,
    answer: Answer,
    once: &Once,
) -> Result<Response, ApiError> {
    let answered = |request: &ContactRequest| reply::ok(render::request_action(request));
    Ok(answered(&once.services(app, answered).answer_request(caller, RequestTarget::Id(id), answer).await?))
}

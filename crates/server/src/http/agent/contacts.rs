//! `/agent/contacts`: whom do I know, and who asks?

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::contact::{Answer, ContactRequest, RequestStatus};
use bandstand_wire::ids::ContactRequestId;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::contact::{AgentContactRequests, ContactRemoved, ContactRequestsMetadata, RequestDirections};

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::page::OffsetPage;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::human::contacts::{contact_target, message, page_only, parse_handle, status};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render::contact as render;
use crate::service::contacts::RequestTarget;
use crate::state::AppState;

/// `GET`.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let page = page_only(raw.as_deref())?;
    let found = app.contacts(caller.identity, page.size, page.offset()).await?;
    let data = found.rows.iter().map(|one| render::agent_contact(one, app.hub.is_online(one.profile.id))).collect();
    Ok(reply::page(&Page { data, metadata: page.metadata(found.total.unwrap_or_default()) }))
}

/// `POST …/add`: ask somebody. When it has asked already, its request is approved and is the answer.
pub(crate) async fn add(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["handle", "message"], &mut problems);
    let text = root.text("handle", &mut problems);
    let message = message(&root, &mut problems);
    problems.finish()?;
    let created = |asked: &ContactRequest| reply::created(render::request_action(asked));
    let handle = parse_handle("/handle", &text)?;
    Ok(created(&once.services(&app, created).ask_contact(caller, handle, message).await?))
}

/// `POST …/remove`: for both.
pub(crate) async fn remove(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    app.remove_contact(caller, contact_target(&body)?).await?;
    Ok(reply::ok(ContactRemoved { status: "removed" }))
}

/// `GET …/requests`: the same page of both directions. Received ones are listed as long as they are pending.
pub(crate) async fn requests(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["sent_status", "page", "page_size"]);
    let sent_status = status(&mut query, "sent_status", Some(RequestStatus::Pending));
    let page = OffsetPage::read(&mut query, 20);
    query.finish()?;
    let found = app.contact_requests(caller.identity, sent_status, page.size, page.offset()).await?;
    let (received, sent) = (found.received, found.sent);
    let totals = (received.total.unwrap_or_default(), sent.total.unwrap_or_default());
    Ok(reply::json(
        hyper::StatusCode::OK,
        &AgentContactRequests {
            data: RequestDirections {
                received: received.rows.iter().map(render::received_request).collect(),
                sent: sent.rows.iter().map(render::sent_request).collect(),
            },
            metadata: ContactRequestsMetadata::new(page.page, page.size, totals.0, totals.1),
        },
    ))
}

/// `POST …/requests/respond`: answer a request, or take one back. It is named by its id, or by the handle on the other
/// side; of both, the id wins.
pub(crate) async fn respond(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["action", "handle", "request_id"], &mut problems);
    let word = root.text("action", &mut problems);
    let action = Answer::parse(&word);
    if action.is_none() && root.get("action").is_some_and(serde_json::Value::is_string) {
        problems.add("/action", "must be one of approve, reject, cancel");
    }
    let id = root.optional_uuid("request_id", &mut problems);
    let handle = root.optional_text("handle", &mut problems);
    problems.finish()?;
    let handle = handle.map(|text| parse_handle("/handle", &text)).transpose()?;
    let target = match (id, handle) {
        (Some(id), _) => RequestTarget::Id(ContactRequestId(id)),
        (None, Some(handle)) => RequestTarget::Handle(handle),
        (None, None) => return Err(ApiError::bad_request("either handle or request_id must be provided")),
    };
    // A missing or wrong action was refused above.
    let action = action.ok_or_else(|| ApiError::invalid_at("/action", "can't be blank"))?;
    let answered = |request: &ContactRequest| reply::ok(render::request_action(request));
    Ok(answered(&once.services(&app, answered).answer_request(caller, target, action).await?))
}

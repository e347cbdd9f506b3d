//! `/me/agents/bulk-delete`, `/me/chats/bulk-delete` and `/me/bulk-deletions/{id}`: delete many at once, and look how far
//! that is.

use std::collections::HashSet;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::bulk_deletion::{BulkDeletion, GIVEN_MAX_CHARACTERS, ITEMS_MAX, Resource};
use bandstand_wire::ids::BulkDeletionId;
use serde_json::Value;
use uuid::Uuid;

use crate::auth::Caller;
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::path::PathId;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render::bulk_deletion as render;
use crate::service::bulk_deletions::BulkRequest;
use crate::state::AppState;

/// `POST /me/agents/bulk-delete`.
pub(crate) async fn agents(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    accepted(&app, &once, request(&body, caller, Resource::Agent)?).await
}

/// `POST /me/chats/bulk-delete`.
pub(crate) async fn rooms(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    accepted(&app, &once, request(&body, caller, Resource::Room)?).await
}

/// `GET /me/bulk-deletions/{id}`.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathId(id): PathId,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    Query::new(raw.as_deref(), &[]).finish()?;
    let job = app.bulk_deletion(caller.identity, BulkDeletionId(id)).await?.ok_or_else(ApiError::not_found)?;
    Ok(reply::ok(render::job(&job)))
}

async fn accepted(app: &AppState, once: &Once, request: BulkRequest) -> Result<Response, ApiError> {
    let accepted = |job: &BulkDeletion| {
        let location = format!("/api/v1/me/bulk-deletions/{}", job.id);
        reply::accepted(render::job(job), &location)
    };
    Ok(accepted(&once.services(app, accepted).accept_bulk_deletion(request).await?))
}

/// Reads `{"ids"}`, with `force` for agents.
fn request(body: &Value, caller: Caller, resource: Resource) -> Result<BulkRequest, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(body, &mut problems);
    let mut force = false;
    match resource {
        Resource::Room => root.only(&["ids"], &mut problems),
        Resource::Agent => {
            root.only(&["ids", "force"], &mut problems);
            // Null is not taken for false: whoever deletes by force says so.
            if root.has("force") {
                force = root.flag("force", &mut problems);
            }
        }
    }
    let ids = if body.is_object() { ids(&root, &mut problems) } else { Vec::new() };
    problems.finish()?;
    Ok(BulkRequest { caller, resource, force, ids })
}

/// The ids as they were given, each once. One that is no UUID is taken: it will not be found.
fn ids(root: &Object<'_>, problems: &mut Problems) -> Vec<String> {
    let given = root.list("ids", problems);
    if root.get("ids").is_none() {
        problems.add("/ids", "can't be blank");
    } else if given.is_empty() && root.get("ids").is_some_and(Value::is_array) {
        problems.add("/ids", "should have at least 1 item(s)");
    } else if given.len() > ITEMS_MAX {
        problems.add("/ids", format!("should have at most {ITEMS_MAX} item(s)"));
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut ids = Vec::with_capacity(given.len());
    for (place, value) in given {
        let Some(text) = value.as_str() else {
            problems.add(&place, "must be a string");
            continue;
        };
        // However a UUID is written, it is the same one.
        let same = text.parse::<Uuid>().map_or_else(|_| text.to_owned(), |id| id.to_string());
        if text.contains('\0') {
            problems.add(&place, "must not contain the character NUL");
        } else if text.chars().count() > GIVEN_MAX_CHARACTERS {
            problems.add(&place, format!("should be at most {GIVEN_MAX_CHARACTERS} character(s)"));
        } else if !seen.insert(same) {
            problems.add(&place, "is in the list already");
        }
        ids.push(text.to_owned());
    }
    ids
}

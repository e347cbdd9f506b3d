//! `/me/profile`: who am I?

use axum::extract::State;
use axum::response::Response;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::query::NoQuery;
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::profile::NAME_PART_MAX;
use crate::state::AppState;

/// `GET`.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
) -> Result<Response, ApiError> {
    let user = app.user(caller.identity).await?.ok_or_else(ApiError::unauthorized)?;
    Ok(reply::ok(render::user(&user)))
}

/// `PUT`: only the names that are sent change.
pub(crate) async fn update(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let user = Object::wrapped(&body, "user", &["first_name", "last_name"], &mut problems);
    let mut name = |field: &str| {
        let text = user.optional_text(field, &mut problems).map(|text| text.trim().to_owned());
        if text.as_ref().is_some_and(|text| text.chars().count() > NAME_PART_MAX) {
            problems.add(&user.place(field), "should be at most 100 character(s)");
        }
        if text.as_ref().is_some_and(|text| text.chars().any(char::is_control)) {
            problems.add(&user.place(field), "must not contain control characters");
        }
        text
    };
    let (first, last) = (name("first_name"), name("last_name"));
    problems.finish()?;
    let user = app.rename_user(caller.identity, first, last).await?.ok_or_else(ApiError::unauthorized)?;
    Ok(reply::ok(render::user(&user)))
}

//! `/agent/chats/{id}/board`: the room's goal.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::board::{self as domain, GoalUpdate, goal_text};
use bandstand_domain::task::{LINE_MAX_CHARACTERS, TEXT_MAX_CHARACTERS};
use bandstand_wire::ids::RoomId;
use bandstand_wire::rest::task::Board;

use crate::http::agent::tasks::{includes_history, text};
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::Query;
use crate::http::extract::task::BoardCaller;
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::state::AppState;

/// `GET`: the goal; all null until one is set.
pub(crate) async fn show(
    State(app): State<AppState>,
    BoardCaller(caller): BoardCaller,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let with_trail = includes_history(raw.as_deref())?;
    let found = app.board(caller, RoomId(room), with_trail).await?;
    let history = found.trail.map(|(rows, truncated)| render::board::goal_trail(&rows, truncated));
    Ok(reply::ok(Board { history, ..render::board::board(&found.board) }))
}

/// `PUT`: sets the goal, or the part of it that is sent. Null and blank take a part away.
pub(crate) async fn set(
    State(app): State<AppState>,
    BoardCaller(caller): BoardCaller,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    Query::new(raw.as_deref(), &[]).finish()?;
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["goal_title", "goal_summary"], &mut problems);
    if body.is_object() && !root.has("goal_title") && !root.has("goal_summary") {
        problems.add("/", "at least one of goal_title or goal_summary must be set");
    }
    let mut part = |name: &str, most: usize| {
        let value = text(&root, name, |text| goal_text(text, most), &mut problems).flatten();
        root.has(name).then_some(value)
    };
    let title = part("goal_title", LINE_MAX_CHARACTERS);
    let summary = part("goal_summary", TEXT_MAX_CHARACTERS);
    problems.finish()?;
    let saved = |board: &domain::Board| reply::ok(render::board::board(board));
    let update = GoalUpdate { title, summary };
    Ok(saved(&once.services(&app, saved).set_goal(caller, RoomId(room), update).await?))
}

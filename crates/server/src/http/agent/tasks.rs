//! `/agent/chats/{id}/tasks`: the tasks of a room's board.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::task::{
    self, LINE_MAX_CHARACTERS, TEXT_MAX_CHARACTERS, TaskRef, TaskState, TaskStatus, TaskUpdate, TextFault,
};
use bandstand_wire::ids::RoomId;
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::task::Task;
use serde_json::Value;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::page::DualPage;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::Query;
use crate::http::extract::task::{BoardCaller, TaskPath};
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::tasks::CreateTask;
use crate::state::AppState;

/// Rows of a page unless the client says otherwise.
const DEFAULT_LIMIT: i64 = 50;

/// What a list may show.
const STATES: &str = "must be one of active, cancelled, superseded, archived, all";

/// `GET`: the tasks of the board by number, the active ones unless asked for others.
pub(crate) async fn list(
    State(app): State<AppState>,
    BoardCaller(caller): BoardCaller,
    PathIds([room]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["state", "cursor", "limit"]);
    let state = query.parsed("state", STATES, |word| match word {
        "all" => Some(None),
        word => TaskState::parse(word).map(Some),
    });
    let state = state.unwrap_or(Some(TaskState::Active));
    let list = format!("tasks {room} {}", state.map_or("all", TaskState::as_str));
    let page = DualPage::<i64>::read(&mut query, DEFAULT_LIMIT, &list)?;
    query.finish()?;
    let after = page.after().copied().unwrap_or(0);
    let mut rows = app.tasks(caller, RoomId(room), state, after, page.fetch()).await?;
    let metadata = CursorMetadata::from(page.close(&mut rows, 0, &list, |task| task.number)?);
    let data: Vec<Task> = rows.iter().map(render::board::task).collect();
    Ok(reply::page(&Page { data, metadata }))
}

/// `POST`: a new task under the room's next number. The creator is not assigned by that.
pub(crate) async fn create(
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
    root.only(&["subject", "detail", "supersedes_id"], &mut problems);
    if body.is_object() && root.get("subject").is_none() {
        problems.add("/subject", TextFault::Blank.to_string());
    }
    let subject = text(&root, "subject", task::subject, &mut problems);
    let detail = checked(&root, "detail", TEXT_MAX_CHARACTERS, &mut problems);
    let named = root.optional_text("supersedes_id", &mut problems);
    let supersedes = named.as_deref().and_then(TaskRef::parse);
    if named.is_some() && supersedes.is_none() {
        problems.add("/supersedes_id", "must be the UUID or number of an active task of this room");
    }
    problems.finish()?;
    let (subject, detail) = (subject.unwrap_or_default(), detail.unwrap_or_default());
    let created = |task: &task::Task| reply::created(render::board::task(task));
    let new = CreateTask { subject, detail, supersedes };
    Ok(created(&once.services(&app, created).create_task(caller, RoomId(room), new).await?))
}

/// `GET …/{id}`: one task, whatever became of it.
pub(crate) async fn show(
    State(app): State<AppState>,
    BoardCaller(caller): BoardCaller,
    TaskPath(room, task): TaskPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let with_history = includes_history(raw.as_deref())?;
    let found = app.task(caller, room, task, with_history).await?;
    let history = found.history.map(|(rows, truncated)| render::board::task_history(&rows, truncated));
    Ok(reply::ok(Task { history, ..render::board::task(&found.task) }))
}

/// Reads `include=history`, the only parameter of a task and of the board.
pub(super) fn includes_history(raw: Option<&str>) -> Result<bool, ApiError> {
    let mut query = Query::new(raw, &["include"]);
    let include = query.list("include", "must be history", |item| (item == "history").then_some(()));
    query.finish()?;
    Ok(!include.is_empty())
}

/// `POST …/{id}`: what the agent says of the task: its own progress, a note, an edit, the task's state.
pub(crate) async fn update(
    State(app): State<AppState>,
    BoardCaller(caller): BoardCaller,
    TaskPath(room, task): TaskPath,
    RawQuery(raw): RawQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    Query::new(raw.as_deref(), &[]).finish()?;
    let update = task_update(&body)?;
    let updated = |task: &task::Task| reply::ok(render::board::task(task));
    Ok(updated(&once.services(&app, updated).update_task(caller, room, task, update).await?))
}

fn task_update(body: &Value) -> Result<TaskUpdate, ApiError> {
    const FIELDS: [&str; 7] = ["status", "active_form", "comment", "subject", "detail", "state", "linked_native_id"];
    let mut problems = Problems::default();
    let root = Object::root(body, &mut problems);
    root.only(&FIELDS, &mut problems);
    if body.is_object() && FIELDS.iter().all(|field| root.get(field).is_none()) {
        problems.add("/", format!("at least one of {} must be set", FIELDS.join(", ")));
    }
    let statuses = "must be one of pending, in_progress, blocked, in_review, failed, completed";
    let update = TaskUpdate {
        status: word(&root, "status", statuses, TaskStatus::parse, &mut problems),
        active_form: checked(&root, "active_form", LINE_MAX_CHARACTERS, &mut problems),
        linked_native_id: checked(&root, "linked_native_id", LINE_MAX_CHARACTERS, &mut problems),
        comment: text(&root, "comment", |text| task::comment(text).map(|()| text.to_owned()), &mut problems),
        subject: text(&root, "subject", task::subject, &mut problems),
        detail: checked(&root, "detail", TEXT_MAX_CHARACTERS, &mut problems),
        state: word(
            &root,
            "state",
            "must be one of active, cancelled, archived",
            // Only a new task supersedes.
            |word| TaskState::parse(word).filter(|state| *state != TaskState::Superseded),
            &mut problems,
        ),
    };
    problems.finish()?;
    Ok(update)
}

/// A word of a list that may be missing.
fn word<T>(
    object: &Object<'_>,
    name: &str,
    must: &str,
    read: impl Fn(&str) -> Option<T>,
    problems: &mut Problems,
) -> Option<T> {
    let text = object.optional_text(name, problems)?;
    let value = read(&text);
    if value.is_none() {
        problems.add(&object.place(name), must);
    }
    value
}

/// A text that may be missing, read by a rule.
pub(super) fn text<T>(
    object: &Object<'_>,
    name: &str,
    rule: impl Fn(&str) -> Result<T, TextFault>,
    problems: &mut Problems,
) -> Option<T> {
    let text = object.optional_text(name, problems)?;
    rule(&text).map_err(|fault| problems.add(&object.place(name), fault.to_string())).ok()
}

/// A text that may be missing or empty.
fn checked(object: &Object<'_>, name: &str, most: usize, problems: &mut Problems) -> Option<String> {
    text(object, name, |text| task::check(text, most).map(|()| text.to_owned()), problems)
}

/// `GET …/{id}/history`: all that was done to the task, oldest first.
pub(crate) async fn history(
    State(app): State<AppState>,
    BoardCaller(caller): BoardCaller,
    TaskPath(room, task): TaskPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["cursor", "limit"]);
    let list = format!("task history {room}");
    // The task's number stands in the cursor, so that it goes on whichever way the task is named.
    let page = DualPage::<(i64, i64)>::read(&mut query, DEFAULT_LIMIT, &list)?;
    query.finish()?;
    let (of, after) = page.after().map_or((None, 0), |(number, place)| (Some(*number), *place));
    let (number, mut rows) = app.task_history(caller, room, task, after, page.fetch()).await?;
    if of.is_some_and(|of| of != number) {
        let message = "the cursor belongs to another task; start again without it";
        return Err(ApiError::unprocessable("cursor_filter_mismatch", message));
    }
    let metadata = CursorMetadata::from(page.close(&mut rows, 0, &list, |row| (number, row.place))?);
    let data = rows.iter().map(render::board::task_event).collect();
    Ok(reply::page(&Page { data, metadata }))
}

//! `POST /agent/chats/{id}/events`: let me record what I am doing.

use axum::extract::State;
use axum::response::Response;
use bandstand_domain::content;
use bandstand_domain::message::MessageKind;
use bandstand_domain::task::TaskRef;
use bandstand_wire::ids::{MessageId, RoomId};
use bandstand_wire::rest::message::EventCreated;
use serde_json::Value;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::NoQuery;
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::service::messages::PostEvent;
use crate::state::AppState;

/// What an `attention` event may ask for.
const ATTENTION_KINDS: [&str; 4] = ["question", "assumption", "failure", "review"];

/// Records an event.
pub(crate) async fn post(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let event = Object::wrapped(&body, "event", &["content", "message_type", "metadata"], &mut problems);
    let text = event.text("content", &mut problems);
    let word = event.text("message_type", &mut problems);
    let kind = MessageKind::parse(&word).filter(|kind| *kind != MessageKind::Text);
    if kind.is_none() && !word.is_empty() {
        let must = "must be one of tool_call, tool_result, thought, error, task, attention";
        problems.add("/event/message_type", must);
    }
    let metadata = event.optional_object("metadata", &mut problems);
    let metadata_text = event.get("metadata").map(Value::to_string);
    if metadata_text.as_ref().is_some_and(|text| text.len() > content::EVENT_METADATA_MAX_BYTES) {
        problems.add("/event/metadata", "should be at most 65536 byte(s) when written as JSON");
    }
    let (resolves, task) =
        if kind == Some(MessageKind::Attention) { attention(metadata, &mut problems) } else { (None, None) };
    problems.finish()?;
    let kind = kind.ok_or_else(|| ApiError::invalid_at("/event/message_type", "can't be blank"))?;
    let room = RoomId(room);
    let post = PostEvent { room, caller, kind, content: text, metadata: metadata_text, resolves, task };
    let created =
        move |id: &MessageId| reply::created(EventCreated { id: *id, success: true, message_type: kind.as_str() });
    Ok(created(&once.services(&app, created).post_event(post).await.map_err(at_event)?))
}

/// A content fault is at `/event/content` here.
fn at_event(error: crate::service::messages::PostError) -> ApiError {
    use crate::service::messages::PostError;
    match error {
        PostError::Content(what) => ApiError::invalid_at("/event/content", what),
        other => other.into(),
    }
}

/// Checks what an `attention` event must and may say; the event that it resolves and the task that it is about.
fn attention(metadata: Option<Object<'_>>, problems: &mut Problems) -> (Option<MessageId>, Option<TaskRef>) {
    let Some(metadata) = metadata else {
        problems.add("/event/metadata/kind", "can't be blank");
        return (None, None);
    };
    let kind = metadata.text("kind", problems);
    if !kind.is_empty() && !ATTENTION_KINDS.contains(&kind.as_str()) {
        problems.add("/event/metadata/kind", "must be one of question, assumption, failure, review");
    }
    if metadata.get("blocking").is_some() {
        metadata.flag("blocking", problems);
    }
    let named = metadata.optional_text("task_id", problems);
    let task = named.as_deref().and_then(TaskRef::parse);
    if named.is_some() && task.is_none() {
        problems.add("/event/metadata/task_id", "must be the UUID or number of a task of this room");
    }
    (metadata.optional_uuid("resolves", problems).map(MessageId), task)
}

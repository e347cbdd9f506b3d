//! `POST /agent/chats/{id}/activity`: I am working, or no longer.

use axum::extract::State;
use axum::response::Response;
use bandstand_wire::ids::RoomId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::NoQuery;
use crate::http::{ApiError, reply};
use crate::socket::ActivityDetail;
use crate::state::AppState;

/// What counts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ActivityState {
    /// Whether it works.
    working: bool,
}

/// Longest tool name kept, in characters.
const NAME_MAX: usize = 128;

const KINDS: [&str; 4] = ["reasoning", "tool_call", "memory", "permission"];

/// Reports whether the agent works in the room; the report expires by itself.
pub(crate) async fn report(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let root = Object::root(&body, &mut problems);
    root.only(&["working", "activity"], &mut problems);
    let working = root.flag("working", &mut problems);
    let detail = root.optional_object("activity", &mut problems).and_then(|activity| detail(&activity, &mut problems));
    problems.finish()?;
    let room = RoomId(room);
    let place = app.place(caller, room).await?;
    // A stopped agent does not work, whatever it reports; clients read from the answer that they are stopped.
    let working = working && !place.is_stopped();
    app.hub.report_activity(room, &place.member, working, detail);
    Ok(reply::ok(ActivityState { working }))
}

/// What the agent does: a tool call names its tool, anything else names nothing.
fn detail(activity: &Object<'_>, problems: &mut Problems) -> Option<ActivityDetail> {
    activity.only(&["kind", "name"], problems);
    let kind = activity.text("kind", problems);
    if !kind.is_empty() && !KINDS.contains(&kind.as_str()) {
        problems.add("/activity/kind", "must be one of reasoning, tool_call, memory, permission");
    }
    let name = if kind == "tool_call" {
        Some(tool_name(&activity.text("name", problems)))
    } else {
        if activity.get("name").is_some() {
            problems.add("/activity/name", "goes with the kind tool_call only");
        }
        None
    };
    Some(ActivityDetail { kind, name })
}

/// A tool's name, cut and cleaned of what may not be shown.
fn tool_name(name: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || "_.:/@-".contains(c) { c } else { '_' };
    name.chars().take(NAME_MAX).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_is_cut_and_cleaned() {
        assert_eq!(tool_name("mcp:fs/read file\n✓"), "mcp:fs/read_file__");
        assert_eq!(tool_name(&"x".repeat(200)).len(), NAME_MAX);
    }
}

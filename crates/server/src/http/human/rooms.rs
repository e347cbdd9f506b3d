//! `/me/chats`: the caller's rooms.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::board::Overview;
use bandstand_domain::room::{self, Room, RoomKind, RoomStatus};
use bandstand_store::rooms::RoomQuery;
use bandstand_wire::ids::RoomId;
use bandstand_wire::page::DualMetadata;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::room::{MeChatRoom, MeChatRoomDetail, MeChatRoomListItem, MembershipInfo, Roster};
use serde_json::Value;
use uuid::Uuid;

use crate::http::extract::body::{JsonBody, Object, OptionalJsonBody, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::{DUAL, DualPage};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::human::agents::order;
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::lists::{RoomExtras, UserRoom};
use crate::state::AppState;

#[derive(Clone, Copy, PartialEq)]
enum Include {
    AgentRooms,
    Participants,
    LastMessage,
    Membership,
    TotalCount,
}

fn include(word: &str) -> Option<Include> {
    Some(match word {
        "agent_rooms" => Include::AgentRooms,
        "participants" => Include::Participants,
        "last_message" => Include::LastMessage,
        "membership" => Include::Membership,
        "total_count" => Include::TotalCount,
        _ => return None,
    })
}

/// Metadata of the list: paging, and the total where it was asked for.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "RoomsMetadata")]
pub(crate) struct ListMetadata {
    #[serde(flatten)]
    page: DualMetadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// With `include=total_count`, on the first page.
    total_count: Option<i64>,
}

/// `GET`.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let own = ["status", "type", "sort_by", "order", "include"];
    let mut query = Query::new(raw.as_deref(), &[&DUAL[..], &own].concat());
    let status = query.parsed("status", "must be one of active, archived, closed", RoomStatus::parse);
    let kind = query.parsed("type", "must be one of direct, group, task", RoomKind::parse);
    let by_updated = query.parsed("sort_by", "must be inserted_at or updated_at", |text| match text {
        "inserted_at" => Some(false),
        "updated_at" => Some(true),
        _ => None,
    });
    let by_updated = by_updated.unwrap_or(false);
    let descending = order(&mut query).unwrap_or(true);
    let include = query.list("include", "is not an include of this list", include);
    let agent_rooms = include.contains(&Include::AgentRooms);
    let list = format!("rooms {agent_rooms} {status:?} {kind:?} {by_updated} {descending}");
    let page = DualPage::<(i64, i64)>::read(&mut query, 20, &list)?;
    query.finish()?;
    let by_number = matches!(page, DualPage::Offset(_));
    let with_total = include.contains(&Include::TotalCount) && page.after().is_none();
    let wanted = RoomQuery {
        user: caller.identity,
        agent_rooms,
        status,
        kind,
        by_updated,
        descending,
        after: page.after().copied(),
        offset: page.offset(),
        limit: page.fetch(),
    };
    let extras = RoomExtras {
        participants: include.contains(&Include::Participants),
        last_message: include.contains(&Include::LastMessage),
        membership: include.contains(&Include::Membership),
        total: by_number || with_total,
    };
    let found = app.user_rooms(wanted, extras).await?;
    let mut rows = found.rows;
    let mut metadata = page.close(&mut rows, found.total.unwrap_or_default(), &list, |row| {
        let room = &row.listed.room;
        let value = if by_updated { room.updated_at } else { room.inserted_at };
        (value.as_micros(), row.listed.key)
    })?;
    // This list answers the four numbers in offset mode only.
    metadata.offset = metadata.offset.filter(|_| by_number);
    let total_count = found.total.filter(|_| with_total && !by_number);
    let data = rows.iter().map(|row| list_item(&app, row)).collect();
    let metadata = ListMetadata { page: metadata, total_count };
    Ok(page.mark(reply::page(&Page { data, metadata })))
}

/// A room as people see it. What else is shown of it is read apart, and left out when that fails: the room may have been
/// written just now, and a client would repeat a request that failed after all.
async fn shown(app: &AppState, room: &Room) -> MeChatRoom {
    let overview = app.overview(room.id).await.unwrap_or_else(|error| {
        tracing::warn!(%error, room.id = %room.id, "a room is shown without its overview");
        None
    });
    me_room(app, room, overview.as_ref())
}

fn me_room(app: &AppState, room: &Room, overview: Option<&Overview>) -> MeChatRoom {
    let overview = overview.map(|overview| {
        let is_working = !app.hub.activity(room.id).is_empty();
        render::board::overview(room, overview, is_working)
    });
    render::me_room(room, overview)
}

fn list_item(app: &AppState, row: &UserRoom) -> MeChatRoomListItem {
    let own = row.listed.own;
    MeChatRoomListItem {
        room: me_room(app, &row.listed.room, row.overview.as_ref()),
        roster: row.roster.as_ref().map(|(shown, count)| Roster {
            participants: shown
                .iter()
                .map(|one| render::participant_details(one, app.hub.is_online(one.profile.id)))
                .collect(),
            participant_count: *count,
            participants_truncated: i64::try_from(shown.len()).is_ok_and(|shown| shown < *count),
        }),
        last_message: row.last_message.as_ref().map(|message| message.as_ref().map(render::message)),
        membership: row.via.as_ref().map(|via| MembershipInfo {
            membership: if own.is_some() { "participant" } else { "via_agent" },
            my_role: own.map(|(role, _)| role.as_str()),
            my_status: own.map(|(_, status)| status.as_str()),
            via_agent_ids: via.clone(),
        }),
    }
}

/// Reads `{"chat":{"title"?, "task_id"?}}`.
pub(crate) fn new_room(body: Option<&Value>) -> Result<(Option<String>, Option<Uuid>), ApiError> {
    let mut problems = Problems::default();
    let (mut title, mut task_id) = (None, None);
    if let Some(body) = body {
        let root = Object::root(body, &mut problems);
        root.only(&["chat"], &mut problems);
        if let Some(chat) = root.optional_object("chat", &mut problems) {
            chat.only(&["title", "task_id"], &mut problems);
            let text = chat.optional_text("title", &mut problems);
            match room::title(text.as_deref().unwrap_or_default()) {
                Ok(given) => title = given,
                Err(why) => problems.add("/chat/title", why.to_string()),
            }
            task_id = chat.optional_uuid("task_id", &mut problems);
        }
    }
    problems.finish()?;
    Ok((title, task_id))
}

/// Reads `{"chat":{"title"}}`, where a blank title is refused.
pub(crate) fn new_title(body: &Value, problems: &mut Problems) -> String {
    let chat = Object::wrapped(body, "chat", &["title"], problems);
    let text = chat.text("title", problems);
    match room::title(&text) {
        Ok(Some(title)) => title,
        Ok(None) => {
            if chat.get("title").is_some_and(Value::is_string) {
                problems.add("/chat/title", "can't be blank");
            }
            String::new()
        }
        Err(why) => {
            problems.add("/chat/title", why.to_string());
            String::new()
        }
    }
}

/// `POST`: a new room, owned by the caller.
pub(crate) async fn create(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    once: Once,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, ApiError> {
    let with_overview = app.limits.tasks;
    let created = move |room: &Room| {
        // Nothing is in it yet that there would be an overview of.
        let overview = with_overview.then(|| render::board::overview(room, &Overview::default(), false));
        reply::created(render::me_room(room, overview))
    };
    let (title, task_id) = new_room(body.as_ref())?;
    Ok(created(&once.services(&app, created).create_room(caller, title, task_id).await?))
}

/// `GET …/{id}`.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathIds([id]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["include"]);
    let include =
        query.list("include", "is not an include of this room", |item| (item == "message_counts").then_some(()));
    query.finish()?;
    let (room, counts) = app.room(caller, RoomId(id)).await?;
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(kind, count)| (kind.as_str().to_owned(), Value::from(count))).collect();
    Ok(reply::ok(MeChatRoomDetail {
        room: shown(&app, &room).await,
        message_counts: (!include.is_empty()).then_some(counts),
    }))
}

/// `PATCH …/{id}`: rename.
pub(crate) async fn rename(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let title = new_title(&body, &mut problems);
    problems.finish()?;
    let room = app.rename_room(caller, RoomId(id), title).await?;
    Ok(reply::ok(shown(&app, &room).await))
}

/// `DELETE …/{id}`.
pub(crate) async fn delete(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let room = app.delete_room(caller, RoomId(id)).await?;
    Ok(reply::ok(shown(&app, &room).await))
}

/// `POST …/{id}/archive`: readable only from now on.
pub(crate) async fn archive(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let room = app.set_room_status(caller, RoomId(id), RoomStatus::Archived).await?;
    Ok(reply::ok(shown(&app, &room).await))
}

/// `POST …/{id}/unarchive`: takes messages again.
pub(crate) async fn unarchive(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let room = app.set_room_status(caller, RoomId(id), RoomStatus::Active).await?;
    Ok(reply::ok(shown(&app, &room).await))
}

//! `/me/agents`: the caller's agents.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::identity::Agent;
use bandstand_store::identities::{AgentQuery, AgentSort, SortValue};
use bandstand_wire::ids::IdentityId;
use bandstand_wire::rest::Page;
use bandstand_wire::rest::identity::{
    AgentCredentials, AgentRegistration, DeletedAgent, FilterOption, MyAgentsMetadata, RegisteredAgent, SortOption,
};
use serde_json::Value;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerUser;
use crate::http::extract::page::{DUAL, DualPage};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::idempotency::{Once, shown_once};
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::admin::{check_agent_description, check_agent_name};
use crate::service::agents::Registration;
use crate::service::lists::Listed;
use crate::state::AppState;

const FILTERS: [FilterOption; 3] = [
    FilterOption { param: "name", label: "Name", kind: "string" },
    FilterOption { param: "is_external", label: "External", kind: "boolean" },
    FilterOption { param: "listed_in_directory", label: "Listed in directory", kind: "boolean" },
];

const SORTS: [SortOption; 3] = [
    SortOption { param: "name", label: "Name" },
    SortOption { param: "inserted_at", label: "Created" },
    SortOption { param: "updated_at", label: "Updated" },
];

/// `GET`.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let own = ["name", "is_external", "listed_in_directory", "sort", "order"];
    let mut query = Query::new(raw.as_deref(), &[&DUAL[..], &own].concat());
    let name = query.text("name").unwrap_or_default().trim().to_lowercase();
    if name.contains('\0') {
        query.problem("/name", "must not contain the character NUL");
    }
    let external = query.flag("is_external");
    let listed = query.flag("listed_in_directory");
    let sort = query.parsed("sort", "must be one of name, inserted_at, updated_at", |text| match text {
        "name" => Some(AgentSort::Name),
        "inserted_at" => Some(AgentSort::InsertedAt),
        "updated_at" => Some(AgentSort::UpdatedAt),
        _ => None,
    });
    let sort = sort.unwrap_or(AgentSort::InsertedAt);
    let descending = order(&mut query).unwrap_or(true);
    let list = format!("agents {name:?} {external:?} {listed:?} {sort:?} {descending}");
    let page = DualPage::<(Value, i64)>::read(&mut query, 20, &list)?;
    query.finish()?;
    let after = page.after().map(|(value, key)| cursor_value(sort, value).map(|value| (value, *key))).transpose()?;
    let wanted = AgentQuery {
        owner: caller.identity,
        name,
        listed,
        sort,
        descending,
        after,
        offset: page.offset(),
        limit: page.fetch(),
    };
    // Every agent here is external: it runs elsewhere and connects.
    let found = if external == Some(false) {
        Listed { rows: Vec::new(), total: Some(0) }
    } else {
        app.agents_of(wanted).await?
    };
    let mut rows = found.rows;
    let total = found.total.unwrap_or_default();
    let mut metadata = page.close(&mut rows, total, &list, |(agent, key)| (sort_value(sort, agent), *key))?;
    // Clients of this list expect the four numbers always; in a walk by cursor they are those of the first page.
    metadata.offset =
        metadata.offset.or_else(|| Some(bandstand_wire::page::OffsetMetadata::new(1, page.limit(), total)));
    let data = rows.iter().map(|(agent, _)| render::my_agent(agent)).collect();
    let metadata = MyAgentsMetadata { page: metadata, available_filters: &FILTERS, sortable_fields: &SORTS };
    Ok(page.mark(reply::page(&Page { data, metadata })))
}

/// Reads `order`: whether the largest comes first.
pub(crate) fn order(query: &mut Query<'_>) -> Option<bool> {
    query.parsed("order", "must be asc or desc", |text| match text {
        "asc" => Some(false),
        "desc" => Some(true),
        _ => None,
    })
}

fn sort_value(sort: AgentSort, agent: &Agent) -> Value {
    match sort {
        AgentSort::Name => agent.profile.name.to_lowercase().into(),
        AgentSort::InsertedAt => agent.inserted_at.as_micros().into(),
        AgentSort::UpdatedAt => agent.updated_at.as_micros().into(),
    }
}

fn cursor_value(sort: AgentSort, value: &Value) -> Result<SortValue, ApiError> {
    let read = match sort {
        AgentSort::Name => {
            value.as_str().filter(|text| !text.contains('\0')).map(|text| SortValue::Text(text.to_owned()))
        }
        AgentSort::InsertedAt | AgentSort::UpdatedAt => value.as_i64().map(SortValue::Int),
    };
    read.ok_or_else(|| ApiError::invalid_at("/cursor", "is not a cursor of this list"))
}

/// `POST …/register`: a new agent; its key is in this reply and nowhere else.
pub(crate) async fn register(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let agent = Object::wrapped(&body, "agent", &["name", "description"], &mut problems);
    let name = agent.text("name", &mut problems);
    let description = agent.text("description", &mut problems);
    let mut checked = |field: &str, result: Result<String, String>| {
        // A missing or wrongly typed field has been named already.
        if agent.get(field).is_some_and(Value::is_string)
            && let Err(what) = &result
        {
            problems.add(&agent.place(field), what.clone());
        }
        result.unwrap_or_default()
    };
    let limits = &app.limits;
    let name = checked("name", check_agent_name(&name, limits.name_max));
    let description =
        checked("description", check_agent_description(&description, limits.description_min, limits.description_max));
    problems.finish()?;
    let registration = Registration { owner: caller.identity, name, description, is_global: false };
    // What is stored of the reply leaves out the key.
    let remembered = |agent: &Agent| shown_once(agent.profile.id);
    let (agent, key) = once.services(&app, remembered).register_agent(registration).await?;
    Ok(reply::created(AgentRegistration {
        agent: RegisteredAgent {
            id: agent.profile.id,
            name: agent.profile.name,
            description: agent.profile.description,
            owner_id: agent.owner,
            inserted_at: agent.inserted_at,
        },
        credentials: AgentCredentials { api_key: key.reveal().to_owned() },
    }))
}

/// `DELETE …/{id}?force=`: the agent's key stops working and it leaves all rooms.
pub(crate) async fn delete(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    PathIds([id]): PathIds<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["force"]);
    let force = query.flag("force").unwrap_or(false);
    query.finish()?;
    let deleted = app.delete_agent(Some(caller.identity), IdentityId(id), force).await?;
    Ok(reply::ok(DeletedAgent {
        id: deleted.agent.profile.id,
        name: deleted.agent.profile.name,
        description: deleted.agent.profile.description,
        executions_deleted: deleted.executions,
    }))
}

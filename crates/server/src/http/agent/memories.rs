//! `/agent/memories`: what the agent remembers, and what its organization shares.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bandstand_domain::memory::{
    METADATA_MAX_BYTES, Memory, MemoryScope, MemorySegment, MemorySystem, MemoryType, check_content, check_thought,
};
use bandstand_wire::ids::MemoryId;
use serde_json::Value;

use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::caller::CallerAgent;
use crate::http::extract::path::PathIds;
use crate::http::extract::query::{NoQuery, Query};
use crate::http::idempotency::Once;
use crate::http::memories::{MemoriesOn, filters, one_of, page, parameters, slice, with_meta};
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::memories::{MemoryChange, NewMemory, ScopeFilter, Whose};
use crate::state::AppState;

/// `GET`: newest first.
pub(crate) async fn list(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: MemoriesOn,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &parameters(&["subject_id", "scope", "memory_scope"]));
    let mut filters = filters(&mut query);
    filters.subject = query.uuid("subject_id");
    let must = one_of(MemoryScope::ALL.iter().map(|word| word.as_str()).chain(["all"]));
    let scope = query.parsed("scope", &must, |text| match text {
        "all" => Some(ScopeFilter::All),
        word => MemoryScope::parse(word).map(ScopeFilter::Only),
    });
    let scope = scope.unwrap_or(ScopeFilter::Unsaid);
    let whose = query.parsed("memory_scope", "must be me or org", |text| match text {
        "me" => Some(Whose::Me),
        "org" => Some(Whose::Organization),
        _ => None,
    });
    let whose = whose.unwrap_or(Whose::Me);
    let list = format!("agent memories {} {whose:?} {scope:?} {filters:?}", caller.identity);
    let page = page(&mut query, &list)?;
    query.finish()?;
    let found = app.agent_memories(caller, whose, scope, filters, slice(&page)).await?;
    let mut rows = found.rows;
    let metadata = page.close(&mut rows, found.total.unwrap_or_default(), &list, |memory| {
        (memory.inserted_at.as_micros(), memory.id.0)
    })?;
    Ok(reply::page(&with_meta(rows.iter().map(render::memory::agent).collect(), metadata)))
}

/// `POST`: remember something.
pub(crate) async fn create(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    _: MemoriesOn,
    once: Once,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let new = new_memory(&body)?;
    let created = |memory: &Memory| reply::created(render::memory::agent(memory));
    Ok(created(&once.services(&app, created).store_memory(caller, new).await?))
}

/// `GET …/{id}`.
pub(crate) async fn show(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    Ok(reply::ok(render::memory::agent(&app.agent_memory(caller, MemoryId(id)).await?)))
}

/// `POST …/{id}/supersede`: it no longer holds.
pub(crate) async fn supersede(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let memory = app.change_agent_memory(caller, MemoryId(id), MemoryChange::Supersede).await?;
    Ok(reply::ok(render::memory::agent(&memory)))
}

/// `POST …/{id}/archive`: it is not needed now.
pub(crate) async fn archive(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    _: MemoriesOn,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let memory = app.change_agent_memory(caller, MemoryId(id), MemoryChange::Archive).await?;
    Ok(reply::ok(render::memory::agent(&memory)))
}

/// Reads `{"memory":{…}}`.
fn new_memory(body: &Value) -> Result<NewMemory, ApiError> {
    let mut problems = Problems::default();
    let memory = Object::wrapped(
        body,
        "memory",
        &["content", "system", "type", "segment", "thought", "scope", "subject_id", "metadata"],
        &mut problems,
    );
    let content = text(&memory, "content", check_content, &mut problems);
    let thought = text(&memory, "thought", check_thought, &mut problems);
    let system = word(&memory, "system", MemorySystem::ALL, MemorySystem::as_str, &mut problems);
    let kind = word(&memory, "type", MemoryType::ALL, MemoryType::as_str, &mut problems);
    let segment = word(&memory, "segment", MemorySegment::ALL, MemorySegment::as_str, &mut problems);
    let scope =
        memory.get("scope").map(|_| word(&memory, "scope", MemoryScope::ALL, MemoryScope::as_str, &mut problems));
    let subject = memory.optional_uuid("subject_id", &mut problems);
    let metadata = metadata(&memory, &mut problems);
    if let (Some(system), Some(kind)) = (system, kind)
        && !system.types().contains(&kind)
    {
        let types: Vec<&str> = system.types().iter().map(|kind| kind.as_str()).collect();
        let (kind, system, types) = (kind.as_str(), system.as_str(), types.join(", "));
        problems
            .add(&memory.place("type"), format!("{kind} is not valid for system {system}; expected one of: {types}"));
    }
    // An unqualified memory is private, unless it names a subject to share it about.
    let default = if memory.get("subject_id").is_some() { MemoryScope::Subject } else { MemoryScope::Agent };
    let scope = scope.unwrap_or(Some(default));
    if scope == Some(MemoryScope::Subject) && memory.get("subject_id").is_none() {
        problems.add(&memory.place("subject_id"), "is required for the scope subject");
    }
    problems.finish()?;
    let (Some(system), Some(kind), Some(segment), Some(scope)) = (system, kind, segment, scope) else {
        return Err(ApiError::internal("a word of a memory is missing, yet no problem was noted"));
    };
    Ok(NewMemory { content, thought, system, kind, segment, scope, subject, metadata })
}

/// A required text that a rule checks.
fn text<E: std::fmt::Display>(
    memory: &Object<'_>,
    name: &str,
    check: fn(&str) -> Result<(), E>,
    problems: &mut Problems,
) -> String {
    let text = memory.text(name, problems);
    // A missing or wrongly typed one has been named already.
    if memory.get(name).is_some_and(Value::is_string)
        && let Err(why) = check(&text)
    {
        problems.add(&memory.place(name), why.to_string());
    }
    text
}

/// A required word of an enumeration.
fn word<T: Copy>(
    memory: &Object<'_>,
    name: &str,
    all: &[T],
    as_str: fn(T) -> &'static str,
    problems: &mut Problems,
) -> Option<T> {
    let text = memory.text(name, problems);
    if !memory.get(name).is_some_and(Value::is_string) {
        return None;
    }
    let found = all.iter().copied().find(|word| as_str(*word) == text);
    if found.is_none() {
        problems.add(&memory.place(name), one_of(all.iter().map(|word| as_str(*word))));
    }
    found
}

/// `metadata`: anything, but `tags` and `references` are lists of texts.
fn metadata(memory: &Object<'_>, problems: &mut Problems) -> Option<String> {
    let metadata = memory.optional_object("metadata", problems)?;
    for name in ["tags", "references"] {
        for (place, item) in metadata.list(name, problems) {
            if !item.is_string() {
                problems.add(&place, "must be a string");
            }
        }
    }
    let json = memory.get("metadata")?.to_string();
    if json.len() > METADATA_MAX_BYTES {
        problems.add(&memory.place("metadata"), format!("should be at most {METADATA_MAX_BYTES} byte(s) of JSON"));
    }
    Some(json)
}

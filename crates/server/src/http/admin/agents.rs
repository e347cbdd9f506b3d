//! `/admin/agents`.

use axum::extract::RawQuery;
use axum::response::Response;
use bandstand_wire::ids::IdentityId;

use super::{Administrator, List, PathNames, read_force};
use crate::admin::{AgentRow, RemovedRow, WithKey};
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};
use crate::service::admin::NewAgent;

/// `GET ?owner_id=&global=`: agents, oldest first.
pub(crate) async fn list(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["cursor", "limit", "owner_id", "global"]);
    let owner = query.uuid("owner_id").map(IdentityId);
    let only_global = query.flag("global").unwrap_or(false);
    let list = List::read(query, format!("admin agents {owner:?} {only_global}"))?;
    let rows = services.agents_after(owner, only_global, list.after(), list.fetch()).await?;
    list.reply::<_, AgentRow>(rows)
}

/// `POST`: registers an agent of any user; its key is in the answer and nowhere else.
pub(crate) async fn create(
    Administrator(services): Administrator,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let agent = Object::wrapped(&body, "agent", &["name", "description", "owner", "is_global"], &mut problems);
    let new = NewAgent {
        owner: agent.optional_text("owner", &mut problems),
        name: agent.text("name", &mut problems),
        description: agent.optional_text("description", &mut problems),
        is_global: agent.optional_flag("is_global", &mut problems),
    };
    problems.finish()?;
    let (agent, key) = services.add_agent(new).await?;
    Ok(reply::created(WithKey::new(AgentRow::from(&agent), &key)))
}

/// `GET …/{who}`.
pub(crate) async fn show(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(AgentRow::from(&services.show_agent(&who).await?)))
}

/// `PATCH …/{who}`: whether everybody, or its owner's organization, sees it.
pub(crate) async fn update(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let agent = Object::wrapped(&body, "agent", &["is_global", "shared_with_organization"], &mut problems);
    let mut flag = |name| agent.get(name).is_some().then(|| agent.flag(name, &mut problems));
    let (is_global, is_shared) = (flag("is_global"), flag("shared_with_organization"));
    problems.finish()?;
    let mut now = services.show_agent(&who).await?;
    if let Some(is_global) = is_global.filter(|wanted| *wanted != now.is_global) {
        now = services.globalize_agent(&who, is_global).await?;
    }
    if let Some(is_shared) = is_shared.filter(|wanted| *wanted != now.shared_with_organization) {
        now = services.share_agent(&who, is_shared).await?;
    }
    Ok(reply::ok(AgentRow::from(&now)))
}

/// `DELETE …/{who}?force=`: with `force`, even when it worked.
pub(crate) async fn delete(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let force = read_force(raw.as_deref())?;
    Ok(reply::ok(RemovedRow::from(services.remove_agent(&who, force).await?)))
}

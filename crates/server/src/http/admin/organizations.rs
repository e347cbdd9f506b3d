//! `/admin/organizations`.

use axum::extract::RawQuery;
use axum::response::Response;

use super::{Administrator, List, PAGING, PathNames};
use crate::admin::{HolderRow, MembershipRow, OrganizationLine, OrganizationRow};
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};

/// `GET`: all organizations, oldest first.
pub(crate) async fn list(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let list = List::read(Query::new(raw.as_deref(), &PAGING), "admin organizations".to_owned())?;
    let rows = services.organizations_after(list.after(), list.fetch()).await?;
    list.reply::<_, OrganizationLine>(rows)
}

/// `POST`: makes one.
pub(crate) async fn create(
    Administrator(services): Administrator,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let organization = Object::wrapped(&body, "organization", &["name"], &mut problems);
    let name = organization.text("name", &mut problems);
    problems.finish()?;
    Ok(reply::created(OrganizationRow::from(&services.add_organization(&name).await?)))
}

/// `GET …/{organization}/members`.
pub(crate) async fn members(
    Administrator(services): Administrator,
    PathNames([organization]): PathNames<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let list = List::read(Query::new(raw.as_deref(), &PAGING), format!("admin members {organization}"))?;
    let rows = services.organization_members_after(&organization, list.after(), list.fetch()).await?;
    list.reply::<_, HolderRow>(rows)
}

/// `PUT …/{organization}/members/{who}`: a user is in one organization at most.
pub(crate) async fn add(
    Administrator(services): Administrator,
    PathNames([organization, who]): PathNames<2>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(MembershipRow::from(&services.add_organization_member(&organization, &who).await?)))
}

/// `DELETE …/{organization}/members/{who}`.
pub(crate) async fn remove(
    Administrator(services): Administrator,
    PathNames([organization, who]): PathNames<2>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(MembershipRow::from(&services.remove_organization_member(&organization, &who).await?)))
}

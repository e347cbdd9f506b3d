//! `/admin/audit`: what administrators did.

use axum::extract::RawQuery;
use axum::response::Response;
use bandstand_domain::audit::{Entry, Head};
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::Page;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Administrator, List, PAGING};
use crate::http::extract::query::Query;
use crate::http::{ApiError, reply};

/// Where a page of the log stands, and how far the log reaches.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditMetadata {
    #[serde(flatten)]
    page: CursorMetadata,
    /// How far the log reaches.
    head: Head,
}

/// `GET`: the audit log, oldest entry first.
pub(crate) async fn list(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let list = List::read(Query::new(raw.as_deref(), &PAGING), "admin audit".to_owned())?;
    let mut log = services.audit_log(list.after(), list.fetch()).await?;
    let page = list.page.close(&mut log.entries, 0, &list.name, |entry: &Entry| entry.sequence)?.into();
    Ok(reply::page(&Page { data: log.entries, metadata: AuditMetadata { page, head: log.head } }))
}

//! `/admin/keys`: never a key itself, but for the one that was just made.

use std::time::Duration;

use axum::extract::RawQuery;
use axum::response::Response;
use bandstand_wire::ids::IdentityId;

use super::{Administrator, List, PathNames};
use crate::admin::{HolderRow, IssuedRow, KeyRow, RevokedRow, RotatedRow, WithKey};
use crate::http::extract::body::{JsonBody, Object, OptionalJsonBody, Problems};
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};

/// `GET ?holder_id=`: keys by their first characters, oldest first.
pub(crate) async fn list(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["cursor", "limit", "holder_id"]);
    let holder = query.uuid("holder_id").map(IdentityId);
    let list = List::read(query, format!("admin keys {holder:?}"))?;
    list.reply::<_, KeyRow>(services.keys_after(holder, list.after(), list.fetch()).await?)
}

/// `POST`: gives a user or an agent, named by id or handle, one more key.
pub(crate) async fn issue(
    Administrator(services): Administrator,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let key = Object::wrapped(&body, "key", &["holder"], &mut problems);
    let holder = key.text("holder", &mut problems);
    problems.finish()?;
    let (holder, key_id, api_key) = services.issue_key(&holder).await?;
    Ok(reply::created(WithKey::new(IssuedRow { key_id, holder: HolderRow::from(&holder) }, &api_key)))
}

/// Longest time for which old keys go on: a year.
const OVERLAP_MAX_SECONDS: u64 = 366 * 24 * 60 * 60;

/// `POST …/{who}/rotate`: a new key for a user or an agent, or in the place of one key; what it replaces stops working, at
/// once or after `overlap_seconds`.
pub(crate) async fn rotate(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let mut overlap = 0;
    if let Some(body) = &body {
        let root = Object::root(body, &mut problems);
        root.only(&["overlap_seconds"], &mut problems);
        if let Some(value) = root.get("overlap_seconds") {
            match value.as_u64().filter(|seconds| *seconds <= OVERLAP_MAX_SECONDS) {
                Some(seconds) => overlap = seconds,
                None => problems.add("/overlap_seconds", format!("must be a number up to {OVERLAP_MAX_SECONDS}")),
            }
        }
    }
    problems.finish()?;
    let rotated = services.rotate_key_with_overlap(&who, Duration::from_secs(overlap)).await?;
    let row = RotatedRow { holder: HolderRow::from(&rotated.holder), old_until: rotated.old_until };
    Ok(reply::ok(WithKey::new(row, &rotated.key)))
}

/// `DELETE …/{what}`: one key by its id, or all of a user or an agent.
pub(crate) async fn revoke(
    Administrator(services): Administrator,
    PathNames([what]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(RevokedRow { revoked: services.revoke_key(&what).await? }))
}

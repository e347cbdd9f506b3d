//! `/admin/links` and `/admin/signing-keys`: how people sign in.

use axum::extract::RawQuery;
use axum::response::Response;
use bandstand_wire::ids::IdentityId;

use super::{Administrator, List};
use crate::admin::{LinkRow, SigningKeyRow, UnlinkedRow};
use crate::http::extract::body::{JsonBody, Object, OptionalJsonBody, Problems};
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};

/// `GET /links?user_id=`: accounts that may sign in, oldest first.
pub(crate) async fn list(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["cursor", "limit", "user_id"]);
    let user = query.uuid("user_id").map(IdentityId);
    let list = List::read(query, format!("admin links {user:?}"))?;
    list.reply::<_, LinkRow>(services.links_after(user, list.after(), list.fetch()).await?)
}

/// `POST /links`: lets an issuer's account sign in as a user.
pub(crate) async fn link(
    Administrator(services): Administrator,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let link = Object::wrapped(&body, "link", &["user", "issuer", "subject"], &mut problems);
    let [who, issuer, subject] = ["user", "issuer", "subject"].map(|name| link.text(name, &mut problems));
    problems.finish()?;
    let user = services.link_user(&who, &issuer, &subject).await?;
    Ok(reply::created(LinkRow::new(&user, issuer, subject)))
}

/// `DELETE /links?issuer=&subject=`: lets an issuer's account sign in no longer.
pub(crate) async fn unlink(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::new(raw.as_deref(), &["issuer", "subject"]);
    let [issuer, subject] = ["issuer", "subject"].map(|name| query.required_text(name));
    query.finish()?;
    services.unlink_user(&issuer, &subject).await?;
    Ok(reply::ok(UnlinkedRow { issuer, subject }))
}

/// `POST /signing-keys/rotate`: tokens are signed with a new key; with `revoke`, those that are out count no longer.
pub(crate) async fn rotate(
    Administrator(services): Administrator,
    _: NoQuery,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let mut revoke = false;
    if let Some(body) = &body {
        let root = Object::root(body, &mut problems);
        root.only(&["revoke"], &mut problems);
        revoke = root.optional_flag("revoke", &mut problems);
    }
    problems.finish()?;
    Ok(reply::ok(SigningKeyRow { kid: services.rotate_signing_key(revoke).await? }))
}

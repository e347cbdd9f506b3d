//! `/admin/quotas`: what one may have of something, where that differs from the settings.

use axum::response::Response;
use bandstand_store::quotas::Quota;

use super::{Administrator, PathNames};
use crate::admin::QuotaRows;
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::query::NoQuery;
use crate::http::{ApiError, reply};

/// `GET …/{who}`: only what differs from the settings.
pub(crate) async fn list(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(QuotaRows::from(services.quotas_of(&who).await?)))
}

/// `PUT …/{who}/{resource}`: so many, or with null without end.
pub(crate) async fn set(
    Administrator(services): Administrator,
    PathNames([who, resource]): PathNames<2>,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let fields = Object::wrapped(&body, "quota", &["most"], &mut problems);
    let most = fields.get("most").map(|value| value.as_i64().filter(|most| *most >= 0));
    let quota = match most {
        Some(Some(most)) => Quota::Most(most),
        Some(None) => {
            problems.add(&fields.place("most"), "must be a whole number of 0 or more, or null");
            Quota::Unlimited
        }
        None if fields.has("most") => Quota::Unlimited,
        None => {
            problems.add(&fields.place("most"), "can't be blank; null means without end");
            Quota::Unlimited
        }
    };
    problems.finish()?;
    Ok(reply::ok(QuotaRows::from(services.give_quota(&who, &resource, Some(quota)).await?)))
}

/// `DELETE …/{who}/{resource}`: the settings count again.
pub(crate) async fn unset(
    Administrator(services): Administrator,
    PathNames([who, resource]): PathNames<2>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(QuotaRows::from(services.give_quota(&who, &resource, None).await?)))
}

//! `/admin/users`.

use axum::extract::RawQuery;
use axum::response::Response;
use bandstand_domain::identity::UserRole;

use super::{Administrator, List, PAGING, PathNames, read_force};
use crate::admin::{UserRow, WithKey};
use crate::http::extract::body::{JsonBody, Object, Problems};
use crate::http::extract::query::{NoQuery, Query};
use crate::http::{ApiError, reply};
use crate::service::admin::NewUser;

/// `GET`: all users, oldest first.
pub(crate) async fn list(
    Administrator(services): Administrator,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let list = List::read(Query::new(raw.as_deref(), &PAGING), "admin users".to_owned())?;
    list.reply::<_, UserRow>(services.users_after(list.after(), list.fetch()).await?)
}

/// `POST`: adds a user; its key is in the answer and nowhere else.
pub(crate) async fn create(
    Administrator(services): Administrator,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let user =
        Object::wrapped(&body, "user", &["handle", "first_name", "last_name", "email", "administrator"], &mut problems);
    let administrator = user.optional_flag("administrator", &mut problems);
    let new = NewUser {
        handle: user.text("handle", &mut problems),
        first_name: user.optional_text("first_name", &mut problems).unwrap_or_default(),
        last_name: user.optional_text("last_name", &mut problems).unwrap_or_default(),
        email: user.optional_text("email", &mut problems),
        role: if administrator { UserRole::Admin } else { UserRole::User },
    };
    let texts = [Some(&new.first_name), Some(&new.last_name), new.email.as_ref()];
    if texts.into_iter().flatten().any(|text| text.chars().any(char::is_control)) {
        problems.add("/user", "must not contain control characters");
    }
    problems.finish()?;
    let (user, key) = services.add_user(new).await?;
    Ok(reply::created(WithKey::new(UserRow::from(&user), &key)))
}

/// `GET …/{who}`.
pub(crate) async fn show(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(UserRow::from(&services.show_user(&who).await?)))
}

/// `DELETE …/{who}?force=`: with `force`, its agents as well.
pub(crate) async fn delete(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    let force = read_force(raw.as_deref())?;
    Ok(reply::ok(UserRow::from(&services.delete_user(&who, force).await?)))
}

/// `POST …/{who}/promote`.
pub(crate) async fn promote(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(UserRow::from(&services.set_role(&who, UserRole::Admin).await?)))
}

/// `POST …/{who}/demote`.
pub(crate) async fn demote(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(UserRow::from(&services.set_role(&who, UserRole::User).await?)))
}

/// `POST …/{who}/disable`.
pub(crate) async fn disable(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(UserRow::from(&services.disable_user(&who, true).await?)))
}

/// `POST …/{who}/enable`.
pub(crate) async fn enable(
    Administrator(services): Administrator,
    PathNames([who]): PathNames<1>,
    _: NoQuery,
) -> Result<Response, ApiError> {
    Ok(reply::ok(UserRow::from(&services.disable_user(&who, false).await?)))
}

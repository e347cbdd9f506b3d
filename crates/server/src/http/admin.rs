//! `/api/v1/admin`: what an administrator does from anywhere. Whoever is none gets 404 for all of it. Users, agents and
//! organizations are named in paths by their id, or by handle or name, percent-encoded.

pub(super) mod agents;
pub(super) mod audit;
pub(super) mod keys;
pub(super) mod organizations;
pub(super) mod quotas;
pub(super) mod sign_in;
pub(super) mod users;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::response::Response;
use bandstand_domain::audit::Door;
use bandstand_domain::identity::UserRole;
use bandstand_wire::ids::IdentityKind;
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::Page;
use hyper::http::request::Parts;
use serde::Serialize;

use crate::http::extract::caller::person;
use crate::http::extract::page::{DualPage, MAX};
use crate::http::extract::query::Query;
use crate::http::{ApiError, reply};
use crate::service::audit::Actor;
use crate::state::{AppState, Services};

/// The use cases on behalf of the calling administrator. Nobody else learns what there is: 404.
pub(crate) struct Administrator(pub(crate) Services);

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let caller = person(parts, app).await?;
        if caller.kind != IdentityKind::User {
            return Err(ApiError::not_found());
        }
        let user = app.user(caller.identity).await?.filter(|user| user.role == UserRole::Admin);
        let profile = user.ok_or_else(ApiError::not_found)?.profile;
        let actor = Actor { id: Some(profile.id), name: profile.handle, door: Door::Api };
        Ok(Self(app.services.acting_as(actor)))
    }
}

/// The parts of the path that name somebody or something, in order.
pub(crate) struct PathNames<const N: usize>(pub(crate) [String; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for PathNames<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found())?;
        let names: Vec<String> = params.iter().map(|(_, text)| text.to_owned()).collect();
        names.try_into().map(Self).map_err(|_| ApiError::not_found())
    }
}

/// Reads `?force=`.
fn read_force(raw: Option<&str>) -> Result<bool, ApiError> {
    let mut query = Query::new(raw, &["force"]);
    let force = query.flag("force").unwrap_or(false);
    query.finish()?;
    Ok(force)
}

/// What every list takes.
const PAGING: [&str; 2] = ["cursor", "limit"];

/// A list by cursor, whose position is a key.
struct List {
    page: DualPage<i64>,
    name: String,
}

impl List {
    /// Reads the paging parameters and ends the reading of the query.
    fn read(mut query: Query<'_>, name: String) -> Result<Self, ApiError> {
        let page = DualPage::read(&mut query, MAX, &name)?;
        query.finish()?;
        Ok(Self { page, name })
    }

    fn after(&self) -> i64 {
        self.page.after().copied().unwrap_or_default()
    }

    /// Rows to ask for.
    fn fetch(&self) -> i64 {
        self.page.fetch()
    }

    fn reply<T, R>(&self, mut rows: Vec<(T, i64)>) -> Result<Response, ApiError>
    where
        R: for<'t> From<&'t T> + Serialize,
    {
        // These lists are paged by cursor only, and count nothing.
        let metadata = CursorMetadata::from(self.page.close(&mut rows, 0, &self.name, |(_, key)| *key)?);
        Ok(reply::page(&Page { data: rows.iter().map(|(one, _)| R::from(one)).collect(), metadata }))
    }
}

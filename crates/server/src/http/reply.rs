//! Replies.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bandstand_wire::rest::Data;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use serde::Serialize;

use crate::http::ApiError;

/// A JSON reply.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(why) => ApiError::internal(why).into_response(),
    }
}

/// 200 with `{"data": …}`.
pub(crate) fn ok<T: Serialize>(data: T) -> Response {
    json(StatusCode::OK, &Data { data })
}

/// 201 with `{"data": …}`.
pub(crate) fn created<T: Serialize>(data: T) -> Response {
    json(StatusCode::CREATED, &Data { data })
}

/// 202 with `{"data": …}`, and where to look for how far it is.
pub(crate) fn accepted<T: Serialize>(data: T, location: &str) -> Response {
    let mut response = json(StatusCode::ACCEPTED, &Data { data });
    match HeaderValue::from_str(location) {
        Ok(value) => {
            response.headers_mut().insert(LOCATION, value);
            response
        }
        Err(why) => ApiError::internal(why).into_response(),
    }
}

/// 200 with a page.
pub(crate) fn page<T: Serialize>(page: &T) -> Response {
    json(StatusCode::OK, page)
}

/// 204 without a body.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

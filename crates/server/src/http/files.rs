//! `…/chats/{id}/files`: upload and download, for both kinds of caller.

use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::response::Response;
use bandstand_domain::file::{self, Attachment, Part};
use bandstand_wire::ids::{FileId, RoomId};
use bandstand_wire::rest::Data;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderMap, HeaderName, HeaderValue, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{StatusCode, header};

use crate::auth::Caller;
use crate::http::extract::body::Problems;
use crate::http::extract::caller::{CallerAgent, CallerUser};
use crate::http::extract::path::PathIds;
use crate::http::extract::query::NoQuery;
use crate::http::idempotency::Once;
use crate::http::{ApiError, reply};
use crate::render;
use crate::service::files::Upload;
use crate::state::AppState;

const NAME: &str = "x-file-name";
const HASH: &str = "x-file-sha256";

/// `PUT` by an agent.
pub(crate) async fn upload_by_agent(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    upload(&app, caller, RoomId(room), &once, request).await
}

/// `PUT` by a person.
pub(crate) async fn upload_by_user(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room]): PathIds<1>,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    upload(&app, caller, RoomId(room), &once, request).await
}

/// `GET …/{id}` by an agent.
pub(crate) async fn download_by_agent(
    State(app): State<AppState>,
    CallerAgent(caller): CallerAgent,
    _: NoQuery,
    PathIds([room, id]): PathIds<2>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    download(&app, caller, RoomId(room), FileId(id), &headers).await
}

/// `GET …/{id}` by a person.
pub(crate) async fn download_by_user(
    State(app): State<AppState>,
    CallerUser(caller): CallerUser,
    _: NoQuery,
    PathIds([room, id]): PathIds<2>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    download(&app, caller, RoomId(room), FileId(id), &headers).await
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
}

async fn upload(
    app: &AppState,
    caller: Caller,
    room: RoomId,
    once: &Once,
    request: Request,
) -> Result<Response, ApiError> {
    let mut problems = Problems::default();
    let headers = request.headers();
    let name = match text(headers, NAME).map(file::name) {
        Some(Ok(name)) => name,
        Some(Err(why)) => {
            problems.add("/x-file-name", why.to_string());
            String::new()
        }
        None => {
            problems.add("/x-file-name", "can't be blank");
            String::new()
        }
    };
    let hash = text(headers, HASH).and_then(file::sha256);
    if hash.is_none() {
        problems.add("/x-file-sha256", "must be a SHA-256 in lower-case hexadecimal");
    }
    problems.finish()?;
    let limit = app.limits.file_bytes as u64;
    let announced = text(headers, header::CONTENT_LENGTH.as_str()).and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(usize::try_from(limit).unwrap_or(usize::MAX)));
    }
    let body: BodyDataStream = request.into_body().into_data_stream();
    let hash = hash.unwrap_or_default();
    // The bytes are held against this hash before anything is stored, so it may stand for them.
    once.note_content(&[&hash, name.as_bytes()]);
    let taken = |(file, new): &(Attachment, bool)| {
        let status = if *new { StatusCode::CREATED } else { StatusCode::OK };
        reply::json(status, &Data { data: render::attachment(file) })
    };
    Ok(taken(&once.services(app, taken).upload(Upload { room, caller, name, hash }, body).await?))
}

async fn download(
    app: &AppState,
    caller: Caller,
    room: RoomId,
    id: FileId,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let file = app.file(caller, room, id).await?;
    let length = u64::try_from(file.bytes).unwrap_or(0);
    let (status, range) = match file::part(text(headers, RANGE.as_str()), length) {
        Part::Whole => (StatusCode::OK, None),
        Part::Bytes { first, last } => (StatusCode::PARTIAL_CONTENT, Some(first..last + 1)),
        Part::Unsatisfiable => return Err(ApiError::range_not_satisfiable(length)),
    };
    let sent = range.as_ref().map_or(length, |range| range.end - range.start);
    let content_range = range.as_ref().map(|range| format!("bytes {}-{}/{length}", range.start, range.end - 1));
    // An empty file has nothing to fetch, and some stores refuse an empty range.
    let body = if length == 0 {
        Body::empty()
    } else {
        Body::from_stream(app.download(room, &file, range).await?.into_stream())
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    set(CONTENT_TYPE, file.content_type.clone());
    set(CONTENT_LENGTH, sent.to_string());
    set(ACCEPT_RANGES, "bytes".to_owned());
    set(CONTENT_DISPOSITION, disposition(&file.name));
    // Somebody else wrote these bytes: a browser saves them, guesses nothing, and runs nothing.
    set(X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned());
    set(CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned());
    set(header::CACHE_CONTROL, "private, no-store".to_owned());
    if let Some(range) = content_range {
        set(CONTENT_RANGE, range);
    }
    Ok(response)
}

/// "Save as", under the file's own name: once for old clients in ASCII, once for all others in UTF-8.
fn disposition(name: &str) -> String {
    use std::fmt::Write;
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') || c == ' ' { c } else { '_' })
        .collect();
    let encoded = name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    });
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_header() {
        assert_eq!(
            disposition("a\"; x=ü.txt"),
            "attachment; filename=\"a_; x=_.txt\"; filename*=UTF-8''a%22%3B%20x%3D%C3%BC.txt"
        );
    }
}

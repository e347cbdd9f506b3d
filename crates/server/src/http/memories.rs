//! What both APIs have in common about memories: the switch, the filters and the pages.

use axum::extract::FromRequestParts;
use bandstand_domain::memory::{MemorySegment, MemoryStatus, MemorySystem, MemoryType, QUERY_MAX_CHARACTERS};
use bandstand_store::search;
use bandstand_wire::page::DualMetadata;
use bandstand_wire::rest::PageWithMeta;
use hyper::http::request::Parts;
use serde::Serialize;
use uuid::Uuid;

use crate::http::ApiError;
use crate::http::extract::cursor;
use crate::http::extract::page::{DUAL, DualPage, MAX, OffsetPage};
use crate::http::extract::query::Query;
use crate::service::memories::{Filters, Slice};
use crate::state::AppState;

/// Rows a page, unless the client says.
const DEFAULT_ROWS: i64 = 20;

/// Most rows of a page by number.
const MAX_BY_NUMBER: i64 = 50;

/// Where a row stands: when it was stored, and its id.
pub(crate) type Position = (i64, Uuid);

/// The filters of both lists.
const FILTERS: [&str; 5] = ["system", "type", "segment", "status", "content_query"];

/// Stands before whatever is read of a request about memories: 403 while they are turned off.
pub(crate) struct MemoriesOn;

impl FromRequestParts<AppState> for MemoriesOn {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        if app.limits.memories { Ok(Self) } else { Err(ApiError::forbidden("memories are turned off on this server")) }
    }
}

/// The parameters of a list that has these of its own.
pub(crate) fn parameters(own: &[&'static str]) -> Vec<&'static str> {
    [&DUAL[..], &FILTERS, own].concat()
}

/// What a word must be: "must be one of a, b".
pub(crate) fn one_of(words: impl IntoIterator<Item = &'static str>) -> String {
    format!("must be one of {}", words.into_iter().collect::<Vec<_>>().join(", "))
}

/// Reads the filters that both lists know.
pub(crate) fn filters(query: &mut Query<'_>) -> Filters {
    let must = one_of(MemorySystem::ALL.iter().map(|word| word.as_str()));
    let system = query.parsed("system", &must, MemorySystem::parse);
    let must = one_of(MemoryType::ALL.iter().map(|word| word.as_str()));
    let kind = query.parsed("type", &must, MemoryType::parse);
    let must = one_of(MemorySegment::ALL.iter().map(|word| word.as_str()));
    let segment = query.parsed("segment", &must, MemorySegment::parse);
    let must = one_of(MemoryStatus::ALL.iter().map(|word| word.as_str()).chain(["all"]));
    let status = query.parsed("status", &must, |text| match text {
        "all" => Some(None),
        word => MemoryStatus::parse(word).map(Some),
    });
    let words = words(query);
    Filters {
        system,
        kind,
        segment,
        status: status.unwrap_or(Some(MemoryStatus::Active)),
        subject: None,
        source: None,
        words,
    }
}

/// Reads `content_query`; blank means that nothing is looked for.
fn words(query: &mut Query<'_>) -> Option<Vec<String>> {
    let text = query.text("content_query").map(str::trim).filter(|text| !text.is_empty())?.to_owned();
    if text.chars().count() > QUERY_MAX_CHARACTERS {
        query.problem("/content_query", format!("should be at most {QUERY_MAX_CHARACTERS} character(s)"));
        return None;
    }
    Some(search::query_words(&text))
}

/// Reads the paging parameters. `list` describes the list for its cursors.
///
/// # Errors
/// 422 `invalid_params` when both families are used, and what is wrong with a cursor.
pub(crate) fn page(query: &mut Query<'_>, list: &str) -> Result<DualPage<Position>, ApiError> {
    let by_number = query.has("page") || query.has("page_size");
    let by_cursor = query.has("cursor") || query.has("limit");
    if by_number && by_cursor {
        let message = "page and page_size cannot be combined with cursor and limit";
        return Err(ApiError::unprocessable("invalid_params", message));
    }
    if by_number {
        let page = query.count("page", i64::MAX).unwrap_or(1);
        let size = query.count("page_size", MAX_BY_NUMBER).unwrap_or(DEFAULT_ROWS);
        return Ok(DualPage::Offset(OffsetPage { page, size }));
    }
    let limit = query.count("limit", MAX).unwrap_or(DEFAULT_ROWS);
    let after = query.text("cursor").map(|text| cursor::decode(list, text)).transpose()?;
    Ok(DualPage::Cursor { after, limit, totals: !by_cursor })
}

/// The rows to read for a page.
pub(crate) fn slice(page: &DualPage<Position>) -> Slice {
    Slice {
        after: page.after().copied(),
        offset: page.offset(),
        limit: page.fetch(),
        with_total: match page {
            DualPage::Cursor { totals, .. } => *totals,
            DualPage::Offset(_) => true,
        },
    }
}

/// A page whose metadata stands under both of its names.
pub(crate) fn with_meta<T: Serialize>(data: Vec<T>, metadata: DualMetadata) -> PageWithMeta<T, DualMetadata> {
    PageWithMeta { data, meta: metadata.clone(), metadata }
}

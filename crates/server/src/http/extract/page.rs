//! Pages: by number, by cursor, or by whichever of the two the client asks for.

use axum::response::Response;
use bandstand_wire::page::{DualMetadata, OffsetMetadata};
use hyper::header::HeaderValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::ApiError;
use crate::http::extract::cursor;
use crate::http::extract::query::Query;

/// Most rows a page.
pub(crate) const MAX: i64 = 100;

/// A page by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetPage {
    /// From 1.
    pub(crate) page: i64,
    /// Rows a page.
    pub(crate) size: i64,
}

impl OffsetPage {
    /// Reads `page` and `page_size`.
    pub(crate) fn read(query: &mut Query<'_>, default: i64) -> Self {
        Self {
            page: query.count("page", i64::MAX).unwrap_or(1),
            size: query.count("page_size", MAX).unwrap_or(default),
        }
    }

    /// Rows to skip. Far beyond any row, but not so far that adding the page's size overflows, as databases do.
    pub(crate) fn offset(self) -> i64 {
        (self.page - 1).saturating_mul(self.size).min(i64::MAX / 2)
    }

    /// The page's metadata.
    pub(crate) fn metadata(self, total: i64) -> OffsetMetadata {
        OffsetMetadata::new(self.page, self.size, total)
    }
}

/// Numbered pages are discouraged; since when is not known. The platform announced their end for the date of `Sunset`.
/// Here they stay, as clients that ask for them are in use.
const DEPRECATION: &str = "true";
const SUNSET: &str = "Thu, 01 Oct 2026 00:00:00 GMT";

/// How a list that knows both families is paged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DualPage<P> {
    /// From the start, or from where a cursor stands. `totals`: no paging parameter was given, so the four numbers of
    /// an offset page are answered too.
    Cursor {
        /// Where the page before ended.
        after: Option<P>,
        /// Rows a page.
        limit: i64,
        /// Whether to answer the four numbers of page 1 as well.
        totals: bool,
    },
    /// By number.
    Offset(OffsetPage),
}

/// The parameters of both families.
pub(crate) const DUAL: [&str; 4] = ["cursor", "limit", "page", "page_size"];

impl<P: DeserializeOwned + Serialize> DualPage<P> {
    /// Reads the paging parameters; `filter` describes the list for its cursors. A cursor wins over a page number.
    pub(crate) fn read(query: &mut Query<'_>, default: i64, filter: &str) -> Result<Self, ApiError> {
        let by_number = query.has("page") || query.has("page_size");
        let by_cursor = query.has("cursor") || query.has("limit");
        let offset = OffsetPage::read(query, default);
        let limit = query.count("limit", MAX).unwrap_or(default);
        if by_number && !by_cursor {
            return Ok(Self::Offset(offset));
        }
        let after = query.text("cursor").map(|text| cursor::decode(filter, text)).transpose()?;
        Ok(Self::Cursor { after, limit, totals: !by_cursor })
    }

    /// Marks a reply to a request for a numbered page: cursors took their place.
    pub(crate) fn mark(&self, mut response: Response) -> Response {
        if matches!(self, Self::Offset(_)) {
            let headers = response.headers_mut();
            headers.insert("deprecation", HeaderValue::from_static(DEPRECATION));
            headers.insert("sunset", HeaderValue::from_static(SUNSET));
        }
        response
    }

    /// Rows to ask for: one more than shown, which tells whether more follow.
    pub(crate) fn fetch(&self) -> i64 {
        self.limit() + 1
    }

    /// Rows a page.
    pub(crate) fn limit(&self) -> i64 {
        match self {
            Self::Cursor { limit, .. } => *limit,
            Self::Offset(page) => page.size,
        }
    }

    /// Rows to skip.
    pub(crate) fn offset(&self) -> i64 {
        match self {
            Self::Cursor { .. } => 0,
            Self::Offset(page) => page.offset(),
        }
    }

    /// Where the page before ended.
    pub(crate) fn after(&self) -> Option<&P> {
        match self {
            Self::Cursor { after, .. } => after.as_ref(),
            Self::Offset(_) => None,
        }
    }

    /// Cuts the row that was only to tell whether more follow, and makes the metadata. `position` is where a row
    /// stands.
    pub(crate) fn close<T>(
        &self,
        rows: &mut Vec<T>,
        total: i64,
        filter: &str,
        position: impl Fn(&T) -> P,
    ) -> Result<DualMetadata, ApiError> {
        let limit = self.limit();
        let shown = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > shown;
        rows.truncate(shown);
        let last = rows.last().filter(|_| has_more);
        let next_cursor = last.map(|row| cursor::encode(filter, &position(row))).transpose()?;
        let offset = match self {
            Self::Cursor { totals: true, .. } => Some(OffsetMetadata::new(1, limit, total)),
            Self::Cursor { totals: false, .. } => None,
            Self::Offset(page) => Some(page.metadata(total)),
        };
        Ok(DualMetadata { has_more, limit, next_cursor, offset })
    }
}

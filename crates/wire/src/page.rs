//! Paging metadata: offset pages, cursor pages, and endpoints that answer both at once.

use schemars::JsonSchema;
use serde::Serialize;

/// Totals of an offset page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OffsetMetadata {
    /// The page, from 1.
    pub page: i64,
    /// Rows a page.
    pub page_size: i64,
    /// Rows in all.
    pub total_count: i64,
    /// Pages in all; clients stop paging on it.
    pub total_pages: i64,
}

impl OffsetMetadata {
    /// Works out the number of pages.
    pub fn new(page: i64, page_size: i64, total_count: i64) -> Self {
        let size = page_size.max(1);
        Self {
            page,
            page_size,
            total_count,
            total_pages: total_count.div_euclid(size) + i64::from(total_count % size != 0),
        }
    }
}

/// Metadata of an endpoint that pages by cursor, and also by offset for older clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DualMetadata {
    /// Whether rows follow this page.
    pub has_more: bool,
    /// Rows a page.
    pub limit: i64,
    /// Where the next page starts; always present, `null` at the end.
    pub next_cursor: Option<String>,
    /// Present in offset mode and on the first page.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub offset: Option<OffsetMetadata>,
}

/// Metadata of an endpoint that pages by cursor only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CursorMetadata {
    /// Whether rows follow this page.
    pub has_more: bool,
    /// Rows a page.
    pub limit: i64,
    /// Where the next page starts; always present, `null` at the end.
    pub next_cursor: Option<String>,
}

impl From<DualMetadata> for CursorMetadata {
    fn from(metadata: DualMetadata) -> Self {
        let DualMetadata { has_more, limit, next_cursor, offset: _ } = metadata;
        Self { has_more, limit, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_rounded_up() {
        assert_eq!(OffsetMetadata::new(1, 20, 0).total_pages, 0);
        assert_eq!(OffsetMetadata::new(1, 20, 20).total_pages, 1);
        assert_eq!(OffsetMetadata::new(1, 20, 21).total_pages, 2);
    }
}

//! The little that differs between the two databases' SQL.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

/// Which database's SQL is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The embedded engine.
    Sqlite,
    /// The server engine.
    Postgres,
}

impl Dialect {
    /// Picks one of two texts, for the few queries that must differ (full text).
    pub fn pick(self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }
}

/// `sql` with `$1` for each `?1`. The answer is kept for the life of the program: a query is a constant of the source,
/// so there are few.
pub(crate) fn postgres(sql: &'static str) -> &'static str {
    static CACHE: LazyLock<RwLock<HashMap<&'static str, &'static str>>> = LazyLock::new(RwLock::default);
    if let Some(known) = CACHE.read().unwrap_or_else(PoisonError::into_inner).get(sql) {
        return known;
    }
    let mut cache = CACHE.write().unwrap_or_else(PoisonError::into_inner);
    cache.entry(sql).or_insert_with(|| Box::leak(numbered_by_dollar(sql).into_boxed_str()))
}

/// Replaces `?` before a digit by `$`, except in quotes and comments.
fn numbered_by_dollar(sql: &str) -> String {
    enum Inside {
        Code,
        Quotes(char),
        LineComment,
        BlockComment,
    }
    let mut out = String::with_capacity(sql.len());
    let mut inside = Inside::Code;
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let mut put = c;
        match inside {
            Inside::Code => match (c, next) {
                ('?', Some('0'..='9')) => put = '$',
                ('\'' | '"', _) => inside = Inside::Quotes(c),
                ('-', Some('-')) => inside = Inside::LineComment,
                ('/', Some('*')) => inside = Inside::BlockComment,
                _ => {}
            },
            // A doubled quote closes and opens again at once, which comes to the same.
            Inside::Quotes(quote) if c == quote => inside = Inside::Code,
            Inside::LineComment if c == '\n' => inside = Inside::Code,
            Inside::BlockComment if c == '/' && out.ends_with('*') => inside = Inside::Code,
            Inside::Quotes(_) | Inside::LineComment | Inside::BlockComment => {}
        }
        out.push(put);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_dollars() {
        assert_eq!(postgres("SELECT ?1, ?12 FROM t WHERE a=?2"), "SELECT $1, $12 FROM t WHERE a=$2");
    }

    #[test]
    fn quotes_and_comments_stay() {
        let sql = "SELECT '?1', 'it''s ?1', \"?1\" -- ?1\n, ?1 /* ?1 */, ?2";
        assert_eq!(postgres(sql), "SELECT '?1', 'it''s ?1', \"?1\" -- ?1\n, $1 /* ?1 */, $2");
    }

    #[test]
    fn the_same_text_is_converted_once() {
        assert!(std::ptr::eq(postgres("SELECT ?1"), postgres("SELECT ?1")));
    }
}

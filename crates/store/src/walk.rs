//! Pages of a room's history: a page is a merge of index walks, each already in order, so that it costs what it shows
//! and never what the room holds. No walk sorts or scans; `tests/plans.rs` holds both engines to it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bandstand_domain::delivery::StatusFilter;
use bandstand_domain::message::MessageKind;
use bandstand_wire::time::Timestamp;

use crate::{Dialect, Reader, StoreError, params};

/// Which part of an ordered history to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Only rows with a higher sequence.
    pub after: i64,
    /// Only rows with a lower sequence.
    pub before: i64,
    /// Newest first.
    pub descending: bool,
    /// Most rows.
    pub limit: i64,
    /// Rows to skip (offset pages; the walk passes over them).
    pub offset: i64,
}

impl Window {
    /// From the oldest row.
    pub fn oldest(limit: i64) -> Self {
        Self { after: 0, before: i64::MAX, descending: false, limit, offset: 0 }
    }

    /// From the newest row.
    pub fn newest(limit: i64) -> Self {
        Self { descending: true, ..Self::oldest(limit) }
    }

    fn order(self) -> &'static str {
        if self.descending { "DESC" } else { "ASC" }
    }
}

/// What is walked; it decides the statement's text, of which there are only a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// A member's deliveries in these states (a bit each).
    Deliveries(u8),
    /// A member's deliveries in any state, and what it sent.
    Context,
    /// A room's rows of these kinds (a bit each).
    Kinds(u8),
    /// All rows of a room.
    EveryKind,
}

/// The statements made so far. Their number is bounded by the number of bit sets, and each lives as long as the
/// program, as the engines' statement caches expect.
static STATEMENTS: LazyLock<Mutex<Statements>> = LazyLock::new(Mutex::default);

/// By engine, source, and whether the newest come first.
type Statements = HashMap<(Dialect, Source, bool), &'static str>;

fn statement(dialect: Dialect, source: Source, window: Window) -> &'static str {
    let mut statements = STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    statements.entry((dialect, source, window.descending)).or_insert_with(|| {
        let bits = |set: u8| (0..8).filter(move |bit| set & (1 << bit) != 0);
        let delivery = |state: i64| {
            format!(
                "SELECT sequence FROM deliveries WHERE member_key = ?2 AND room_key = ?1 AND recipient = 1 \
                 AND state = {state} AND sequence > ?3 AND sequence < ?4"
            )
        };
        let walks: Vec<String> = match source {
            Source::Deliveries(states) => bits(states).map(delivery).collect(),
            Source::Context => {
                let sent = "SELECT sequence FROM messages WHERE sender_key = ?2 AND room_key = ?1 \
                            AND sequence > ?3 AND sequence < ?4";
                StatusFilter::All.states().iter().map(|s| delivery(s.code())).chain([sent.to_owned()]).collect()
            }
            Source::Kinds(kinds) => bits(kinds)
                .map(|kind| {
                    format!(
                        "SELECT sequence FROM messages WHERE room_key = ?1 AND kind = {kind} \
                         AND sequence > ?2 AND sequence < ?3"
                    )
                })
                .collect(),
            Source::EveryKind => {
                vec!["SELECT sequence FROM messages WHERE room_key = ?1 AND sequence > ?2 AND sequence < ?3".to_owned()]
            }
        };
        let (limit, offset) = match source {
            Source::Kinds(_) | Source::EveryKind => (4, 5),
            Source::Deliveries(_) | Source::Context => (5, 6),
        };
        let order = window.order();
        // SQLite merges the bare walks. PostgreSQL would sort them (always when descending), unless each is in order and
        // limited by itself.
        let walks: Vec<String> = match dialect {
            Dialect::Sqlite => walks,
            Dialect::Postgres => walks
                .iter()
                .map(|walk| {
                    format!(
                        "({walk} ORDER BY sequence {order} LIMIT CAST(?{limit} AS BIGINT) + CAST(?{offset} AS BIGINT))"
                    )
                })
                .collect(),
        };
        let text = format!(
            "SELECT sequence FROM ({}) AS walks ORDER BY sequence {order} LIMIT ?{limit} OFFSET ?{offset}",
            walks.join(" UNION ALL "),
        );
        Box::leak(text.into_boxed_str())
    })
}

/// The statements made so far, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> Vec<&'static str> {
    STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
}

fn bit(code: i64) -> u8 {
    u8::try_from(code).ok().and_then(|code| 1_u8.checked_shl(u32::from(code))).unwrap_or(0)
}

async fn member_walk(
    tx: &mut Reader,
    source: Source,
    room_key: i64,
    member_key: i64,
    window: Window,
) -> Result<Vec<i64>, StoreError> {
    let sql = statement(tx.dialect(), source, window);
    let values = params![room_key, member_key, window.after, window.before, window.limit, window.offset];
    tx.query(sql, values).await?.iter().map(|row| row.int(0)).collect()
}

/// The sequences of the messages delivered to a member that `filter` shows. For a filter that shows only open ones the
/// window must start no earlier than the member's `joined_sequence`.
pub async fn deliveries(
    tx: &mut Reader,
    room_key: i64,
    member_key: i64,
    filter: StatusFilter,
    window: Window,
) -> Result<Vec<i64>, StoreError> {
    let states = filter.states().iter().fold(0, |set, state| set | bit(state.code()));
    member_walk(tx, Source::Deliveries(states), room_key, member_key, window).await
}

/// The sequences of a member's context: what it sent, and the messages delivered to it.
pub async fn context(tx: &mut Reader, room_key: i64, member_key: i64, window: Window) -> Result<Vec<i64>, StoreError> {
    member_walk(tx, Source::Context, room_key, member_key, window).await
}

/// The sequences of a room's rows of these kinds.
pub async fn history(
    tx: &mut Reader,
    room_key: i64,
    kinds: &[MessageKind],
    window: Window,
) -> Result<Vec<i64>, StoreError> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let set = kinds.iter().fold(0, |set, kind| set | bit(kind.code()));
    let every = MessageKind::ALL.iter().fold(0, |set, kind| set | bit(kind.code()));
    let source = if set == every { Source::EveryKind } else { Source::Kinds(set) };
    let sql = statement(tx.dialect(), source, window);
    let values = params![room_key, window.after, window.before, window.limit, window.offset];
    tx.query(sql, values).await?.iter().map(|row| row.int(0)).collect()
}

/// The highest sequence whose row was posted at `moment` or before; 0 when none was. Within a room the moments follow
/// the sequences, so some twenty look-ups find the place.
pub async fn last_until(tx: &mut Reader, room_key: i64, moment: Timestamp) -> Result<i64, StoreError> {
    const NEWEST: &str = "SELECT sequence FROM messages WHERE room_key = ?1 ORDER BY sequence DESC LIMIT 1";
    const NEAREST: &str = "SELECT sequence, inserted_at FROM messages WHERE room_key = ?1 AND sequence <= ?2 \
                           ORDER BY sequence DESC LIMIT 1";
    let Some(newest) = tx.query_opt(NEWEST, params![room_key]).await? else { return Ok(0) };
    // Everything up to `low` is within, everything from `high` on is after the moment.
    let (mut low, mut high) = (0, newest.int(0)? + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match tx.query_opt(NEAREST, params![room_key, middle]).await? {
            Some(row) if row.int(0)? > low => {
                if row.int(1)? <= moment.as_micros() {
                    low = middle
                } else {
                    high = row.int(0)?
                }
            }
            _ => low = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_walks_only_its_states() {
        let sql = statement(Dialect::Sqlite, Source::Deliveries(0b1100), Window::oldest(1));
        assert_eq!(sql.matches("UNION ALL").count(), 1);
        assert!(sql.contains("state = 2") && sql.contains("state = 3") && sql.ends_with("LIMIT ?5 OFFSET ?6"));
    }
}

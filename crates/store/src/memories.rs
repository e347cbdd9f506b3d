//! What agents remember.
//!
//! A list is a merge of index walks, one for each audience that the reader belongs to and each status that it asks for,
//! newest first; other filters are applied on the way. `tests/engine/memories.rs` holds both engines to it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bandstand_domain::memory::{Memory, MemoryScope, MemorySegment, MemoryStatus, MemorySystem, MemoryType, Viewer};
use bandstand_wire::ids::{IdentityId, IdentityKind, MemoryId, OrganizationId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::columns::{kind_code, unknown};
use crate::{Dialect, Param, Reader, Row, StoreError, Writer, params, search};

/// Most memories that one operation deletes.
pub const BATCH: u64 = 500;

/// Somebody who reads or stores memories, with the keys that queries need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Who, and its organization.
    pub viewer: Viewer,
    /// Its key.
    pub key: i64,
    /// The key of an agent's owner; a user's own.
    pub owner_key: i64,
    /// The key of the organization.
    pub organization_key: Option<i64>,
}

/// Somebody that is not deleted, as an asker.
pub async fn asker(tx: &mut Reader, id: IdentityId, kind: IdentityKind) -> Result<Option<Asker>, StoreError> {
    const SQL: &str = "SELECT i.key, COALESCE(i.owner_key, i.key), g.key, g.id FROM identities i \
                       LEFT JOIN organization_members m ON m.user_key = COALESCE(i.owner_key, i.key) \
                       LEFT JOIN organizations g ON g.key = m.organization_key \
                       WHERE i.id = ?1 AND i.kind = ?2 AND i.deleted_at IS NULL";
    let Some(row) = tx.query_opt(SQL, params![id, kind_code(kind)]).await? else { return Ok(None) };
    Ok(Some(Asker {
        viewer: Viewer { id, organization: row.opt_id(3)?.map(OrganizationId) },
        key: row.int(0)?,
        owner_key: row.int(1)?,
        organization_key: row.opt_int(2)?,
    }))
}

/// Whose memories to list. Who may read what is said by `Memory::agent_may_read` and `Memory::user_may_read`; these are
/// the same rules as walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// What an agent stored.
    Own {
        /// The agent.
        agent_key: i64,
    },
    /// What is shared with a whole organization.
    Organization {
        /// Which.
        organization_key: i64,
    },
    /// Both.
    OwnAndOrganization {
        /// The agent.
        agent_key: i64,
        /// Its organization.
        organization_key: i64,
    },
    /// What an organization's agents share about a subject.
    Subject {
        /// Which organization.
        organization_key: i64,
        /// About whom.
        subject: Uuid,
    },
    /// All that a user may read.
    User {
        /// The user.
        user_key: i64,
        /// The same.
        user: IdentityId,
        /// The user's organization.
        organization_key: Option<i64>,
    },
    /// All of that which is about the user.
    AboutUser {
        /// The user.
        user_key: i64,
        /// The same.
        user: IdentityId,
    },
}

/// Which memories to list.
#[derive(Clone, Debug)]
pub struct MemoryQuery {
    /// Whose.
    pub audience: Audience,
    /// Of this system.
    pub system: Option<MemorySystem>,
    /// Of this type.
    pub kind: Option<MemoryType>,
    /// Of this segment.
    pub segment: Option<MemorySegment>,
    /// Of this scope.
    pub scope: Option<MemoryScope>,
    /// Of this status.
    pub status: Option<MemoryStatus>,
    /// About this subject.
    pub subject: Option<Uuid>,
    /// Stored by this agent.
    pub source: Option<IdentityId>,
    /// Whose content holds all of these, as [`search::query_words`] makes them.
    pub words: Option<Vec<String>>,
    /// After this row: its moment and id.
    pub after: Option<(i64, Uuid)>,
    /// Rows to skip (offset pages).
    pub offset: i64,
    /// Most rows.
    pub limit: i64,
}

/// What decides a statement's text; there are few of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    walks: Walks,
    status: Option<MemoryStatus>,
    words: bool,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Walks {
    Own,
    Organization,
    OwnAndOrganization,
    Subject,
    User,
    UserAndOrganization,
    AboutUser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Page,
    Count,
}

/// The conditions of the walks, no row in two of them. `?7` and on are what [`audience`] gives. A term that names an
/// index's own condition is there so that SQLite takes that index.
fn conditions(walks: Walks) -> &'static [&'static str] {
    /// A private memory ends with its agent, though its row may stay a moment longer.
    const PRIVATE: &str = "m.scope = 'agent' AND m.owner_key = ?7 AND EXISTS (SELECT 1 FROM identities s \
                           WHERE s.key = m.source_key AND s.deleted_at IS NULL)";
    const ABOUT: &str = "m.scope <> 'agent' AND m.subject_id = ?8";
    match walks {
        Walks::Own => &["m.source_key = ?7"],
        Walks::Organization => &["m.scope = 'organization' AND m.organization_key = ?7"],
        Walks::OwnAndOrganization => &[
            "m.source_key = ?7 AND NOT (m.scope = 'organization' AND m.organization_key = ?8)",
            "m.scope = 'organization' AND m.organization_key = ?8",
        ],
        Walks::Subject => {
            &["m.scope <> 'agent' AND m.scope = 'subject' AND m.organization_key = ?7 AND m.subject_id = ?8"]
        }
        Walks::User => &[PRIVATE, ABOUT],
        Walks::UserAndOrganization => &[
            PRIVATE,
            ABOUT,
            "m.scope = 'organization' AND m.organization_key = ?9 AND (m.subject_id <> ?8 OR m.subject_id IS NULL)",
        ],
        Walks::AboutUser => &[
            "m.scope = 'agent' AND m.owner_key = ?7 AND m.subject_id = ?8 AND EXISTS (SELECT 1 FROM identities s \
             WHERE s.key = m.source_key AND s.deleted_at IS NULL)",
            ABOUT,
        ],
    }
}

/// The walks of an audience and the parameters from `?7` on.
fn audience(audience: Audience) -> (Walks, Vec<Param<'static>>) {
    match audience {
        Audience::Own { agent_key } => (Walks::Own, params![agent_key].to_vec()),
        Audience::Organization { organization_key } => (Walks::Organization, params![organization_key].to_vec()),
        Audience::OwnAndOrganization { agent_key, organization_key } => {
            (Walks::OwnAndOrganization, params![agent_key, organization_key].to_vec())
        }
        Audience::Subject { organization_key, subject } => {
            (Walks::Subject, params![organization_key, subject].to_vec())
        }
        Audience::User { user_key, user, organization_key: None } => (Walks::User, params![user_key, user].to_vec()),
        Audience::User { user_key, user, organization_key: Some(organization_key) } => {
            (Walks::UserAndOrganization, params![user_key, user, organization_key].to_vec())
        }
        Audience::AboutUser { user_key, user } => (Walks::AboutUser, params![user_key, user].to_vec()),
    }
}

/// The filters that are applied on the way. `?1` to `?6` are NULL where nothing is asked for.
const FILTERS: &str = "(m.system = ?1 OR ?1 IS NULL) AND (m.type = ?2 OR ?2 IS NULL) \
                       AND (m.segment = ?3 OR ?3 IS NULL) AND (m.scope = ?4 OR ?4 IS NULL) \
                       AND (m.subject_id = ?5 OR ?5 IS NULL) \
                       AND (m.source_key = (SELECT key FROM identities WHERE id = ?6 AND deleted_at IS NULL) \
                           OR ?6 IS NULL)";

/// How many parameters come before those of the audience.
const FILTER_COUNT: usize = 6;

/// The columns of a [`Memory`].
const COLUMNS: &str = "m.id, m.content, m.thought, m.system, m.type, m.segment, m.scope, m.status, m.metadata, \
                       m.subject_id, a.id, a.name, a.deleted_at, o.id, g.id, m.inserted_at, m.updated_at";

/// Where the names of a memory under the alias `m` come from.
const NAMES: &str = "JOIN identities a ON a.key = m.source_key JOIN identities o ON o.key = m.owner_key \
                     LEFT JOIN organizations g ON g.key = m.organization_key";

/// The statements made so far. Their number is bounded, and each lives as long as the program, as the engines'
/// statement caches expect.
static STATEMENTS: LazyLock<Mutex<HashMap<(Dialect, Shape), &'static str>>> = LazyLock::new(Mutex::default);

fn statement(dialect: Dialect, shape: Shape, audience_count: usize) -> &'static str {
    let mut statements = STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    statements.entry((dialect, shape)).or_insert_with(|| Box::leak(text(dialect, shape, audience_count).into()))
}

/// The statements made so far, for the test of their plans.
#[cfg(feature = "testing")]
pub fn statements() -> Vec<&'static str> {
    STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
}

fn text(dialect: Dialect, shape: Shape, audience_count: usize) -> String {
    let mut next = FILTER_COUNT + audience_count + 1;
    let mut filters = FILTERS.to_owned();
    if shape.words {
        filters = format!("{filters} AND {}", search::condition(dialect, next));
        next += 1;
    }
    let one = shape.status.map(|status| [status]);
    let statuses = one.as_ref().map_or(MemoryStatus::ALL, |one| &one[..]);
    let walks = conditions(shape.walks).iter().flat_map(|condition| {
        let condition = format!("{condition} AND {filters}");
        statuses.iter().map(move |status| format!("{condition} AND m.status = '{}'", status.as_str()))
    });
    match shape.part {
        Part::Count => {
            let walks: Vec<String> = walks.map(|walk| format!("SELECT m.key FROM memories m WHERE {walk}")).collect();
            format!("SELECT count(*) FROM ({}) AS walks", walks.join(" UNION ALL "))
        }
        Part::Page => {
            let (at, id, limit, offset) = (next, next + 1, next + 2, next + 3);
            const ORDER: &str = "ORDER BY inserted_at DESC, id DESC";
            let walks: Vec<String> = walks
                .map(|walk| {
                    let walk = format!(
                        "SELECT m.key AS key, m.inserted_at AS inserted_at, m.id AS id FROM memories m \
                         WHERE {walk} AND (m.inserted_at, m.id) < (?{at}, ?{id})"
                    );
                    // SQLite merges the bare walks. PostgreSQL would sort them, unless each is in order and limited.
                    match dialect {
                        Dialect::Sqlite => walk,
                        Dialect::Postgres => {
                            format!("({walk} {ORDER} LIMIT CAST(?{limit} AS BIGINT) + CAST(?{offset} AS BIGINT))")
                        }
                    }
                })
                .collect();
            format!(
                "SELECT {COLUMNS} FROM (SELECT key, inserted_at, id FROM ({}) AS walks {ORDER} \
                 LIMIT ?{limit} OFFSET ?{offset}) AS page JOIN memories m ON m.key = page.key {NAMES} \
                 ORDER BY page.inserted_at DESC, page.id DESC",
                walks.join(" UNION ALL ")
            )
        }
    }
}

fn word<T>(text: &str, what: &str, parse: fn(&str) -> Option<T>) -> Result<T, StoreError> {
    parse(text).ok_or_else(|| unknown(what, text))
}

fn read(row: &mut Row) -> Result<Memory, StoreError> {
    let source = IdentityId(row.id(10)?);
    let is_source_deleted = row.opt_int(12)?.is_some();
    Ok(Memory {
        id: MemoryId(row.id(0)?),
        content: row.take_text(1)?,
        thought: row.take_text(2)?,
        system: word(row.text(3)?, "memory system", MemorySystem::parse)?,
        kind: word(row.text(4)?, "memory type", MemoryType::parse)?,
        segment: word(row.text(5)?, "memory segment", MemorySegment::parse)?,
        scope: word(row.text(6)?, "memory scope", MemoryScope::parse)?,
        status: word(row.text(7)?, "memory status", MemoryStatus::parse)?,
        metadata: row.take_opt_text(8)?,
        subject: row.opt_id(9)?,
        source: if is_source_deleted { None } else { Some((source, row.take_text(11)?)) },
        owner: IdentityId(row.id(13)?),
        organization: row.opt_id(14)?.map(OrganizationId),
        inserted_at: Timestamp::from_micros(row.int(15)?),
        updated_at: Timestamp::from_micros(row.int(16)?),
    })
}

/// The statement of a query and its parameters, which borrow `words`.
fn prepared<'a>(
    dialect: Dialect,
    query: &MemoryQuery,
    words: Option<&'a String>,
    part: Part,
) -> (&'static str, Vec<Param<'a>>) {
    let (walks, who) = audience(query.audience);
    let shape = Shape { walks, status: query.status, words: words.is_some(), part };
    let sql = statement(dialect, shape, who.len());
    let mut values = params![
        query.system.map(MemorySystem::as_str),
        query.kind.map(MemoryType::as_str),
        query.segment.map(MemorySegment::as_str),
        query.scope.map(MemoryScope::as_str),
        query.subject,
        query.source,
    ]
    .to_vec();
    values.extend(who);
    values.extend(words.map(Param::from));
    (sql, values)
}

/// A page of memories, newest first.
pub async fn page(tx: &mut Reader, query: &MemoryQuery) -> Result<Vec<Memory>, StoreError> {
    let Some(words) = wanted(tx.dialect(), query) else { return Ok(Vec::new()) };
    let (sql, mut values) = prepared(tx.dialect(), query, words.as_ref(), Part::Page);
    let (at, id) = query.after.unwrap_or((i64::MAX, Uuid::max()));
    values.extend_from_slice(params![at, id, query.limit, query.offset]);
    tx.query(sql, &values).await?.iter_mut().map(read).collect()
}

/// How many memories [`page`] would list without its limit.
pub async fn count(tx: &mut Reader, query: &MemoryQuery) -> Result<i64, StoreError> {
    let Some(words) = wanted(tx.dialect(), query) else { return Ok(0) };
    let (sql, values) = prepared(tx.dialect(), query, words.as_ref(), Part::Count);
    tx.query_one(sql, &values).await?.int(0)
}

/// What to look for, or `None` when nothing can be found: a search for something that holds no word.
fn wanted(dialect: Dialect, query: &MemoryQuery) -> Option<Option<String>> {
    match &query.words {
        Some(words) if words.is_empty() => None,
        words => Some(words.as_ref().map(|words| search::parameter(dialect, words))),
    }
}

/// One memory, whoever may read it.
pub async fn one(tx: &mut Reader, id: MemoryId) -> Result<Option<Memory>, StoreError> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {COLUMNS} FROM memories m {NAMES} WHERE m.id = ?1"));
    tx.query_opt(&SQL, params![id]).await?.map(|mut row| read(&mut row)).transpose()
}

/// Stores a memory of `source`, whose own keys stand for `memory.source`, `owner` and `organization`.
pub async fn insert(tx: &mut Writer, memory: &Memory, source: &Asker) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO memories (id, source_key, owner_key, organization_key, subject_id, scope, status, \
                       system, type, segment, content, thought, metadata, search_text, inserted_at, updated_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15)";
    let search_text = search::text_words(&memory.content).join(" ");
    let organization_key = source.organization_key.filter(|_| memory.organization.is_some());
    tx.execute(
        SQL,
        params![
            memory.id,
            source.key,
            source.owner_key,
            organization_key,
            memory.subject,
            memory.scope.as_str(),
            memory.status.as_str(),
            memory.system.as_str(),
            memory.kind.as_str(),
            memory.segment.as_str(),
            &memory.content,
            &memory.thought,
            memory.metadata.as_ref(),
            &search_text,
            memory.inserted_at.as_micros(),
        ],
    )
    .await
    .map(drop)
}

/// Changes the status of a memory, from `from` where that is given; false when it has that status already, is not
/// `from`, or is gone.
pub async fn set_status(
    tx: &mut Writer,
    id: MemoryId,
    from: Option<MemoryStatus>,
    to: MemoryStatus,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE memories SET status = ?2, updated_at = ?3 \
                       WHERE id = ?1 AND status <> ?2 AND (status = ?4 OR ?4 IS NULL)";
    let values = params![id, to.as_str(), at.as_micros(), from.map(MemoryStatus::as_str)];
    Ok(tx.execute(SQL, values).await? == 1)
}

/// Deletes a memory for good; false when it is gone already.
pub async fn delete(tx: &mut Writer, id: MemoryId) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM memories WHERE id = ?1";
    Ok(tx.execute(SQL, params![id]).await? == 1)
}

/// Deletes what deleted agents kept to themselves, at most [`BATCH`] memories; how many there were.
pub async fn delete_private_of_deleted(tx: &mut Writer) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM memories WHERE key IN (SELECT m.key FROM identities i \
                       JOIN memories m ON m.source_key = i.key AND m.scope = 'agent' \
                       WHERE i.deleted_at IS NOT NULL LIMIT 500)";
    tx.execute(SQL, params![]).await
}

//! Looks at a database that may be open, closed, old, damaged or something else altogether, and changes nothing.

use bandstand_domain::audit::{Broken, Head};

use crate::migrate;
use crate::{Database, Dialect, MIGRATIONS, Reader, StoreError, audit, look, params};

/// What a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// Its name on a PostgreSQL server; empty for a file.
    pub name: String,
    /// The newest migration that was applied; none when there is no schema.
    pub version: Option<i64>,
    /// What is damaged in the file.
    pub damage: Vec<String>,
    /// PostgreSQL's settings that decide whether what is acknowledged is durable.
    pub settings: Vec<(&'static str, String)>,
}

/// The newest schema that this program knows.
pub fn newest_version() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.number)
}

/// Examines a database as far as any version goes.
///
/// # Errors
/// When it cannot be read at all.
pub async fn examine(database: Database) -> Result<Examination, StoreError> {
    look(database, |tx| {
        Box::pin(async move {
            match tx.dialect() {
                Dialect::Sqlite => examine_file(tx).await,
                Dialect::Postgres => examine_postgres(tx).await,
            }
        })
    })
    .await
}

async fn examine_file(tx: &mut Reader) -> Result<Examination, StoreError> {
    const SCHEMA: &str = "SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'";
    let mut damage = Vec::new();
    for mut row in tx.query("PRAGMA quick_check(5)", params![]).await? {
        damage.push(row.take_text(0)?);
    }
    damage.retain(|line| line != "ok");
    let version = match tx.query_opt(SCHEMA, params![]).await? {
        Some(_) => Some(tx.query_one(migrate::VERSION, params![]).await?.int(0)?),
        None => None,
    };
    Ok(Examination { name: String::new(), version, damage, settings: Vec::new() })
}

async fn examine_postgres(tx: &mut Reader) -> Result<Examination, StoreError> {
    const SETTINGS: &str = "SELECT current_database()::text, current_setting('fsync'), \
                            current_setting('synchronous_commit'), current_setting('full_page_writes'), \
                            to_regclass('schema_migrations') IS NOT NULL";
    let mut row = tx.query_one(SETTINGS, params![]).await?;
    let mut settings = Vec::new();
    for (column, name) in (1..).zip(["fsync", "synchronous_commit", "full_page_writes"]) {
        settings.push((name, row.take_text(column)?));
    }
    let version = if row.bool(4)? { Some(tx.query_one(migrate::VERSION, params![]).await?.int(0)?) } else { None };
    Ok(Examination { name: row.take_text(0)?, version, damage: Vec::new(), settings })
}

/// Rows that contradict others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong with them.
    pub what: &'static str,
    /// How many.
    pub rows: i64,
}

/// A file that should be in the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The room's id.
    pub room: uuid::Uuid,
    /// Its own.
    pub id: uuid::Uuid,
    /// Its length.
    pub bytes: i64,
}

/// What a database of the newest version holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// Rows that contradict others.
    pub faults: Vec<Fault>,
    /// Whether the audit log is whole.
    pub audit: Result<Head, Broken>,
    /// The files that have not expired.
    pub files: Vec<KeptFile>,
}

/// Rooms that are deleted keep the tallies that they had.
macro_rules! tally {
    ($column:literal, $state:literal) => {
        (
            concat!("participants whose tally of ", $column, " deliveries is wrong"),
            concat!(
                "SELECT count(*) FROM (SELECT p.room_key FROM participants p LEFT JOIN deliveries d \
                 ON d.room_key = p.room_key AND d.member_key = p.member_key AND d.recipient = 1 AND d.state = ",
                $state,
                " WHERE NOT EXISTS (SELECT 1 FROM rooms r WHERE r.key = p.room_key AND r.deleted_at IS NOT NULL) \
                 AND NOT EXISTS (SELECT 1 FROM removals l \
                     WHERE l.room_key = p.room_key AND l.member_key = p.member_key) \
                 GROUP BY p.room_key, p.member_key, p.",
                $column,
                " HAVING p.",
                $column,
                " <> count(d.state)) x"
            ),
        )
    };
}

macro_rules! kind {
    ($column:literal, $kind:literal) => {
        (
            concat!("rooms whose count of ", $column, " is wrong"),
            concat!(
                "SELECT count(*) FROM (SELECT r.key FROM rooms r LEFT JOIN messages m \
                 ON m.room_key = r.key AND m.kind = ",
                $kind,
                " GROUP BY r.key, r.",
                $column,
                " HAVING r.",
                $column,
                " <> count(m.sequence)) x"
            ),
        )
    };
}

const CHECKS: &[(&str, &str)] = &[
    (
        "deliveries without their message",
        "SELECT count(*) FROM deliveries d WHERE NOT EXISTS ( \
         SELECT 1 FROM messages m WHERE m.room_key = d.room_key AND m.sequence = d.sequence)",
    ),
    (
        "attempts without their delivery",
        "SELECT count(*) FROM attempts a WHERE NOT EXISTS (SELECT 1 FROM deliveries d \
         WHERE d.room_key = a.room_key AND d.sequence = a.sequence AND d.member_key = a.member_key)",
    ),
    (
        "messages beyond their room's sequence",
        "SELECT count(*) FROM messages m JOIN rooms r ON r.key = m.room_key WHERE m.sequence > r.sequence",
    ),
    (
        "rooms whose count of participants is wrong",
        "SELECT count(*) FROM (SELECT r.key FROM rooms r \
         LEFT JOIN participants p ON p.room_key = r.key AND p.left_at IS NULL \
         GROUP BY r.key, r.participants HAVING r.participants <> count(p.member_key)) x",
    ),
    (
        "agents whose count of what they sent is wrong",
        "SELECT count(*) FROM (SELECT p.room_key FROM participants p \
         JOIN identities i ON i.key = p.member_key AND i.kind = 1 \
         LEFT JOIN messages m ON m.room_key = p.room_key AND m.sender_key = p.member_key \
         GROUP BY p.room_key, p.member_key, p.sent HAVING p.sent <> count(m.sequence)) x",
    ),
    tally!("stored", "0"),
    tally!("delivered", "1"),
    tally!("processing", "2"),
    tally!("failed", "3"),
    tally!("processed", "4"),
    tally!("cancelled", "5"),
    tally!("dead_lettered", "6"),
    kind!("texts", "0"),
    kind!("tool_calls", "1"),
    kind!("tool_results", "2"),
    kind!("thoughts", "3"),
    kind!("errors", "4"),
    kind!("tasks", "5"),
    kind!("attentions", "6"),
];

/// Examines what a database of the newest version holds, in one snapshot; it reads every row. `now_micros` tells which
/// files have expired.
///
/// # Errors
/// When it cannot be read.
pub async fn examine_rows(database: Database, now_micros: i64) -> Result<Findings, StoreError> {
    const FILES: &str = "SELECT r.id, f.id, f.bytes FROM files f JOIN rooms r ON r.key = f.room_key \
                         WHERE r.deleted_at IS NULL AND (f.expires_at IS NULL OR f.expires_at > ?1)";
    look(database, move |tx| {
        Box::pin(async move {
            let mut faults = Vec::new();
            for (what, sql) in CHECKS {
                let rows = tx.query_one(sql, params![]).await?.int(0)?;
                if rows > 0 {
                    faults.push(Fault { what, rows });
                }
            }
            let mut files = Vec::new();
            for row in tx.query(FILES, params![now_micros]).await? {
                files.push(KeptFile { room: row.id(0)?, id: row.id(1)?, bytes: row.int(2)? });
            }
            Ok(Findings { faults, audit: audit::verify(tx).await?, files })
        })
    })
    .await
}

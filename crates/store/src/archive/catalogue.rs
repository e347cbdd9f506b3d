//! Which tables there are, as the database itself says it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Dialect, Reader, StoreError, params};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Text.
    Text,
    /// Bytes; on SQLite ids as well.
    Bytes,
    /// Ids of 16 bytes.
    Id,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// The database numbers the rows by it.
    pub(super) numbered: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, as they were declared.
    pub columns: Vec<Column>,
    /// Its primary key: places among the columns.
    pub(super) key: Vec<usize>,
}

/// Where migrations are noted: a part of the schema, not of the data.
const NO_DATA: [&str; 1] = ["schema_migrations"];

const SQLITE_COLUMNS: &str = "SELECT t.name, c.name, c.type, c.pk, 0 FROM pragma_table_list t \
    JOIN pragma_table_info(t.name) c WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
    ORDER BY t.name, c.cid";

const POSTGRES_COLUMNS: &str = "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL), \
    COALESCE((SELECT k.place FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place) \
        WHERE i.indrelid = c.oid AND i.indisprimary AND k.number = a.attnum), 0), \
    CASE WHEN a.attidentity = '' THEN 0 ELSE 1 END \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
    WHERE n.nspname = current_schema() AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped \
    ORDER BY c.relname, a.attnum";

const SQLITE_REFERENCES: &str = "SELECT DISTINCT t.name, f.\"table\" FROM pragma_table_list t \
    JOIN pragma_foreign_key_list(t.name) f WHERE t.schema = 'main' AND t.type = 'table'";

const POSTGRES_REFERENCES: &str = "SELECT DISTINCT c.relname::text, r.relname::text FROM pg_constraint f \
    JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class r ON r.oid = f.confrelid \
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE f.contype = 'f' AND n.nspname = current_schema()";

/// All tables that hold data, each after those that its rows point to.
pub async fn tables(tx: &mut Reader) -> Result<Vec<Table>, StoreError> {
    let dialect = tx.dialect();
    let mut tables: BTreeMap<String, (Table, Vec<(i64, usize)>)> = BTreeMap::new();
    for mut row in tx.query(dialect.pick(SQLITE_COLUMNS, POSTGRES_COLUMNS), params![]).await? {
        let (place, numbered) = (row.int(3)?, row.bool(4)?);
        let (name, column, kind) = (row.take_text(0)?, row.take_text(1)?, row.take_text(2)?);
        if NO_DATA.contains(&name.as_str()) {
            continue;
        }
        let kind = read_kind(&kind).ok_or_else(|| StoreError::Bug(format!("{name}.{column} is of type {kind}")))?;
        let (table, key) = tables
            .entry(name.clone())
            .or_insert_with(|| (Table { name, columns: Vec::new(), key: Vec::new() }, Vec::new()));
        if place > 0 {
            key.push((place, table.columns.len()));
        }
        table.columns.push(Column { name: column, kind, numbered });
    }
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for mut row in tx.query(dialect.pick(SQLITE_REFERENCES, POSTGRES_REFERENCES), params![]).await? {
        let (from, to) = (row.take_text(0)?, row.take_text(1)?);
        // Rows that point into their own table point to older ones.
        if from != to {
            needs.entry(from).or_default().insert(to);
        }
    }
    let mut ordered: Vec<Table> = Vec::with_capacity(tables.len());
    while !tables.is_empty() {
        let waits =
            |name: &String| needs.get(name).is_some_and(|needed| needed.iter().any(|other| tables.contains_key(other)));
        let ready = tables.keys().find(|name| !waits(name)).cloned();
        let found = ready.and_then(|name| tables.remove(&name));
        let Some((mut table, mut key)) = found else {
            return Err(StoreError::Bug(format!("the tables {:?} point to one another", tables.keys())));
        };
        key.sort_unstable();
        table.key = key.into_iter().map(|(_, column)| column).collect();
        if table.key.is_empty() {
            return Err(StoreError::Bug(format!("the table {} has no primary key", table.name)));
        }
        ordered.push(table);
    }
    Ok(ordered)
}

fn read_kind(text: &str) -> Option<Kind> {
    match text {
        "BIGINT" | "INTEGER" | "bigint" => Some(Kind::Int),
        "TEXT" | "text" => Some(Kind::Text),
        "BLOB" | "bytea" => Some(Kind::Bytes),
        "uuid" => Some(Kind::Id),
        _ => None,
    }
}

impl Table {
    /// The names of its columns.
    pub fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// The numbered column on PostgreSQL.
    pub(super) fn numbered(&self, dialect: Dialect) -> Option<&Column> {
        self.columns.iter().find(|column| column.numbered && dialect == Dialect::Postgres)
    }
}

//! Rows on their way in: into an empty database, in one transaction with the schema, so that half of it is never there.

use std::path::Path;

use super::catalogue::{Kind, Table, tables};
use super::kept;
use crate::engine::{postgres, sqlite};
use crate::migrate;
use crate::store::{BoxFuture, Connection, Database};
use crate::{Dialect, MIGRATIONS, Param, StoreError, Value, Writer, params};

/// An empty database that is being filled.
pub struct Importer {
    writer: Writer,
    now_micros: i64,
    applied: usize,
    tables: Vec<Table>,
}

/// Fills an empty database by `work`, which is committed when it returns `Ok`; else nothing stays. `now_micros` is noted
/// beside the migrations.
///
/// # Errors
/// [`StoreError::Setup`] when the database is not empty, [`StoreError::DatabaseLocked`] when a server has it, and what
/// `work` answers.
pub async fn import<T, E, F>(database: Database, now_micros: i64, work: F) -> Result<T, E>
where
    F: for<'t> FnOnce(&'t mut Importer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    match database {
        Database::Sqlite { path } => {
            let runtime = tokio::runtime::Handle::current();
            let filling = tokio::task::spawn_blocking(move || {
                let connection = sqlite::new_file(&path)?;
                let filled = runtime.block_on(fill(Connection::Sqlite(connection), now_micros, work));
                if filled.is_ok() {
                    sync(&path)?;
                }
                filled
            });
            let failed = |why| Err(E::from(StoreError::Bug(format!("filling the database failed: {why}"))));
            filling.await.unwrap_or_else(failed)
        }
        Database::Postgres { url } => {
            let connection = postgres::lone(&url).await?;
            postgres::own(&connection).await?;
            fill(Connection::Postgres(connection), now_micros, work).await
        }
    }
}

fn sync(path: &Path) -> Result<(), StoreError> {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|why| StoreError::Unavailable(format!("cannot sync {}: {why}", path.display())))
}

async fn fill<T, E, F>(connection: Connection, now_micros: i64, work: F) -> Result<T, E>
where
    F: for<'t> FnOnce(&'t mut Importer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    E: From<StoreError>,
{
    let writer = Writer::new(connection);
    let mut importer = Importer { writer, now_micros, applied: 0, tables: Vec::new() };
    importer.writer.batch("BEGIN").await?;
    let done = async {
        importer.check_empty().await?;
        work(&mut importer).await
    };
    let done = done.await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = importer.writer.batch(end).await;
    let done = done?;
    ended?;
    Ok(done)
}

impl Importer {
    async fn check_empty(&mut self) -> Result<(), StoreError> {
        const SQLITE: &str = "SELECT name FROM sqlite_schema LIMIT 1";
        const POSTGRES: &str = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                                WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm') LIMIT 1";
        let sql = self.writer.dialect().pick(SQLITE, POSTGRES);
        match self.writer.query_opt(sql, params![]).await? {
            None => Ok(()),
            Some(row) => {
                let table = row.text(0)?;
                Err(StoreError::Setup(format!("it is not empty: there is {table}; restore into an empty database")))
            }
        }
    }

    /// Makes the schema of a version, without any rows.
    ///
    /// # Errors
    /// When this program does not know the version.
    pub async fn make_schema(&mut self, version: i64) -> Result<(), StoreError> {
        let wanted = usize::try_from(version).ok().filter(|wanted| (1..=MIGRATIONS.len()).contains(wanted));
        let newest = MIGRATIONS.len();
        let wanted = wanted.ok_or_else(|| {
            StoreError::Migration(format!(
                "the data is of schema version {version}, and this program knows 1 to {newest}"
            ))
        })?;
        self.writer.batch(migrate::CREATE_TABLE).await?;
        self.migrate_to(wanted).await?;
        self.tables = tables(&mut self.writer).await?;
        // What a migration puts into a new table comes with the data.
        for table in self.tables.iter().rev() {
            self.writer.execute(kept(format!("DELETE FROM {}", table.name)), params![]).await?;
        }
        Ok(())
    }

    async fn migrate_to(&mut self, wanted: usize) -> Result<(), StoreError> {
        let dialect = self.writer.dialect();
        for migration in MIGRATIONS.get(self.applied..wanted).unwrap_or_default() {
            let failed = |why| migrate::failed(migration, &why);
            self.writer.batch(dialect.pick(migration.sqlite, migration.postgres)).await.map_err(failed)?;
            let noted = params![migration.number, migration.name, self.now_micros];
            self.writer.execute(migrate::NOTE, noted).await.map_err(failed)?;
        }
        self.applied = wanted;
        Ok(())
    }

    /// The tables, each after those that its rows point to.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Puts rows, as [`line`](super::line) wrote them, into a table.
    ///
    /// # Errors
    /// When the table or a column is unknown, or a row does not fit.
    pub async fn insert(&mut self, table: &str, columns: &[String], lines: &[&str]) -> Result<(), StoreError> {
        let unknown = |what: &str| StoreError::Decode(format!("the archive has {what}, which this schema has not"));
        let table = self.tables.iter().find(|known| known.name == table).ok_or_else(|| unknown(table))?;
        let kinds: Vec<Kind> = columns
            .iter()
            .map(|name| {
                let column = table.columns.iter().find(|column| column.name == *name);
                column.map(|column| column.kind).ok_or_else(|| unknown(&format!("{}.{name}", table.name)))
            })
            .collect::<Result<_, _>>()?;
        let placeholders: Vec<String> = (1..).take(columns.len()).map(|number| format!("?{number}")).collect();
        let system = if table.numbered(self.writer.dialect()).is_some() { "OVERRIDING SYSTEM VALUE " } else { "" };
        let (columns, placeholders) = (columns.join(", "), placeholders.join(", "));
        let sql = kept(format!("INSERT INTO {} ({columns}) {system}VALUES ({placeholders})", table.name));
        let rows: Vec<Vec<Value>> =
            lines.iter().map(|line| super::read_line(line, &kinds)).collect::<Result<_, _>>()?;
        let bound: Vec<Vec<Param<'_>>> = rows.iter().map(|row| row.iter().map(Value::as_param).collect()).collect();
        self.writer.execute_many(sql, &bound).await.map(drop)
    }

    /// Counts on after the rows that came, brings the schema up to date, and checks that no row points to nothing.
    ///
    /// # Errors
    /// When the rows do not fit together.
    pub async fn complete(&mut self) -> Result<(), StoreError> {
        let dialect = self.writer.dialect();
        for table in &self.tables {
            let Some(column) = table.numbered(dialect) else { continue };
            let (name, column) = (&table.name, &column.name);
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{name}', '{column}'), \
                 (SELECT COALESCE(MAX({column}), 0) + 1 FROM {name}), false)"
            );
            self.writer.execute(kept(sql), params![]).await?;
        }
        self.migrate_to(MIGRATIONS.len()).await?;
        if dialect == Dialect::Sqlite
            && let Some(row) = self.writer.query("PRAGMA foreign_key_check", params![]).await?.first()
        {
            return Err(StoreError::Decode(format!("a row of {} points to a row that is not there", row.text(0)?)));
        }
        Ok(())
    }

    /// The open transaction, for what is noted of the import itself.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

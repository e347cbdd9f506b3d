//! The store as its callers see it: [`Store::write`] and [`Store::read`] run one closure in one transaction.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bandstand_domain::event::Event;
use bandstand_wire::ids::RoomId;

use crate::commit::{Commit, CommitSink};
use crate::dialect::Dialect;
use crate::engine::postgres::{self, PostgresEngine};
use crate::engine::sqlite::{self, SqliteEngine};
use crate::error::StoreError;
use crate::idempotency::Ticket;
use crate::migrate::{self, Migration};
use crate::value::{Param, Row};

/// What an operation's closure returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which database holds the data.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// The embedded engine.
    Sqlite {
        /// The database file. Its folder is locked for this server.
        path: PathBuf,
    },
    /// A PostgreSQL server.
    Postgres {
        /// `postgres://user:password@host/database`.
        url: String,
    },
}

/// Says which database without its password.
impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite { path } => f.debug_struct("Sqlite").field("path", path).finish(),
            Self::Postgres { .. } => f.debug_struct("Postgres").field("url", &"[REDACTED]").finish(),
        }
    }
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Which database.
    pub database: Database,
    /// SQLite: threads that read, each with a connection of its own.
    pub readers: usize,
    /// PostgreSQL: connections of the pool.
    pub postgres_connections: usize,
    /// Operations that may wait; one more is answered [`StoreError::Busy`]. Writes and reads are counted apart.
    pub queue: usize,
    /// An operation that takes longer is logged with its name.
    pub slow_operation: Duration,
    /// The time, in microseconds since 1970: noted beside the migrations that are applied now.
    pub now_micros: i64,
}

impl StoreOptions {
    /// The usual sizes: two readers, 16 connections, 4096 waiting operations, 20 ms.
    pub fn new(database: Database, now_micros: i64) -> Self {
        Self {
            database,
            readers: 2,
            postgres_connections: 16,
            queue: 4096,
            slow_operation: Duration::from_millis(20),
            now_micros,
        }
    }
}

/// Durable state. Cloning is cheap; all clones are one store.
#[derive(Clone)]
pub struct Store {
    engine: Arc<Engine>,
    /// What writes through this handle are part of.
    ticket: Option<Arc<Ticket>>,
}

enum Engine {
    Sqlite(SqliteEngine),
    Postgres(PostgresEngine),
}

impl Store {
    /// Opens the database, takes the lock that makes this server its only owner, and brings the schema up to date.
    pub async fn open(options: StoreOptions, sink: Arc<dyn CommitSink>) -> Result<Self, StoreError> {
        Self::open_with_migrations(options, sink, crate::MIGRATIONS).await
    }

    /// [`open`](Self::open) with another schema, for tests of the store itself.
    pub async fn open_with_migrations(
        options: StoreOptions,
        sink: Arc<dyn CommitSink>,
        migrations: &'static [Migration],
    ) -> Result<Self, StoreError> {
        let engine = match options.database.clone() {
            Database::Sqlite { path } => Engine::Sqlite(SqliteEngine::open(path, options, sink, migrations).await?),
            Database::Postgres { url } => {
                Engine::Postgres(PostgresEngine::open(&url, options, sink, migrations).await?)
            }
        };
        Ok(Self { engine: Arc::new(engine), ticket: None })
    }

    /// This store for one request that is to happen once: the next write stores the reply to it in the same transaction,
    /// and is undone with [`StoreError::Repeated`] when the request's key is taken.
    #[must_use]
    pub fn with_ticket(&self, ticket: Ticket) -> Self {
        Self { engine: Arc::clone(&self.engine), ticket: Some(Arc::new(ticket)) }
    }

    /// Runs `work` in one transaction: committed when it returns `Ok`, else rolled back. The answer comes after the
    /// data is on stable storage and after its events were handed to the [`CommitSink`].
    ///
    /// `work` may await nothing but the transaction. A caller that goes away does not stop it. Once a statement has
    /// failed, the transaction is lost, and `work` should return that error.
    pub async fn write<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Writer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match self.ticket.clone() {
            None => self.write_now(name, work).await,
            Some(ticket) => {
                self.write_now(name, move |tx: &mut Writer| -> BoxFuture<'_, Result<T, E>> {
                    Box::pin(async move {
                        let value = work(tx).await?;
                        if let Some(reply) = ticket.reply_to(name, &value)? {
                            ticket.stamp(tx, &reply).await?;
                        }
                        Ok(value)
                    })
                })
                .await
            }
        }
    }

    async fn write_now<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Writer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &*self.engine {
            Engine::Sqlite(engine) => engine.write(name, work).await,
            Engine::Postgres(engine) => engine.write(name, work).await,
        }
    }

    /// Runs `work` on one snapshot of the data. It sees every write that was answered before.
    pub async fn read<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &*self.engine {
            Engine::Sqlite(engine) => engine.read(name, work).await,
            Engine::Postgres(engine) => engine.read(name, work).await,
        }
    }

    /// Runs `work` on one snapshot that may be read for as long as it takes, on a connection of its own: nobody waits for
    /// it. Unlike in [`read`](Self::read), `work` may await other things, such as somebody who takes what it reads.
    ///
    /// # Errors
    /// When the database cannot be read, and what `work` answers.
    pub async fn snapshot<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let database = match &*self.engine {
            Engine::Sqlite(engine) => Database::Sqlite { path: engine.path().to_owned() },
            Engine::Postgres(engine) => Database::Postgres { url: engine.url().to_owned() },
        };
        look(database, work).await
    }

    /// Finishes the operations that wait, moves the write-ahead log into the database and releases the locks. Later
    /// operations are answered [`StoreError::Closed`].
    pub async fn close(&self) {
        match &*self.engine {
            Engine::Sqlite(engine) => engine.close().await,
            Engine::Postgres(engine) => engine.close().await,
        }
    }

    /// Whether reads and writes are served: one empty round trip on each path, without changing data.
    pub async fn ping(&self) -> Result<(), StoreError> {
        const ONE: &str = "SELECT 1";
        self.write("ping", |tx| Box::pin(async move { tx.query_one(ONE, &[]).await.map(drop) })).await?;
        self.read("ping", |tx| Box::pin(async move { tx.query_one(ONE, &[]).await.map(drop) })).await
    }

    /// The number of the newest migration that was applied.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        self.read("schema_version", |tx| Box::pin(async move { tx.query_one(migrate::VERSION, &[]).await?.int(0) }))
            .await
    }
}

/// Runs `work` on one snapshot of a database that need not be open, and that is not changed.
///
/// # Errors
/// When the database cannot be read, and what `work` answers.
pub async fn look<T, E, F>(database: Database, work: F) -> Result<T, E>
where
    F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    match database {
        Database::Sqlite { path } => {
            let runtime = tokio::runtime::Handle::current();
            let looking = tokio::task::spawn_blocking(move || {
                let connection = sqlite::lone(&path)?;
                runtime.block_on(in_snapshot(Connection::Sqlite(connection), "BEGIN", work))
            });
            let failed = |why| Err(E::from(StoreError::Bug(format!("reading the database failed: {why}"))));
            looking.await.unwrap_or_else(failed)
        }
        Database::Postgres { url } => {
            let connection = postgres::lone(&url).await?;
            in_snapshot(Connection::Postgres(connection), postgres::BEGIN_READ, work).await
        }
    }
}

async fn in_snapshot<T, E, F>(connection: Connection, begin: &'static str, work: F) -> Result<T, E>
where
    F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>>,
    E: From<StoreError>,
{
    let mut reader = Reader::new(connection);
    reader.batch(begin).await?;
    let done = work(&mut reader).await;
    // There is nothing to keep, and the connection ends here.
    let _ = reader.batch("ROLLBACK").await;
    done
}

/// The connection below an open transaction.
pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(deadpool_postgres::Object),
}

/// An open transaction that reads.
pub struct Reader {
    connection: Connection,
    /// The first statement that failed. PostgreSQL refuses whatever follows it, so SQLite must as well.
    failed: Option<StoreError>,
    /// A statement was begun and has not ended: left true by an operation that dropped it half way.
    running: bool,
}

impl Reader {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, failed: None, running: false }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    /// The error of the first failed statement since the last call.
    pub(crate) fn take_failure(&mut self) -> Option<StoreError> {
        let abandoned = std::mem::take(&mut self.running);
        self.failed.take().or_else(|| abandoned.then(abandoned_statement))
    }

    /// Runs statements without parameters and without an answer.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        match &mut self.connection {
            Connection::Sqlite(connection) => connection.execute_batch(sql).map_err(sqlite::convert),
            Connection::Postgres(connection) => {
                connection.batch_execute(sql).await.map_err(|error| postgres::convert(&error))
            }
        }
    }

    /// Before each statement.
    fn begin(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if std::mem::replace(&mut self.running, true) {
            return Err(abandoned_statement());
        }
        Ok(())
    }

    /// After each statement.
    fn ended<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.running = false;
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    /// Which database this is, for the few queries that must differ.
    pub fn dialect(&self) -> Dialect {
        match self.connection {
            Connection::Sqlite(_) => Dialect::Sqlite,
            Connection::Postgres(_) => Dialect::Postgres,
        }
    }

    /// All rows of a query. Placeholders are written `?1`, `?2`.
    pub async fn query(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        self.begin()?;
        let result = match &mut self.connection {
            Connection::Sqlite(connection) => sqlite::query(connection, sql, params),
            Connection::Postgres(connection) => postgres::query(connection, sql, params).await,
        };
        self.ended(result)
    }

    /// The only row of a query, or none. More than one is an error.
    pub async fn query_opt(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Option<Row>, StoreError> {
        let mut rows = self.query(sql, params).await?;
        if rows.len() > 1 {
            return Err(StoreError::Bug(format!("{} rows where at most one was expected: {sql}", rows.len())));
        }
        Ok(rows.pop())
    }

    /// The only row of a query. None or more than one is an error.
    pub async fn query_one(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Row, StoreError> {
        let row = self.query_opt(sql, params).await?;
        row.ok_or_else(|| StoreError::Bug(format!("no row where one was expected: {sql}")))
    }
}

fn abandoned_statement() -> StoreError {
    StoreError::Bug("a statement was dropped before it ended".to_owned())
}

/// An open transaction that writes. All that reads, taking `&mut Reader`, takes it as well.
pub struct Writer {
    reader: Reader,
    commits: Vec<Commit>,
}

impl Writer {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { reader: Reader::new(connection), commits: Vec::new() }
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.reader.into_connection()
    }

    /// The groups since the last call.
    pub(crate) fn take_commits(&mut self) -> Vec<Commit> {
        std::mem::take(&mut self.commits)
    }

    /// Runs a statement; answers how many rows it changed.
    pub async fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.reader.begin()?;
        let result = match &mut self.reader.connection {
            Connection::Sqlite(connection) => sqlite::execute(connection, sql, params),
            Connection::Postgres(connection) => postgres::execute(connection, sql, params).await,
        };
        self.reader.ended(result)
    }

    /// Runs a statement once for each set of parameters, on PostgreSQL without waiting in between; answers how many
    /// rows were changed in all.
    pub async fn execute_many(&mut self, sql: &'static str, rows: &[Vec<Param<'_>>]) -> Result<u64, StoreError> {
        self.reader.begin()?;
        let result = match &mut self.reader.connection {
            Connection::Sqlite(connection) => {
                rows.iter().map(|params| sqlite::execute(connection, sql, params)).sum::<Result<u64, _>>()
            }
            Connection::Postgres(connection) => postgres::execute_many(connection, sql, rows).await,
        };
        self.reader.ended(result)
    }

    /// Opens the group of a room's sequence number: the events that follow belong to it. The group is announced even
    /// when none follow, so that whoever puts a room's groups in order sees no hole.
    pub fn enter_room(&mut self, room: RoomId, sequence: i64) {
        self.commits.push(Commit { room: Some((room, sequence)), events: Vec::new() });
    }

    /// Announces an event, after COMMIT, in the group that was opened last (one without a room if there is none).
    pub fn emit(&mut self, event: Event) {
        match self.commits.last_mut() {
            Some(group) => group.events.push(event),
            None => self.commits.push(Commit { room: None, events: vec![event] }),
        }
    }
}

impl Deref for Writer {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl DerefMut for Writer {
    fn deref_mut(&mut self) -> &mut Reader {
        &mut self.reader
    }
}

//! PostgreSQL: pooled connections, one transaction an operation, each in a task of its own so that a caller that goes
//! away leaves no commit without its events.

use std::error::Error as StdError;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, Statement};
use uuid::Uuid;

use super::owner::Owner;
use super::{Outcome, count, judge, note_duration, panicked, publish};
use crate::commit::CommitSink;
use crate::dialect;
use crate::error::StoreError;
use crate::migrate::{self, Migration};
use crate::store::{BoxFuture, Connection, Reader, StoreOptions, Writer};
use crate::value::{Param, Row, Value};

/// Isolation is said aloud: a server's defaults may be others.
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_current_xact_id()";
pub(crate) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// How long an operation waits for a free connection, and for a new one to be made.
const WAIT: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);

/// How long it is asked what became of a transaction whose COMMIT was not answered, and how often.
const ASK_OUTCOME: Duration = Duration::from_secs(5);
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A statement or an idle transaction that takes longer is ended by the server, so that nothing holds a room for ever.
const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
                       SET idle_in_transaction_session_timeout = '30s'";

/// The advisory lock under which one server at a time migrates.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_lock(4787018842174058837)";
const MIGRATION_UNLOCK: &str = "SELECT pg_advisory_unlock(4787018842174058837)";

pub(crate) struct PostgresEngine {
    url: String,
    shared: Arc<Shared>,
    owner: Owner,
    queue: u32,
}

struct Shared {
    pool: Pool,
    /// Operations that wait or run.
    writes: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    closed: AtomicBool,
    slow: Duration,
    sink: Arc<dyn CommitSink>,
}

impl PostgresEngine {
    pub(crate) async fn open(
        url: &str,
        options: StoreOptions,
        sink: Arc<dyn CommitSink>,
        migrations: &'static [Migration],
    ) -> Result<Self, StoreError> {
        let config = configure(url)?;
        let owner = Owner::take(config.clone(), migrations, options.now_micros).await?;
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, manager_config))
            .max_size(options.postgres_connections.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(CONNECT))
            .recycle_timeout(Some(CONNECT))
            .post_create(Hook::async_fn(|client, _| {
                Box::pin(async move {
                    check_durable(client).await.map_err(|error| HookError::message(error.to_string()))?;
                    client.batch_execute(SESSION).await.map_err(HookError::Backend)
                })
            }))
            .build()
            .map_err(|error| StoreError::Setup(error.to_string()))?;
        let queue = u32::try_from(options.queue.max(1)).unwrap_or(u32::MAX);
        let shared = Shared {
            pool,
            writes: Arc::new(Semaphore::new(queue as usize)),
            reads: Arc::new(Semaphore::new(queue as usize)),
            closed: AtomicBool::new(false),
            slow: options.slow_operation,
            sink,
        };
        Ok(Self { url: url.to_owned(), shared: Arc::new(shared), owner, queue })
    }

    /// The address of the database; it may hold a password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn write<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Writer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let permit = self.shared.permit(&self.shared.writes, name)?;
        let shared = Arc::clone(&self.shared);
        let owned = self.owner.held();
        in_task(async move {
            let result = shared.write(name, work, &owned).await;
            drop(permit);
            result
        })
        .await
    }

    pub(crate) async fn read<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let permit = self.shared.permit(&self.shared.reads, name)?;
        let shared = Arc::clone(&self.shared);
        in_task(async move {
            let result = shared.read(name, work).await;
            drop(permit);
            result
        })
        .await
    }

    pub(crate) async fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // All permits back means that nothing runs; they are never given out again.
        for queue in [&self.shared.writes, &self.shared.reads] {
            if let Ok(all) = queue.acquire_many(self.queue).await {
                all.forget();
                queue.close();
            }
        }
        self.shared.pool.close();
        self.owner.release().await;
    }
}

/// Runs an operation apart from its caller.
async fn in_task<T, E>(operation: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    tokio::spawn(operation).await.unwrap_or_else(|error| {
        Err(E::from(if error.is_panic() {
            StoreError::Bug(format!("the store panicked: {error}"))
        } else {
            StoreError::Closed
        }))
    })
}

impl Shared {
    fn permit(&self, queue: &Arc<Semaphore>, name: &'static str) -> Result<OwnedSemaphorePermit, StoreError> {
        let permit = Arc::clone(queue).try_acquire_owned();
        if self.closed.load(Ordering::SeqCst) {
            return Err(StoreError::Closed);
        }
        permit.map_err(|_| {
            count(name, Outcome::Busy);
            StoreError::Busy
        })
    }

    async fn write<T, E, F>(&self, name: &'static str, work: F, owned: &AtomicBool) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Writer) -> BoxFuture<'t, Result<T, E>>,
        E: From<StoreError>,
    {
        let (connection, transaction) = self.begin(name, BEGIN_WRITE, Some(owned)).await?;
        let mut writer = Writer::new(Connection::Postgres(connection));
        let began = Instant::now();
        let returned = AssertUnwindSafe(async { work(&mut writer).await })
            .catch_unwind()
            .await
            .map_err(|panic| panicked(name, &*panic));
        note_duration(name, began.elapsed(), self.slow);
        let (outcome, result) = judge(name, returned, writer.take_failure());
        let commits = writer.take_commits();
        let Connection::Postgres(connection) = writer.into_connection() else { return result };
        if outcome != Outcome::Done {
            count(name, outcome);
            end(connection, "ROLLBACK").await;
            return result;
        }
        let committing = Instant::now();
        let committed = if owned.load(Ordering::SeqCst) {
            commit(connection).await
        } else {
            end(connection, "ROLLBACK").await;
            Err(Uncommitted::Not(not_owned()))
        };
        let committed = match committed {
            Err(Uncommitted::Unknown(why)) => self.outcome(name, transaction, why).await,
            known => known,
        };
        match committed {
            Ok(()) => {
                metrics::histogram!("store_commit_seconds").record(committing.elapsed());
                metrics::histogram!("store_batch_size").record(1.0);
                count(name, Outcome::Done);
                publish(&*self.sink, commits);
                result
            }
            Err(Uncommitted::Not(error)) => {
                count(name, Outcome::Unavailable);
                tracing::error!(operation.name = name, %error, "a store operation was not committed");
                Err(E::from(error))
            }
            Err(Uncommitted::Unknown(why)) => {
                count(name, Outcome::Unavailable);
                tracing::error!(operation.name = name, error = %why, "whether a store operation was committed is unknown");
                self.sink.uncertain(commits);
                Err(E::from(StoreError::Unavailable(format!(
                    "the connection was lost during COMMIT, so whether it happened is unknown: {why}"
                ))))
            }
        }
    }

    /// Asks, over another connection, what became of a transaction whose COMMIT was not answered.
    async fn outcome(&self, name: &'static str, transaction: Option<u64>, why: String) -> Result<(), Uncommitted> {
        let Some(transaction) = transaction else { return Err(Uncommitted::Unknown(why)) };
        let asked = tokio::time::timeout(ASK_OUTCOME, async {
            loop {
                if let Some(committed) = self.ask_outcome(transaction).await {
                    return committed;
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
        });
        match asked.await {
            Ok(true) => {
                tracing::warn!(operation.name = name, error = %why, "the answer to a COMMIT was lost; it did happen");
                Ok(())
            }
            Ok(false) => Err(Uncommitted::Not(StoreError::Unavailable(format!(
                "the connection was lost during COMMIT, which did not happen: {why}"
            )))),
            Err(_) => Err(Uncommitted::Unknown(why)),
        }
    }

    /// Whether a transaction was committed; `None` when that is not known now.
    async fn ask_outcome(&self, transaction: u64) -> Option<bool> {
        let connection = self.pool.get().await.ok()?;
        let sql = format!("SELECT pg_xact_status('{transaction}'::xid8)");
        match connection.simple_query(&sql).await {
            Ok(answer) => match first_value(&answer)? {
                "committed" => Some(true),
                "aborted" => Some(false),
                // "in progress": its server process has not yet noticed that we are gone.
                _ => None,
            },
            Err(_) => {
                discard(connection);
                None
            }
        }
    }

    async fn read<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>>,
        E: From<StoreError>,
    {
        let (connection, _) = self.begin(name, BEGIN_READ, None).await?;
        let mut reader = Reader::new(Connection::Postgres(connection));
        let began = Instant::now();
        let returned = AssertUnwindSafe(async { work(&mut reader).await })
            .catch_unwind()
            .await
            .map_err(|panic| panicked(name, &*panic));
        let (outcome, result) = judge(name, returned, reader.take_failure());
        note_duration(name, began.elapsed(), self.slow);
        count(name, outcome);
        if let Connection::Postgres(connection) = reader.into_connection() {
            end(connection, "ROLLBACK").await;
        }
        result
    }

    /// A connection with an open transaction, and the transaction's number if it will write.
    async fn begin(
        &self,
        name: &'static str,
        begin: &'static str,
        owned: Option<&AtomicBool>,
    ) -> Result<(Object, Option<u64>), StoreError> {
        let begun = async {
            if owned.is_some_and(|owned| !owned.load(Ordering::SeqCst)) {
                return Err(not_owned());
            }
            let connection = self.pool.get().await.map_err(no_connection)?;
            match connection.simple_query(begin).await {
                Ok(answer) => Ok((connection, first_value(&answer).and_then(|number| number.parse().ok()))),
                Err(error) => {
                    discard(connection);
                    Err(convert(&error))
                }
            }
        };
        begun.await.inspect_err(|_| count(name, Outcome::Unavailable))
    }
}

fn not_owned() -> StoreError {
    StoreError::Unavailable("the connection that holds this server's lock on the database was lost".to_owned())
}

fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => StoreError::Busy,
        PoolError::Closed => StoreError::Closed,
        PoolError::Backend(error) => StoreError::Unavailable(describe(&error)),
        other => StoreError::Unavailable(other.to_string()),
    }
}

/// Why a transaction is not known to be committed.
enum Uncommitted {
    /// It is not.
    Not(StoreError),
    /// The connection was lost before the answer came; why.
    Unknown(String),
}

async fn commit(connection: Object) -> Result<(), Uncommitted> {
    let Err(error) = connection.batch_execute("COMMIT").await else { return Ok(()) };
    discard(connection);
    Err(match error.code() {
        // The server says what it did: nothing.
        Some(code) if !error.is_closed() && !ended_by_server(code) => Uncommitted::Not(convert(&error)),
        _ => Uncommitted::Unknown(describe(&error)),
    })
}

/// Whether the server ends the connection with this error, which may come after it has committed.
fn ended_by_server(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code)
}

/// The first value of the first row of an answer.
fn first_value(answer: &[SimpleQueryMessage]) -> Option<&str> {
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    })
}

/// Ends a transaction of which nothing is kept. A connection on which that fails is not used again.
async fn end(connection: Object, sql: &'static str) {
    if let Err(error) = connection.batch_execute(sql).await {
        tracing::debug!(error = %describe(&error), "a database connection is thrown away");
        discard(connection);
    }
}

fn discard(connection: Object) {
    drop(Object::take(connection));
}

// --- Opening --------------------------------------------------------------------------------------------------------

/// A connection apart from an open store's, without time limits: for what takes as long as the data is large.
pub(crate) async fn lone(url: &str) -> Result<Object, StoreError> {
    const UNLIMITED: &str = "SET statement_timeout = 0; SET lock_timeout = 0; \
                             SET idle_in_transaction_session_timeout = 0; SET client_min_messages = warning";
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let pool = Pool::builder(Manager::from_config(configure(url)?, NoTls, manager)).max_size(1).build();
    let pool = pool.map_err(|error| StoreError::Setup(error.to_string()))?;
    let connection = pool.get().await.map_err(no_connection)?;
    connection.batch_execute(UNLIMITED).await.map_err(|error| convert(&error))?;
    Ok(connection)
}

/// Makes this connection the owner of the database until it ends, unless a server is.
pub(crate) async fn own(connection: &Object) -> Result<(), StoreError> {
    const DATABASE: &str = "SELECT current_database()::text";
    let row = connection.query_one(super::owner::LOCK, &[]).await.map_err(|error| convert(&error))?;
    if row.try_get(0).map_err(|error| convert(&error))? {
        return check_durable(connection).await;
    }
    let row = connection.query_one(DATABASE, &[]).await.map_err(|error| convert(&error))?;
    let database = row.try_get(0).map_err(|error| convert(&error))?;
    Err(StoreError::DatabaseLocked { database, holder: "its owner holds the lock".to_owned() })
}

fn configure(url: &str) -> Result<Config, StoreError> {
    // The cause may quote the address, and with it the password; it names what is wrong well enough without.
    let mut config: Config = url
        .parse()
        .map_err(|_| StoreError::Setup("the address of the PostgreSQL database cannot be read".to_owned()))?;
    config
        .connect_timeout(CONNECT)
        .keepalives_idle(Duration::from_secs(15))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(30));
    if config.get_application_name().is_none() {
        config.application_name("bandstand");
    }
    Ok(config)
}

/// Refuses a server that answers COMMIT before the data is on stable storage, and one that cannot hold all text.
pub(super) async fn check_durable(client: &Client) -> Result<(), StoreError> {
    const SETTINGS: &str = "SELECT current_setting('fsync'), current_setting('synchronous_commit'), \
                            current_setting('full_page_writes'), current_setting('server_encoding')";
    let row = client.query_one(SETTINGS, &[]).await.map_err(|error| convert(&error))?;
    let wrong = [("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")];
    for (at, (setting, bad)) in wrong.into_iter().enumerate() {
        let found: String = row.try_get(at).map_err(|error| convert(&error))?;
        if found == bad {
            return Err(StoreError::Setup(format!(
                "PostgreSQL runs with {setting} = {found}: a power cut would lose acknowledged messages; set it to on"
            )));
        }
    }
    let encoding: String = row.try_get(wrong.len()).map_err(|error| convert(&error))?;
    if encoding != "UTF8" {
        return Err(StoreError::Setup(format!("the PostgreSQL database's encoding is {encoding}; it must be UTF8")));
    }
    Ok(())
}

/// Applies the migrations that are missing, each in one transaction, under a lock.
pub(super) async fn bring_up_to_date(client: &Client, known: &[Migration], now_micros: i64) -> Result<(), StoreError> {
    client.batch_execute(MIGRATION_LOCK).await.map_err(|error| convert(&error))?;
    let migrated = migrate_locked(client, known, now_micros).await;
    client.batch_execute(MIGRATION_UNLOCK).await.map_err(|error| convert(&error))?;
    migrated
}

async fn migrate_locked(client: &Client, known: &[Migration], now_micros: i64) -> Result<(), StoreError> {
    // Asked first, since IF NOT EXISTS says a word in the server's log each time.
    client
        .batch_execute(&format!("SET client_min_messages = warning; {}", migrate::CREATE_TABLE))
        .await
        .map_err(|error| convert(&error))?;
    let rows = client.query(migrate::APPLIED, &[]).await.map_err(|error| convert(&error))?;
    let applied = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<Vec<_>, _>>();
    let applied = applied.map_err(|error| convert(&error))?;
    for migration in migrate::pending(known, &applied)? {
        if let Err(error) = apply(client, migration, now_micros).await {
            // The first error is the one to tell.
            let _ = client.batch_execute("ROLLBACK").await;
            return Err(migrate::failed(migration, &convert(&error)));
        }
        migrate::log_applied(migration, applied.is_empty());
    }
    Ok(())
}

async fn apply(client: &Client, migration: &Migration, now_micros: i64) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("BEGIN").await?;
    client.batch_execute(migration.postgres).await?;
    client.execute(dialect::postgres(migrate::NOTE), &[&migration.number, &migration.name, &now_micros]).await?;
    client.batch_execute("COMMIT").await
}

// --- Statements -----------------------------------------------------------------------------------------------------

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(value), &Type::INT8) => value.to_sql(ty, out),
            (Self::Int(value), &Type::INT4) => i32::try_from(*value)?.to_sql(ty, out),
            (Self::Int(value), &Type::INT2) => i16::try_from(*value)?.to_sql(ty, out),
            (Self::Text(value), &Type::TEXT | &Type::VARCHAR | &Type::BPCHAR | &Type::NAME | &Type::UNKNOWN) => {
                value.to_sql(ty, out)
            }
            (Self::Id(value), &Type::UUID) => value.to_sql(ty, out),
            (Self::Id(value), &Type::BYTEA) => value.as_bytes().as_slice().to_sql(ty, out),
            (Self::Bytes(value), &Type::BYTEA) => value.to_sql(ty, out),
            (Self::Int(_) | Self::Text(_) | Self::Id(_) | Self::Bytes(_), _) => {
                Err(format!("{self:?} given where the statement takes {ty}; cast the placeholder").into())
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A column of any type we use.
struct Decoded(Value);

impl<'a> FromSql<'a> for Decoded {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT8 => Value::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Value::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Value::Int(i16::from_sql(ty, raw)?.into()),
            // A comparison or EXISTS in a SELECT; SQLite gives 0 and 1.
            Type::BOOL => Value::Int(bool::from_sql(ty, raw)?.into()),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                Value::Text(String::from_sql(ty, raw)?)
            }
            Type::UUID => Value::Id(Uuid::from_sql(ty, raw)?),
            // As on SQLite, which cannot tell the two apart.
            Type::BYTEA => Uuid::from_slice(raw).map_or_else(|_| Value::Bytes(raw.to_vec()), Value::Id),
            _ => {
                return Err(
                    format!("a column of type {ty}; cast it (SUM of numbers is numeric: CAST(… AS BIGINT))").into()
                );
            }
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

async fn prepare(connection: &Object, sql: &'static str) -> Result<Statement, StoreError> {
    connection.prepare_cached(dialect::postgres(sql)).await.map_err(|error| convert(&error))
}

fn bind<'p>(
    statement: &Statement,
    sql: &'static str,
    params: &'p [Param<'p>],
) -> Result<Vec<&'p (dyn ToSql + Sync)>, StoreError> {
    let wanted = statement.params().len();
    if wanted != params.len() {
        return Err(StoreError::Bug(format!("{} parameters for {wanted} placeholders: {sql}", params.len())));
    }
    params.iter().map(|param| param.check().map(|()| param as &(dyn ToSql + Sync))).collect()
}

pub(crate) async fn query(
    connection: &mut Object,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, StoreError> {
    let statement = prepare(connection, sql).await?;
    let bound = bind(&statement, sql, params)?;
    let rows = connection.query(&statement, &bound).await.map_err(|error| convert(&error))?;
    rows.iter()
        .map(|row| {
            let values = (0..row.len()).map(|column| {
                let Decoded(value) = row.try_get(column).map_err(|error| StoreError::Decode(describe(&error)))?;
                Ok(value)
            });
            Ok(Row::new(values.collect::<Result<_, StoreError>>()?))
        })
        .collect()
}

pub(crate) async fn execute(
    connection: &mut Object,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<u64, StoreError> {
    let statement = prepare(connection, sql).await?;
    let bound = bind(&statement, sql, params)?;
    connection.execute(&statement, &bound).await.map_err(|error| convert(&error))
}

pub(crate) async fn execute_many(
    connection: &mut Object,
    sql: &'static str,
    rows: &[Vec<Param<'_>>],
) -> Result<u64, StoreError> {
    if rows.is_empty() {
        return Ok(0);
    }
    let statement = prepare(connection, sql).await?;
    let bound = rows.iter().map(|params| bind(&statement, sql, params)).collect::<Result<Vec<_>, _>>()?;
    // Polled together, they are sent one behind the other and answered in that order.
    let client: &Client = connection;
    let sent = bound.iter().map(|params| client.execute(&statement, params));
    let counts = try_join_all(sent).await.map_err(|error| convert(&error))?;
    Ok(counts.into_iter().sum())
}

// --- Errors ---------------------------------------------------------------------------------------------------------

/// The error with its cause, which alone says what is wrong.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(cause), _) => format!("{} ({})", cause.message(), cause.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

pub(crate) fn convert(error: &tokio_postgres::Error) -> StoreError {
    let text = describe(error);
    let Some(code) = error.code() else {
        // Not said by the server: a lost connection, or values that do not fit the statement.
        let ours = ["error serializing", "error deserializing", "invalid column", "expected "];
        let message = error.to_string();
        return if ours.iter().any(|start| message.starts_with(start)) {
            StoreError::Bug(text)
        } else {
            StoreError::Unavailable(text)
        };
    };
    if *code == SqlState::UNIQUE_VIOLATION {
        return StoreError::Conflict(text);
    }
    let unavailable = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    // Connection, resources (disk full), an operator's or a time-out's interruption, the server's file system.
    let classes = ["08", "53", "57", "58"];
    let code = code.code();
    if unavailable.iter().any(|known| known.code() == code) || classes.iter().any(|class| code.starts_with(class)) {
        StoreError::Unavailable(text)
    } else if code == SqlState::DATA_CORRUPTED.code() || code == SqlState::INDEX_CORRUPTED.code() {
        StoreError::Corrupt(text)
    } else {
        StoreError::Bug(text)
    }
}

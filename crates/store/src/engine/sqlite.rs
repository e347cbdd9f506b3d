//! SQLite: one thread writes, a few read, one moves the log.
//!
//! The writer commits in groups: it takes whatever waits into one transaction, each operation in a savepoint of its own,
//! and answers after the one COMMIT (and its one fsync) for all. While that runs, the next group gathers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ffi};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::checkpoint::{Checkpoint, Log};
use super::queue::Queue;
use super::{Outcome, count, judge, note_duration, panicked, publish};
use crate::commit::{Commit, CommitSink};
use crate::error::StoreError;
use crate::lock::DataLock;
use crate::migrate::{self, Migration};
use crate::store::{BoxFuture, Connection, Reader, StoreOptions, Writer};
use crate::value::{Param, Row, Value};

/// A batch ends at so many operations or after so long, whatever comes first.
const BATCH_OPERATIONS: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(5);

/// Prepared statements kept by each connection.
const STATEMENTS: usize = 256;

/// Page caches in KiB: the server at rest has 15 MiB in all.
const WRITER_CACHE: u32 = 4096;
const READER_CACHE: u32 = 1024;

/// Stack of our threads. Only what is touched takes memory; unoptimised builds touch much more.
const STACK: usize = 2 << 20;

pub(crate) struct SqliteEngine {
    path: PathBuf,
    shared: Arc<Shared>,
    /// Empty once the store was closed.
    threads: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    writes: Queue<Box<dyn WriteJob>>,
    reads: Queue<Box<dyn ReadJob>>,
    checkpoint: Checkpoint,
    slow: Duration,
}

impl SqliteEngine {
    pub(crate) async fn open(
        path: PathBuf,
        options: StoreOptions,
        sink: Arc<dyn CommitSink>,
        migrations: &'static [Migration],
    ) -> Result<Self, StoreError> {
        let opened = tokio::task::spawn_blocking(move || Self::open_blocking(&path, &options, sink, migrations)).await;
        opened.unwrap_or_else(|error| Err(StoreError::Setup(format!("opening the database failed: {error}"))))
    }

    fn open_blocking(
        path: &Path,
        options: &StoreOptions,
        sink: Arc<dyn CommitSink>,
        migrations: &[Migration],
    ) -> Result<Self, StoreError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder)
            .map_err(|error| StoreError::Setup(format!("cannot make the folder {}: {error}", folder.display())))?;
        let lock = DataLock::acquire(folder)?;

        let mut writer = connect(path, Access::Write, WRITER_CACHE)?;
        bring_up_to_date(&mut writer, migrations, options.now_micros)?;
        let mover = connect(path, Access::Write, READER_CACHE)?;
        // The database's name in its folder must be as durable as its contents.
        std::fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| StoreError::Setup(format!("cannot sync the folder {}: {error}", folder.display())))?;

        let shared = Arc::new(Shared {
            writes: Queue::new(options.queue),
            reads: Queue::new(options.queue),
            checkpoint: Checkpoint::new(),
            slow: options.slow_operation,
        });
        let mut engine =
            Self { path: path.to_owned(), shared: Arc::clone(&shared), threads: tokio::sync::Mutex::default() };
        let threads = engine.threads.get_mut();
        for number in 0..options.readers.max(1) {
            let reader = Reader::new(Connection::Sqlite(connect(path, Access::Read, READER_CACHE)?));
            let shared = Arc::clone(&shared);
            threads.push(spawn(format!("store-read-{number}"), move || run_reader(reader, &shared))?);
        }
        {
            let shared = Arc::clone(&shared);
            // Ends after the writer, so it is the one that keeps the lock.
            threads.push(spawn("store-checkpoint".to_owned(), move || {
                shared.checkpoint.run(&mover);
                drop(mover);
                drop(lock);
            })?);
        }
        let writer = Writer::new(Connection::Sqlite(writer));
        let writing = Arc::clone(&shared);
        match spawn("store-write".to_owned(), move || run_writer(writer, &writing, &*sink)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                shared.checkpoint.stop();
                return Err(error);
            }
        }
        Ok(engine)
    }

    /// The database file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn write<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Writer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(Operation { name, work, answer });
        self.shared.writes.put(job).inspect_err(|_| count(name, Outcome::Busy))?;
        answered.await.unwrap_or_else(|_| Err(E::from(StoreError::Closed)))
    }

    pub(crate) async fn read<T, E, F>(&self, name: &'static str, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(Operation { name, work, answer });
        self.shared.reads.put(job).inspect_err(|_| count(name, Outcome::Busy))?;
        answered.await.unwrap_or_else(|_| Err(E::from(StoreError::Closed)))
    }

    pub(crate) async fn close(&self) {
        self.shared.reads.close();
        self.shared.writes.close();
        // Held while joining, so that a second call returns when the first is done.
        let mut threads = self.threads.lock().await;
        let ending = std::mem::take(&mut *threads);
        if ending.is_empty() {
            return;
        }
        let joined = tokio::task::spawn_blocking(move || ending.into_iter().all(|thread| thread.join().is_ok())).await;
        if !matches!(joined, Ok(true)) {
            tracing::error!("a thread of the store had panicked");
        }
    }
}

/// Without [`SqliteEngine::close`] the threads finish what waits and end by themselves.
impl Drop for SqliteEngine {
    fn drop(&mut self) {
        self.shared.reads.close();
        self.shared.writes.close();
    }
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name)
        .stack_size(STACK)
        .spawn(body)
        .map_err(|error| StoreError::Setup(format!("cannot start a thread: {error}")))
}

// --- Operations -----------------------------------------------------------------------------------------------------

/// A closure and whoever waits for its result.
struct Operation<T, E, F> {
    name: &'static str,
    work: F,
    answer: oneshot::Sender<Result<T, E>>,
}

/// An operation whose types were forgotten, in the writer's queue.
trait WriteJob: Send {
    fn name(&self) -> &'static str;
    /// Runs it in the savepoint that is open.
    fn run(self: Box<Self>, writer: &mut Writer) -> Ran;
    /// Answers without running it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// An operation that ran, and waits for the COMMIT of its batch.
struct Ran {
    name: &'static str,
    outcome: Outcome,
    /// The statement that failed in it.
    failure: Option<StoreError>,
    /// Answers with the operation's own result, or with what happened to the batch.
    answer: Box<dyn FnOnce(Result<(), StoreError>)>,
}

impl<T, E, F> WriteJob for Operation<T, E, F>
where
    F: for<'t> FnOnce(&'t mut Writer) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(self: Box<Self>, writer: &mut Writer) -> Ran {
        let Self { name, work, answer } = *self;
        let returned = catch_unwind(AssertUnwindSafe(|| poll_once(name, work(writer))))
            .unwrap_or_else(|panic| Err(panicked(name, &*panic)));
        let failure = writer.take_failure();
        let (outcome, result) = judge(name, returned, failure.clone());
        let answer = move |batch: Result<(), StoreError>| {
            // Nobody listens when the caller went away, which changes nothing.
            let _ = answer.send(batch.map_err(E::from).and(result));
        };
        Ran { name, outcome, failure, answer: Box::new(answer) }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.answer.send(Err(E::from(error)));
    }
}

/// A read in the readers' queue.
trait ReadJob: Send {
    fn run(self: Box<Self>, reader: &mut Reader, slow: Duration);
}

impl<T, E, F> ReadJob for Operation<T, E, F>
where
    F: for<'t> FnOnce(&'t mut Reader) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn run(self: Box<Self>, reader: &mut Reader, slow: Duration) {
        let Self { name, work, answer } = *self;
        let started = Instant::now();
        if let Err(error) = control(reader, "BEGIN") {
            count(name, Outcome::Unavailable);
            let _ = answer.send(Err(E::from(error)));
            return;
        }
        let returned = catch_unwind(AssertUnwindSafe(|| poll_once(name, work(reader))))
            .unwrap_or_else(|panic| Err(panicked(name, &*panic)));
        let (outcome, result) = judge(name, returned, reader.take_failure());
        // There is nothing to keep; a lost transaction has ended already.
        if !is_lost(reader)
            && let Err(error) = control(reader, "ROLLBACK")
        {
            tracing::error!(%error, "could not end a read transaction");
        }
        note_duration(name, started.elapsed(), slow);
        count(name, outcome);
        let _ = answer.send(result);
    }
}

/// Polls an operation once. On this engine every statement is finished when it returns, so an operation that is not
/// ready awaits something else, and would block all others.
fn poll_once<T>(name: &'static str, mut future: BoxFuture<'_, T>) -> Result<T, StoreError> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => {
            Err(StoreError::Bug(format!("{name} awaited something else than its transaction and was rolled back")))
        }
    }
}

// --- Threads --------------------------------------------------------------------------------------------------------

fn run_reader(mut reader: Reader, shared: &Shared) {
    while let Some(job) = shared.reads.take() {
        job.run(&mut reader, shared.slow);
    }
}

/// Whatever ends the writer, nobody waits for it any more.
struct WriterEnd<'s>(&'s Shared);

impl Drop for WriterEnd<'_> {
    fn drop(&mut self) {
        self.0.writes.abandon();
        self.0.checkpoint.stop();
    }
}

fn run_writer(mut writer: Writer, shared: &Shared, sink: &dyn CommitSink) {
    let _end = WriterEnd(shared);
    while let Some(first) = shared.writes.take() {
        let turn = shared.checkpoint.turn();
        let committed = run_batch(&mut writer, first, shared, sink);
        drop(turn);
        // A full disk also asks: once moved, the log's own space is used again.
        if !committed || matches!(log(&mut writer), Ok(log) if log.is_due()) {
            shared.checkpoint.ask();
        }
    }
    drop(writer.into_connection());
}

/// Runs the first operation and those behind it in one transaction. Says whether it was committed.
fn run_batch(writer: &mut Writer, first: Box<dyn WriteJob>, shared: &Shared, sink: &dyn CommitSink) -> bool {
    if let Err(error) = control(writer, "BEGIN IMMEDIATE") {
        count(first.name(), Outcome::Unavailable);
        first.refuse(error);
        return false;
    }
    let started = Instant::now();
    let mut batch = Vec::new();
    let mut commits = Vec::new();
    let mut intact = Ok(());
    let mut next = Some(first);
    while let Some(job) = next {
        if let Err(error) = control(writer, "SAVEPOINT operation") {
            count(job.name(), Outcome::Unavailable);
            job.refuse(error.clone());
            intact = Err(error);
            break;
        }
        let began = Instant::now();
        let ran = job.run(writer);
        note_duration(ran.name, began.elapsed(), shared.slow);
        intact = end_savepoint(writer, &ran, &mut commits);
        batch.push(ran);
        if intact.is_err() || batch.len() >= BATCH_OPERATIONS || started.elapsed() >= BATCH_TIME {
            break;
        }
        next = shared.writes.try_take();
    }

    let committing = Instant::now();
    let result = intact.and_then(|()| control(writer, "COMMIT"));
    match &result {
        Ok(()) => {
            metrics::histogram!("store_commit_seconds").record(committing.elapsed());
            #[expect(clippy::cast_precision_loss, reason = "at most 256")]
            metrics::histogram!("store_batch_size").record(batch.len() as f64);
            publish(sink, commits);
        }
        Err(error) => {
            tracing::error!(%error, operations = batch.len(), "a batch of store operations was rolled back");
            if !is_lost(writer)
                && let Err(error) = control(writer, "ROLLBACK")
            {
                tracing::error!(%error, "could not roll back");
            }
        }
    }
    for ran in batch {
        count(ran.name, if result.is_ok() { ran.outcome } else { Outcome::Unavailable });
        (ran.answer)(result.clone().map_err(batch_lost));
    }
    result.is_ok()
}

/// Keeps or undoes one operation; an error says that the whole transaction is gone.
fn end_savepoint(writer: &mut Writer, ran: &Ran, commits: &mut Vec<Commit>) -> Result<(), StoreError> {
    let announced = writer.take_commits();
    // A full disk rolls back the transaction of all, not only the statement.
    if is_lost(writer) {
        let lost = || StoreError::Unavailable("the transaction was rolled back by the database".to_owned());
        return Err(ran.failure.clone().unwrap_or_else(lost));
    }
    if ran.outcome == Outcome::Done {
        control(writer, "RELEASE operation")?;
        commits.extend(announced);
        return Ok(());
    }
    control(writer, "ROLLBACK TO operation")?;
    control(writer, "RELEASE operation")
}

/// What the neighbours of a failure are told: that it was not their fault.
fn batch_lost(error: StoreError) -> StoreError {
    if error.is_unavailable() { error } else { StoreError::Unavailable(error.to_string()) }
}

/// Runs a statement that steers the transaction.
fn control(reader: &mut Reader, sql: &'static str) -> Result<(), StoreError> {
    let Connection::Sqlite(connection) = reader.connection() else { return Err(wrong_engine()) };
    connection.prepare_cached(sql).and_then(|mut statement| statement.raw_execute()).map(drop).map_err(convert)
}

/// Whether no transaction is open.
fn is_lost(reader: &mut Reader) -> bool {
    match reader.connection() {
        Connection::Sqlite(connection) => connection.is_autocommit(),
        Connection::Postgres(_) => true,
    }
}

fn log(reader: &mut Reader) -> Result<Log, StoreError> {
    let Connection::Sqlite(connection) = reader.connection() else { return Err(wrong_engine()) };
    Log::look(connection)
}

fn wrong_engine() -> StoreError {
    StoreError::Bug("a SQLite thread got another connection".to_owned())
}

// --- Connections ----------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

fn connect(path: &Path, access: Access, cache_kib: u32) -> Result<rusqlite::Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        };
    let setup = |error: rusqlite::Error| match convert(error) {
        damaged @ StoreError::Corrupt(_) => damaged,
        other => StoreError::Setup(format!("{}: {other}", path.display())),
    };
    let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(setup)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(Duration::from_secs(5)).map_err(setup)?;
    // One plan per statement: otherwise SQLite looks at bound values that a partial index's condition speaks of, and
    // prepares the statement anew for each (half of a post's look-ups, measured).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(setup)?;
    if access == Access::Write {
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(setup)?;
        if mode != "wal" {
            return Err(StoreError::Setup(format!(
                "{}: this file system has no shared memory, which the write-ahead log needs (a network folder?)",
                path.display()
            )));
        }
    }
    // FULL: nobody is answered before the fsync. The log is moved by a thread of its own. fullfsync: on macOS a plain
    // fsync stops at the drive's cache.
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
             PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;
             PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -{cache_kib};"
        ))
        .map_err(setup)?;
    Ok(connection)
}

/// A connection that only reads, apart from an open store's.
pub(crate) fn lone(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    connect(path, Access::Read, READER_CACHE)
}

/// A new database file that somebody else makes durable when it is whole: nothing of it is kept otherwise.
pub(crate) fn new_file(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    let setup = |error: rusqlite::Error| StoreError::Setup(format!("{}: {}", path.display(), convert(error)));
    let connection = rusqlite::Connection::open(path).map_err(setup)?;
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;
             PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{WRITER_CACHE};"
        ))
        .map_err(setup)?;
    Ok(connection)
}

/// Applies the migrations that are missing, each in one exclusive transaction.
fn bring_up_to_date(
    connection: &mut rusqlite::Connection,
    known: &[Migration],
    now_micros: i64,
) -> Result<(), StoreError> {
    // A table with children can only be rebuilt while nobody looks after them; checked before each COMMIT instead.
    connection.execute_batch("PRAGMA foreign_keys = OFF").map_err(convert)?;
    connection.execute_batch(migrate::CREATE_TABLE).map_err(convert)?;
    let applied = applied(connection).map_err(convert)?;
    for migration in migrate::pending(known, &applied)? {
        let failed = |error| migrate::failed(migration, &convert(error));
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive).map_err(failed)?;
        transaction.execute_batch(migration.sqlite).map_err(failed)?;
        if transaction.prepare("PRAGMA foreign_key_check").and_then(|mut check| check.exists([])).map_err(failed)? {
            return Err(migrate::failed(migration, &StoreError::Bug("a row points to a row that is not there".into())));
        }
        transaction.execute(migrate::NOTE, (migration.number, migration.name, now_micros)).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        migrate::log_applied(migration, applied.is_empty());
    }
    connection.execute_batch("PRAGMA foreign_keys = ON").map_err(convert)
}

fn applied(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    connection.prepare(migrate::APPLIED)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

// --- Statements -----------------------------------------------------------------------------------------------------

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Id(value) => ValueRef::Blob(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

fn prepare<'c>(
    connection: &'c rusqlite::Connection,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<rusqlite::CachedStatement<'c>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(convert)?;
    let wanted = statement.parameter_count();
    if wanted != params.len() {
        return Err(StoreError::Bug(format!("{} parameters for {wanted} placeholders: {sql}", params.len())));
    }
    for (number, param) in (1..).zip(params) {
        param.check()?;
        statement.raw_bind_parameter::<usize, _>(number, param).map_err(convert)?;
    }
    Ok(statement)
}

pub(crate) fn query(
    connection: &mut rusqlite::Connection,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, StoreError> {
    let mut statement = prepare(connection, sql, params)?;
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(convert)? {
        let values = (0..columns).map(|column| value(row.get_ref(column).map_err(convert)?));
        found.push(Row::new(values.collect::<Result<_, _>>()?));
    }
    Ok(found)
}

pub(crate) fn execute(
    connection: &mut rusqlite::Connection,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<u64, StoreError> {
    let mut statement = prepare(connection, sql, params)?;
    if statement.column_count() == 0 {
        return Ok(statement.raw_execute().map_err(convert)? as u64);
    }
    // SELECT and RETURNING: the rows are not wanted, but each is one that counts, as on PostgreSQL.
    let mut rows = statement.raw_query();
    let mut count = 0;
    while rows.next().map_err(convert)?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn value(found: ValueRef<'_>) -> Result<Value, StoreError> {
    Ok(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => return Err(StoreError::Decode(format!("{value} is not a whole number"))),
        ValueRef::Text(bytes) => Value::Text(
            String::from_utf8(bytes.to_vec())
                .map_err(|error| StoreError::Decode(format!("text is no UTF-8: {error}")))?,
        ),
        ValueRef::Blob(bytes) => match Uuid::from_slice(bytes) {
            Ok(id) => Value::Id(id),
            Err(_) => Value::Bytes(bytes.to_vec()),
        },
    })
}

// --- Errors ---------------------------------------------------------------------------------------------------------

/// What SQLite's error means to us. **Does not return after a failed fsync**: nobody knows then what is on the disk, and
/// a second fsync would report success for pages that were thrown away. Only a new start can find out.
pub(crate) fn convert(error: rusqlite::Error) -> StoreError {
    let (code, text) = match &error {
        rusqlite::Error::SqliteFailure(code, _) | rusqlite::Error::SqlInputError { error: code, .. } => {
            (*code, error.to_string())
        }
        _ => return StoreError::Bug(error.to_string()),
    };
    if is_failed_sync(code.extended_code) {
        tracing::error!(
            sqlite.code = code.extended_code,
            error = %text,
            "fsync failed: what the disk holds is unknown; ending the process so that nothing unsynced is acknowledged"
        );
        std::process::abort();
    }
    match code.code {
        ErrorCode::DiskFull => StoreError::Unavailable("the disk is full".to_owned()),
        ErrorCode::ReadOnly => StoreError::Unavailable(format!("the file system is read-only: {text}")),
        ErrorCode::SystemIoFailure
        | ErrorCode::OutOfMemory
        | ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::CannotOpen
        | ErrorCode::PermissionDenied
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::OperationInterrupted => StoreError::Unavailable(text),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(text),
        ErrorCode::ConstraintViolation
            if matches!(
                code.extended_code,
                ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID
            ) =>
        {
            StoreError::Conflict(text)
        }
        _ => StoreError::Bug(text),
    }
}

fn is_failed_sync(extended_code: i32) -> bool {
    matches!(extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

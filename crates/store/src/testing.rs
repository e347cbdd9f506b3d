//! Databases for tests, one of its own for each test: SQLite in a temporary folder, PostgreSQL in a cluster that is
//! shared (`BANDSTAND_TEST_POSTGRES_URL`, an administrator's address) or else private to the test's process.
//!
//! A machine without PostgreSQL fails the tests with a word on what is missing; they are never skipped. Everything here
//! panics when it fails, as only tests call it.
#![expect(clippy::expect_used, reason = "only tests call it")]

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::commit::{Commit, CommitSink};
use crate::migrate::Migration;
use crate::store::{Database, Store, StoreOptions};

/// The environment variable that names a running cluster.
pub const POSTGRES_URL: &str = "BANDSTAND_TEST_POSTGRES_URL";

/// The time that test databases are opened at: 2026-01-01.
pub const NOW_MICROS: i64 = 1_767_225_600_000_000;

/// An engine to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestEngine {
    /// The embedded one.
    Sqlite,
    /// The server one.
    Postgres,
}

/// All engines: whatever is tested on one is tested on each.
pub fn engines() -> [TestEngine; 2] {
    [TestEngine::Sqlite, TestEngine::Postgres]
}

/// An empty database that goes away with this value.
pub struct TestDatabase {
    engine: TestEngine,
    database: Database,
    /// The address that may drop the database, and the database's name.
    postgres: Option<(String, String)>,
    folder: TempDir,
}

impl TestDatabase {
    /// Makes an empty database.
    pub async fn create(engine: TestEngine) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        match engine {
            TestEngine::Sqlite => {
                let database = Database::Sqlite { path: folder.path().join("bandstand.db") };
                Self { engine, database, postgres: None, folder }
            }
            TestEngine::Postgres => {
                static NUMBER: AtomicU32 = AtomicU32::new(0);
                let admin = administrator().await;
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                let name = format!("bandstand_test_{}_{number}", std::process::id());
                let client = connect(&admin).await.expect("a connection to the test cluster");
                let drop_old = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                client.batch_execute(&drop_old).await.expect("no old database");
                let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
                client.batch_execute(&create).await.expect("a new database");
                let database = Database::Postgres { url: with_database(&admin, &name) };
                Self { engine, database, postgres: Some((admin, name)), folder }
            }
        }
    }

    /// Which engine.
    pub fn engine(&self) -> TestEngine {
        self.engine
    }

    /// What to put into [`StoreOptions`].
    pub fn database(&self) -> Database {
        self.database.clone()
    }

    /// A temporary folder that belongs to it; SQLite's file is in it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The usual options, with fewer connections to a shared cluster.
    pub fn options(&self) -> StoreOptions {
        StoreOptions { postgres_connections: 8, ..StoreOptions::new(self.database(), NOW_MICROS) }
    }

    /// Opens a store with the real schema.
    pub async fn open(&self, sink: Arc<dyn CommitSink>) -> Store {
        Store::open(self.options(), sink).await.expect("the store opens")
    }

    /// Opens a store with another schema.
    pub async fn open_with(&self, sink: Arc<dyn CommitSink>, migrations: &'static [Migration]) -> Store {
        Store::open_with_migrations(self.options(), sink, migrations).await.expect("the store opens")
    }

    /// Runs SQL beside the store, on a connection of its own. Blocks.
    pub fn execute(&self, sql: &str) {
        match &self.database {
            Database::Sqlite { path } => {
                let connection = rusqlite::Connection::open(path).expect("the database file");
                connection.busy_timeout(Duration::from_secs(5)).expect("a time-out");
                connection.execute_batch(sql).expect("the statement");
            }
            Database::Postgres { url } => apart(async {
                connect(url).await.expect("a connection").batch_execute(sql).await.expect("the statement");
            }),
        }
    }

    /// The rows of a query beside the store, as text (NULL is empty). Blocks.
    pub fn query(&self, sql: &str) -> Vec<Vec<String>> {
        match &self.database {
            Database::Sqlite { path } => {
                let connection = rusqlite::Connection::open(path).expect("the database file");
                connection.busy_timeout(Duration::from_secs(5)).expect("a time-out");
                let mut statement = connection.prepare(sql).expect("a query");
                let columns = statement.column_count();
                let text = |value: rusqlite::types::Value| match value {
                    rusqlite::types::Value::Null => String::new(),
                    rusqlite::types::Value::Integer(value) => value.to_string(),
                    rusqlite::types::Value::Real(value) => value.to_string(),
                    rusqlite::types::Value::Text(value) => value,
                    rusqlite::types::Value::Blob(value) => format!("{value:02x?}"),
                };
                let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at).map(text)).collect());
                rows.and_then(Iterator::collect).expect("the rows")
            }
            Database::Postgres { url } => apart(async {
                let messages = connect(url).await.expect("a connection").simple_query(sql).await.expect("a query");
                let text = |row: &tokio_postgres::SimpleQueryRow| {
                    (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect()
                };
                let rows = messages.iter().filter_map(|message| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => Some(text(row)),
                    _ => None,
                });
                rows.collect()
            }),
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Some((admin, name)) = self.postgres.take() {
            // Best effort: the cluster may be gone already, and a second panic would hide the test's own.
            apart(async {
                if let Ok(client) = connect(&admin).await {
                    let _ = client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
                }
            });
        }
    }
}

/// A sink that keeps what was announced.
#[derive(Debug, Default)]
pub struct Recorder {
    commits: Mutex<Vec<Commit>>,
}

impl Recorder {
    /// An empty one.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// All groups so far, in order.
    pub fn commits(&self) -> Vec<Commit> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl CommitSink for Recorder {
    fn publish(&self, commits: Vec<Commit>) {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).extend(commits);
    }
}

/// Runs a future to its end on a thread of its own, from inside of a runtime as well.
fn apart<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(future)
        });
        thread.join().expect("a thread that does not panic")
    })
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The same address with another database.
fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let authority = address.find("://").map_or(0, |at| at + 3);
    let end = address.get(authority..).and_then(|rest| rest.find('/')).map_or(address.len(), |at| authority + at);
    let host = address.get(..end).unwrap_or(address);
    query.map_or_else(|| format!("{host}/{name}"), |query| format!("{host}/{name}?{query}"))
}

// --- The private cluster --------------------------------------------------------------------------------------------

/// The address of a cluster's administrator.
async fn administrator() -> String {
    static ADDRESS: OnceCell<String> = OnceCell::const_new();
    let start = || async {
        match std::env::var(POSTGRES_URL) {
            Ok(url) if !url.is_empty() => url,
            _ => start_cluster().await,
        }
    };
    ADDRESS.get_or_init(start).await.clone()
}

/// Runs until its input ends, which it does when the test's process ends, however that ends.
const KEEPER: &str = r#"
trap : INT TERM HUP
if "$2/initdb" -D "$1/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$1/log" 2>&1; then
    "$2/postgres" -D "$1/data" -k "$1" -c listen_addresses= -c max_connections=200 -c shared_buffers=32MB \
        >>"$1/log" 2>&1 &
    server=$!
    while read -r line; do :; done
    kill -INT "$server"
    wait "$server"
    rm -rf "$1"
fi
"#;

async fn start_cluster() -> String {
    let programs = programs();
    let folder =
        tempfile::Builder::new().prefix("bandstand-pg-").tempdir_in("/tmp").expect("a temporary folder").keep();
    let mut command;
    if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        // PostgreSQL refuses to run as root.
        let owner = Command::new("chown").arg("postgres").arg(&folder).status().expect("chown");
        assert!(owner.success(), "there is no user `postgres` to run PostgreSQL as: install the server's package");
        command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh"]);
    } else {
        command = Command::new("sh");
    }
    let mut keeper = command
        .args(["-c", KEEPER, "keeper"])
        .arg(&folder)
        .arg(&programs)
        .current_dir("/tmp")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("a shell to run PostgreSQL in");
    let host = folder.display().to_string().replace('/', "%2F");
    let url = format!("postgres://postgres@{host}/postgres");
    let started = Instant::now();
    while let Err(error) = connect(&url).await {
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let ended = keeper.try_wait().expect("the shell's state");
        assert!(ended.is_none(), "PostgreSQL did not start: {}", log());
        assert!(started.elapsed() < Duration::from_secs(60), "PostgreSQL does not answer: {error}\n{}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Its input stays open until this process ends.
    static KEEPERS: Mutex<Vec<Child>> = Mutex::new(Vec::new());
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner).push(keeper);
    url
}

/// The folder of PostgreSQL's newest programs.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = versions.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&path).chain(debian).filter(|folder| folder.join("initdb").exists()).collect();
    found.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse::<u32>().ok());
        version.unwrap_or(0)
    });
    found.pop().unwrap_or_else(|| {
        panic!(
            "the tests need PostgreSQL: install its server (Debian: `apt-get install postgresql`), \
             or name a running cluster's administrator in {POSTGRES_URL}"
        )
    })
}

//! Runs the program: to its end, or as a server whose lines are read.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use bandstand_store::Database;
use bandstand_store::testing::{TestDatabase, TestEngine};
use serde_json::Value;
use tempfile::TempDir;

/// Far longer than anything here takes; only a hang gets there.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program with nothing of this environment's settings.
pub(crate) fn bandstand() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bandstand"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BANDSTAND_") {
            command.env_remove(name);
        }
    }
    command.env_remove("COLUMNS").stdin(Stdio::null());
    command
}

/// An HTTP client. The server's S3 client makes TLS a part of this library, which then wants to know whose.
pub(crate) fn http_client() -> reqwest::Client {
    // Fails only when one is installed already, which then serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(PATIENCE).build().unwrap()
}

/// What a program said, and how it ended.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// An installation: a data folder and the program on it.
pub(crate) struct Installation {
    folder: TempDir,
    /// PostgreSQL, if the data is not in the folder.
    database: Option<TestDatabase>,
}

impl Installation {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), database: None }
    }

    /// One whose data is in PostgreSQL.
    pub(crate) async fn on_postgres() -> Self {
        Self { database: Some(TestDatabase::create(TestEngine::Postgres).await), ..Self::new() }
    }

    /// Another one on the same PostgreSQL database, with a data folder of its own.
    pub(crate) fn command_elsewhere(&self, arguments: &[&str]) -> Command {
        let mut command = bandstand();
        command.args(arguments).arg("--data").arg(self.path("elsewhere"));
        self.name_database(command)
    }

    fn name_database(&self, mut command: Command) -> Command {
        if let Some(Database::Postgres { url }) = self.database.as_ref().map(TestDatabase::database) {
            command.args(["--database", &url]);
        }
        command
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A path beside the data folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bandstand();
        command.args(arguments).arg("--data").arg(self.data());
        self.name_database(command)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).json()
    }

    /// The rows of a query to its PostgreSQL database; none when its data is in the folder.
    pub(crate) fn query(&self, sql: &str) -> Vec<Vec<String>> {
        self.database.as_ref().map(|database| database.query(sql)).unwrap_or_default()
    }

    /// A server on a free port, once it is ready.
    pub(crate) fn up(&self) -> Server {
        Server::start(self.command(&["up", "--listen", "127.0.0.1:0"]))
    }

    /// An installation that was started before.
    pub(crate) fn used() -> Self {
        let installation = Self::new();
        installation.up().stop();
        installation
    }
}

/// A running server. It is killed when dropped.
pub(crate) struct Server {
    child: Child,
    out: Lines,
    err: Lines,
    pub(crate) address: String,
}

impl Server {
    /// Starts it and waits until it says that it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        let mut server = Self { child, out, err, address: String::new() };
        let line = server.out.wait_for("listening on http");
        server.address = line.rsplit('/').next().unwrap().to_owned();
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for a line on standard error.
    pub(crate) fn logs(&mut self, part: &str) -> String {
        self.err.wait_for(part)
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        // Its output ends when it does.
        self.out.rest(deadline);
        self.err.rest(deadline);
        self.child.wait().unwrap()
    }

    /// Drains it; answers what it said on standard output and standard error.
    pub(crate) fn stop(mut self) -> (String, String) {
        self.signal("TERM");
        let ended = self.ended();
        assert_eq!((ended.code(), ended.signal()), (Some(0), None), "{}", self.err.seen);
        (std::mem::take(&mut self.out.seen), std::mem::take(&mut self.err.seen))
    }

    /// What it said so far on standard output.
    pub(crate) fn said(&self) -> &str {
        &self.out.seen
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that runs beside the test. It is killed when dropped.
pub(crate) struct Background {
    child: Child,
    pub(crate) out: Lines,
    pub(crate) err: Lines,
}

impl Background {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; how it ended, and everything that it said.
    pub(crate) fn said(mut self) -> Said {
        let (status, out) = self.ended();
        Said { code: status.code(), out, err: std::mem::take(&mut self.err.seen) }
    }

    /// Waits for its end; answers everything that it said on standard output.
    pub(crate) fn ended(&mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        self.out.rest(deadline);
        self.err.rest(deadline);
        (self.child.wait().unwrap(), std::mem::take(&mut self.out.seen))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines as they come, kept together.
pub(crate) struct Lines {
    lines: Receiver<String>,
    seen: String,
}

impl Lines {
    fn of(source: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines, seen: String::new() }
    }

    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|_| panic!("no line with {part:?} after:\n{}", self.seen));
            self.seen.push_str(&line);
            self.seen.push('\n');
            if line.contains(part) {
                return line;
            }
        }
    }

    fn rest(&mut self, deadline: Instant) {
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push_str(&line);
            self.seen.push('\n');
        }
        assert!(Instant::now() < deadline, "it did not end:\n{}", self.seen);
    }
}

/// Waits for what nothing announces.
pub(crate) fn until(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A file's permission bits.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

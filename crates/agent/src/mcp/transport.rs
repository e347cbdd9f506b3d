//! Starts a server's program, or reaches its address, and greets it.

use std::collections::{HashMap, VecDeque};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ClientHandler;
#[expect(deprecated, reason = "servers of today's revisions log so")]
use rmcp::model::LoggingMessageNotificationParam;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RoleClient, RunningService,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, TokioChildProcess};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Notify;

use super::options::{self, HttpServer, McpServer, McpTransport, StdioServer};
use crate::client::trusting_the_machine;

/// What a program gets of this process' environment: what programs need anywhere, and nothing that holds keys.
const INHERITED: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// The longest line of a program's standard error that is logged whole, in bytes.
const LINE_MAX: usize = 2_000;
/// How many of its last lines an error shows.
const LAST_LINES: usize = 5;

/// Hears what a server says unasked.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    name: String,
    changed: Arc<Notify>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new("bandstand", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    #[expect(deprecated, reason = "servers of today's revisions log so")]
    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(server = self.name, level = ?message.level, said = %message.data, "an MCP server says");
    }
}

/// The last lines that a program wrote to its standard error.
type LastWords = Arc<Mutex<VecDeque<String>>>;

/// A greeted server.
pub(super) struct Opened {
    pub(super) service: RunningService<RoleClient, Listener>,
    /// Reads a program's standard error; ends with it.
    pub(super) errors: Option<tokio::task::JoinHandle<()>>,
}

/// Why there is no connection.
pub(super) struct NotOpened {
    /// In a few words, for a model as well.
    pub(super) reason: String,
    /// What the program wrote last, for whoever started it.
    pub(super) last_words: String,
}

/// Starts or reaches it, and greets it. `changed` is told when its tools change.
pub(super) async fn open(server: &McpServer, changed: Arc<Notify>) -> Result<Opened, NotOpened> {
    let listener = Listener { name: server.name.clone(), changed };
    match &server.transport {
        McpTransport::Stdio(program) => start(program, listener).await,
        McpTransport::Http(address) => {
            let failed = |reason: String| NotOpened { reason, last_words: String::new() };
            let transport = reach(address).map_err(failed)?;
            let served = listener.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
            let service = served.map_err(|error| failed(not_greeted(&error)))?;
            Ok(Opened { service, errors: None })
        }
    }
}

async fn start(program: &StdioServer, listener: Listener) -> Result<Opened, NotOpened> {
    let mut command = tokio::process::Command::new(&program.command);
    command.args(&program.args).env_clear().kill_on_drop(true);
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(program.env.iter().map(|(name, value)| (name, value.reveal())));
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    let mut command = process_wrap::tokio::CommandWrap::from(command);
    // Whatever it starts itself ends with it, and Ctrl-C in the terminal does not reach it before its time.
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    let (process, errors) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn().map_err(|error| {
        NotOpened { reason: format!("cannot be started: {}: {error}", program.command), last_words: String::new() }
    })?;
    let last_words = LastWords::default();
    let name = listener.name.clone();
    let mut errors = errors.map(|errors| tokio::spawn(tell(errors, name, Arc::clone(&last_words))));
    match listener.serve_with_lifecycle(process, ClientLifecycleMode::Initialize).await {
        Ok(service) => Ok(Opened { service, errors }),
        Err(error) => {
            // What it has said is read to the end, which comes with the program's own; one that lives on is not waited for.
            if let Some(errors) = &mut errors
                && tokio::time::timeout(Duration::from_millis(500), &mut *errors).await.is_err()
            {
                errors.abort();
            }
            let lines = last_words.lock().unwrap_or_else(PoisonError::into_inner);
            let last_words = lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
            Err(NotOpened { reason: not_greeted(&error), last_words })
        }
    }
}

fn reach(server: &HttpServer) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let tls = trusting_the_machine().map_err(|error| error.to_string())?;
    let mut http = reqwest::Client::builder()
        .tls_backend_preconfigured((*tls).clone())
        .connect_timeout(Duration::from_secs(10))
        // A redirect would take the headers elsewhere.
        .redirect(reqwest::redirect::Policy::none());
    if !server.proxies {
        http = http.no_proxy();
    }
    let http = http.build().map_err(|_| "cannot be reached: the HTTP client cannot be set up".to_owned())?;
    let headers: Result<HashMap<_, _>, String> =
        server.headers.iter().map(|(name, value)| options::header(name, value)).collect();
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str())
        .custom_headers(headers?)
        .reinit_on_expired_session(true);
    Ok(StreamableHttpClientTransport::with_client(http, config))
}

/// Why a server was not greeted. rmcp's own texts show addresses and bodies.
fn not_greeted(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "closed the connection before it said who it is".to_owned(),
        ClientInitializeError::TransportError { error, .. } => format!("cannot be reached: {}", lost(error)),
        ClientInitializeError::JsonRpcError(error) => {
            format!("refuses: {} ({})", super::results::shortened(&error.message), error.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => "speaks no revision of MCP that we do".to_owned(),
        ClientInitializeError::Cancelled => "was given up".to_owned(),
        _ => "does not answer as an MCP server does".to_owned(),
    }
}

/// Why a transport failed, in words without addresses and bodies.
pub(super) fn lost(error: &DynamicTransportError) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(current) = cause {
        if let Some(error) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return http_lost(error);
        }
        if let Some(error) = current.downcast_ref::<std::io::Error>() {
            return match error.kind() {
                std::io::ErrorKind::BrokenPipe => "it has ended".to_owned(),
                kind => kind.to_string(),
            };
        }
        cause = current.source();
    }
    "the connection broke".to_owned()
}

fn http_lost(error: &StreamableHttpError<reqwest::Error>) -> String {
    let said = match error {
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) => return format!("it answered {}", status.as_u16()),
            None if error.is_timeout() => "no connection in time",
            None if error.is_connect() => "no connection",
            None => "the connection broke",
        },
        StreamableHttpError::HttpStatus(error) => return format!("it answered {}", error.status),
        StreamableHttpError::AuthRequired(_) => "it answered 401",
        StreamableHttpError::InsufficientScope(_) => "it answered 403",
        StreamableHttpError::SessionExpired => "it has forgotten the session",
        StreamableHttpError::UnexpectedServerResponse(text) => {
            // rmcp keeps the status of other refusals only in its words.
            let status = text.strip_prefix("HTTP ").and_then(|rest| rest.get(..3));
            match status.filter(|status| status.bytes().all(|digit| digit.is_ascii_digit())) {
                Some(status) => return format!("it answered {status}"),
                None => "it does not answer as an MCP server does",
            }
        }
        StreamableHttpError::UnexpectedContentType(_)
        | StreamableHttpError::Deserialize(_)
        | StreamableHttpError::MissingSessionIdInResponse => "it does not answer as an MCP server does",
        StreamableHttpError::ResponseBodyTooLarge { .. } => "its answer is too large",
        _ => "the connection broke",
    };
    said.to_owned()
}

/// Logs a program's standard error, line by line, and keeps its end.
async fn tell(mut errors: impl AsyncRead + Unpin, server: String, last_words: LastWords) {
    let mut line = Vec::new();
    let mut chunk = [0; 4096];
    let end = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        line.clear();
        if text.is_empty() {
            return;
        }
        tracing::debug!(server, line = text, "an MCP server's standard error");
        let mut lines = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    };
    loop {
        // A pipe that cannot be read is at its end.
        let read = errors.read(&mut chunk).await.unwrap_or(0);
        for byte in &chunk[..read] {
            match byte {
                b'\n' => end(&mut line),
                byte if line.len() < LINE_MAX => line.push(*byte),
                _ => {}
            }
        }
        if read == 0 {
            return end(&mut line);
        }
    }
}

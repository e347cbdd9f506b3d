//! Opens a connection: TCP, TLS, the upgrade; and reads why one was refused.

use std::time::Duration;

use futures_util::future::BoxFuture;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{ConnectError, OnConflict, SocketOptions, Terminal, backoff};
use crate::client::Client;

/// Any byte stream below a WebSocket.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

pub(super) type Stream = WebSocketStream<Box<dyn Bytes>>;

/// Larger than anything that the server sends.
const MESSAGE_MAX_BYTES: usize = 4 << 20;

/// Knows how to connect.
pub(super) struct Dialer {
    pub(super) client: Client,
    agent: String,
    on_conflict: OnConflict,
}

/// Why a try failed.
#[derive(Debug)]
pub(super) enum Refused {
    /// Trying again is no use.
    Terminal(Terminal),
    /// It may work later; after this long, if the server said so.
    Later(String, Option<Duration>),
}

impl Dialer {
    pub(super) fn new(client: &Client, options: &SocketOptions) -> Self {
        Self { client: client.clone(), agent: options.agent.to_string(), on_conflict: options.on_conflict }
    }

    /// The first connect: tried as often as it takes, or as often as allowed.
    pub(super) async fn first(&self, attempts: Option<u32>) -> Result<Stream, ConnectError> {
        let mut attempt = 0;
        loop {
            match self.dial(self.on_conflict == OnConflict::Reject).await {
                Ok(stream) => return Ok(stream),
                Err(Refused::Terminal(terminal)) => return Err(terminal.into()),
                Err(Refused::Later(why, asked)) => {
                    if attempts.is_some_and(|most| attempt + 1 >= most) {
                        return Err(ConnectError::Unreachable(why));
                    }
                    let options = self.client.options();
                    let wait = asked.unwrap_or_else(|| backoff::first_connect(attempt, options.randomness.fraction()));
                    tracing::warn!(reason = why, wait_ms = wait.as_millis(), "no socket yet");
                    options.clock.sleep(wait).await;
                    attempt = attempt.saturating_add(1);
                }
            }
        }
    }

    /// One try.
    pub(super) async fn dial(&self, reject: bool) -> Result<Stream, Refused> {
        let limit = self.client.options().connect_timeout;
        match tokio::time::timeout(limit, self.try_dial(reject)).await {
            Ok(result) => result,
            Err(_) => Err(Refused::Later("timed out".into(), None)),
        }
    }

    async fn try_dial(&self, reject: bool) -> Result<Stream, Refused> {
        let wrong = |why: &str| Refused::Later(why.to_owned(), None);
        let request = self.request(reject)?;
        let uri = request.uri();
        let secure = uri.scheme_str() == Some("wss");
        let host = uri.host().ok_or_else(|| wrong("the address has no host"))?.to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        // In an address, an IPv6 host stands in brackets.
        let bare = host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, port)).await.map_err(|_| wrong("no connection"))?;
        let _ = stream.set_nodelay(true);
        let stream: Box<dyn Bytes> = if secure {
            let name = ServerName::try_from(bare.to_owned()).map_err(|_| wrong("the host is no name for TLS"))?;
            let connector = TlsConnector::from(self.client.transport.tls());
            Box::new(connector.connect(name, stream).await.map_err(|error| wrong(&format!("TLS: {error}")))?)
        } else {
            Box::new(stream)
        };
        // The library's own read buffer of 128 KiB is far more than frames need.
        let config = WebSocketConfig::default()
            .read_buffer_size(4096)
            .max_message_size(Some(MESSAGE_MAX_BYTES))
            .max_frame_size(Some(MESSAGE_MAX_BYTES));
        let upgrade: BoxFuture<'_, _> = Box::pin(client_async_with_config(request, stream, Some(config)));
        match upgrade.await {
            Ok((stream, _)) => Ok(stream),
            Err(tungstenite::Error::Http(response)) => Err(refused(&response)),
            Err(_) => Err(wrong("the upgrade failed")),
        }
    }

    fn request(&self, reject: bool) -> Result<Request<()>, Refused> {
        let base = self.client.base_url();
        // `http` becomes `ws`, `https` becomes `wss`.
        let address = base.replacen("http", "ws", 1);
        let on_conflict = if reject { "&on_conflict=reject" } else { "" };
        let agent = &self.agent;
        let url = format!("{address}/api/v1/socket/websocket?vsn=2.0.0&agent_id={agent}{on_conflict}");
        let wrong = || Refused::Terminal(Terminal::Refused { status: 0, code: "invalid_address".into() });
        let mut request = url.into_client_request().map_err(|_| wrong())?;
        let mut key = HeaderValue::from_str(self.client.options().key().reveal()).map_err(|_| wrong())?;
        key.set_sensitive(true);
        request.headers_mut().insert("x-api-key", key);
        Ok(request)
    }
}

/// 400, 403 and 409 are final; whatever else may pass.
fn refused(response: &tungstenite::http::Response<Option<Vec<u8>>>) -> Refused {
    let status = response.status().as_u16();
    let body: Value = response.body().as_deref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    let error = body.get("error");
    let code = error.and_then(|error| error.get("code")).and_then(Value::as_str).unwrap_or_default().to_owned();
    match status {
        409 => Refused::Terminal(Terminal::Conflict),
        400 | 403 => Refused::Terminal(Terminal::Refused { status, code }),
        _ => {
            let header = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            let seconds = error.and_then(|error| error.get("retry_after")).and_then(Value::as_u64).or(header);
            Refused::Later(format!("{status} {code}"), seconds.map(Duration::from_secs))
        }
    }
}

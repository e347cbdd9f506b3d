//! A person's socket: one connection with its topics joined. It does not come back by itself; `feed` does that.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bandstand_wire::phoenix::{Topic, Version, event, parse, request};
use futures_util::{SinkExt, StreamExt};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::account::Credentials;
use super::tls;

/// Connecting, joining included, takes no longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The server closes a connection that says nothing for a minute.
const BEAT_EVERY: Duration = Duration::from_secs(20);
/// Larger than anything that the server sends.
const MESSAGE_MAX_BYTES: usize = 4 << 20;

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NoSocket {
    /// Trying again is no use.
    Final(anyhow::Error),
    /// It may work later.
    Later(anyhow::Error),
}

/// A connection whose topics are joined.
pub(crate) struct Socket {
    stream: WebSocketStream<Box<dyn Bytes>>,
    beat: Interval,
    /// The beat that was not answered yet.
    unanswered: Option<u64>,
    reference: u64,
}

/// Something that the server sent on a topic.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) topic: Topic,
    pub(crate) event: String,
    pub(crate) payload: Value,
}

impl Socket {
    /// Connects and joins. The answers to the joins are pushes with the event `phx_reply`.
    pub(crate) async fn open(credentials: &Credentials, topics: &[Topic]) -> Result<(Self, Vec<Push>), NoSocket> {
        match tokio::time::timeout(CONNECT_TIMEOUT, Self::try_open(credentials, topics)).await {
            Ok(opened) => opened,
            Err(_) => Err(NoSocket::Later(anyhow!("{} does not answer", credentials.url))),
        }
    }

    async fn try_open(credentials: &Credentials, topics: &[Topic]) -> Result<(Self, Vec<Push>), NoSocket> {
        let stream = dial(credentials).await?;
        let mut beat = tokio::time::interval_at(Instant::now() + BEAT_EVERY, BEAT_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut socket = Self { stream, beat, unanswered: None, reference: 0 };
        let mut joined = Vec::with_capacity(topics.len());
        for topic in topics {
            let reference = socket.next_reference();
            let frame = request(Some(reference), reference, &topic.to_string(), event::JOIN);
            socket.send(frame).await.map_err(NoSocket::Later)?;
            // What is pushed on topics that are joined already comes in between.
            loop {
                let push = socket.next().await.map_err(NoSocket::Later)?;
                let answer = push.event == event::REPLY && push.topic == *topic;
                if answer && push.payload.get("status").and_then(Value::as_str) != Some("ok") {
                    let reason = push.payload.pointer("/response/reason").and_then(Value::as_str).unwrap_or("refused");
                    let error = anyhow!("{} cannot be followed: {reason}", topic.family());
                    let passing = reason == "join crashed" || reason == "rate_limited";
                    return Err(if passing { NoSocket::Later(error) } else { NoSocket::Final(error) });
                }
                joined.push(push);
                if answer {
                    break;
                }
            }
        }
        Ok((socket, joined))
    }

    /// Waits for the next push. Safe to be given up.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Push> {
        loop {
            tokio::select! {
                message = self.stream.next() => {
                    let text = match message.context("the connection ended")?.context("the connection broke")? {
                        Message::Text(text) => text,
                        Message::Close(frame) => bail!("the server closed the connection{}", code(frame.as_ref())),
                        Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
                    };
                    if let Some(push) = self.read(text.as_str())? {
                        return Ok(push);
                    }
                }
                _ = self.beat.tick() => {
                    if self.unanswered.is_some() {
                        bail!("the server fell silent");
                    }
                    let reference = self.next_reference();
                    self.unanswered = Some(reference);
                    self.send(request(None, reference, event::HEARTBEAT_TOPIC, event::HEARTBEAT)).await?;
                }
            }
        }
    }

    fn read(&mut self, text: &str) -> anyhow::Result<Option<Push>> {
        let Ok(frame) = parse(Version::V2, text) else { return Ok(None) };
        if frame.topic == event::HEARTBEAT_TOPIC {
            self.unanswered = None;
            return Ok(None);
        }
        if frame.event == event::ERROR {
            bail!("a channel broke");
        }
        let Ok(topic) = Topic::parse(&frame.topic) else { return Ok(None) };
        let payload = serde_json::from_str(frame.payload.get())?;
        Ok(Some(Push { topic, event: frame.event, payload }))
    }

    fn next_reference(&mut self) -> u64 {
        self.reference += 1;
        self.reference
    }

    async fn send(&mut self, text: String) -> anyhow::Result<()> {
        self.stream.send(Message::text(text)).await.context("the connection broke")
    }

    /// Says good-bye.
    pub(crate) async fn close(mut self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.stream.close(None)).await;
    }
}

fn code(frame: Option<&tungstenite::protocol::CloseFrame>) -> String {
    frame.map_or_else(String::new, |frame| format!(" ({})", u16::from(frame.code)))
}

async fn dial(credentials: &Credentials) -> Result<WebSocketStream<Box<dyn Bytes>>, NoSocket> {
    let later = |what: &str| NoSocket::Later(anyhow!("cannot reach {}: {what}", credentials.url));
    let wrong = |what: &str| NoSocket::Final(anyhow!("{}: {what}", credentials.url));
    // `http` becomes `ws`, `https` becomes `wss`.
    let address = credentials.url.replacen("http", "ws", 1);
    let url = format!("{address}/api/v1/socket/websocket?vsn=2.0.0");
    let mut request = url.into_client_request().map_err(|_| wrong("this is no address"))?;
    let mut key = HeaderValue::from_str(&credentials.key).map_err(|_| wrong("this is no key"))?;
    key.set_sensitive(true);
    request.headers_mut().insert("x-api-key", key);
    let uri = request.uri();
    let secure = uri.scheme_str() == Some("wss");
    let host = uri.host().ok_or_else(|| wrong("the address has no host"))?.to_owned();
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    // In an address, an IPv6 host stands in brackets.
    let bare = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((bare, port)).await.map_err(|error| later(&error.to_string()))?;
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Bytes> = if secure {
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| wrong("the host is no name for TLS"))?;
        let connector = TlsConnector::from(Arc::new(tls::for_address(&credentials.url).map_err(NoSocket::Final)?));
        Box::new(connector.connect(name, stream).await.map_err(|error| later(&error.to_string()))?)
    } else {
        Box::new(stream)
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(16 * 1024)
        .max_message_size(Some(MESSAGE_MAX_BYTES))
        .max_frame_size(Some(MESSAGE_MAX_BYTES));
    match Box::pin(client_async_with_config(request, stream, Some(config))).await {
        Ok((stream, _)) => Ok(stream),
        Err(tungstenite::Error::Http(response)) => match response.status().as_u16() {
            403 => Err(wrong("the server does not take this key")),
            status @ (400 | 404) => Err(wrong(&format!("the server answered {status}: is it a Bandstand server?"))),
            status => Err(later(&format!("the server answered {status}"))),
        },
        Err(error) => Err(later(&error.to_string())),
    }
}

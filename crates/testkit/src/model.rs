//! A model that says what a test tells it to, over real HTTP, in the form of whichever of the three APIs it is asked.

mod check;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bandstand_transcript::model::{Carried, TextPart};
use bandstand_transcript::sse::SseEvent;
use bandstand_transcript::stream::{Delta, Encoder};
use bandstand_transcript::{
    Format, Message, Part, ProviderError, Reply, Role, StopReason, ToolCall, ToolCallId, ToolInput, ToolName, Usage,
    Warnings, encode_reply,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// When its replies were made, in seconds since 1970.
const CREATED: u64 = 1_700_000_000;

/// What a request is answered with.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A whole reply.
    Reply(Reply),
    /// The connection is closed after so many bytes of the reply's body, in the middle of HTTP's own framing.
    CutAfter(Reply, usize),
    /// The body ends after so many bytes of the reply, as if that were all.
    EndAfter(Reply, usize),
    /// Nothing more comes after so many bytes of the reply.
    StallAfter(Reply, usize),
    /// A stream that says something and then fails; unstreamed, the failure alone.
    Fails(String, ProviderError),
    /// A refusal with these headers.
    Status(u16, Vec<(&'static str, String)>, Value),
    /// The connection is closed before any byte.
    Reset,
    /// No answer.
    Silence,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The API, by its path.
    pub api: Format,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Asked {
    /// Whether a stream was asked for.
    pub fn streamed(&self) -> bool {
        self.body["stream"] == true
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Inner {
    script: VecDeque<Answer>,
    asked: Vec<Asked>,
    faults: Vec<String>,
    piece: usize,
    pause: Duration,
}

/// The server. It checks every history that it is sent: a call without its result, or a result without its call, is
/// answered with 400 as a provider would, and fails the test.
pub struct ModelServer {
    address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    count: watch::Sender<usize>,
    task: JoinHandle<()>,
}

impl ModelServer {
    /// Starts one that gives these answers, one a request.
    pub async fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let inner =
            Arc::new(Mutex::new(Inner { script: script.into_iter().collect(), piece: usize::MAX, ..Inner::default() }));
        let count = watch::Sender::new(0);
        let task = tokio::spawn({
            let (inner, count) = (Arc::clone(&inner), count.clone());
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (inner, count) = (Arc::clone(&inner), count.clone());
                    // A client that went away is not this server's failure.
                    tokio::spawn(async move { serve(stream, &inner, &count).await });
                }
            }
        });
        Self { address, inner, count, task }
    }

    /// Replies come in pieces of so many bytes, with a pause between.
    #[must_use]
    pub fn in_pieces(self, bytes: usize, pause: Duration) -> Self {
        {
            let mut inner = lock(&self.inner);
            inner.piece = bytes.max(1);
            inner.pause = pause;
        }
        self
    }

    /// What clients of an API are given as base address.
    pub fn url(&self, api: Format) -> String {
        match api {
            Format::OpenAiChat | Format::OpenAiResponses => format!("http://{}/v1", self.address),
            Format::Anthropic => format!("http://{}", self.address),
        }
    }

    /// More answers.
    pub fn then(&self, script: impl IntoIterator<Item = Answer>) {
        lock(&self.inner).script.extend(script);
    }

    /// Waits until so many requests have come.
    ///
    /// # Panics
    /// When they do not come.
    pub async fn asked_times(&self, times: usize) {
        let mut count = self.count.subscribe();
        let waiting = count.wait_for(|count| *count >= times);
        tokio::time::timeout(crate::PATIENCE, waiting).await.expect("the model is asked").expect("the server lives");
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.inner).asked.clone()
    }

    /// What was wrong with the histories so far, in a provider's eyes.
    pub fn faults(&self) -> Vec<String> {
        lock(&self.inner).faults.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
        let faults = std::mem::take(&mut lock(&self.inner).faults);
        assert!(faults.is_empty() || std::thread::panicking(), "histories that a provider refuses: {faults:#?}");
    }
}

/// A reply of words.
pub fn says(text: &str) -> Reply {
    let parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(TextPart::new(text))] };
    reply(parts, StopReason::End)
}

/// A reply of calls: id, tool, arguments.
pub fn calls(calls: &[(&str, &str, Value)]) -> Reply {
    let call = |(id, name, arguments): &(&str, &str, Value)| {
        Part::ToolCall(ToolCall {
            id: ToolCallId::new(*id),
            name: ToolName::new(*name),
            input: ToolInput::object(arguments.as_object().cloned().unwrap_or_default()),
            signature: None,
            carried: Carried::default(),
        })
    };
    reply(calls.iter().map(call).collect(), StopReason::ToolUse)
}

fn reply(parts: Vec<Part>, stop_reason: StopReason) -> Reply {
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    Reply {
        message: Message::new(Role::Assistant, parts),
        stop_reason,
        usage: Some(usage),
        warnings: Warnings::default(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(mut stream: TcpStream, inner: &Mutex<Inner>, count: &watch::Sender<usize>) {
    let Some((path, headers, body)) = read(&mut stream).await else { return };
    let api = match path.as_str() {
        "/v1/chat/completions" => Format::OpenAiChat,
        "/v1/responses" => Format::OpenAiResponses,
        "/v1/messages" => Format::Anthropic,
        _ => {
            let body = json!({ "error": { "message": format!("no such path: {path}") } });
            write(&mut stream, 404, &[], &body.to_string()).await;
            return;
        }
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let asked = Asked { api, headers, body };
    let (answer, piece, pause) = {
        let mut inner = lock(inner);
        let faults = check::faults(&asked);
        let answer = if faults.is_empty() {
            inner.script.pop_front().unwrap_or_else(|| {
                Answer::Status(
                    500,
                    vec![("x-should-retry", "false".into())],
                    json!({"error": {"message": "nothing left to say"}}),
                )
            })
        } else {
            inner.faults.extend(faults.iter().cloned());
            let error = json!({ "type": "invalid_request_error", "message": faults.join("; ") });
            Answer::Status(400, Vec::new(), json!({ "type": "error", "error": error }))
        };
        inner.asked.push(asked.clone());
        (answer, inner.piece, inner.pause)
    };
    count.send_modify(|count| *count += 1);
    give(&mut stream, &asked, answer, piece, pause).await;
}

async fn give(stream: &mut TcpStream, asked: &Asked, answer: Answer, piece: usize, pause: Duration) {
    let (reply, after, end) = match answer {
        Answer::Status(status, headers, body) => return write(stream, status, &headers, &body.to_string()).await,
        Answer::Reset => return,
        Answer::Silence => return std::future::pending().await,
        Answer::Fails(said, error) => return give_failure(stream, asked, &said, &error, piece, pause).await,
        Answer::Reply(reply) => (reply, usize::MAX, End::Whole),
        Answer::CutAfter(reply, bytes) => (reply, bytes, End::Cut),
        Answer::EndAfter(reply, bytes) => (reply, bytes, End::Whole),
        Answer::StallAfter(reply, bytes) => (reply, bytes, End::Stall),
    };
    let text = if asked.streamed() {
        events(&reply, asked.api).iter().map(SseEvent::to_wire).collect()
    } else {
        encode_reply(&reply, asked.api, "reply-1", "scripted", CREATED).0.to_string()
    };
    let body = &text.as_bytes()[..after.min(text.len())];
    chunked(stream, asked.streamed(), body, piece, pause, end).await;
}

/// A stream as models make it: text in small pieces.
fn events(reply: &Reply, api: Format) -> Vec<SseEvent> {
    let mut encoder = Encoder::new(api, "reply-1", "scripted", CREATED);
    let mut events = Vec::new();
    for delta in reply.message.parts.iter().flat_map(Delta::of_part) {
        match delta {
            Delta::Text(text) => {
                let characters: Vec<char> = text.chars().collect();
                for piece in characters.chunks(20) {
                    events.extend(encoder.delta(&Delta::Text(piece.iter().collect())));
                }
            }
            other => events.extend(encoder.delta(&other)),
        }
    }
    events.extend(encoder.finish(reply));
    events
}

async fn give_failure(
    stream: &mut TcpStream,
    asked: &Asked,
    said: &str,
    error: &ProviderError,
    piece: usize,
    pause: Duration,
) {
    if !asked.streamed() {
        let body = json!({ "type": "error", "error": { "type": error.kind, "message": error.message } });
        return write(stream, 529, &[], &body.to_string()).await;
    }
    let mut encoder = Encoder::new(asked.api, "reply-1", "scripted", CREATED);
    let mut events = if said.is_empty() { Vec::new() } else { encoder.delta(&Delta::Text(said.to_owned())) };
    events.extend(encoder.fail(error));
    let text: String = events.iter().map(|event| event.to_wire()).collect();
    chunked(stream, true, text.as_bytes(), piece, pause, End::Whole).await;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Cut,
    Stall,
}

async fn chunked(stream: &mut TcpStream, streamed: bool, body: &[u8], piece: usize, pause: Duration, end: End) {
    let kind = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\nrequest-id: req-1\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    for part in body.chunks(piece.min(1 << 20)) {
        let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
        chunk.extend_from_slice(part);
        chunk.extend_from_slice(b"\r\n");
        if stream.write_all(&chunk).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if pause > Duration::ZERO {
            tokio::time::sleep(pause).await;
        }
    }
    match end {
        End::Whole => {
            // A client that has its end event may have gone.
            let _ = stream.write_all(b"0\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
        End::Cut => {}
        End::Stall => std::future::pending().await,
    }
}

async fn write(stream: &mut TcpStream, status: u16, headers: &[(&'static str, String)], body: &str) {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let answer = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The path, the headers and the body of a request.
async fn read(stream: &mut TcpStream) -> Option<(String, Vec<(String, String)>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let length: usize = length.unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((path, headers, body))
}

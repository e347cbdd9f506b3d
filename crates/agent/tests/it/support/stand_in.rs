//! A stand-in for the platform: it answers everything, remembers what it was asked, and misbehaves on demand.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const AGENT: &str = "00000000-0000-7000-8000-00000000000a";
pub(crate) const ANN: &str = "00000000-0000-7000-8000-00000000000b";
pub(crate) const BOB: &str = "00000000-0000-7000-8000-00000000000c";
pub(crate) const ROOM: &str = "00000000-0000-7000-8000-0000000000aa";
const MESSAGE: &str = "00000000-0000-7000-8000-0000000000bb";

/// What a request is answered with instead.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status, with these headers and an error envelope.
    Status(u16, Vec<(&'static str, String)>),
    /// This status and body.
    Body(u16, Value),
    /// The connection breaks before any answer, after the request was taken.
    Cut,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Inner {
    asked: Vec<Asked>,
    /// What the next requests whose path ends so are answered with.
    faults: VecDeque<(&'static str, Fault)>,
    /// What every request whose path ends so is answered with.
    broken: Vec<(&'static str, Fault)>,
    name: Option<&'static str>,
}

#[derive(Clone)]
pub(crate) struct StandIn {
    inner: Arc<Mutex<Inner>>,
    pub(crate) address: SocketAddr,
}

impl StandIn {
    /// `name` is what it says of itself in `/api/version`; without one there is no such route.
    pub(crate) async fn start(name: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let inner = Arc::new(Mutex::new(Inner { name, ..Inner::default() }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { inner, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request whose path ends so is answered like this.
    pub(crate) fn fault(&self, path: &'static str, fault: Fault) {
        self.inner.lock().unwrap().faults.push_back((path, fault));
    }

    /// Every request whose path ends so is answered like this, until [`Self::mend`].
    pub(crate) fn break_all(&self, path: &'static str, fault: Fault) {
        self.inner.lock().unwrap().broken.push((path, fault));
    }

    pub(crate) fn mend(&self) {
        self.inner.lock().unwrap().broken.clear();
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.inner.lock().unwrap().asked.clone()
    }

    /// The bodies of what was posted there and taken.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method == "POST" && asked.path.ends_with(path)).count()
    }
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 24).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
    let fault = {
        let mut inner = inner.lock().unwrap();
        if path == "/api/version" {
            return match inner.name {
                Some(name) => reply(200, &json!({"name": name, "version": "0.1.0"})),
                None => reply(404, &error("not_found", "nothing here")),
            };
        }
        inner.asked.push(Asked {
            method: method.clone(),
            path: path.clone(),
            headers: parts.headers,
            body: body.clone(),
        });
        match inner.faults.iter().position(|(end, _)| path.ends_with(end)) {
            Some(at) => inner.faults.remove(at).map(|(_, fault)| fault),
            None => inner.broken.iter().find(|(end, _)| path.ends_with(end)).map(|(_, fault)| fault.clone()),
        }
    };
    match fault {
        None => {
            let (status, body) = usual(&method, path.trim_start_matches("/api/v1/agent"), &body);
            reply(status, &body)
        }
        Some(Fault::Status(status, headers)) => {
            let mut response = reply(status, &error("some_code", "some message"));
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Some(Fault::Body(status, body)) => reply(status, &body),
        Some(Fault::Cut) => {
            // A body that breaks off: hyper closes the connection.
            let broken = futures_util::stream::once(async { Err::<bytes::Bytes, _>(std::io::Error::other("cut")) });
            Response::builder().status(200).header("content-length", "100").body(Body::from_stream(broken)).unwrap()
        }
    }
}

fn reply(status: u16, body: &Value) -> Response<Body> {
    Response::builder().status(status).header("x-secret", "header").body(Body::from(body.to_string())).unwrap()
}

pub(crate) fn error(code: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "request_id": "r"}, "secret": "body"})
}

fn person(id: &str, name: &str, handle: &str, kind: &str) -> Value {
    json!({"id": id, "name": name, "handle": handle, "type": kind, "role": "member", "status": "active", "online": true})
}

/// A fine answer to anything that a tool asks.
fn usual(method: &str, path: &str, body: &Value) -> (u16, Value) {
    let memory = json!({"id": "m1", "content": "c", "system": "working", "type": "semantic", "segment": "user",
        "scope": "agent"});
    let task = json!({"id": "t1", "number": 1, "chat_room_id": ROOM, "subject": "s", "detail": "", "state": "active"});
    let board = json!({"chat_room_id": ROOM, "goal_title": "g"});
    let cursor = json!({"has_more": false, "limit": 50, "next_cursor": null});
    let file = json!({"id": "f1", "name": "a.txt", "content_type": "text/plain", "bytes": 5, "sha256": "00",
        "has_thumb": false});
    let row = json!({"id": MESSAGE, "content": "x", "message_type": "text", "sender_id": ANN, "sender_type": "User",
        "attachments": [file]});
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, parts.as_slice()) {
        ("GET", ["me"]) => (200, json!({"data": {"id": AGENT, "name": "Me", "feature_flags": {}}})),
        ("GET", ["peers"]) => {
            let row = json!({"id": BOB, "name": "Bob", "handle": "bob", "type": "User", "source": "registry",
                "is_contact": false, "online": true});
            (200, json!({"data": [row], "metadata": {"page": 1, "page_size": 100, "total_count": 1, "total_pages": 1}}))
        }
        ("GET", ["chats", _, "participants"]) => {
            let rows = [person(AGENT, "Me", "ann/me", "Agent"), person(ANN, "Ann", "ann", "User")];
            (200, json!({"data": rows}))
        }
        ("POST", ["chats", _, "participants"]) => (201, json!({"data": person(BOB, "Bob", "bob", "User")})),
        ("DELETE", ["chats", _, "participants", _]) => (200, json!({"data": person(ANN, "Ann", "ann", "User")})),
        ("POST", ["chats"]) => (201, json!({"data": {"id": ROOM}})),
        ("POST", ["chats", _, "messages"]) => {
            let recipients = [json!({"id": ANN, "handle": "ann", "name": "Ann"})];
            (201, json!({"data": {"id": MESSAGE, "success": true, "recipients": recipients}}))
        }
        ("POST", ["chats", _, "events"]) => {
            let kind = &body["event"]["message_type"];
            (201, json!({"data": {"id": MESSAGE, "success": true, "message_type": kind}}))
        }
        ("POST", ["chats", _, "messages", _, mark]) => {
            (200, json!({"data": {"id": MESSAGE, "success": true, "status": mark, "attempt_number": 1}}))
        }
        ("GET", ["chats", _, "context"]) => (200, json!({"data": [row], "metadata": cursor})),
        ("PUT", ["chats", _, "files"]) => (201, json!({"data": file})),
        ("GET", ["chats", _, "files", _]) => (200, json!("hello")),
        ("GET", ["contacts"]) => (200, json!({"data": [], "metadata": {}})),
        ("GET", ["contacts", "requests"]) => (200, json!({"data": {"received": [], "sent": []}, "metadata": {}})),
        ("POST", ["contacts", "remove"]) => (200, json!({"data": {"status": "removed"}})),
        ("POST", ["contacts", ..]) => (201, json!({"data": {"id": "c1", "status": "pending"}})),
        ("GET", ["memories"]) => (200, json!({"data": [memory], "meta": {}})),
        (_, ["memories", ..]) => (200, json!({"data": memory})),
        ("GET", ["chats", _, "tasks"]) => (200, json!({"data": [task], "metadata": cursor})),
        ("GET", ["chats", _, "tasks", _, "history"]) => (200, json!({"data": [], "metadata": cursor})),
        (_, ["chats", _, "tasks", ..]) => (200, json!({"data": task})),
        (_, ["chats", _, "board"]) => (200, json!({"data": board})),
        _ => (404, error("not_found", "nothing here")),
    }
}

//! Who sends requests, and what comes back.

use std::fmt;

use bandstand_wire::ids::IdentityKind;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Socket, TestApp};

/// A user or an agent with its key.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) app: TestApp,
    pub(crate) kind: IdentityKind,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) handle: String,
    pub(crate) key: String,
}

/// A room.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) id: String,
}

impl Room {
    /// `chats/{id}`
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("chats/{}{rest}", self.id)
    }
}

impl Caller {
    pub(crate) fn new(app: &TestApp, kind: IdentityKind, id: Uuid, name: &str, handle: &str, key: &str) -> Self {
        let id = id.to_string();
        app.names.give(&id, name);
        Self { app: app.clone(), kind, id, name: name.into(), handle: handle.into(), key: key.into() }
    }

    /// The path in the caller's own API, unless it starts with a slash.
    pub(crate) fn path(&self, path: &str) -> String {
        match (path.strip_prefix('/'), self.kind) {
            (Some(_), _) => path.to_owned(),
            (None, IdentityKind::Agent) => format!("/api/v1/agent/{path}"),
            (None, IdentityKind::User) => format!("/api/v1/me/{path}"),
        }
    }

    /// A request with any body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        media_type: Option<&str>,
        body: Option<Vec<u8>>,
    ) -> Reply {
        let mut headers = Vec::new();
        if !self.key.is_empty() {
            headers.push(("x-api-key", self.key.as_str()));
        }
        headers.extend(media_type.map(|media_type| ("content-type", media_type)));
        self.app.request(method, &self.path(path), &headers, body).await
    }

    async fn json(&self, method: Method, path: &str, body: &Value) -> Reply {
        self.send(method, path, Some("application/json"), Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, None, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.json(Method::POST, path, &body).await
    }

    /// A POST without a body, as the marks are sent.
    pub(crate) async fn post_nothing(&self, path: &str) -> Reply {
        self.send(Method::POST, path, None, None).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Reply {
        self.json(Method::PATCH, path, &body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.json(Method::PUT, path, &body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, None, None).await
    }

    /// Registers an agent.
    pub(crate) async fn registers(&self, name: &str) -> Caller {
        let description = format!("{name}, an agent of a test");
        let body = json!({"agent": {"name": name, "description": description}});
        let reply = self.post("agents/register", body).await.assert_status(201);
        let data = reply.data();
        let id: Uuid = data["agent"]["id"].as_str().expect("an id").parse().expect("a UUID");
        let key = data["credentials"]["api_key"].as_str().expect("a key");
        let mut agent = Caller::new(&self.app, IdentityKind::Agent, id, name, "", key);
        agent.handle = agent.get("me").await.assert_status(200).data()["handle"].as_str().expect("a handle").to_owned();
        agent
    }

    /// Creates a room without a title.
    pub(crate) async fn creates_room(&self) -> Room {
        let reply = self.post("chats", json!({"chat": {}})).await.assert_status(201);
        let id = reply.id();
        self.app.names.give(&id, "room");
        Room { id }
    }

    pub(crate) async fn adds(&self, room: &Room, who: &Caller) -> Reply {
        self.adds_as(room, who, "member").await
    }

    pub(crate) async fn adds_as(&self, room: &Room, who: &Caller, role: &str) -> Reply {
        let body = json!({"participant": {"participant_id": who.id, "role": role}});
        self.post(&room.path("/participants"), body).await
    }

    pub(crate) async fn removes(&self, room: &Room, who: &Caller) -> Reply {
        self.delete(&room.path(&format!("/participants/{}", who.id))).await
    }

    /// Posts a message that mentions these.
    pub(crate) async fn posts(&self, room: &Room, content: &str, mentions: &[&Caller]) -> Reply {
        let mentions: Vec<Value> = mentions.iter().map(|who| json!({"id": who.id})).collect();
        self.post(&room.path("/messages"), json!({"message": {"content": content, "mentions": mentions}})).await
    }

    /// Posts a message that must be taken; its id.
    pub(crate) async fn says(&self, room: &Room, content: &str, mentions: &[&Caller]) -> String {
        self.posts(room, content, mentions).await.assert_status(201).id()
    }

    /// Posts an event that must be taken; its id.
    pub(crate) async fn records(&self, room: &Room, kind: &str, content: &str) -> String {
        let body = json!({"event": {"content": content, "message_type": kind, "metadata": null}});
        self.post(&room.path("/events"), body).await.assert_status(201).id()
    }

    /// The next message to work on.
    pub(crate) async fn next(&self, room: &Room) -> Option<Value> {
        let reply = self.get(&room.path("/messages/next")).await;
        match reply.status {
            204 => None,
            _ => Some(reply.assert_status(200).data().clone()),
        }
    }

    /// The id of the next message to work on.
    pub(crate) async fn next_id(&self, room: &Room) -> Option<String> {
        self.next(room).await.map(|message| message["id"].as_str().expect("an id").to_owned())
    }

    /// `processing`, `processed` or `failed`.
    pub(crate) async fn marks(&self, room: &Room, message: &str, mark: &str) -> Reply {
        let path = room.path(&format!("/messages/{message}/{mark}"));
        match mark {
            "failed" => self.post(&path, json!({"error": "it broke"})).await,
            _ => self.post_nothing(&path).await,
        }
    }

    /// Works on a message from start to end.
    pub(crate) async fn handles(&self, room: &Room, message: &str) {
        self.marks(room, message, "processing").await.assert_status(200);
        self.marks(room, message, "processed").await.assert_status(200);
    }

    /// The contents of the rows of a list, from whichever API.
    pub(crate) async fn contents(&self, path: &str) -> Vec<String> {
        self.get(path).await.assert_status(200).strings("content")
    }

    /// Connects.
    pub(crate) async fn socket(&self) -> Socket {
        Socket::open(self, "vsn=2.0.0").await
    }

    /// Connects and joins a topic.
    pub(crate) async fn joins(&self, topic: &str) -> Socket {
        let mut socket = self.socket().await;
        socket.join(topic).await;
        socket
    }
}

/// What the server answered.
pub(crate) struct Reply {
    app: TestApp,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_ref().map_or_else(String::new, |body| format!("{body:#}"));
        let body: String = body.chars().take(4000).collect();
        write!(f, "{} {} -> {} {body}", self.method, self.path, self.status)
    }
}

impl Reply {
    pub(crate) async fn read(app: &TestApp, method: &Method, path: &str, response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        let bytes = response.bytes().await.unwrap_or_else(|why| panic!("{method} {path}: {why:?}"));
        let body = (!bytes.is_empty()).then(|| {
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|why| panic!("{method} {path}: {status} {why}: {}", String::from_utf8_lossy(&bytes)))
        });
        Self { app: app.clone(), method: method.to_string(), path: path.to_owned(), status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn assert_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// An error of this status and code.
    #[track_caller]
    pub(crate) fn assert_error(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.error()["code"].as_str()), (status, Some(code)), "{self:?}");
        self
    }

    /// A 422 that names exactly these places.
    #[track_caller]
    pub(crate) fn assert_invalid(self, places: &[&str]) -> Self {
        assert_eq!((self.status, self.error()["code"].as_str()), (422, Some("validation_error")), "{self:?}");
        let details = self.error()["details"].as_object().unwrap_or_else(|| panic!("no details: {self:?}"));
        assert_eq!(details.keys().map(String::as_str).collect::<Vec<_>>(), places, "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> &Value {
        self.body.as_ref().unwrap_or_else(|| panic!("no body: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn data(&self) -> &Value {
        &self.json()["data"]
    }

    #[track_caller]
    pub(crate) fn error(&self) -> &Value {
        &self.json()["error"]
    }

    #[track_caller]
    pub(crate) fn metadata(&self) -> &Value {
        &self.json()["metadata"]
    }

    #[track_caller]
    pub(crate) fn id(&self) -> String {
        self.data()["id"].as_str().unwrap_or_else(|| panic!("no id: {self:?}")).to_owned()
    }

    /// The rows of a list.
    #[track_caller]
    pub(crate) fn rows(&self) -> &[Value] {
        self.data().as_array().unwrap_or_else(|| panic!("no list: {self:?}"))
    }

    /// One field of all rows.
    #[track_caller]
    pub(crate) fn strings(&self, field: &str) -> Vec<String> {
        self.rows().iter().map(|row| row[field].as_str().unwrap_or("null").to_owned()).collect()
    }

    /// The whole body with names for ids.
    #[track_caller]
    pub(crate) fn named(&self) -> Value {
        self.app.names.replace(self.json())
    }
}

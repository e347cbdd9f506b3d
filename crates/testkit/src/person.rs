//! People and programs of a test, who act through the public API.

use bandstand_wire::ids::IdentityId;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::room::Room;

/// Somebody with a user key.
#[derive(Clone, Debug)]
pub struct Person {
    url: String,
    http: reqwest::Client,
    /// Who.
    pub id: IdentityId,
    /// The handle, without `@`.
    pub handle: String,
    /// The key.
    pub key: String,
}

/// An agent's place: what a program needs to connect as that agent.
#[derive(Clone, Debug)]
pub struct AgentSeat {
    url: String,
    http: reqwest::Client,
    /// Who.
    pub id: IdentityId,
    /// What it is called.
    pub name: String,
    /// The handle, without `@`.
    pub handle: String,
    /// The key.
    pub key: String,
}

/// Somebody who can be put into a room.
pub trait Member {
    /// Who.
    fn id(&self) -> IdentityId;
}

impl Member for Person {
    fn id(&self) -> IdentityId {
        self.id
    }
}

impl Member for AgentSeat {
    fn id(&self) -> IdentityId {
        self.id
    }
}

impl Person {
    pub(crate) fn new(url: String, http: reqwest::Client, id: IdentityId, handle: &str, key: &str) -> Self {
        Self { url, http, id, handle: handle.to_owned(), key: key.to_owned() }
    }

    /// A request to the Human API: the status and the body (null when there is none). `path` comes after `/api/v1/me`.
    ///
    /// # Panics
    /// When the server cannot be reached, or answers something that is not JSON.
    pub async fn request(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        send(&self.http, &self.key, method, &format!("{}/api/v1/me{path}", self.url), body).await
    }

    async fn must(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, reply) = self.request(method.clone(), path, body).await;
        assert!((200..300).contains(&status), "{method} {path} was answered {status}: {reply}");
        reply
    }

    /// Registers an agent of one's own.
    pub async fn registers(&self, name: &str) -> AgentSeat {
        let body = json!({ "agent": { "name": name, "description": format!("{name}, made for a test") } });
        let reply = self.must(Method::POST, "/agents/register", Some(body)).await;
        let mut agent = AgentSeat {
            url: self.url.clone(),
            http: self.http.clone(),
            id: IdentityId(uuid(&reply["data"]["agent"]["id"])),
            name: name.to_owned(),
            handle: String::new(),
            key: text(&reply["data"]["credentials"]["api_key"]).to_owned(),
        };
        // Only the agent itself is told its handle.
        let (status, me) = agent.request(Method::GET, "/me", None).await;
        assert_eq!(status, 200, "the new agent's key is good: {me}");
        agent.handle = text(&me["data"]["handle"]).trim_start_matches('@').to_owned();
        agent
    }

    /// Makes a room with these members.
    pub async fn room(&self, members: &[&dyn Member]) -> Room {
        let reply = self.must(Method::POST, "/chats", Some(json!({ "chat": {} }))).await;
        let room = Room::new(self.clone(), uuid(&reply["data"]["id"]).into());
        for member in members {
            self.adds(&room, *member).await;
        }
        room
    }

    /// Adds somebody to a room.
    pub async fn adds(&self, room: &Room, member: &dyn Member) {
        let body = json!({ "participant": { "participant_id": member.id(), "role": "member" } });
        self.must(Method::POST, &format!("/chats/{}/participants", room.id), Some(body)).await;
    }

    /// Removes somebody from a room.
    pub async fn removes(&self, room: &Room, member: &dyn Member) {
        self.must(Method::DELETE, &format!("/chats/{}/participants/{}", room.id, member.id()), None).await;
    }

    /// The two become contacts: each asks the other, which is consent. Contacts may add each other to rooms.
    pub async fn befriends(&self, other: &Self) {
        for (one, another) in [(self, other), (other, self)] {
            let body = json!({ "contact_request": { "recipient_handle": another.handle } });
            one.must(Method::POST, "/contacts/requests", Some(body)).await;
        }
    }

    /// Stops the agents of a room.
    pub async fn stops(&self, room: &Room) {
        self.must(Method::POST, &format!("/chats/{}/agents/stop", room.id), None).await;
    }

    /// Lets the agents of a room go on.
    pub async fn plays(&self, room: &Room) {
        self.must(Method::POST, &format!("/chats/{}/agents/play", room.id), None).await;
    }

    /// Interrupts the turn that one's own agent is in, in this room.
    pub async fn interrupts(&self, room: &Room, agent: &AgentSeat) {
        let path = format!("/agents/{}/executions", agent.id);
        let reply = self.must(Method::GET, &path, None).await;
        let place = room.id.to_string();
        let of_room = |row: &&Value| row["chat_room_id"] == place.as_str();
        let rows = reply["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let execution = rows.iter().find(of_room).unwrap_or_else(|| panic!("the agent is in the room: {reply}"));
        self.must(Method::POST, &format!("{path}/{}/interrupt", text(&execution["id"])), None).await;
    }

    /// The server's address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl AgentSeat {
    /// A request to the Agent API, as a hand-written agent would send it. `path` comes after `/api/v1/agent`.
    ///
    /// # Panics
    /// When the server cannot be reached, or answers something that is not JSON.
    pub async fn request(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        send(&self.http, &self.key, method, &format!("{}/api/v1/agent{path}", self.url), body).await
    }

    /// The oldest message that is served to it in a room, if there is one. It stays to be done: a mark is a
    /// [`Self::request`].
    pub async fn next(&self, room: &Room) -> Option<Value> {
        let (status, reply) = self.request(Method::GET, &format!("/chats/{}/messages/next", room.id), None).await;
        match status {
            200 => Some(reply["data"].clone()),
            204 => None,
            other => panic!("the next message is served, not {other}: {reply}"),
        }
    }

    /// Posts into a room, mentioning somebody.
    pub async fn says(&self, room: &Room, content: &str, to: &[&dyn Member]) {
        let mentions: Vec<Value> = to.iter().map(|member| json!({ "id": member.id() })).collect();
        let body = json!({ "message": { "content": content, "mentions": mentions } });
        let (status, reply) = self.request(Method::POST, &format!("/chats/{}/messages", room.id), Some(body)).await;
        assert_eq!(status, 201, "the message is taken: {reply}");
    }
}

async fn send(http: &reqwest::Client, key: &str, method: Method, url: &str, body: Option<Value>) -> (u16, Value) {
    let mut request = http.request(method.clone(), url).header("x-api-key", key);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let reply = request.send().await.unwrap_or_else(|why| panic!("{method} {url}: {why}"));
    let status = reply.status().as_u16();
    let bytes = reply.bytes().await.unwrap_or_else(|why| panic!("{method} {url}: {why}"));
    if bytes.is_empty() {
        return (status, Value::Null);
    }
    let value = serde_json::from_slice(&bytes).unwrap_or_else(|why| panic!("{method} {url}: {why}"));
    (status, value)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a string, please, not {value}"))
}

fn uuid(value: &Value) -> Uuid {
    text(value).parse().unwrap_or_else(|why| panic!("an id, please, not {value}: {why}"))
}

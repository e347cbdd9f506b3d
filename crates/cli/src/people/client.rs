//! The Human API, as far as a terminal needs it.

use std::time::Duration;

use anyhow::{Context, anyhow};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use form_urlencoded::Serializer;
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::account::Credentials;
use super::model::{Me, Participant, Room, Row, Sent};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Rows of a page, the most that the API gives.
pub(crate) const PAGE: usize = 100;
/// Pages that a list is followed for; a server whose last page never comes must not keep a command for ever.
const PAGES_MAX: usize = 200;
/// What an agent's key begins with.
const AGENT_KEY: &str = "band_a_";
const UNKNOWN: &str = "the server answered something unknown; is it another version?";

/// A refusal of the server.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: String,
    message: String,
}

/// The client.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub(crate) credentials: Credentials,
}

/// A page of a room's history.
pub(crate) struct RowPage {
    /// In the order of the API.
    pub(crate) rows: Vec<Value>,
    pub(crate) has_more: bool,
}

impl Client {
    /// Makes it; nothing is sent yet.
    pub(crate) fn new(credentials: Credentials) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(super::tls::for_address(&credentials.url)?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .build()?;
        Ok(Self { http, credentials })
    }

    /// Whose key it is.
    pub(crate) async fn me(&self) -> anyhow::Result<Me> {
        self.data(Method::GET, "profile", None).await
    }

    /// Registers an agent of one's own; answers its id and its key.
    pub(crate) async fn register(&self, name: &str, description: &str) -> anyhow::Result<(IdentityId, String)> {
        let body = json!({ "agent": { "name": name, "description": description } });
        let made: Value = self.data(Method::POST, "agents/register", Some(body)).await?;
        let text = |place: &str| made.pointer(place).and_then(Value::as_str);
        let id = text("/agent/id").and_then(|id| id.parse().ok()).context(UNKNOWN)?;
        Ok((id, text("/credentials/api_key").context(UNKNOWN)?.to_owned()))
    }

    /// All rooms, newest activity first, as they come.
    pub(crate) async fn rooms(&self, status: Option<&str>) -> anyhow::Result<Vec<Value>> {
        let mut query = vec![("sort_by", "updated_at"), ("include", "participants")];
        query.extend(status.map(|status| ("status", status)));
        self.all("chats", &query).await
    }

    /// Makes a room.
    pub(crate) async fn create_room(&self, title: Option<&str>) -> anyhow::Result<Value> {
        let chat = title.map_or_else(|| json!({}), |title| json!({ "title": title }));
        self.data(Method::POST, "chats", Some(json!({ "chat": chat }))).await
    }

    /// One room.
    pub(crate) async fn room(&self, room: RoomId) -> anyhow::Result<Value> {
        self.data(Method::GET, &format!("chats/{room}"), None).await
    }

    /// Archives a room, or takes it out of the archive.
    pub(crate) async fn archive(&self, room: RoomId, archived: bool) -> anyhow::Result<Value> {
        let what = if archived { "archive" } else { "unarchive" };
        self.data(Method::POST, &format!("chats/{room}/{what}"), None).await
    }

    /// Everybody in a room, as they come.
    pub(crate) async fn participant_rows(&self, room: RoomId) -> anyhow::Result<Vec<Value>> {
        self.all(&format!("chats/{room}/participants"), &[]).await
    }

    /// Everybody in a room.
    pub(crate) async fn participants(&self, room: RoomId) -> anyhow::Result<Vec<Participant>> {
        typed(self.participant_rows(room).await?)
    }

    /// Everybody who could be added to a room.
    pub(crate) async fn peers(&self, room: RoomId) -> anyhow::Result<Vec<Participant>> {
        let mut peers = Vec::new();
        for page in 1..=PAGES_MAX {
            let path = format!("peers?not_in_chat={room}&page={page}&page_size={PAGE}");
            let rows: Vec<Participant> = self.data(Method::GET, &path, None).await?;
            let last = rows.len() < PAGE;
            peers.extend(rows);
            if last {
                break;
            }
        }
        Ok(peers)
    }

    /// Adds somebody to a room.
    pub(crate) async fn add(&self, room: RoomId, who: IdentityId, role: &str) -> anyhow::Result<Value> {
        let body = json!({ "participant": { "participant_id": who, "role": role } });
        self.data(Method::POST, &format!("chats/{room}/participants"), Some(body)).await
    }

    /// Removes somebody from a room.
    pub(crate) async fn remove(&self, room: RoomId, who: IdentityId) -> anyhow::Result<Value> {
        self.data(Method::DELETE, &format!("chats/{room}/participants/{who}"), None).await
    }

    /// Posts a message.
    pub(crate) async fn post(&self, room: RoomId, content: &str, to: &[IdentityId]) -> anyhow::Result<Sent> {
        let mentions: Vec<Value> = to.iter().map(|id| json!({ "id": id })).collect();
        let body = json!({ "message": { "content": content, "mentions": mentions } });
        self.data(Method::POST, &format!("chats/{room}/messages"), Some(body)).await
    }

    /// The newest rows of a room, newest first; or those older than `before`.
    pub(crate) async fn older(&self, room: RoomId, before: Option<MessageId>, limit: usize) -> anyhow::Result<RowPage> {
        self.history(room, before.map(|id| ("before", id)), limit).await
    }

    /// The rows that follow `after`, oldest first.
    pub(crate) async fn newer(&self, room: RoomId, after: MessageId) -> anyhow::Result<RowPage> {
        self.history(room, Some(("after", after)), PAGE).await
    }

    /// Whether a message is in a room that one may read.
    pub(crate) async fn holds(&self, room: RoomId, message: MessageId) -> anyhow::Result<bool> {
        match self.history(room, Some(("around", message)), 1).await {
            Ok(_) => Ok(true),
            Err(error) if refused(&error).is_some_and(|refused| matches!(refused.status, 404 | 422)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn history(&self, room: RoomId, anchor: Option<(&str, MessageId)>, limit: usize) -> anyhow::Result<RowPage> {
        let mut path = format!("chats/{room}/messages?limit={}", limit.clamp(1, PAGE));
        if let Some((which, id)) = anchor {
            path.push_str(&format!("&{which}={id}"));
        }
        let mut reply = self.ask(Method::GET, &path, None).await?;
        let has_more = reply.pointer("/metadata/has_more").and_then(Value::as_bool).unwrap_or(false);
        let rows = reply.get_mut("data").map(Value::take).unwrap_or_default();
        Ok(RowPage { rows: serde_json::from_value(rows).context(UNKNOWN)?, has_more })
    }

    /// What became of a message, for all recipients or for one participant.
    pub(crate) async fn deliveries(
        &self,
        room: RoomId,
        message: MessageId,
        participant: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let query: Vec<_> = participant.map(|who| ("participant", who)).into_iter().collect();
        self.all(&format!("chats/{room}/messages/{message}/deliveries"), &query).await
    }

    /// Whether the key is an agent's.
    pub(crate) fn is_agents(&self) -> bool {
        self.credentials.key.starts_with(AGENT_KEY)
    }

    /// Which agent's key it is.
    pub(crate) async fn agent_me(&self) -> anyhow::Result<Participant> {
        let mut reply = self.ask_of("agent", Method::GET, "me", None).await?;
        let mut agent = reply.get_mut("data").map(Value::take).unwrap_or_default();
        agent["type"] = json!("Agent");
        read(&agent)
    }

    /// The rooms of the agent whose key it is.
    pub(crate) async fn agent_rooms(&self) -> anyhow::Result<Vec<Value>> {
        let mut rows = Vec::new();
        for page in 1..=PAGES_MAX {
            let path = format!("chats?page={page}&page_size={PAGE}");
            let mut reply = self.ask_of("agent", Method::GET, &path, None).await?;
            let found = reply.get_mut("data").map(Value::take).unwrap_or_default();
            let found: Vec<Value> = serde_json::from_value(found).context(UNKNOWN)?;
            let last = found.len() < PAGE;
            rows.extend(found);
            if last {
                break;
            }
        }
        Ok(rows)
    }

    /// A page of what the agent whose key it is remembers of a room, oldest first, and the cursor of the next one.
    pub(crate) async fn agent_context(
        &self,
        room: RoomId,
        cursor: Option<&str>,
    ) -> anyhow::Result<(Vec<Value>, Option<String>)> {
        let path = format!("chats/{room}/context?{}", written(&[], cursor));
        let mut reply = self.ask_of("agent", Method::GET, &path, None).await?;
        let rows = reply.get_mut("data").map(Value::take).unwrap_or_default();
        let next = reply.pointer("/metadata/next_cursor").and_then(Value::as_str).map(str::to_owned);
        Ok((serde_json::from_value(rows).context(UNKNOWN)?, next))
    }

    /// All rows of a list with cursors.
    async fn all(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Vec<Value>> {
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut page =
                self.ask(Method::GET, &format!("{path}?{}", written(query, cursor.as_deref())), None).await?;
            let data = page.get_mut("data").map(Value::take).unwrap_or_default();
            rows.extend(serde_json::from_value::<Vec<Value>>(data).context(UNKNOWN)?);
            cursor = page.pointer("/metadata/next_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(rows)
    }

    async fn data<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<T> {
        let mut reply = self.ask(method, path, body).await?;
        let data = reply.get_mut("data").map(Value::take).unwrap_or_default();
        serde_json::from_value(data).context(UNKNOWN)
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        self.ask_of("me", method, path, body).await
    }

    /// Asks one of the two APIs: `me`, or `agent`.
    async fn ask_of(&self, whose: &str, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let Credentials { url, key } = &self.credentials;
        let mut request = self.http.request(method, format!("{url}/api/v1/{whose}/{path}")).header("x-api-key", key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let reply = request.send().await.map_err(reqwest::Error::without_url);
        let reply = reply.with_context(|| format!("cannot reach {url}"))?;
        let status = reply.status();
        let text = reply.text().await.map_err(reqwest::Error::without_url);
        let text = text.context("the server broke off its answer; whether it did what was asked is not known")?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        Err(self.refusal(whose, status, &body))
    }

    fn refusal(&self, whose: &str, status: StatusCode, body: &Value) -> anyhow::Error {
        let url = &self.credentials.url;
        let Some(error) = body.get("error") else {
            return anyhow!("{url} answered {status}: is it a Bandstand server?");
        };
        let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let code = word("code");
        let message = match status.as_u16() {
            401 => format!("{url} does not know this key; `bandstand login` takes a new one"),
            403 if self.is_agents() && whose == "me" => {
                "this is an agent's key; people's commands need a user's (band_u_…)".to_owned()
            }
            _ => with_details(word("message"), error.get("details")),
        };
        Refused { status: status.as_u16(), code, message }.into()
    }
}

/// The query of a page of a list.
fn written(query: &[(&str, &str)], cursor: Option<&str>) -> String {
    let mut written = Serializer::new(String::new());
    // Asked about one participant, the ledger has no pages.
    if !query.iter().any(|(name, _)| *name == "participant") {
        written.append_pair("limit", &PAGE.to_string());
    }
    written.extend_pairs(query);
    if let Some(cursor) = cursor {
        written.append_pair("cursor", cursor);
    }
    written.finish()
}

/// A refusal with what it says of each field.
fn with_details(mut message: String, details: Option<&Value>) -> String {
    for (place, faults) in details.and_then(Value::as_object).into_iter().flatten() {
        for fault in faults.as_array().into_iter().flatten().filter_map(Value::as_str) {
            message.push_str(&format!("; {place} {fault}"));
        }
    }
    super::text::harmless(&message)
}

/// The server's refusal, if an error is one.
pub(crate) fn refused(error: &anyhow::Error) -> Option<&Refused> {
    error.downcast_ref()
}

/// Rows of a type.
pub(crate) fn typed<T: DeserializeOwned>(rows: Vec<Value>) -> anyhow::Result<Vec<T>> {
    rows.into_iter().map(|row| serde_json::from_value(row).context(UNKNOWN)).collect()
}

/// A row of a type.
pub(crate) fn read<T: DeserializeOwned>(row: &Value) -> anyhow::Result<T> {
    T::deserialize(row).context(UNKNOWN)
}

/// A room's row.
pub(crate) fn room_of(row: &Value) -> anyhow::Result<Room> {
    read(row)
}

/// A history's row.
pub(crate) fn row_of(row: &Value) -> anyhow::Result<Row> {
    read(row)
}

//! The Human API, as far as tools need it: what a person's key may do.
//!
//! What is asked has types; what is answered is handed on as the server wrote it, because only a model or a person
//! reads it.

use std::fmt;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::ClientError;
use super::call::{Call, Transport};
use super::resources::segment;
use super::retry::Repeat;

/// A connection to one server with one person's key. Cheap to clone; all clones share the pool of connections.
///
/// Made by [`super::ClientOptions::build_human`].
#[derive(Clone)]
pub struct HumanClient {
    pub(super) transport: Arc<Transport>,
}

impl fmt::Debug for HumanClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HumanClient").field("base_url", &self.base_url()).finish_non_exhaustive()
    }
}

/// Which page of a numbered list. Without numbers, the server's first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HumanPage {
    /// From 1.
    pub page: Option<i64>,
    /// Rows of a page.
    pub page_size: Option<i64>,
}

/// Which messages of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanMessageQuery {
    /// Which page.
    pub page: HumanPage,
    /// Only this kind.
    pub message_type: Option<String>,
    /// Only those after this moment, in ISO 8601.
    pub since: Option<String>,
}

/// Which memories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanMemoryQuery {
    /// Of this room.
    pub chat_room_id: Option<String>,
    /// Of this scope.
    pub scope: Option<String>,
    /// Of this system.
    pub system: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this segment.
    pub segment: Option<String>,
    /// With these words.
    pub content_query: Option<String>,
    /// Rows of a page.
    pub page_size: Option<i64>,
    /// With this status.
    pub status: Option<String>,
}

/// What is done with a contact request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAnswer {
    /// Its recipient says yes.
    Approve,
    /// Its recipient says no.
    Reject,
    /// Whoever asked takes it back.
    Cancel,
}

type Answered = Result<Value, ClientError>;

impl HumanClient {
    /// The server's address, without a slash at the end.
    pub fn base_url(&self) -> &str {
        self.transport.base_url()
    }

    async fn ask(&self, call: Call) -> Answered {
        self.transport.send(call.of_a_person()).await?.read()
    }

    async fn list(&self, what: &'static str, path: impl Into<String>, page: HumanPage) -> Answered {
        self.ask(paged(Call::get(what, path), page)).await
    }

    /// The person.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn profile(&self) -> Answered {
        self.ask(Call::get("read the profile", "/profile")).await
    }

    /// Another first or last name; what is not given stays.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn update_profile(&self, first_name: Option<&str>, last_name: Option<&str>) -> Answered {
        let user = given([("first_name", first_name), ("last_name", last_name)]);
        self.ask(Call::new("update the profile", Method::PUT, "/profile".into()).json(&json!({"user": user}))?).await
    }

    /// The person's agents.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn agents(&self, page: HumanPage) -> Answered {
        self.list("list agents", "/agents", page).await
    }

    /// Registers an agent. Its key is in the answer, and is shown only there.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn register_agent(&self, name: &str, description: &str) -> Answered {
        let body = json!({"agent": {"name": name, "description": description}});
        self.ask(Call::post("register agent", "/agents/register").json(&body)?).await
    }

    /// Whom the person could bring into a room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn peers(&self, not_in_chat: Option<&str>, kind: Option<&str>, page: HumanPage) -> Answered {
        let call = Call::get("list peers", "/peers").query("not_in_chat", not_in_chat).query("type", kind);
        self.ask(paged(call, page)).await
    }

    /// The person's rooms.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn chats(&self, page: HumanPage) -> Answered {
        self.list("list rooms", "/chats", page).await
    }

    /// Makes a room, linked to a task if one is given.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_chat(&self, task_id: Option<&str>) -> Answered {
        let chat = given([("task_id", task_id)]);
        self.ask(Call::post("create room", "/chats").json(&json!({"chat": chat}))?).await
    }

    /// One room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn chat(&self, chat: &str) -> Answered {
        self.ask(Call::get("show room", chat_path(chat, ""))).await
    }

    /// Messages and events of a room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn messages(&self, chat: &str, query: &HumanMessageQuery) -> Answered {
        let call = Call::get("list messages", chat_path(chat, "/messages"))
            .query("message_type", query.message_type.as_ref())
            .query("since", query.since.as_ref());
        self.ask(paged(call, query.page)).await
    }

    /// Posts a message to those who are mentioned, each by id and name.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn post_message(&self, chat: &str, content: &str, mentions: &[(String, String)]) -> Answered {
        let mentions: Vec<Value> = mentions.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
        let body = json!({"message": {"content": content, "mentions": mentions}});
        self.ask(Call::post("send message", chat_path(chat, "/messages")).json(&body)?).await
    }

    /// Who is in a room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn participants(&self, chat: &str, kind: Option<&str>) -> Answered {
        let call = Call::get("list participants", chat_path(chat, "/participants")).query("participant_type", kind);
        self.ask(call).await
    }

    /// Adds somebody to a room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn add_participant(&self, chat: &str, who: &str, role: &str) -> Answered {
        let body = json!({"participant": {"participant_id": who, "role": role}});
        self.ask(Call::post("add participant", chat_path(chat, "/participants")).json(&body)?).await
    }

    /// Removes somebody from a room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_participant(&self, chat: &str, who: &str) -> Result<(), ClientError> {
        let path = chat_path(chat, &format!("/participants/{}", segment(who)));
        self.tell(Call::new("remove participant", Method::DELETE, path)).await
    }

    /// What became of a message for each recipient, or for one participant (by id or handle), and why. Only Bandstand has it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn deliveries(&self, chat: &str, message: &str, participant: Option<&str>) -> Answered {
        let path = chat_path(chat, &format!("/messages/{}/deliveries", segment(message)));
        self.ask(Call::get("read deliveries", path).query("participant", participant)).await
    }

    /// The person's contacts.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn contacts(&self, page: HumanPage) -> Answered {
        self.list("list contacts", "/contacts", page).await
    }

    /// Who it is that has a handle.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn resolve_handle(&self, handle: &str) -> Answered {
        let call = Call::post("resolve handle", "/contacts/resolve").repeat(Repeat::Safe);
        self.ask(call.json(&json!({"handle": handle}))?).await
    }

    /// Ends a contact, by its record's id or by its handle.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_contact(&self, contact_id: Option<&str>, handle: Option<&str>) -> Answered {
        let body = given([("contact_id", contact_id), ("handle", handle)]);
        self.ask(Call::post("remove contact", "/contacts/remove").json(&body)?).await
    }

    /// Asks somebody to become a contact.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn request_contact(&self, handle: &str, message: Option<&str>) -> Answered {
        let request = given([("recipient_handle", Some(handle)), ("message", message)]);
        let call = Call::post("create contact request", "/contacts/requests");
        self.ask(call.json(&json!({"contact_request": request}))?).await
    }

    /// Requests that wait for the person's answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn received_requests(&self, page: HumanPage) -> Answered {
        self.list("list received contact requests", "/contacts/requests", page).await
    }

    /// Requests that the person made.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn sent_requests(&self, status: Option<&str>, page: HumanPage) -> Answered {
        let call = Call::get("list sent contact requests", "/contacts/requests/sent").query("status", status);
        self.ask(paged(call, page)).await
    }

    /// Answers a request, or takes one back.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn answer_request(&self, id: &str, answer: RequestAnswer) -> Answered {
        let path = format!("/contacts/requests/{}", segment(id));
        self.ask(match answer {
            RequestAnswer::Approve => Call::post("approve contact request", format!("{path}/approve")),
            RequestAnswer::Reject => Call::post("reject contact request", format!("{path}/reject")),
            RequestAnswer::Cancel => Call::new("cancel contact request", Method::DELETE, path),
        })
        .await
    }

    /// Memories that the person may read.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn memories(&self, query: &HumanMemoryQuery) -> Answered {
        let call = Call::get("list memories", "/memories")
            .query("chat_room_id", query.chat_room_id.as_ref())
            .query("scope", query.scope.as_ref())
            .query("system", query.system.as_ref())
            .query("type", query.kind.as_ref())
            .query("segment", query.segment.as_ref())
            .query("content_query", query.content_query.as_ref())
            .query("page_size", query.page_size)
            .query("status", query.status.as_ref());
        self.ask(call).await
    }

    /// One memory.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn memory(&self, id: &str) -> Answered {
        self.ask(Call::get("get memory", memory_path(id, ""))).await
    }

    /// Says that a memory is out of date.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn supersede_memory(&self, id: &str) -> Answered {
        self.ask(Call::post("supersede memory", memory_path(id, "/supersede")).repeat(Repeat::Safe)).await
    }

    /// Hides a memory while keeping it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn archive_memory(&self, id: &str) -> Answered {
        self.ask(Call::post("archive memory", memory_path(id, "/archive")).repeat(Repeat::Safe)).await
    }

    /// Takes a memory out of the archive.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn restore_memory(&self, id: &str) -> Answered {
        self.ask(Call::post("restore memory", memory_path(id, "/restore")).repeat(Repeat::Safe)).await
    }

    /// Deletes a memory for good.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_memory(&self, id: &str) -> Result<(), ClientError> {
        self.tell(Call::new("delete memory", Method::DELETE, memory_path(id, ""))).await
    }

    /// A request whose answer may be empty.
    async fn tell(&self, call: Call) -> Result<(), ClientError> {
        self.transport.send(call.of_a_person()).await.map(drop)
    }
}

fn paged(call: Call, page: HumanPage) -> Call {
    call.query("page", page.page).query("page_size", page.page_size)
}

fn chat_path(chat: &str, rest: &str) -> String {
    format!("/chats/{}{rest}", segment(chat))
}

fn memory_path(id: &str, rest: &str) -> String {
    format!("/memories/{}{rest}", segment(id))
}

/// An object of what was given.
fn given<const N: usize>(fields: [(&str, Option<&str>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect()
}

//! Rooms and participants.

use bandstand_wire::ids::{IdentityId, RoomId};
use reqwest::Method;
use serde_json::json;

use super::RoomDraft;
use crate::client::call::Call;
use crate::client::model::{ChatRoom, Page, Participant};
use crate::client::{Client, ClientError};

impl Client {
    /// The rooms that the agent is in now, oldest first. Pages start at 1 and have at most 100 rows.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn rooms(&self, page: i64, page_size: i64) -> Result<Page<ChatRoom>, ClientError> {
        let call = Call::get("list rooms", "/chats").query("page", Some(page)).query("page_size", Some(page_size));
        self.whole(call).await
    }

    /// Creates a room; the agent is its owner.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_room(&self, draft: &RoomDraft) -> Result<ChatRoom, ClientError> {
        self.data(Call::post("create room", "/chats").json(&json!({"chat": draft}))?).await
    }

    /// One room.
    ///
    /// # Errors
    /// [`ClientError`]; 404 for a room that the agent is not in.
    pub async fn show_room(&self, room: RoomId) -> Result<ChatRoom, ClientError> {
        self.data(Call::get("read room", Self::room(room, ""))).await
    }

    /// Gives a room another title. Only its owner may.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn rename_room(&self, room: RoomId, title: &str) -> Result<ChatRoom, ClientError> {
        let call = Call::new("rename room", Method::PATCH, Self::room(room, ""));
        let call = call.repeat(crate::client::retry::Repeat::Safe);
        self.data(call.json(&json!({"chat": {"title": title}}))?).await
    }

    /// Who is in a room, all of them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn participants(&self, room: RoomId) -> Result<Vec<Participant>, ClientError> {
        self.data(Call::get("list participants", Self::room(room, "/participants"))).await
    }

    /// Adds somebody to a room, as `owner`, `admin` or `member`.
    ///
    /// # Errors
    /// [`ClientError`]; 409 for who is in it already.
    pub async fn add_participant(&self, room: RoomId, who: IdentityId, role: &str) -> Result<Participant, ClientError> {
        let body = json!({"participant": {"participant_id": who, "role": role}});
        self.data(Call::post("add participant", Self::room(room, "/participants")).json(&body)?).await
    }

    /// Removes somebody from a room; the agent itself, to leave it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_participant(&self, room: RoomId, who: IdentityId) -> Result<Participant, ClientError> {
        let path = Self::room(room, &format!("/participants/{who}"));
        self.data(Call::new("remove participant", Method::DELETE, path)).await
    }
}

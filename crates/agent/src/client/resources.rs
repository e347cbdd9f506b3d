//! Every operation of the Agent API.

mod contacts;
mod drafts;
mod memories;
mod messages;
mod rooms;
mod tasks;

pub use drafts::{
    ContextPlace, DraftMention, EventDraft, MemoryDraft, MemoryQuery, MessageDraft, MessageQuery, RoomDraft,
    TaskChange, TaskDraft,
};

pub(super) use memories::segment;

use serde::de::DeserializeOwned;

use super::call::Call;
use super::model::{Me, Page, Peer};
use super::{Client, ClientError};
use bandstand_wire::ids::RoomId;

impl Client {
    /// Sends a request and reads what is under `data`.
    async fn data<T: DeserializeOwned>(&self, call: Call) -> Result<T, ClientError> {
        self.transport.send(call).await?.data()
    }

    /// Sends a request and reads the whole answer.
    async fn whole<T: DeserializeOwned>(&self, call: Call) -> Result<T, ClientError> {
        self.transport.send(call).await?.read()
    }

    /// Who the key belongs to.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.data(Call::get("read the agent's profile", "/me")).await
    }

    /// Whom the agent may recruit; with a room, only those who are not in it. Pages start at 1 and have at most 100 rows.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn peers(
        &self,
        not_in_room: Option<RoomId>,
        page: i64,
        page_size: i64,
    ) -> Result<Page<Peer>, ClientError> {
        let call = Call::get("look up peers", "/peers")
            .query("not_in_chat", not_in_room)
            .query("page", Some(page))
            .query("page_size", Some(page_size));
        self.whole(call).await
    }
}

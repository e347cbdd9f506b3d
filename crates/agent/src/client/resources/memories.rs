//! Memories.

use serde_json::json;

use super::{MemoryDraft, MemoryQuery};
use crate::client::call::Call;
use crate::client::model::{Memory, MemoryPage};
use crate::client::retry::Repeat;
use crate::client::{Client, ClientError};

impl Client {
    /// Memories that the agent may read.
    ///
    /// # Errors
    /// [`ClientError`]; 403 where the plan has none.
    pub async fn memories(&self, query: &MemoryQuery) -> Result<MemoryPage, ClientError> {
        let call = Call::get("list memories", "/memories")
            .query("subject_id", query.subject_id.as_ref())
            .query("scope", query.scope.as_ref())
            .query("system", query.system.as_ref())
            .query("type", query.kind.as_ref())
            .query("segment", query.segment.as_ref())
            .query("content_query", query.content_query.as_ref())
            .query("page_size", query.page_size)
            .query("status", query.status.as_ref());
        self.whole(call).await
    }

    /// Stores a memory.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn store_memory(&self, draft: &MemoryDraft) -> Result<Memory, ClientError> {
        self.data(Call::post("store memory", "/memories").json(&json!({"memory": draft}))?).await
    }

    /// One memory. The id goes into the path as it is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn memory(&self, id: &str) -> Result<Memory, ClientError> {
        self.data(Call::get("get memory", format!("/memories/{}", segment(id)))).await
    }

    /// Something newer replaces a memory. Only the agent that stored it may say so.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn supersede_memory(&self, id: &str) -> Result<Memory, ClientError> {
        let path = format!("/memories/{}/supersede", segment(id));
        self.data(Call::post("supersede memory", path).repeat(Repeat::Safe)).await
    }

    /// Hides a memory while keeping it. Only the agent that stored it may do so.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn archive_memory(&self, id: &str) -> Result<Memory, ClientError> {
        let path = format!("/memories/{}/archive", segment(id));
        self.data(Call::post("archive memory", path).repeat(Repeat::Safe)).await
    }
}

/// A text as one segment of a path, whatever is in it.
pub(in crate::client) fn segment(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

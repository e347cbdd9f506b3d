//! Memories.

use bandstand_llm::registry::{Effect, ToolError};

use super::{AgentTools, tool_error};
use crate::client::model::{Memory, MemoryPage};
use crate::client::{ClientError, MemoryDraft, MemoryQuery};

const NO_ORGANIZATION: &str = "scope=\"organization\" was rejected: the agent's owner does not belong to an organization. \
                               Retry with scope=\"agent\" instead.";

/// What a model is told that wants to remember something about somebody without saying whom.
pub(super) const SUBJECT_NEEDED: &str = "scope=\"subject\" requires a subject_id: the UUID of whom the memory is about. \
                                         Without one, retry with scope=\"agent\"; never make up a UUID.";

impl AgentTools {
    /// Memories that the agent may read.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn list_memories(&self, query: &MemoryQuery) -> Result<MemoryPage, ToolError> {
        self.client().memories(query).await.map_err(memory_error)
    }

    /// Stores a memory.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn store_memory(&self, draft: &MemoryDraft) -> Result<Memory, ToolError> {
        if draft.scope.as_deref() == Some("subject") && draft.subject_id.is_none() {
            return Err(ToolError::failed(SUBJECT_NEEDED));
        }
        let memory = self.client().store_memory(draft).await.map_err(memory_error)?;
        self.turn().record(Effect::Act);
        Ok(memory)
    }

    /// One memory.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn get_memory(&self, id: &str) -> Result<Memory, ToolError> {
        self.client().memory(id).await.map_err(memory_error)
    }

    /// Something newer replaces a memory.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn supersede_memory(&self, id: &str) -> Result<Memory, ToolError> {
        let memory = self.client().supersede_memory(id).await.map_err(memory_error)?;
        self.turn().record(Effect::Act);
        Ok(memory)
    }

    /// Hides a memory while keeping it.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn archive_memory(&self, id: &str) -> Result<Memory, ToolError> {
        let memory = self.client().archive_memory(id).await.map_err(memory_error)?;
        self.turn().record(Effect::Act);
        Ok(memory)
    }
}

fn memory_error(error: ClientError) -> ToolError {
    if error.is_code("org_scope_requires_organization") {
        return ToolError::refused(NO_ORGANIZATION);
    }
    tool_error(error)
}

//! The room's task board.

use bandstand_llm::registry::{Effect, ToolError};

use super::{AgentTools, tool_error};
use crate::client::model::{Board, CursorPage, Task, TaskEvent};
use crate::client::{TaskChange, TaskDraft};

/// A board number may be written with one `#`.
pub(super) fn task_ref(text: &str) -> &str {
    text.strip_prefix('#').unwrap_or(text)
}

pub(super) const CHANGE_NEEDED: &str =
    "At least one of status, active_form, comment, subject, detail, or state must be set";
pub(super) const GOAL_NEEDED: &str = "At least one of goal_title or goal_summary must be set";

impl AgentTools {
    /// The board's tasks in the order of their numbers; active ones unless `state` says otherwise.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn list_tasks(
        &self,
        state: Option<&str>,
        cursor: Option<&str>,
        limit: Option<i64>,
    ) -> Result<CursorPage<Task>, ToolError> {
        self.client().tasks(self.room(), state, cursor, limit).await.map_err(tool_error)
    }

    /// Creates a task. Nobody works on it yet, not even its creator.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn create_task(&self, mut draft: TaskDraft) -> Result<Task, ToolError> {
        draft.supersedes_id = draft.supersedes_id.map(|id| task_ref(&id).to_owned());
        let task = self.client().create_task(self.room(), &draft).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(task)
    }

    /// One task in any state, by its id or its number; with its history if asked.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn get_task(&self, id: &str, with_history: bool) -> Result<Task, ToolError> {
        self.client().task(self.room(), task_ref(id), with_history).await.map_err(tool_error)
    }

    /// Changes a task. The first status joins the agent to it.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn update_task(&self, id: &str, change: &TaskChange) -> Result<Task, ToolError> {
        if *change == TaskChange::default() {
            return Err(ToolError::failed(CHANGE_NEEDED));
        }
        let task = self.client().update_task(self.room(), task_ref(id), change).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(task)
    }

    /// What happened to a task, oldest first.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn get_task_history(
        &self,
        id: &str,
        cursor: Option<&str>,
        limit: Option<i64>,
    ) -> Result<CursorPage<TaskEvent>, ToolError> {
        self.client().task_history(self.room(), task_ref(id), cursor, limit).await.map_err(tool_error)
    }

    /// The room's goal; with its history if asked.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn get_board(&self, with_history: bool) -> Result<Board, ToolError> {
        self.client().board(self.room(), with_history).await.map_err(tool_error)
    }

    /// Sets the room's goal. Only what is given changes.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn set_board(&self, goal_title: Option<&str>, goal_summary: Option<&str>) -> Result<Board, ToolError> {
        if goal_title.is_none() && goal_summary.is_none() {
            return Err(ToolError::failed(GOAL_NEEDED));
        }
        let board = self.client().set_board(self.room(), goal_title, goal_summary).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(board)
    }
}

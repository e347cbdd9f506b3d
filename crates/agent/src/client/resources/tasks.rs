//! A room's task board.

use bandstand_wire::ids::RoomId;
use reqwest::Method;
use serde_json::{Map, Value};

use super::memories::segment;
use super::{TaskChange, TaskDraft};
use crate::client::call::Call;
use crate::client::model::{Board, CursorPage, Task, TaskEvent};
use crate::client::{Client, ClientError};

impl Client {
    /// A room's tasks in the order of their numbers; active ones unless `state` says otherwise. At most 100 rows a page.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tasks(
        &self,
        room: RoomId,
        state: Option<&str>,
        cursor: Option<&str>,
        limit: Option<i64>,
    ) -> Result<CursorPage<Task>, ClientError> {
        let call = Call::get("list tasks", Self::room(room, "/tasks"))
            .query("state", state)
            .query("cursor", cursor)
            .query("limit", limit);
        self.whole(call).await
    }

    /// Creates a task. Nobody works on it yet.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_task(&self, room: RoomId, draft: &TaskDraft) -> Result<Task, ClientError> {
        self.data(Call::post("create task", Self::room(room, "/tasks")).json(draft)?).await
    }

    /// One task, by its id or its number, in any state; with its history if asked.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn task(&self, room: RoomId, task: &str, with_history: bool) -> Result<Task, ClientError> {
        let path = Self::room(room, &format!("/tasks/{}", segment(task)));
        self.data(Call::get("get task", path).query("include", with_history.then_some("history"))).await
    }

    /// Changes a task.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn update_task(&self, room: RoomId, task: &str, change: &TaskChange) -> Result<Task, ClientError> {
        let path = Self::room(room, &format!("/tasks/{}", segment(task)));
        self.data(Call::post("update task", path).json(change)?).await
    }

    /// What happened to a task, oldest first. At most 100 rows a page.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn task_history(
        &self,
        room: RoomId,
        task: &str,
        cursor: Option<&str>,
        limit: Option<i64>,
    ) -> Result<CursorPage<TaskEvent>, ClientError> {
        let path = Self::room(room, &format!("/tasks/{}/history", segment(task)));
        self.whole(Call::get("get task history", path).query("cursor", cursor).query("limit", limit)).await
    }

    /// A room's goal; with its history if asked.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn board(&self, room: RoomId, with_history: bool) -> Result<Board, ClientError> {
        let call = Call::get("get board", Self::room(room, "/board"));
        self.data(call.query("include", with_history.then_some("history"))).await
    }

    /// Sets a room's goal. Only what is given changes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn set_board(
        &self,
        room: RoomId,
        goal_title: Option<&str>,
        goal_summary: Option<&str>,
    ) -> Result<Board, ClientError> {
        let fields = [("goal_title", goal_title), ("goal_summary", goal_summary)];
        let body: Map<String, Value> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        self.data(Call::new("set board", Method::PUT, Self::room(room, "/board")).json(&body)?).await
    }
}

//! A room's board as it travels: tasks, histories, the goal, and what people see of the room because of it.

use bandstand_domain::board::{self, BoardEventKind, Overview, TaskCounts};
use bandstand_domain::room::Room;
use bandstand_domain::task::{self, Actor, HistoryRow, TaskEventKind, TaskStatus};
use bandstand_wire::ids::IdentityKind;
use bandstand_wire::rest::message::RawBox;
use bandstand_wire::rest::room::{RoomAgent, RoomOverview};
use bandstand_wire::rest::task::{Board, HistoryEvent, ShownHistory, Task, TaskActor, TaskAssignment};
use serde_json::value::RawValue;

/// A task.
pub fn task(task: &task::Task) -> Task {
    Task {
        id: task.id,
        number: task.number,
        chat_room_id: task.room,
        subject: task.subject.clone(),
        detail: task.detail.clone(),
        state: task.state.as_str(),
        overall_status: task.overall_status().as_str(),
        superseded_by_id: task.superseded_by,
        created_by: actor(&task.created_by),
        assignments: task.assignments.iter().map(assignment).collect(),
        started_at: task.started_at,
        completed_at: task.completed_at,
        inserted_at: task.inserted_at,
        updated_at: task.updated_at,
        history: None,
    }
}

fn assignment(assignment: &task::Assignment) -> TaskAssignment {
    TaskAssignment {
        assignee: actor(&assignment.assignee),
        status: assignment.status.as_str(),
        active_form: assignment.active_form.clone(),
        linked_native_id: assignment.linked_native_id.clone(),
        updated_at: assignment.updated_at,
    }
}

fn actor(actor: &Actor) -> TaskActor {
    TaskActor { id: actor.id, kind: actor.kind, name: actor.name.clone(), handle: actor.handle.clone() }
}

/// A row of a task's history.
pub fn task_event(row: &HistoryRow<TaskEventKind>) -> HistoryEvent {
    history_event(row, row.kind.as_str())
}

fn board_event(row: &HistoryRow<BoardEventKind>) -> HistoryEvent {
    history_event(row, row.kind.as_str())
}

fn history_event<K>(row: &HistoryRow<K>, event: &'static str) -> HistoryEvent {
    // We wrote it ourselves; were it damaged since, an empty change is what a client can read.
    let read = RawValue::from_string(row.payload.clone());
    let payload = read.or_else(|_| RawValue::from_string("{}".to_owned())).unwrap_or_default();
    HistoryEvent { event, actor: actor(&row.actor), payload: RawBox(payload), at: row.at }
}

/// The part of a task's history that the task shows itself.
pub fn task_history(rows: &[HistoryRow<TaskEventKind>], truncated: bool) -> ShownHistory {
    ShownHistory { history: rows.iter().map(task_event).collect(), history_truncated: truncated }
}

/// The part of a goal's trail that the board shows itself.
pub fn goal_trail(rows: &[HistoryRow<BoardEventKind>], truncated: bool) -> ShownHistory {
    ShownHistory { history: rows.iter().map(board_event).collect(), history_truncated: truncated }
}

/// A board.
pub fn board(board: &board::Board) -> Board {
    let goal = board.goal.as_ref();
    Board {
        chat_room_id: board.room,
        goal_title: goal.and_then(|goal| goal.title.clone()),
        goal_summary: goal.and_then(|goal| goal.summary.clone()),
        created_by: goal.map(|goal| actor(&goal.created_by)),
        updated_by: goal.map(|goal| actor(&goal.updated_by)),
        inserted_at: goal.map(|goal| goal.inserted_at),
        updated_at: goal.map(|goal| goal.updated_at),
        history: None,
    }
}

/// What people see of a room besides; `working` says whether one of its agents reports that it works just now.
pub fn overview(room: &Room, overview: &Overview, working: bool) -> RoomOverview {
    RoomOverview {
        description: room.description.clone(),
        agents: overview
            .agents
            .iter()
            .map(|agent| RoomAgent {
                id: agent.id,
                name: agent.name.clone(),
                kind: IdentityKind::Agent,
                handle: agent.handle.clone(),
            })
            .collect(),
        task_counts: counts(&overview.task_counts),
        work_status: overview.work_status(working).as_str(),
    }
}

fn counts(counts: &TaskCounts) -> bandstand_wire::rest::task::TaskCounts {
    bandstand_wire::rest::task::TaskCounts {
        pending: counts.of(TaskStatus::Pending),
        in_progress: counts.of(TaskStatus::InProgress),
        blocked: counts.of(TaskStatus::Blocked),
        in_review: counts.of(TaskStatus::InReview),
        failed: counts.of(TaskStatus::Failed),
        completed: counts.of(TaskStatus::Completed),
    }
}

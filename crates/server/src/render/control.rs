//! Executions as they travel.

use bandstand_domain::execution;
use bandstand_wire::rest::control::{Execution, ExecutionActor};

/// An agent's work in a room; `working` says whether it reports that it works just now.
pub fn execution(execution: &execution::Execution, working: bool) -> Execution {
    let stopped = execution.stopped.as_ref();
    Execution {
        id: execution.id,
        agent_id: execution.agent,
        chat_room_id: execution.room,
        status: match (stopped, working) {
            (Some(_), _) => "stopped",
            (None, true) => "working",
            (None, false) => "idle",
        },
        inserted_at: execution.since,
        stopped_at: stopped.map(|stopped| stopped.at),
        stopped_by: stopped.map(|stopped| ExecutionActor {
            id: stopped.by.id,
            kind: stopped.by.kind,
            name: stopped.by.name.clone(),
            handle: stopped.by.handle.clone(),
        }),
    }
}

//! Who works in a room just now.

use serde::Serialize;

use crate::ids::IdentityId;
use crate::time::Timestamp;

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// `reasoning`, `tool_call`, `memory` or `permission`.
    pub kind: String,
    /// The tool's name, for a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An agent at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkingAgent {
    /// Which agent.
    pub agent_id: IdentityId,
    /// Its name.
    pub name: String,
    /// What it does, when it said so.
    pub activity: Option<Activity>,
    /// Since when it works without a pause.
    pub since: Timestamp,
}

/// `activity_changed`, and the reply to a join of `room_activity`: all who work there, never a difference, so that a
/// lost one does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActivityChanged {
    /// All who work in the room.
    pub working_agents: Vec<WorkingAgent>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn the_json() {
        let agent = |activity| WorkingAgent {
            agent_id: IdentityId(Uuid::from_u128(7)),
            name: "Bob".into(),
            activity,
            since: Timestamp::from_micros(0),
        };
        let changed = ActivityChanged {
            working_agents: vec![
                agent(None),
                agent(Some(Activity { kind: "tool_call".into(), name: Some("search".into()) })),
                agent(Some(Activity { kind: "reasoning".into(), name: None })),
            ],
        };
        let row = |activity: &str| {
            format!(
                r#"{{"agent_id":"00000000-0000-0000-0000-000000000007","name":"Bob","activity":{activity},"since":"1970-01-01T00:00:00.000000Z"}}"#
            )
        };
        let rows = [row("null"), row(r#"{"kind":"tool_call","name":"search"}"#), row(r#"{"kind":"reasoning"}"#)];
        assert_eq!(serde_json::to_string(&changed).unwrap(), format!(r#"{{"working_agents":[{}]}}"#, rows.join(",")));
    }
}

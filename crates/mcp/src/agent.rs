//! An agent's tools: those of `bandstand-agent`, called in the room that the client names.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bandstand_agent::client::model::Me;
use bandstand_agent::client::{Client, ClientError, EventDraft};
use bandstand_agent::registry::{FailureKind, Faults, Registry, Stopped, Tool, ToolError, ToolInput, ToolOutcome};
use bandstand_agent::roster::Roster;
use bandstand_agent::tools::{AgentTools, Binding, PLATFORM_TOOLS, Toolbox, has_visible_content};
use bandstand_wire::ids::RoomId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::life::Life;

/// Rooms whose participants a session remembers.
const ROOMS: usize = 128;

/// All tools of an agent: the platform's, of which `band_send_event` takes every kind of event, since no adapter reports
/// calls and results of tools on behalf of an MCP client.
pub(crate) fn registry() -> &'static Registry<AgentTools> {
    static REGISTRY: LazyLock<Registry<AgentTools>> = LazyLock::new(build);
    &REGISTRY
}

fn build() -> Registry<AgentTools> {
    let platform = Toolbox::default();
    let mut registry = Registry::default();
    for fixed in &PLATFORM_TOOLS {
        let Some(tool) = platform.registry().get(fixed.name) else { continue };
        let tool = if fixed.name == "band_send_event" { send_event(tool) } else { tool.clone() };
        // The table names each once.
        let _ = registry.add(tool);
    }
    registry
}

/// What kind of event it is: `tool_call`, `tool_result`, `thought`, `error` or `task`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum EventType {
    Thought,
    Error,
    Task,
    ToolCall,
    ToolResult,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SendEvent {
    /// The text, for people.
    content: String,
    /// What kind of event it is: tool_call, tool_result, thought, error or task.
    message_type: EventType,
    /// Data that goes with it, for programs.
    metadata: Option<Map<String, Value>>,
}

impl ToolInput for SendEvent {
    fn check(&self, faults: &mut Faults) {
        if !has_visible_content(&self.content) {
            faults.at("content", "can't be blank");
        }
    }
}

fn send_event(platform: &Tool<AgentTools>) -> Tool<AgentTools> {
    let spec = platform.spec();
    Tool::new("band_send_event", |room: AgentTools, it: SendEvent| async move {
        let kind = match it.message_type {
            EventType::Thought => "thought",
            EventType::Error => "error",
            EventType::Task => "task",
            EventType::ToolCall => "tool_call",
            EventType::ToolResult => "tool_result",
        };
        let mut event = EventDraft::new(kind, it.content);
        event.metadata = it.metadata.map(Value::Object);
        room.send_event(event).await
    })
    .checked::<SendEvent>()
    .description(spec.description())
    .effect(spec.effect())
    .group(spec.group().to_owned())
}

/// The agent of a session.
pub(crate) struct Agent {
    client: Client,
    me: OnceCell<Me>,
    rosters: Mutex<Rosters>,
    pub(crate) life: Life,
}

/// Who is in each room, as known from earlier calls; the least recently used room is forgotten first.
#[derive(Default)]
struct Rosters {
    rooms: HashMap<RoomId, (Roster, u64)>,
    uses: u64,
}

impl Agent {
    pub(crate) fn new(client: Client, room: Option<RoomId>) -> Self {
        let life = Life::new(client.clone(), room);
        Self { client, me: OnceCell::new(), rosters: Mutex::default(), life }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn me(&self) -> Result<&Me, ClientError> {
        self.me.get_or_try_init(|| self.client.me()).await
    }

    /// Calls a tool in a room, or in none.
    pub(crate) async fn call(
        &self,
        name: &str,
        room: Option<RoomId>,
        arguments: Value,
    ) -> Result<ToolOutcome, Stopped> {
        let failed = |error: &dyn std::fmt::Display| {
            Ok(ToolOutcome::failure(FailureKind::Failed, format!("Error executing {name}: {error}")))
        };
        let me = match self.me().await {
            Ok(me) => me,
            Err(error) => return failed(&error),
        };
        // Tools that act on no room have no participants either.
        let room = room.unwrap_or(RoomId(Uuid::nil()));
        let binding = Binding { agent: Some(me.id), roster: self.roster(room), ..Binding::default() };
        let tools = AgentTools::new(self.client.clone(), room, binding);
        if name == "band_send_message" {
            // Nothing tells this session who came and went meanwhile.
            match tools.get_participants().await {
                Ok(_) => {}
                Err(ToolError::Stopped(stopped)) => return Err(stopped),
                Err(error) => return failed(&error),
            }
        }
        registry().call(tools, name, arguments).await
    }

    fn roster(&self, room: RoomId) -> Roster {
        let mut rosters = self.rosters.lock().unwrap_or_else(PoisonError::into_inner);
        rosters.uses += 1;
        let now = rosters.uses;
        let (roster, used) = rosters.rooms.entry(room).or_default();
        *used = now;
        let roster = roster.clone();
        if rosters.rooms.len() > ROOMS {
            let oldest = rosters.rooms.iter().min_by_key(|(_, (_, used))| *used).map(|(room, _)| *room);
            if let Some(oldest) = oldest {
                rosters.rooms.remove(&oldest);
            }
        }
        roster
    }
}

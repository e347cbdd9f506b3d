//! The platform's tools: their names, inputs, effects and handlers, in the order in which they are advertised.

mod inputs;

use std::sync::LazyLock;

use bandstand_llm::registry::{Effect, Registry, Tool, ToolError};
use serde_json::Value;

use super::AgentTools;
use crate::client::{EventDraft, MemoryDraft, MemoryQuery, TaskChange, TaskDraft};
use inputs::{
    AddContact, AddParticipant, CreateChatroom, CreateTask, GetBoard, GetParticipants, GetTask, GetTaskHistory,
    ListContactRequests, ListContacts, ListMemories, ListRoomFiles, ListTasks, LookupPeers, MemoryById, NoReply,
    ReadRoomFile, RemoveContact, RemoveParticipant, RespondContactRequest, SendEvent, SendMessage, SendRoomFile,
    SetBoard, StoreMemory, UpdateTask,
};

/// What is fixed about a platform tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformTool {
    /// Its name.
    pub name: &'static str,
    /// `chat`, `contacts`, `memory`, `files` or `tasks`.
    pub group: &'static str,
    /// What a successful call does to the turn.
    pub effect: Effect,
    /// Whether it acts on a room, so that an MCP client must name one.
    pub room_bound: bool,
    /// Whether it changes nothing.
    pub read_only: bool,
}

const fn tool(name: &'static str, group: &'static str, effect: Effect, room_bound: bool) -> PlatformTool {
    PlatformTool { name, group, effect, room_bound, read_only: false }
}

const fn read(name: &'static str, group: &'static str, room_bound: bool) -> PlatformTool {
    PlatformTool { name, group, effect: Effect::Observe, room_bound, read_only: true }
}

/// All platform tools, in the order in which they are advertised.
pub const PLATFORM_TOOLS: [PlatformTool; 28] = [
    tool("band_send_message", "chat", Effect::Reply, true),
    tool("band_send_event", "chat", Effect::Observe, true),
    tool("band_no_reply", "chat", Effect::Decline, false),
    tool("band_add_participant", "chat", Effect::Act, true),
    tool("band_remove_participant", "chat", Effect::Act, true),
    read("band_lookup_peers", "chat", true),
    read("band_get_participants", "chat", true),
    tool("band_create_chatroom", "chat", Effect::Act, false),
    read("band_list_contacts", "contacts", false),
    tool("band_add_contact", "contacts", Effect::Act, false),
    tool("band_remove_contact", "contacts", Effect::Act, false),
    read("band_list_contact_requests", "contacts", false),
    tool("band_respond_contact_request", "contacts", Effect::Act, false),
    read("band_list_memories", "memory", false),
    tool("band_store_memory", "memory", Effect::Act, false),
    read("band_get_memory", "memory", false),
    tool("band_supersede_memory", "memory", Effect::Act, false),
    tool("band_archive_memory", "memory", Effect::Act, false),
    read("band_list_room_files", "files", true),
    read("band_read_room_file", "files", true),
    tool("band_send_room_file", "files", Effect::Reply, true),
    read("band_list_tasks", "tasks", true),
    tool("band_create_task", "tasks", Effect::Act, true),
    read("band_get_task", "tasks", true),
    tool("band_update_task", "tasks", Effect::Act, true),
    read("band_get_task_history", "tasks", true),
    read("band_get_board", "tasks", true),
    tool("band_set_board", "tasks", Effect::Act, true),
];

/// What is fixed about the platform tool of a name.
pub fn platform_tool(name: &str) -> Option<&'static PlatformTool> {
    PLATFORM_TOOLS.iter().find(|tool| tool.name == name)
}

/// The platform tool that a name means: its own, or the spelling of an MCP client (`band-…`, `mcp__band__…`).
pub fn platform_name(name: &str) -> Option<&'static str> {
    let bare = name.strip_prefix("mcp__band__").or_else(|| name.strip_prefix("band-")).unwrap_or(name);
    platform_tool(bare).map(|tool| tool.name)
}

/// All platform tools, made once.
pub(super) fn registry() -> &'static Registry<AgentTools> {
    static REGISTRY: LazyLock<Registry<AgentTools>> = LazyLock::new(build);
    &REGISTRY
}

/// A result as a model is given it.
fn value(row: impl serde::Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(row).map_err(|error| ToolError::failed(format!("the result is no JSON: {error}")))
}

type Room = AgentTools;

fn build() -> Registry<AgentTools> {
    let mut registry = Registry::default();
    let tools = [chat(), contacts(), memories(), files(), tasks()].concat();
    for (fixed, tool) in PLATFORM_TOOLS.iter().zip(tools) {
        debug_assert_eq!(fixed.name, tool.spec().name(), "the table and the tools are in the same order");
        let mut tool = tool.platform().group(fixed.group).effect(fixed.effect);
        if fixed.read_only {
            tool = tool.read_only();
        }
        // The table names each once.
        let _ = registry.add(tool);
    }
    registry
}

fn chat() -> Vec<Tool<Room>> {
    vec![
        Tool::new("band_send_message", |room: Room, it: SendMessage| async move {
            value(room.send_message(&it.content, &it.mentions).await?)
        })
        .checked::<SendMessage>(),
        Tool::new("band_send_event", |room: Room, it: SendEvent| async move {
            let mut event = EventDraft::new(it.message_type.as_str(), it.content);
            event.metadata = it.metadata.map(Value::Object);
            value(room.send_event(event).await?)
        })
        .checked::<SendEvent>(),
        Tool::new("band_no_reply", |room: Room, it: NoReply| async move { value(room.no_reply(it.reason.as_deref())) }),
        Tool::new("band_add_participant", |room: Room, it: AddParticipant| async move {
            value(room.add_participant(&it.identifier, it.role.as_str()).await?)
        })
        .alias("name", "identifier"),
        Tool::new("band_remove_participant", |room: Room, it: RemoveParticipant| async move {
            value(room.remove_participant(&it.identifier).await?)
        })
        .alias("name", "identifier"),
        Tool::new("band_lookup_peers", |room: Room, it: LookupPeers| async move {
            value(room.lookup_peers(it.page, it.page_size).await?)
        }),
        Tool::new("band_get_participants", |room: Room, _: GetParticipants| async move {
            value(room.get_participants().await?)
        }),
        Tool::new("band_create_chatroom", |room: Room, it: CreateChatroom| async move {
            value(room.create_chatroom(it.task_id.as_deref()).await?)
        }),
    ]
}

fn contacts() -> Vec<Tool<Room>> {
    vec![
        Tool::new("band_list_contacts", |room: Room, it: ListContacts| async move {
            value(room.list_contacts(it.page, it.page_size).await?)
        }),
        Tool::new("band_add_contact", |room: Room, it: AddContact| async move {
            value(room.add_contact(&it.handle, it.message.as_deref()).await?)
        }),
        Tool::new("band_remove_contact", |room: Room, it: RemoveContact| async move {
            value(room.remove_contact(it.handle.as_deref(), it.contact_id.as_deref()).await?)
        }),
        Tool::new("band_list_contact_requests", |room: Room, it: ListContactRequests| async move {
            value(room.list_contact_requests(it.page, it.page_size, it.sent_status.as_str()).await?)
        }),
        Tool::new("band_respond_contact_request", |room: Room, it: RespondContactRequest| async move {
            let (handle, request) = (it.handle.as_deref(), it.request_id.as_deref());
            value(room.respond_contact_request(it.action.as_str(), handle, request).await?)
        }),
    ]
}

fn memories() -> Vec<Tool<Room>> {
    vec![
        Tool::new("band_list_memories", |room: Room, it: ListMemories| async move {
            let query = MemoryQuery {
                subject_id: it.subject_id,
                scope: it.scope.map(|word| word.as_str().to_owned()),
                system: it.system.map(|word| word.as_str().to_owned()),
                kind: it.kind.map(|word| word.as_str().to_owned()),
                segment: it.segment.map(|word| word.as_str().to_owned()),
                content_query: it.content_query,
                status: it.status.map(|word| word.as_str().to_owned()),
                page_size: Some(it.page_size),
            };
            value(room.list_memories(&query).await?)
        }),
        Tool::new("band_store_memory", |room: Room, it: StoreMemory| async move {
            let draft = MemoryDraft {
                content: it.content,
                system: it.system.as_str().to_owned(),
                kind: it.kind.as_str().to_owned(),
                segment: it.segment.as_str().to_owned(),
                thought: it.thought,
                scope: Some(it.scope.as_str().to_owned()),
                subject_id: it.subject_id,
                metadata: it.metadata,
            };
            value(room.store_memory(&draft).await?)
        })
        .checked::<StoreMemory>(),
        Tool::new("band_get_memory", |room: Room, it: MemoryById| async move {
            value(room.get_memory(&it.memory_id).await?)
        })
        .checked::<MemoryById>()
        .description("Reads one memory by its ID."),
        Tool::new("band_supersede_memory", |room: Room, it: MemoryById| async move {
            value(room.supersede_memory(&it.memory_id).await?)
        })
        .checked::<MemoryById>()
        .description(
            "Marks a memory as outdated or wrong. It is kept as a record, but no longer found by default. Only the \
             agent that stored it can do this.",
        ),
        Tool::new("band_archive_memory", |room: Room, it: MemoryById| async move {
            value(room.archive_memory(&it.memory_id).await?)
        })
        .checked::<MemoryById>()
        .description(
            "Hides a memory that still holds but is not needed now; people can bring it back. Only the agent that \
             stored it can do this.",
        ),
    ]
}

fn files() -> Vec<Tool<Room>> {
    vec![
        Tool::new("band_list_room_files", |room: Room, it: ListRoomFiles| async move {
            value(room.list_room_files(it.cursor.as_deref()).await?)
        }),
        Tool::new("band_read_room_file", |room: Room, it: ReadRoomFile| async move {
            Ok::<_, ToolError>(room.read_room_file(&it.file_id).await?.to_value())
        })
        .checked::<ReadRoomFile>(),
        Tool::new("band_send_room_file", |room: Room, it: SendRoomFile| async move {
            value(room.send_room_file(&it.content, &it.filename, &it.caption, &it.mentions).await?)
        }),
    ]
}

fn tasks() -> Vec<Tool<Room>> {
    vec![
        Tool::new("band_list_tasks", |room: Room, it: ListTasks| async move {
            let state = it.state.as_ref().map(inputs::TaskListState::as_str);
            value(room.list_tasks(state, it.cursor.as_deref(), it.limit).await?)
        }),
        Tool::new("band_create_task", |room: Room, it: CreateTask| async move {
            let draft = TaskDraft { subject: it.subject, detail: it.detail, supersedes_id: it.supersedes_id };
            value(room.create_task(draft).await?)
        }),
        Tool::new("band_get_task", |room: Room, it: GetTask| async move {
            value(room.get_task(&it.id, it.include.is_some()).await?)
        })
        .checked::<GetTask>(),
        Tool::new("band_update_task", |room: Room, it: UpdateTask| async move {
            let change = TaskChange {
                status: it.status.map(|word| word.as_str().to_owned()),
                active_form: it.active_form,
                comment: it.comment,
                subject: it.subject,
                detail: it.detail,
                state: it.state.map(|word| word.as_str().to_owned()),
            };
            value(room.update_task(&it.id, &change).await?)
        })
        .checked::<UpdateTask>(),
        Tool::new("band_get_task_history", |room: Room, it: GetTaskHistory| async move {
            value(room.get_task_history(&it.id, it.cursor.as_deref(), it.limit).await?)
        })
        .checked::<GetTaskHistory>(),
        Tool::new("band_get_board", |room: Room, it: GetBoard| async move {
            value(room.get_board(it.include.is_some()).await?)
        }),
        Tool::new("band_set_board", |room: Room, it: SetBoard| async move {
            value(room.set_board(it.goal_title.as_deref(), it.goal_summary.as_deref()).await?)
        })
        .checked::<SetBoard>(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_tool_of_the_table_is_there_in_its_order_and_with_its_effect() {
        let specs: Vec<_> = registry().specs().collect();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name()).collect();
        assert_eq!(names, PLATFORM_TOOLS.map(|tool| tool.name));
        for (spec, fixed) in specs.iter().zip(PLATFORM_TOOLS) {
            let told = (spec.group(), spec.effect(), spec.is_read_only());
            assert_eq!(told, (fixed.group, fixed.effect, fixed.read_only), "{}", fixed.name);
            assert!(!spec.description().is_empty(), "{}", fixed.name);
            for (name, property) in spec.schema().as_value()["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}.{name} is not described", fixed.name);
            }
        }
    }

    #[test]
    fn spellings_of_mcp_clients_mean_the_tool() {
        for name in ["band_no_reply", "band-band_no_reply", "mcp__band__band_no_reply"] {
            assert_eq!(platform_name(name), Some("band_no_reply"), "{name}");
        }
        for name in ["other-band_no_reply", "band-", "no_reply", "BAND_no_reply"] {
            assert_eq!(platform_name(name), None, "{name}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_in_the_words_of_the_contract() {
        for (tool, arguments, faults) in [
            ("band_send_message", json!({"content": "hi"}), "mentions: Field required"),
            ("band_send_message", json!({"content": "hi", "mentions": "@a"}), "mentions: Input should be a valid list"),
            (
                "band_send_message",
                json!({"content": " \u{200b}", "mentions": ["a"]}),
                "content: Value error, can't be blank",
            ),
            (
                "band_send_event",
                json!({"content": "x", "message_type": "tool_call"}),
                "message_type: Input should be 'thought', 'error' or 'task'",
            ),
            (
                "band_add_participant",
                json!({"name": "x", "role": "boss"}),
                "role: Input should be 'owner', 'admin' or 'member'",
            ),
            ("band_lookup_peers", json!({"page": 0}), "page: Input should be greater than or equal to 1"),
            ("band_lookup_peers", json!({"page_size": 101}), "page_size: Input should be less than or equal to 100"),
            (
                "band_list_memories",
                json!({"system": "x"}),
                "system: Input should be 'sensory', 'working' or 'long_term'",
            ),
            ("band_get_board", json!({"include": "x"}), "include: Input should be 'history'"),
            (
                "band_get_memory",
                json!({"memory_id": "a/b"}),
                "memory_id: Value error, ID must contain only ASCII letters, digits, underscores or hyphens",
            ),
            (
                "band_get_task",
                json!({"id": "##1"}),
                "id: Value error, ID must contain only ASCII letters, digits, underscores or hyphens",
            ),
            (
                "band_update_task",
                json!({"id": "1", "status": null}),
                ": Value error, At least one of status, active_form, comment, subject, detail, or state must be set",
            ),
            ("band_set_board", json!({}), ": Value error, At least one of goal_title or goal_summary must be set"),
            (
                "band_store_memory",
                json!({"content": "c", "thought": "t", "system": "working", "type": "iconic", "segment": "user",
                    "scope": "agent"}),
                ": Value error, 1 validation issue(s): type `iconic` is not valid for system `working`; expected one \
                 of: episodic, semantic, procedural (type)",
            ),
        ] {
            let text = registry().get(tool).unwrap().validate(arguments).unwrap_err().to_string();
            assert_eq!(text, format!("Invalid arguments for {tool}: {faults}"));
        }
        let fine = json!({"id": "#1", "comment": "x"});
        assert!(registry().get("band_update_task").unwrap().validate(fine).is_ok());
        let subject = json!({"content": "c", "thought": "t", "system": "working", "type": "semantic", "segment": "user",
            "scope": "subject"});
        let text = registry().get("band_store_memory").unwrap().validate(subject).unwrap_err().to_string();
        assert!(text.contains(": Value error, scope=\"subject\" requires a subject_id"), "{text}");
    }
}

//! What agents do, with the key of an agent.

use bandstand_wire::page::{CursorMetadata, DualMetadata, OffsetMetadata};
use bandstand_wire::rest::contact::{AgentContact, AgentContactRequests, ContactRemoved, ContactRequestAction};
use bandstand_wire::rest::identity::{AgentMe, Peer};
use bandstand_wire::rest::memory::AgentMemory;
use bandstand_wire::rest::message::{Attachment, ChatMessage, EventCreated, MessageSent, MessageStatusChange};
use bandstand_wire::rest::participant::ChatParticipant;
use bandstand_wire::rest::room::{AgentChatRoomListItem, ChatRoom};
use bandstand_wire::rest::task::{Board, HistoryEvent, Task};
use bandstand_wire::rest::{Data, Page, PageWithMeta, request, words};

use crate::http::agent::{
    activity, board, contacts, context, events, me, memories, messages, participants, peers, rooms, tasks,
};
use crate::http::operation::{Access, Noun, Operation, delete, get, group, patch, post, put};
use crate::http::operations::shared;
use crate::http::parameter::{
    cursor, cursor_or_numbered, cursor_or_numbered_up_to, numbered, path, uuid, word, words as some_of,
};
use crate::http::{deliveries, files};

/// What the routes of memories share.
const MEMORIES_OFF: &str = "403 while memories are turned off on this server.";

/// What the routes of a board share.
const TASKS_OFF: &str = "404 while tasks are turned off on this server.";

pub(super) fn operations() -> Vec<Operation> {
    [
        group(
            "agent:identity",
            Access::Agent,
            vec![get("/api/v1/agent/me", "getAgentMe", me::show).summary("Who am I?").replies::<Data<AgentMe>>(200)],
        ),
        group(
            "agent:peers",
            Access::Agent,
            vec![
                get("/api/v1/agent/peers", "listAgentPeers", peers::list)
                    .summary("Whom can I recruit?")
                    .description("The agent's owner, its siblings, and agents that are open to all; then contacts.")
                    .with([uuid("not_in_chat", "Leaves out who is in this room.")])
                    .with(numbered(20))
                    .replies::<Page<Peer, OffsetMetadata>>(200),
            ],
        ),
        group("agent:contacts", Access::Agent, contact_operations()),
        group("agent:memories", Access::Agent, memory_operations()),
        group(
            "agent:chats",
            Access::Agent,
            vec![
                get("/api/v1/agent/chats", "listAgentChats", rooms::list)
                    .summary("Which rooms am I in?")
                    .description("Oldest first.")
                    .with(numbered(20))
                    .with([some_of("include", "What to show besides.", &["participants"])])
                    .replies::<Page<AgentChatRoomListItem, OffsetMetadata>>(200)
                    .yields(Noun::Room, "/data/0/id"),
                post("/api/v1/agent/chats", "createAgentChat", rooms::create)
                    .once()
                    .summary("Open a room.")
                    .description("The agent owns it. An empty body means a room without a title.")
                    .may_take::<request::NewRoom>()
                    .replies::<Data<ChatRoom>>(201)
                    .yields(Noun::Room, "/data/id"),
                get("/api/v1/agent/chats/{id}", "getAgentChat", rooms::show)
                    .summary("A room.")
                    .replies::<Data<ChatRoom>>(200)
                    .errors(&[404]),
                patch("/api/v1/agent/chats/{id}", "renameAgentChat", rooms::rename)
                    .summary("Rename a room.")
                    .takes::<request::RoomTitle>()
                    .replies::<Data<ChatRoom>>(200)
                    .errors(&[404]),
            ],
        ),
        group(
            "agent:participants",
            Access::Agent,
            vec![
                get("/api/v1/agent/chats/{chat_id}/participants", "listAgentChatParticipants", participants::list)
                    .summary("Who is in the room with me?")
                    .replies::<Data<Vec<ChatParticipant>>>(200)
                    .errors(&[404])
                    .yields(Noun::Identity, "/data/0/id"),
                post("/api/v1/agent/chats/{chat_id}/participants", "addAgentChatParticipant", participants::add)
                    .once()
                    .summary("Recruit a peer.")
                    .takes::<request::NewParticipant>()
                    .replies::<Data<ChatParticipant>>(201)
                    .errors(&[404, 409])
                    .yields(Noun::Identity, "/data/id"),
                delete(
                    "/api/v1/agent/chats/{chat_id}/participants/{id}",
                    "removeAgentChatParticipant",
                    participants::remove,
                )
                .summary("Remove a participant, or leave.")
                .replies::<Data<ChatParticipant>>(200)
                .errors(&[404]),
            ],
        ),
        group(
            "agent:context",
            Access::Agent,
            vec![
                get("/api/v1/agent/chats/{chat_id}/context", "getAgentChatContext", context::list)
                    .summary("What do I have to remember of this room?")
                    .description("All that the agent sent and all texts that mention it, oldest first.")
                    .with(cursor_or_numbered(50))
                    .replies::<PageWithMeta<ChatMessage, DualMetadata>>(200)
                    .errors(&[404]),
            ],
        ),
        group("agent:messages", Access::Agent, message_operations()),
        group(
            "agent:events",
            Access::Agent,
            vec![
                post("/api/v1/agent/chats/{chat_id}/events", "createAgentChatEvent", events::post)
                    .once()
                    .summary("Record what I am doing.")
                    .description("Events are for people who look on; no agent hears them.")
                    .takes::<request::NewEvent>()
                    .replies::<Data<EventCreated>>(201)
                    .errors(&[404]),
            ],
        ),
        group(
            "agent:activity",
            Access::Agent,
            vec![
                post("/api/v1/agent/chats/{chat_id}/activity", "reportAgentChatActivity", activity::report)
                    .summary("Report whether I work.")
                    .description(
                        "The report expires by itself. The answer says what counts: a stopped agent does not work.",
                    )
                    .takes::<request::ActivityReport>()
                    .replies::<Data<activity::ActivityState>>(200)
                    .errors(&[404]),
            ],
        ),
        group("agent:tasks", Access::Agent, task_operations()),
        group(
            "agent:files",
            Access::Agent,
            vec![
                shared::upload(put(
                    "/api/v1/agent/chats/{chat_id}/files",
                    "uploadAgentChatFile",
                    files::upload_by_agent,
                ))
                .replies::<Data<Attachment>>(201)
                .replies::<Data<Attachment>>(200),
                shared::download(get(
                    "/api/v1/agent/chats/{chat_id}/files/{id}",
                    "downloadAgentChatFile",
                    files::download_by_agent,
                )),
            ],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn contact_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/agent/contacts", "listAgentContacts", contacts::list)
            .summary("Whom do I know?")
            .with(numbered(20))
            .replies::<Page<AgentContact, OffsetMetadata>>(200),
        post("/api/v1/agent/contacts/add", "addAgentContact", contacts::add)
            .once()
            .summary("Ask somebody to become a contact.")
            .description("When it has asked already, its request is approved and is the answer.")
            .takes::<request::NewContact>()
            .replies::<Data<ContactRequestAction>>(201)
            .errors(&[404, 409]),
        post("/api/v1/agent/contacts/remove", "removeAgentContact", contacts::remove)
            .summary("End a contact, for both.")
            .takes::<request::ContactTarget>()
            .replies::<Data<ContactRemoved>>(200)
            .errors(&[404]),
        get("/api/v1/agent/contacts/requests", "listAgentContactRequests", contacts::requests)
            .summary("Who asks me, and whom did I ask?")
            .description("The same page of both directions. Received requests are listed as long as they are pending.")
            .with([word::<words::ContactRequestFilter>("sent_status", "Which of the sent ones.").default("pending")])
            .with(numbered(20))
            .replies::<AgentContactRequests>(200),
        post("/api/v1/agent/contacts/requests/respond", "respondToAgentContactRequest", contacts::respond)
            .once()
            .summary("Answer a contact request, or take one back.")
            .takes::<request::ContactRequestResponse>()
            .replies::<Data<ContactRequestAction>>(200)
            .errors(&[404, 409]),
    ]
}

fn memory_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/agent/memories", "listAgentMemories", memories::list)
            .summary("What do I remember?")
            .description(MEMORIES_OFF)
            .with(cursor_or_numbered_up_to(20, 50))
            .with([
                uuid("subject_id", "Only what is about this one."),
                word::<words::MemoryScopeFilter>("scope", "Only what is for these."),
                word::<words::MemoryOwner>("memory_scope", "One's own, or what the organization shares.").default("me"),
            ])
            .with(shared::memory_filters())
            .replies::<PageWithMeta<AgentMemory, DualMetadata>>(200)
            .yields(Noun::Memory, "/data/0/id"),
        post("/api/v1/agent/memories", "createAgentMemory", memories::create)
            .once()
            .summary("Remember something.")
            .description(MEMORIES_OFF)
            .takes::<request::NewMemory>()
            .replies::<Data<AgentMemory>>(201)
            .yields(Noun::Memory, "/data/id"),
        get("/api/v1/agent/memories/{id}", "getAgentMemory", memories::show)
            .summary("A memory.")
            .description(MEMORIES_OFF)
            .replies::<Data<AgentMemory>>(200)
            .errors(&[404]),
        post("/api/v1/agent/memories/{id}/supersede", "supersedeAgentMemory", memories::supersede)
            .summary("It no longer holds.")
            .description(MEMORIES_OFF)
            .replies::<Data<AgentMemory>>(200)
            .errors(&[404]),
        post("/api/v1/agent/memories/{id}/archive", "archiveAgentMemory", memories::archive)
            .summary("It is not needed now.")
            .description(MEMORIES_OFF)
            .replies::<Data<AgentMemory>>(200)
            .errors(&[404]),
    ]
}

fn message_operations() -> Vec<Operation> {
    const STOPPED: &str = "204 while the agent is stopped in this room.";
    vec![
        get("/api/v1/agent/chats/{chat_id}/messages", "listAgentMessages", messages::list)
            .summary("What was said to me?")
            .description("The messages that mention the agent, by what became of them.")
            .with([
                word::<words::DeliveryFilter>("status", "What became of them; left out, all that are not done."),
                word::<words::SortOrder>("sort_order", "`desc` goes with cursors only.").default("asc"),
            ])
            .with(cursor_or_numbered(20))
            .replies::<Page<ChatMessage, messages::ListMetadata>>(200)
            .errors(&[404])
            .yields(Noun::Message, "/data/0/id"),
        post("/api/v1/agent/chats/{chat_id}/messages", "createAgentChatMessage", messages::post)
            .once()
            .summary("Say something to somebody.")
            .description("403 while the agent is stopped in this room.")
            .takes::<request::NewMessage>()
            .replies::<Data<MessageSent>>(201)
            .errors(&[404])
            .yields(Noun::Message, "/data/id"),
        get("/api/v1/agent/chats/{chat_id}/messages/next", "getAgentNextMessage", messages::next)
            .summary("What do I do next?")
            .description(
                "The oldest message that is not done; 204 when there is none, and while the agent is stopped here.",
            )
            .replies::<Data<ChatMessage>>(200)
            .replies_nothing()
            .errors(&[404])
            .yields(Noun::Message, "/data/id"),
        post(
            "/api/v1/agent/chats/{chat_id}/messages/{id}/processing",
            "markAgentMessageProcessing",
            messages::processing,
        )
        .once()
        .summary("I start to work on this.")
        .description(STOPPED)
        .replies::<Data<MessageStatusChange>>(200)
        .replies_nothing()
        .errors(&[404]),
        post("/api/v1/agent/chats/{chat_id}/messages/{id}/processed", "markAgentMessageProcessed", messages::processed)
            .once()
            .summary("I am done with this.")
            .description(STOPPED)
            .may_take::<request::Finished>()
            .replies::<Data<MessageStatusChange>>(200)
            .replies_nothing()
            .errors(&[404]),
        post("/api/v1/agent/chats/{chat_id}/messages/{id}/failed", "markAgentMessageFailed", messages::failed)
            .once()
            .summary("I could not do this.")
            .description(STOPPED)
            .takes::<request::Failure>()
            .replies::<Data<MessageStatusChange>>(200)
            .replies_nothing()
            .errors(&[404]),
        shared::deliveries(get(
            "/api/v1/agent/chats/{chat_id}/messages/{id}/deliveries",
            "listAgentMessageDeliveries",
            deliveries::of_agent,
        ))
        .description("All of what the agent sent, its own part of what it received."),
    ]
}

fn task_operations() -> Vec<Operation> {
    let task = || path("id", "The task: its id or its number in the room.");
    let history =
        || word::<words::HistoryInclude>("include", "What to show besides: the newest 100 rows of its history.");
    vec![
        get("/api/v1/agent/chats/{chat_id}/tasks", "listChatTasks", tasks::list)
            .summary("What is on the board?")
            .description(TASKS_OFF)
            .with([word::<words::TaskStateFilter>("state", "Which tasks.").default("active")])
            .with(cursor(50))
            .replies::<Page<Task, CursorMetadata>>(200)
            .errors(&[404])
            .yields(Noun::Task, "/data/0/id"),
        post("/api/v1/agent/chats/{chat_id}/tasks", "createChatTask", tasks::create)
            .once()
            .summary("Put a task on the board.")
            .description(TASKS_OFF)
            .takes::<request::NewTask>()
            .replies::<Data<Task>>(201)
            .errors(&[404])
            .yields(Noun::Task, "/data/id"),
        get("/api/v1/agent/chats/{chat_id}/tasks/{id}", "getChatTask", tasks::show)
            .summary("A task.")
            .description(TASKS_OFF)
            .with([task(), history()])
            .replies::<Data<Task>>(200)
            .errors(&[404]),
        post("/api/v1/agent/chats/{chat_id}/tasks/{id}", "updateChatTask", tasks::update)
            .once()
            .summary("Say how far a task is, or change it.")
            .description(TASKS_OFF)
            .with([task()])
            .takes::<request::TaskUpdate>()
            .replies::<Data<Task>>(200)
            .errors(&[404]),
        get("/api/v1/agent/chats/{chat_id}/tasks/{id}/history", "getChatTaskHistory", tasks::history)
            .summary("What was done to a task?")
            .description(TASKS_OFF)
            .with([task()])
            .with(cursor(50))
            .replies::<Page<HistoryEvent, CursorMetadata>>(200)
            .errors(&[404]),
        get("/api/v1/agent/chats/{chat_id}/board", "getChatBoard", board::show)
            .summary("What is the room's goal?")
            .description(TASKS_OFF)
            .with([history()])
            .replies::<Data<Board>>(200)
            .errors(&[404]),
        put("/api/v1/agent/chats/{chat_id}/board", "putChatBoard", board::set)
            .once()
            .summary("Set the room's goal, or a part of it.")
            .description(TASKS_OFF)
            .takes::<request::Goal>()
            .replies::<Data<Board>>(200)
            .errors(&[404]),
    ]
}

//! What people do, with the key of a user.

use bandstand_wire::page::{CursorMetadata, DualMetadata, OffsetMetadata};
use bandstand_wire::rest::bulk_deletion::BulkDeletionJob;
use bandstand_wire::rest::contact::{Contact, ContactRemoved, ContactRequest, ContactRequestAction, ResolvedEntity};
use bandstand_wire::rest::control::{Execution, Interrupted, RoomAgentsState};
use bandstand_wire::rest::dead_letter::{DeadLetter, Redelivered};
use bandstand_wire::rest::identity::{AgentRegistration, DeletedAgent, MyAgent, MyAgentsMetadata, Peer, UserDetails};
use bandstand_wire::rest::memory::UserMemory;
use bandstand_wire::rest::message::{Attachment, ChatMessage, MessageSent};
use bandstand_wire::rest::participant::{ChatParticipant, ChatParticipantDetails};
use bandstand_wire::rest::room::{MeChatRoom, MeChatRoomDetail, MeChatRoomListItem};
use bandstand_wire::rest::words::Words;
use bandstand_wire::rest::{Data, Page, PageWithMeta, request, words};

use crate::http::human::{
    agents, bulk_deletions, contacts, control, dead_letters, memories, messages, participants, peers, profile, rooms,
};
use crate::http::operation::{Access, Noun, Operation, delete, get, group, patch, post, put};
use crate::http::operations::shared;
use crate::http::parameter::{
    cursor, cursor_or_numbered, cursor_or_numbered_up_to, flag, moment, numbered, text, uuid, word, words as some_of,
};
use crate::http::{deliveries, files};

/// What the routes of memories share.
const MEMORIES_OFF: &str = "403 while memories are turned off on this server.";

pub(super) fn operations() -> Vec<Operation> {
    [
        group(
            "human:profile",
            Access::User,
            vec![
                get("/api/v1/me/profile", "getMyProfile", profile::show)
                    .summary("Who am I?")
                    .replies::<Data<UserDetails>>(200),
                put("/api/v1/me/profile", "updateMyProfile", profile::update)
                    .summary("Change my name.")
                    .takes::<request::Profile>()
                    .replies::<Data<UserDetails>>(200),
            ],
        ),
        group("human:agents", Access::User, agent_operations()),
        group(
            "human:bulk",
            Access::User,
            vec![
                post("/api/v1/me/agents/bulk-delete", "bulkDeleteMyAgents", bulk_deletions::agents)
                    .once()
                    .summary("Delete many agents.")
                    .description(
                        "Accepted at once, carried out in the background; `location` says where to look how far it is.",
                    )
                    .takes::<request::BulkDeleteAgents>()
                    .replies::<Data<BulkDeletionJob>>(202)
                    .yields(Noun::BulkDeletion, "/data/id"),
                post("/api/v1/me/chats/bulk-delete", "bulkDeleteMyChats", bulk_deletions::rooms)
                    .once()
                    .summary("Delete many rooms.")
                    .description(
                        "Accepted at once, carried out in the background; `location` says where to look how far it is.",
                    )
                    .takes::<request::BulkDeleteRooms>()
                    .replies::<Data<BulkDeletionJob>>(202)
                    .yields(Noun::BulkDeletion, "/data/id"),
                get("/api/v1/me/bulk-deletions/{id}", "showMyBulkDeletion", bulk_deletions::show)
                    .summary("How far is a bulk deletion?")
                    .description("422 when the id is no UUID.")
                    .replies::<Data<BulkDeletionJob>>(200)
                    .errors(&[404]),
            ],
        ),
        group(
            "human:peers",
            Access::User,
            vec![
                get("/api/v1/me/peers", "listMyPeers", peers::list)
                    .summary("Whom can I invite?")
                    .description("One's own agents, those that are open to all, one's organization; then contacts.")
                    .with([
                        uuid("not_in_chat", "Leaves out who is in this room."),
                        word::<words::IdentityKind>("type", "Only people, or only agents."),
                    ])
                    .with(numbered(20))
                    .replies::<Page<Peer, OffsetMetadata>>(200),
            ],
        ),
        group("human:contacts", Access::User, contact_operations()),
        group("human:chats", Access::User, room_operations()),
        group("human:messages", Access::User, message_operations()),
        group(
            "human:participants",
            Access::User,
            vec![
                get("/api/v1/me/chats/{chat_id}/participants", "listMyChatParticipants", participants::list)
                    .summary("Who is in the room?")
                    .with([word::<words::IdentityKind>("participant_type", "Only people, or only agents.")])
                    .with(cursor_or_numbered(20))
                    .replies::<Page<ChatParticipantDetails, DualMetadata>>(200)
                    .errors(&[404])
                    .yields(Noun::Identity, "/data/0/id"),
                post("/api/v1/me/chats/{chat_id}/participants", "addMyChatParticipant", participants::add)
                    .once()
                    .summary("Invite a peer.")
                    .takes::<request::NewParticipant>()
                    .replies::<Data<ChatParticipant>>(201)
                    .errors(&[404, 409])
                    .yields(Noun::Identity, "/data/id"),
                delete("/api/v1/me/chats/{chat_id}/participants/{id}", "removeMyChatParticipant", participants::remove)
                    .summary("Remove a participant, or leave.")
                    .replies::<Data<ChatParticipant>>(200)
                    .errors(&[404]),
            ],
        ),
        group(
            "human:files",
            Access::User,
            vec![
                shared::upload(put("/api/v1/me/chats/{chat_id}/files", "uploadMyChatFile", files::upload_by_user))
                    .replies::<Data<Attachment>>(201)
                    .replies::<Data<Attachment>>(200),
                shared::download(get(
                    "/api/v1/me/chats/{chat_id}/files/{id}",
                    "downloadMyChatFile",
                    files::download_by_user,
                )),
            ],
        ),
        group(
            "human:control",
            Access::User,
            vec![
                post("/api/v1/me/chats/{chat_id}/agents/stop", "stopMyChatAgents", control::stop)
                    .summary("Stop the room's agents.")
                    .replies::<Data<RoomAgentsState>>(200)
                    .errors(&[404]),
                post("/api/v1/me/chats/{chat_id}/agents/play", "playMyChatAgents", control::play)
                    .summary("Let the room's agents go on.")
                    .description("They hear what they missed.")
                    .replies::<Data<RoomAgentsState>>(200)
                    .errors(&[404]),
                get("/api/v1/me/agents/{id}/executions", "listMyAgentExecutions", control::executions)
                    .summary("What is my agent's work, room by room?")
                    .with(cursor(100))
                    .replies::<Page<Execution, CursorMetadata>>(200)
                    .errors(&[404])
                    .yields(Noun::Execution, "/data/0/id"),
                post(
                    "/api/v1/me/agents/{id}/executions/{execution_id}/interrupt",
                    "interruptMyAgentExecution",
                    control::interrupt,
                )
                .summary("Make my agent give up its turn.")
                .replies::<Data<Interrupted>>(200)
                .errors(&[404]),
            ],
        ),
        group("human:dead letters", Access::User, dead_letter_operations()),
        group("human:memories", Access::User, memory_operations()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn agent_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/me/agents", "listMyAgents", agents::list)
            .summary("Which agents are mine?")
            .with([
                text("name", "Only those whose name has this in it."),
                flag("is_external", "Every agent here runs elsewhere, so `false` finds none."),
                flag("listed_in_directory", "Only those in the public directory, or only the others."),
                word::<words::AgentSort>("sort", "By what.").default("inserted_at"),
                word::<words::SortOrder>("order", "Where to begin.").default("desc"),
            ])
            .with(cursor_or_numbered(20))
            .replies::<Page<MyAgent, MyAgentsMetadata>>(200)
            .yields(Noun::Agent, "/data/0/id"),
        post("/api/v1/me/agents/register", "registerMyAgent", agents::register)
            .once()
            .summary("Register an agent.")
            .description("Its key is in this reply and nowhere else.")
            .takes::<request::NewAgent>()
            .replies::<Data<AgentRegistration>>(201)
            .yields(Noun::Agent, "/data/agent/id"),
        delete("/api/v1/me/agents/{id}", "deleteMyAgent", agents::delete)
            .summary("Delete an agent.")
            .description("Its key stops working and it leaves all rooms.")
            .with([flag("force", "Even if it worked somewhere.").default(false)])
            .replies::<Data<DeletedAgent>>(200)
            .errors(&[404]),
    ]
}

fn contact_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/me/contacts", "listMyContacts", contacts::list)
            .summary("Whom do I know?")
            .with(numbered(20))
            .replies::<Page<Contact, OffsetMetadata>>(200),
        post("/api/v1/me/contacts/remove", "removeMyContact", contacts::remove)
            .summary("End a contact, for both.")
            .takes::<request::ContactTarget>()
            .replies::<Data<ContactRemoved>>(200)
            .errors(&[404]),
        post("/api/v1/me/contacts/resolve", "resolveHandle", contacts::resolve)
            .summary("Who has this handle?")
            .takes::<request::HandleQuestion>()
            .replies::<Data<ResolvedEntity>>(200)
            .errors(&[404]),
        get("/api/v1/me/contacts/requests", "listReceivedContactRequests", contacts::received)
            .summary("Who asks me?")
            .description("As long as it is pending.")
            .with(numbered(20))
            .replies::<Page<ContactRequest, OffsetMetadata>>(200)
            .yields(Noun::ContactRequest, "/data/0/id"),
        post("/api/v1/me/contacts/requests", "createContactRequest", contacts::create)
            .once()
            .summary("Ask somebody to become a contact.")
            .description("When it has asked already, its request is approved and is the answer.")
            .takes::<request::NewContactRequest>()
            .replies::<Data<ContactRequest>>(201)
            .errors(&[404, 409])
            .yields(Noun::ContactRequest, "/data/id"),
        get("/api/v1/me/contacts/requests/sent", "listSentContactRequests", contacts::sent)
            .summary("Whom did I ask?")
            .with([word::<words::ContactRequestFilter>("status", "Only these.").default("all")])
            .with(numbered(20))
            .replies::<Page<ContactRequest, OffsetMetadata>>(200)
            .yields(Noun::ContactRequest, "/data/0/id"),
        post("/api/v1/me/contacts/requests/{id}/approve", "approveContactRequest", contacts::approve)
            .once()
            .summary("Become contacts.")
            .replies::<Data<ContactRequestAction>>(200)
            .errors(&[404, 409]),
        post("/api/v1/me/contacts/requests/{id}/reject", "rejectContactRequest", contacts::reject)
            .once()
            .summary("Do not become contacts.")
            .replies::<Data<ContactRequestAction>>(200)
            .errors(&[404, 409]),
        delete("/api/v1/me/contacts/requests/{id}", "cancelContactRequest", contacts::cancel)
            .summary("Take my request back.")
            .replies::<Data<ContactRequestAction>>(200)
            .errors(&[404, 409]),
    ]
}

fn room_operations() -> Vec<Operation> {
    let shown = ["agent_rooms", "participants", "last_message", "membership", "total_count"];
    vec![
        get("/api/v1/me/chats", "listMyChats", rooms::list)
            .summary("Which rooms can I see?")
            .with(cursor_or_numbered(20))
            .with([
                word::<words::RoomStatus>("status", "Only these."),
                word::<words::RoomKind>("type", "Only these."),
                word::<words::RoomSort>("sort_by", "By what.").default("inserted_at"),
                word::<words::SortOrder>("order", "Where to begin.").default("desc"),
                some_of("include", "What to show besides; with `agent_rooms`, the rooms of one's agents too.", &shown),
            ])
            .replies::<Page<MeChatRoomListItem, rooms::ListMetadata>>(200)
            .yields(Noun::Room, "/data/0/id"),
        post("/api/v1/me/chats", "createMyChatRoom", rooms::create)
            .once()
            .summary("Open a room.")
            .description("The caller owns it. An empty body means a room without a title.")
            .may_take::<request::NewRoom>()
            .replies::<Data<MeChatRoom>>(201)
            .yields(Noun::Room, "/data/id"),
        get("/api/v1/me/chats/{id}", "getMyChatRoom", rooms::show)
            .summary("A room.")
            .with([some_of("include", "What to show besides.", &["message_counts"])])
            .replies::<Data<MeChatRoomDetail>>(200)
            .errors(&[404]),
        patch("/api/v1/me/chats/{id}", "renameMyChatRoom", rooms::rename)
            .summary("Rename a room.")
            .takes::<request::RoomTitle>()
            .replies::<Data<MeChatRoom>>(200)
            .errors(&[404]),
        delete("/api/v1/me/chats/{id}", "deleteMyChatRoom", rooms::delete)
            .summary("Delete a room, with all that is in it.")
            .replies::<Data<MeChatRoom>>(200)
            .errors(&[404]),
        post("/api/v1/me/chats/{id}/archive", "archiveMyChatRoom", rooms::archive)
            .summary("Make a room readable only.")
            .replies::<Data<MeChatRoom>>(200)
            .errors(&[404]),
        post("/api/v1/me/chats/{id}/unarchive", "unarchiveMyChatRoom", rooms::unarchive)
            .summary("Let a room take messages again.")
            .replies::<Data<MeChatRoom>>(200)
            .errors(&[404]),
    ]
}

fn message_operations() -> Vec<Operation> {
    let types = words::MessageTypeFilter::WORDS;
    vec![
        get("/api/v1/me/chats/{chat_id}/messages", "listMyChatMessages", messages::list)
            .summary("What happened in the room?")
            .description(
                "Texts and events, newest first. At most one of the three filters by type, and of the three anchors.",
            )
            .with(cursor_or_numbered(20))
            .with([
                word::<words::MessageTypeFilter>("message_type", "Only this type."),
                some_of("message_types", "Only these types.", types),
                some_of("exclude_message_types", "All but these types.", types),
                moment("since", "Only what is newer."),
                uuid("after", "What follows this message."),
                uuid("before", "What precedes this message."),
                uuid("around", "What surrounds this message."),
            ])
            .replies::<Page<ChatMessage, messages::ListMetadata>>(200)
            .errors(&[404]),
        post("/api/v1/me/chats/{chat_id}/messages", "sendMyChatMessage", messages::post)
            .once()
            .summary("Say something to somebody.")
            .takes::<request::NewMessage>()
            .replies::<Data<MessageSent>>(201)
            .errors(&[404]),
        shared::deliveries(get(
            "/api/v1/me/chats/{chat_id}/messages/{id}/deliveries",
            "listMyMessageDeliveries",
            deliveries::of_user,
        )),
    ]
}

fn dead_letter_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/me/dead-letters", "listMyDeadLetters", dead_letters::list)
            .summary("Which messages were given up?")
            .description("Those of the rooms that the caller is in and of its own agents, the newest rooms first.")
            .with([uuid("agent_id", "Only those for this agent."), uuid("chat_id", "Only those of this room.")])
            .with(cursor(20))
            .replies::<Page<DeadLetter, CursorMetadata>>(200),
        post("/api/v1/me/chats/{chat_id}/messages/{id}/redeliver", "redeliverMyChatMessage", dead_letters::redeliver)
            .summary("Have a dead letter delivered again.")
            .description("An owner or admin of the room may, and whoever owns the agent.")
            .takes::<request::Redeliver>()
            .replies::<Data<Redelivered>>(200)
            .errors(&[404]),
    ]
}

fn memory_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/me/memories", "listUserMemories", memories::list)
            .summary("What do agents remember that is for me to see?")
            .description(MEMORIES_OFF)
            .with(cursor_or_numbered_up_to(20, 50))
            .with([
                uuid("chat_room_id", "Only of this room; no memory of this server comes from one."),
                word::<words::MemoryView>("scope", "Only these."),
                uuid("source_agent_id", "Only what this agent stored."),
            ])
            .with(shared::memory_filters())
            .replies::<PageWithMeta<UserMemory, DualMetadata>>(200)
            .yields(Noun::Memory, "/data/0/id"),
        get("/api/v1/me/memories/{id}", "getUserMemory", memories::show)
            .summary("A memory.")
            .description(MEMORIES_OFF)
            .replies::<Data<UserMemory>>(200)
            .errors(&[404]),
        delete("/api/v1/me/memories/{id}", "deleteUserMemory", memories::delete)
            .summary("Forget it, for good.")
            .description(MEMORIES_OFF)
            .replies_nothing()
            .errors(&[404]),
        post("/api/v1/me/memories/{id}/supersede", "supersedeUserMemory", memories::supersede)
            .summary("It no longer holds.")
            .description(MEMORIES_OFF)
            .replies::<Data<UserMemory>>(200)
            .errors(&[404]),
        post("/api/v1/me/memories/{id}/archive", "archiveUserMemory", memories::archive)
            .summary("It is not needed now.")
            .description(MEMORIES_OFF)
            .replies::<Data<UserMemory>>(200)
            .errors(&[404]),
        post("/api/v1/me/memories/{id}/restore", "restoreUserMemory", memories::restore)
            .summary("It is needed again.")
            .description(MEMORIES_OFF)
            .replies::<Data<UserMemory>>(200)
            .errors(&[404]),
    ]
}

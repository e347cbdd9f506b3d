//! The words that some properties are limited to, for the API document. What a word means is said where it is used; the
//! rules behind them are the domain's.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A word of a fixed list.
pub trait Words {
    /// All of them.
    const WORDS: &'static [&'static str];
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $($word:literal),+;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Words for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "enum": Self::WORDS})
            }
        }
    )+};
}

words! {
    /// Person or program.
    IdentityKind: "User", "Agent";
    /// A program, always.
    AgentKind: "Agent";
    /// A participant's role.
    ParticipantRole: "owner", "admin", "member";
    /// A participant's standing, not its presence.
    ParticipantStatus: "active", "inactive", "blocked";
    /// Whether an agent has a live socket.
    ConnectionStatus: "connected", "disconnected";
    /// How the caller takes part in a room.
    Membership: "participant", "via_agent";
    /// A user's role on this server.
    UserRole: "user", "admin";
    /// Why somebody may be recruited.
    PeerSource: "registry", "contact";
    /// Whether a room takes writes.
    RoomStatus: "active", "archived", "closed";
    /// How a room came to be.
    RoomKind: "direct", "group", "task";
    /// How the work in a room is going.
    WorkStatus: "idle", "working", "stopped", "failed";
    /// What a row of a room's history is.
    MessageType: "text", "tool_call", "tool_result", "thought", "error", "task", "attention";
    /// What a list of messages can be asked for; of some, no row is ever there.
    MessageTypeFilter: "text", "tool_call", "tool_result", "thought", "error", "task", "attention", "system", "participant";
    /// What an event is.
    EventType: "tool_call", "tool_result", "thought", "error", "task", "attention";
    /// How somebody is mentioned: delivered to, or only named.
    MentionKind: "mention", "reference";
    /// What became of a message for one recipient.
    DeliveryStatus: "delivered", "processing", "processed", "failed";
    /// What a list of the inbox can be asked for.
    DeliveryFilter: "pending", "processing", "processed", "failed", "all";
    /// What a mark says.
    MarkStatus: "processing", "processed", "failed";
    /// How far a message came for one participant.
    LedgerStage: "none", "stored", "pushed", "served", "picked_up", "lapsed", "processed", "failed", "cancelled",
        "dead_lettered";
    /// What that comes to.
    LedgerVerdict: "done", "working", "waiting", "failed", "ended", "not_sent", "unknown";
    /// Why nothing happened.
    LedgerReason: "not_mentioned", "not_a_participant", "never_connected", "offline", "not_taken", "no_activity",
        "stopped", "superseded", "rate_limited", "expired", "unknown";
    /// What an agent makes of a message that it is done with.
    ProcessedOutcome: "declined";
    /// How a try ended.
    AttemptStatus: "processing", "success", "failed";
    /// What an agent is doing.
    ActivityKind: "reasoning", "tool_call", "memory", "permission";
    /// How far a task is.
    TaskStatus: "pending", "in_progress", "blocked", "in_review", "failed", "completed";
    /// Whether a task is on the board.
    TaskState: "active", "cancelled", "superseded", "archived";
    /// The states that an agent gives a task; only a new task supersedes.
    TaskStateUpdate: "active", "cancelled", "archived";
    /// What a list of tasks can be asked for.
    TaskStateFilter: "active", "cancelled", "superseded", "archived", "all";
    /// What a row of a history tells: of a task, or of a room's goal.
    HistoryEventKind: "created", "edited", "status_changed", "commented", "dropped", "cancelled", "superseded",
        "archived", "unarchived", "goal_set", "goal_edited";
    /// What a task or a goal can be shown with.
    HistoryInclude: "history";
    /// What an agent's work in a room is right now.
    ExecutionStatus: "idle", "working", "stopped";
    /// Which memory it is kept in.
    MemorySystem: "sensory", "working", "long_term";
    /// What kind of memory within its system.
    MemoryType: "iconic", "echoic", "haptic", "episodic", "semantic", "procedural";
    /// What a memory tells about.
    MemorySegment: "user", "agent", "tool", "guideline";
    /// For whom a memory is.
    MemoryScope: "agent", "subject", "organization";
    /// The scopes that an agent's list can be asked for.
    MemoryScopeFilter: "agent", "subject", "organization", "all";
    /// Whose memories an agent's list shows.
    MemoryOwner: "me", "org";
    /// What a person's list of memories can be asked for.
    MemoryView: "about_me", "organization", "room", "all";
    /// Whether a memory holds.
    MemoryStatus: "active", "superseded", "archived";
    /// What a list of memories can be asked for.
    MemoryStatusFilter: "active", "superseded", "archived", "all";
    /// Whom a memory is about.
    SubjectType: "user", "agent";
    /// What became of a contact request.
    ContactRequestStatus: "pending", "approved", "rejected", "cancelled";
    /// What a list of contact requests can be asked for.
    ContactRequestFilter: "pending", "approved", "rejected", "cancelled", "all";
    /// What to do with a contact request.
    ContactRequestAnswer: "approve", "reject", "cancel";
    /// What a bulk deletion deletes.
    BulkResource: "chat", "agent";
    /// How far a bulk deletion is.
    BulkStatus: "queued", "processing", "completed", "failed";
    /// What became of one id of a bulk deletion.
    BulkItemStatus: "pending", "succeeded", "failed";
    /// Where a sorted list begins.
    SortOrder: "asc", "desc";
    /// What the list of agents can be sorted by.
    AgentSort: "name", "inserted_at", "updated_at";
    /// What the list of rooms can be sorted by.
    RoomSort: "inserted_at", "updated_at";
}

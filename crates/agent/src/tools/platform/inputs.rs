//! What each platform tool takes. The documentation of a type and its fields is what models read.

use bandstand_llm::registry::{Faults, ToolInput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tools::memories::SUBJECT_NEEDED;
use crate::tools::tasks::{CHANGE_NEEDED, GOAL_NEEDED, task_ref};
use crate::tools::text::has_visible_content;

/// Words of a closed list. Those that several tools share stand in `$defs`, with the names that the Python SDK gives
/// them; the others stand where they are used.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
        $(#[$meta])*
        pub(super) enum $name { $(#[serde(rename = $word)] $variant),+ }

        impl $name {
            pub(super) fn as_str(&self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words!(#[schemars(inline)] EventType { Thought = "thought", Error = "error", Task = "task" });
words!(#[schemars(inline)] Role { Owner = "owner", Admin = "admin", Member = "member" });
words!(#[schemars(inline)] SentStatus {
    Pending = "pending", Approved = "approved", Rejected = "rejected", Cancelled = "cancelled", All = "all",
});
words!(#[schemars(inline)] ContactAction { Approve = "approve", Reject = "reject", Cancel = "cancel" });

/// The only word that `include` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) enum Include {
    #[serde(rename = "history")]
    History,
}

words!(
    /// Whose memories are listed.
    MemoryListScope { Agent = "agent", Subject = "subject", Organization = "organization", All = "all" }
);
words!(
    /// For whom a memory is.
    MemoryStoreScope { Agent = "agent", Subject = "subject", Organization = "organization" }
);
words!(
    /// How long a memory is meant to last.
    MemorySystem { Sensory = "sensory", Working = "working", LongTerm = "long_term" }
);
words!(
    /// What kind of memory it is; it must go with its system.
    MemoryType {
        Iconic = "iconic", Echoic = "echoic", Haptic = "haptic",
        Episodic = "episodic", Semantic = "semantic", Procedural = "procedural",
    }
);
words!(
    /// What a memory tells about.
    MemorySegment { User = "user", Agent = "agent", Tool = "tool", Guideline = "guideline" }
);
words!(
    /// Where a memory is in its life.
    MemoryStatus { Active = "active", Superseded = "superseded", Archived = "archived", All = "all" }
);
words!(
    /// Which tasks are listed.
    TaskListState {
        Active = "active", Cancelled = "cancelled", Superseded = "superseded", Archived = "archived", All = "all",
    }
);
words!(
    /// How far somebody is with a task.
    TaskAssignmentStatus {
        Pending = "pending", InProgress = "in_progress", Blocked = "blocked",
        InReview = "in_review", Failed = "failed", Completed = "completed",
    }
);
words!(
    /// Where a task is in its life.
    TaskLifecycleState { Active = "active", Cancelled = "cancelled", Archived = "archived" }
);

fn first() -> i64 {
    1
}

fn fifty() -> i64 {
    50
}

fn member() -> Role {
    Role::Member
}

fn pending() -> SentStatus {
    SentStatus::Pending
}

/// Only what goes into a path as it is.
fn check_id(faults: &mut Faults, argument: &str, id: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.is_empty() || !id.bytes().all(plain) {
        faults.at(argument, "ID must contain only ASCII letters, digits, underscores or hyphens");
    }
}

/// Posts a message to the room: an answer to a person or to another agent. It must mention at least one participant,
/// and only those who are mentioned are sure to notice it. If the newest message needs no answer, call band_no_reply
/// instead.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendMessage {
    /// What to say.
    pub(super) content: String,
    /// Whom it is for; at least one. Best a participant's exact ID; a handle works too: `@<user>` for a person,
    /// `@<user>/<agent>` for an agent.
    pub(super) mentions: Vec<String>,
}

impl ToolInput for SendMessage {
    fn check(&self, faults: &mut Faults) {
        if !has_visible_content(&self.content) {
            faults.at("content", "can't be blank");
        }
    }
}

/// Records an event in the room; nobody needs to be mentioned. `thought`: what you are about to do and why, before
/// something elaborate. `error`: what went wrong. `task`: how far the work is. An event is no answer.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendEvent {
    /// The text, for people.
    pub(super) content: String,
    /// What kind of event it is.
    pub(super) message_type: EventType,
    /// Data that goes with it, for programs.
    pub(super) metadata: Option<Map<String, Value>>,
}

impl ToolInput for SendEvent {
    fn check(&self, faults: &mut Faults) {
        if !has_visible_content(&self.content) {
            faults.at("content", "can't be blank");
        }
    }
}

/// Ends the turn in silence. For a message that needs no answer from you: it is for somebody else, it only informs or
/// acknowledges, or somebody has answered it already. That is a proper end of a turn; send no message besides.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoReply {
    /// Why no answer is needed, in a few words. It is not posted to the room.
    pub(super) reason: Option<String>,
}

/// Brings a person or an agent into the room. Find out with band_lookup_peers who is available.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddParticipant {
    /// Who: an ID from band_lookup_peers (best), a handle or a name.
    pub(super) identifier: String,
    /// What the newcomer may do in the room.
    #[serde(default = "member")]
    #[schemars(default = "member_word")]
    pub(super) role: Role,
}

fn member_word() -> &'static str {
    Role::Member.as_str()
}

/// Takes a person or an agent out of the room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RemoveParticipant {
    /// Who: an ID, a handle or a name.
    pub(super) identifier: String,
}

/// Lists the people and agents that could be brought into this room; those who are in it are left out. Call it to find
/// somebody to hand work to, and whenever somebody asks who could be invited.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LookupPeers {
    /// Which page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) page: i64,
    /// How many a page, at most 100.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) page_size: i64,
}

/// Lists everybody who is in this room.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetParticipants {}

/// Creates another room, for one matter of its own, and returns its ID.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CreateChatroom {
    /// The ID of a task that the room is about.
    pub(super) task_id: Option<String>,
}

/// Lists your contacts.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListContacts {
    /// Which page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) page: i64,
    /// How many a page, at most 100.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) page_size: i64,
}

/// Asks somebody to become a contact. The answer is `pending`, or `approved` at once if they had asked you before.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddContact {
    /// Whom, by handle: `@<user>` or `@<user>/<agent>`.
    pub(super) handle: String,
    /// A few words that go with the request.
    pub(super) message: Option<String>,
}

/// Ends a contact. Say which one by its handle or by its ID.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RemoveContact {
    /// The contact's handle.
    pub(super) handle: Option<String>,
    /// The ID of the contact's record.
    pub(super) contact_id: Option<String>,
}

/// Lists requests to become contacts: those that wait for your answer, and those that you sent.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListContactRequests {
    /// Which page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) page: i64,
    /// How many a page in each direction, at most 100.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) page_size: i64,
    /// Which of those that you sent.
    #[serde(default = "pending")]
    #[schemars(default = "pending_word")]
    pub(super) sent_status: SentStatus,
}

fn pending_word() -> &'static str {
    SentStatus::Pending.as_str()
}

/// Answers a request to become contacts: `approve` or `reject` one that you received, `cancel` one that you sent. Say
/// which one by the other's handle or by its ID.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RespondContactRequest {
    /// What to do.
    pub(super) action: ContactAction,
    /// The other's handle.
    pub(super) handle: Option<String>,
    /// The request's ID.
    pub(super) request_id: Option<String>,
}

/// Lists memories: your own, those about a subject, and those that your organization shares.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListMemories {
    /// Only memories about this subject, a UUID; needed for those of scope subject.
    pub(super) subject_id: Option<String>,
    /// Only memories of this scope. `organization` needs an owner who belongs to one.
    pub(super) scope: Option<MemoryListScope>,
    /// Only memories of this system.
    pub(super) system: Option<MemorySystem>,
    /// Only memories of this type.
    #[serde(rename = "type")]
    pub(super) kind: Option<MemoryType>,
    /// Only memories about this.
    pub(super) segment: Option<MemorySegment>,
    /// Words to look for.
    pub(super) content_query: Option<String>,
    /// How many, at most 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) page_size: i64,
    /// Only memories of this status.
    pub(super) status: Option<MemoryStatus>,
}

/// Stores a memory. Of scope `agent` it is yours alone; of scope `subject` it is about somebody, so say whom; of scope
/// `organization` everybody in your owner's organization may read it, if there is one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StoreMemory {
    /// What to remember.
    pub(super) content: String,
    /// How long it is meant to last.
    pub(super) system: MemorySystem,
    /// What kind of memory it is: iconic, echoic or haptic for sensory; episodic, semantic or procedural for working and
    /// long_term.
    #[serde(rename = "type")]
    pub(super) kind: MemoryType,
    /// What it tells about.
    pub(super) segment: MemorySegment,
    /// Why you store it.
    pub(super) thought: String,
    /// For whom it is. `organization` needs an owner who belongs to one; `agent` always works.
    pub(super) scope: MemoryStoreScope,
    /// Whom it is about, a UUID. Needed for scope subject.
    pub(super) subject_id: Option<String>,
    /// Tags and references.
    pub(super) metadata: Option<Map<String, Value>>,
}

impl ToolInput for StoreMemory {
    fn check(&self, faults: &mut Faults) {
        use MemoryType::{Echoic, Episodic, Haptic, Iconic, Procedural, Semantic};
        let types = match self.system {
            MemorySystem::Sensory => [Iconic, Echoic, Haptic],
            MemorySystem::Working | MemorySystem::LongTerm => [Episodic, Semantic, Procedural],
        };
        if !types.contains(&self.kind) {
            let (kind, system) = (self.kind.as_str(), self.system.as_str());
            let expected: Vec<&str> = types.iter().map(MemoryType::as_str).collect();
            faults.whole(format_args!(
                "1 validation issue(s): type `{kind}` is not valid for system `{system}`; expected one of: {} (type)",
                expected.join(", ")
            ));
        } else if self.scope == MemoryStoreScope::Subject && self.subject_id.is_none() {
            faults.whole(SUBJECT_NEEDED);
        }
    }
}

/// One memory.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MemoryById {
    /// The memory's ID.
    pub(super) memory_id: String,
}

impl ToolInput for MemoryById {
    fn check(&self, faults: &mut Faults) {
        check_id(faults, "memory_id", &self.memory_id);
    }
}

/// Lists the files of this room: those of messages that you sent or that mention you, also from before you came. Read one
/// with band_read_room_file.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListRoomFiles {
    /// Where an earlier answer says to go on.
    pub(super) cursor: Option<String>,
}

/// Reads a file of this room: a small text as text, a small picture as a picture; of anything else, what it is.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadRoomFile {
    /// The file's ID, from a message or from band_list_room_files. Take it from the newest list: files go away.
    pub(super) file_id: String,
}

impl ToolInput for ReadRoomFile {
    fn check(&self, faults: &mut Faults) {
        check_id(faults, "file_id", &self.file_id);
    }
}

/// Writes a text into a file and shares it in this room. For what people want as a file (a report, a piece of code,
/// data) rather than in a message.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendRoomFile {
    /// The file's text.
    pub(super) content: String,
    /// The file's name with its extension, in plain ASCII: `report.txt`.
    pub(super) filename: String,
    /// What to say with it.
    #[serde(default)]
    pub(super) caption: String,
    /// Whom it is for; at least one, as in band_send_message.
    pub(super) mentions: Vec<String>,
}

/// Lists the tasks of this room's board by number; active ones unless you ask for others. Look here before you create a
/// task or take one up.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListTasks {
    /// Which tasks; active ones by default.
    pub(super) state: Option<TaskListState>,
    /// Where an earlier answer says to go on.
    pub(super) cursor: Option<String>,
    /// How many a page: 50 by default, at most 100.
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<i64>,
}

/// Puts a task on this room's board; the server gives it an ID and a number. Nobody works on it yet: report a status with
/// band_update_task to join it. A task that replaces another names it; the old one is kept as a record.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CreateTask {
    /// What is to be done.
    pub(super) subject: String,
    /// More of it.
    pub(super) detail: Option<String>,
    /// The ID or number of the active task that it replaces.
    pub(super) supersedes_id: Option<String>,
}

/// Reads one task by its ID or number, whatever became of it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetTask {
    /// The task's ID or number.
    pub(super) id: String,
    /// `history` for what happened to it lately.
    pub(super) include: Option<Include>,
}

impl ToolInput for GetTask {
    fn check(&self, faults: &mut Faults) {
        check_id(faults, "id", task_ref(&self.id));
    }
}

/// Changes a task; at least one thing must be given. `status` and `active_form` are your own part in it, and the first
/// status makes you one of those who work on it; everybody has their own. `comment` leaves a note, `subject` and `detail`
/// change the task itself, `state` cancels, archives or restores it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UpdateTask {
    /// The task's ID or number.
    pub(super) id: String,
    /// How far you are.
    pub(super) status: Option<TaskAssignmentStatus>,
    /// What you are doing just now, as the board shows it.
    pub(super) active_form: Option<String>,
    /// A note for the others, kept in the task's history.
    pub(super) comment: Option<String>,
    /// Another subject.
    pub(super) subject: Option<String>,
    /// Another detail.
    pub(super) detail: Option<String>,
    /// `cancelled`, `archived`, or `active` to restore it.
    pub(super) state: Option<TaskLifecycleState>,
}

impl ToolInput for UpdateTask {
    fn check(&self, faults: &mut Faults) {
        check_id(faults, "id", task_ref(&self.id));
        let texts = [&self.active_form, &self.comment, &self.subject, &self.detail];
        if self.status.is_none() && self.state.is_none() && texts.iter().all(|text| text.is_none()) {
            faults.whole(CHANGE_NEEDED);
        }
    }
}

/// Reads all that happened to a task, oldest first, page by page.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetTaskHistory {
    /// The task's ID or number.
    pub(super) id: String,
    /// Where an earlier answer says to go on.
    pub(super) cursor: Option<String>,
    /// How many a page: 50 by default, at most 100.
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<i64>,
}

impl ToolInput for GetTaskHistory {
    fn check(&self, faults: &mut Faults) {
        check_id(faults, "id", task_ref(&self.id));
    }
}

/// Reads the goal of this room. Without one, its title is null.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetBoard {
    /// `history` for how it came about.
    pub(super) include: Option<Include>,
}

/// Sets or changes the goal of this room; at least one thing must be given, and what is not given stays.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SetBoard {
    /// The goal in a few words.
    pub(super) goal_title: Option<String>,
    /// The goal in a paragraph.
    pub(super) goal_summary: Option<String>,
}

impl ToolInput for SetBoard {
    fn check(&self, faults: &mut Faults) {
        if self.goal_title.is_none() && self.goal_summary.is_none() {
            faults.whole(GOAL_NEEDED);
        }
    }
}

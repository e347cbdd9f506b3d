//! What requests hold. The server reads them by hand, so that every fault is named with its place; these are their
//! description in the API document, and a test of the server holds the two against each other.

use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::rest::words;

/// For a property that may be missing but not null.
fn never_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|word| word != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(options)) = schema.remove("anyOf") {
        let rest = options.into_iter().filter(|option| option["type"] != "null");
        for (key, value) in rest.filter_map(|option| option.as_object().cloned()).flatten() {
            schema.insert(key, value);
        }
    }
}

/// A new room.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewRoomRequest")]
pub struct NewRoom {
    /// All may be left out: a room without a title.
    pub chat: Option<NewRoomFields>,
}

/// What a new room begins with.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewRoom")]
pub struct NewRoomFields {
    /// Blank means none.
    #[schemars(length(max = 120))]
    pub title: Option<String>,
    /// The creator's own link.
    pub task_id: Option<Uuid>,
}

/// Another title for a room.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RoomTitleRequest")]
pub struct RoomTitle {
    /// The room.
    pub chat: RoomTitleFields,
}

/// Another title.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RoomTitle")]
pub struct RoomTitleFields {
    /// Not blank.
    #[schemars(length(min = 1, max = 120))]
    pub title: String,
}

/// Somebody for a room.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewParticipantRequest")]
pub struct NewParticipant {
    /// Who.
    pub participant: NewParticipantFields,
}

/// Who joins, and as what.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewParticipant")]
pub struct NewParticipantFields {
    /// A peer, or somebody of the room's organization.
    pub participant_id: Uuid,
    /// `member` unless said.
    #[schemars(with = "Option<words::ParticipantRole>")]
    pub role: Option<String>,
}

/// Something to say.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewMessageRequest")]
pub struct NewMessage {
    /// The message.
    pub message: NewMessageFields,
}

/// A text for those whom it mentions.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewMessage")]
pub struct NewMessageFields {
    /// The text. A mention in it is `@handle` or `@[[uuid]]`.
    pub content: String,
    /// Whom it is for; at least one is needed.
    pub mentions: Option<Vec<Mention>>,
    /// Files of the room that it carries.
    #[schemars(length(max = 10), transform = never_null)]
    pub attachment_ids: Option<Vec<Uuid>>,
    /// `text`. Taken for older clients, and ignored.
    #[schemars(extend("enum" = ["text", null]))]
    pub message_type: Option<String>,
    /// Taken for older clients, and ignored.
    pub metadata: Option<Map<String, Value>>,
}

/// Somebody mentioned, by id or by handle.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewMention")]
pub struct Mention {
    /// Who.
    pub id: Option<Uuid>,
    /// Who, with or without `@`.
    pub handle: Option<String>,
    /// Taken, and ignored.
    pub name: Option<String>,
    /// Taken, and ignored.
    pub username: Option<Value>,
    /// `mention` delivers to it, `reference` only names it. Another word is refused with a code of its own.
    #[schemars(transform = never_null)]
    pub kind: Option<String>,
}

/// What an agent made of a message; nothing of it is needed.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Finished {
    /// `declined`: it was not for the agent.
    #[schemars(with = "Option<words::ProcessedOutcome>")]
    pub outcome: Option<String>,
    /// Why, in its words; goes with the outcome only.
    #[schemars(length(min = 1, max = 16_384))]
    pub reason: Option<String>,
}

/// For whom a dead letter is to be delivered again.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RedeliverRequest")]
pub struct Redeliver {
    /// The agent.
    pub agent_id: Uuid,
}

/// Why a message could not be handled.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Failure {
    /// For people.
    #[schemars(length(min = 1, max = 16_384))]
    pub error: String,
}

/// Something that an agent does.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewEventRequest")]
pub struct NewEvent {
    /// The event.
    pub event: NewEventFields,
}

/// What an agent does.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewEvent")]
pub struct NewEventFields {
    /// For people.
    #[schemars(length(min = 1, max = 16_384))]
    pub content: String,
    /// What it is.
    #[schemars(with = "words::EventType")]
    pub message_type: String,
    /// Anything, up to 65536 bytes of JSON. An `attention` needs a `kind` in it: `question`, `assumption`, `failure` or
    /// `review`; it may have `blocking`, `task_id` and the event that it `resolves`.
    pub metadata: Option<Map<String, Value>>,
}

/// Whether an agent works in a room.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ActivityReport {
    /// It expires by itself.
    pub working: bool,
    /// What it is doing.
    pub activity: Option<ActivityDetail>,
}

/// What an agent is doing.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ActivityDetail {
    /// What kind of work.
    #[schemars(with = "words::ActivityKind")]
    pub kind: String,
    /// The tool; with `tool_call` it is needed, with another kind refused.
    pub name: Option<String>,
}

/// A new task.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NewTask {
    /// What needs to be done.
    #[schemars(length(min = 1))]
    pub subject: String,
    /// More of it.
    pub detail: Option<String>,
    /// The active task that it replaces: its id or its number.
    pub supersedes_id: Option<String>,
}

/// What an agent says of a task; at least one of these.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct TaskUpdate {
    /// Its own progress.
    #[schemars(with = "Option<words::TaskStatus>")]
    pub status: Option<String>,
    /// What it is doing right now.
    pub active_form: Option<String>,
    /// A note.
    pub comment: Option<String>,
    /// Another subject.
    pub subject: Option<String>,
    /// Another detail.
    pub detail: Option<String>,
    /// Another state.
    #[schemars(with = "Option<words::TaskStateUpdate>")]
    pub state: Option<String>,
    /// Its own link to the task in its tooling.
    pub linked_native_id: Option<String>,
}

/// A room's goal, or the part of it that changes.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Goal {
    /// The mission in a line; null takes it away.
    pub goal_title: Option<String>,
    /// The mission in a paragraph; null takes it away.
    pub goal_summary: Option<String>,
}

/// Something to remember.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewMemoryRequest")]
pub struct NewMemory {
    /// The memory.
    pub memory: NewMemoryFields,
}

/// What to remember, why, and for whom.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewMemory")]
pub struct NewMemoryFields {
    /// What.
    #[schemars(length(min = 1))]
    pub content: String,
    /// Which memory it is kept in.
    #[schemars(with = "words::MemorySystem")]
    pub system: String,
    /// Which kind; each system has its own.
    #[schemars(with = "words::MemoryType")]
    pub r#type: String,
    /// What it tells about.
    #[schemars(with = "words::MemorySegment")]
    pub segment: String,
    /// Why.
    pub thought: String,
    /// `agent` unless said, or `subject` when one is named.
    #[schemars(with = "Option<words::MemoryScope>")]
    pub scope: Option<String>,
    /// Whom it is about.
    pub subject_id: Option<Uuid>,
    /// Anything else.
    pub metadata: Option<NewMemoryMetadata>,
}

/// Anything, and two lists that have a form.
#[derive(Clone, Debug, JsonSchema)]
pub struct NewMemoryMetadata {
    /// For finding it again.
    pub tags: Option<Vec<String>>,
    /// What it rests on.
    pub references: Option<Vec<String>>,
}

/// Other names for oneself.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ProfileRequest")]
pub struct Profile {
    /// Oneself.
    pub user: ProfileFields,
}

/// Only the names that are sent change.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Profile")]
pub struct ProfileFields {
    /// First name.
    #[schemars(length(max = 100))]
    pub first_name: Option<String>,
    /// Last name.
    #[schemars(length(max = 100))]
    pub last_name: Option<String>,
}

/// A new agent.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewAgentRequest")]
pub struct NewAgent {
    /// The agent.
    pub agent: NewAgentFields,
}

/// What an agent is called and does. How long either may be is a setting of the server.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewAgent")]
pub struct NewAgentFields {
    /// Its name; its handle is made of it.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What it does.
    #[schemars(length(min = 1))]
    pub description: String,
}

/// Rooms to delete.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BulkDeleteRooms {
    /// Each once.
    #[schemars(length(min = 1, max = 100), extend("uniqueItems" = true))]
    pub ids: Vec<String>,
}

/// Agents to delete.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BulkDeleteAgents {
    /// Each once.
    #[schemars(length(min = 1, max = 100), extend("uniqueItems" = true))]
    pub ids: Vec<String>,
    /// Even those that worked.
    #[schemars(transform = never_null)]
    pub force: Option<bool>,
}

/// Somebody to become a contact of.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NewContact {
    /// Who, with or without `@`.
    pub handle: String,
    /// What one says of oneself.
    #[schemars(length(max = 500))]
    pub message: Option<String>,
}

/// The same, as people ask.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewContactRequestRequest")]
pub struct NewContactRequest {
    /// The request.
    pub contact_request: NewContactRequestFields,
}

/// Whom to ask.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewContactRequest")]
pub struct NewContactRequestFields {
    /// Who, with or without `@`.
    pub recipient_handle: String,
    /// What one says of oneself.
    #[schemars(length(max = 500))]
    pub message: Option<String>,
}

/// A contact, by handle or by the id of its record; of both, the id wins.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("anyOf" = [{"required": ["handle"]}, {"required": ["contact_id"]}]))]
pub struct ContactTarget {
    /// With or without `@`.
    pub handle: Option<String>,
    /// The record, not the identity.
    pub contact_id: Option<Uuid>,
}

/// A handle.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HandleQuestion {
    /// With or without `@`.
    pub handle: String,
}

/// An answer to a contact request, named by its id or by the handle on the other side; of both, the id wins.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("anyOf" = [{"required": ["handle"]}, {"required": ["request_id"]}]))]
pub struct ContactRequestResponse {
    /// `cancel` takes one's own request back.
    #[schemars(with = "words::ContactRequestAnswer")]
    pub action: String,
    /// The other side, with or without `@`.
    pub handle: Option<String>,
    /// The request.
    pub request_id: Option<Uuid>,
}

/// A new user, added by an administrator.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewUserRequest")]
pub struct NewUser {
    /// The user.
    pub user: NewUserFields,
}

/// Who it is.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewUser")]
pub struct NewUserFields {
    /// Its username.
    pub handle: String,
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Whether it administers this server.
    pub administrator: Option<bool>,
}

/// A new organization.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewOrganizationRequest")]
pub struct NewOrganization {
    /// The organization.
    pub organization: NewOrganizationFields,
}

/// What it is called.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewOrganization")]
pub struct NewOrganizationFields {
    /// Not taken yet.
    pub name: String,
}

/// A new agent of any user.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewAgentOfUserRequest")]
pub struct NewAgentOfUser {
    /// The agent.
    pub agent: NewAgentOfUserFields,
}

/// What it is called and whose it is.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewAgentOfUser")]
pub struct NewAgentOfUserFields {
    /// Its name; its handle is made of it.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// A user, by id or handle; left out where there is only one that could be meant.
    pub owner: Option<String>,
    /// Visible to every user of the server.
    pub is_global: Option<bool>,
}

/// Who sees an agent.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "AgentVisibilityRequest")]
pub struct AgentVisibility {
    /// The agent.
    pub agent: AgentVisibilityFields,
}

/// Only what is sent changes.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "AgentVisibility")]
pub struct AgentVisibilityFields {
    /// Every user of the server.
    pub is_global: Option<bool>,
    /// Its owner's organization.
    pub shared_with_organization: Option<bool>,
}

/// One more key.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewKeyRequest")]
pub struct NewKey {
    /// The key.
    pub key: NewKeyFields,
}

/// For how long the keys that are replaced go on.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RotateKeyRequest")]
pub struct RotateKey {
    /// In seconds; at most a year. At once unless given.
    #[schemars(range(max = 31_622_400))]
    pub overlap_seconds: Option<u64>,
}

/// What becomes of the tokens that are out.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RotateSigningKeyRequest")]
pub struct RotateSigningKey {
    /// They count no longer, and their sockets close. Not unless given.
    pub revoke: Option<bool>,
}

/// An account that may sign in.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewLinkRequest")]
pub struct NewLink {
    /// The account, and whose it is.
    pub link: NewLinkFields,
}

/// Which account is whose.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewLink")]
pub struct NewLinkFields {
    /// A user, by id or handle.
    pub user: String,
    /// The issuer, as its tokens name it (`iss`).
    pub issuer: String,
    /// The account, as its tokens name it (`sub`).
    pub subject: String,
}

/// Whose it will be.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewKey")]
pub struct NewKeyFields {
    /// A user or an agent, by id or handle.
    pub holder: String,
}

/// A quota of one's own.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewQuotaRequest")]
pub struct NewQuota {
    /// The quota.
    pub quota: NewQuotaFields,
}

/// How many.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewQuota")]
pub struct NewQuotaFields {
    /// So many and no more; null: without end.
    #[schemars(required, extend("type" = ["integer", "null"]))]
    pub most: Option<u32>,
}

//! A person's tools: what `band-mcp` offers for a user's key, with the same names and arguments. What the server answers
//! is handed on as it is.

mod inputs;

use std::sync::LazyLock;

use bandstand_agent::client::{
    ClientError, HumanClient, HumanMemoryQuery, HumanMessageQuery, HumanPage, RequestAnswer,
};
use bandstand_agent::registry::{Effect, Registry, Tool, ToolError};
use serde_json::{Value, json};

use crate::catalogue::registry_of;
use inputs::{
    AddParticipant, CreateChat, CreateContactRequest, GetChat, GetProfile, ListAgents, ListChats, ListContacts,
    ListMemories, ListMessages, ListParticipants, ListPeers, ListReceivedRequests, ListSentRequests, MemoryById,
    RegisterAgent, RemoveContact, RemoveParticipant, RequestById, ResolveHandle, SendMessage, UpdateProfile,
};

/// All tools of a person, in the order in which they are advertised.
pub(crate) fn registry() -> &'static Registry<HumanClient> {
    static REGISTRY: LazyLock<Registry<HumanClient>> =
        LazyLock::new(|| registry_of([agents_and_profile(), chats(), contacts(), memories()].concat()));
    &REGISTRY
}

fn said(answer: Result<Value, ClientError>) -> Result<Value, ToolError> {
    answer.map_err(refused)
}

fn refused(error: ClientError) -> ToolError {
    ToolError::failed(error.to_string())
}

/// Contract texts of the same tools in Python, which models have met.
fn problem(text: impl Into<String>) -> ToolError {
    ToolError::refused(format!("Error: {}", text.into()))
}

fn page(page: Option<i64>, page_size: Option<i64>) -> HumanPage {
    HumanPage { page, page_size }
}

fn agents_and_profile() -> Vec<Tool<HumanClient>> {
    vec![
        Tool::new("band_list_my_agents", |api: HumanClient, it: ListAgents| async move {
            said(api.agents(page(it.page, it.page_size)).await)
        })
        .read_only(),
        Tool::new("band_register_my_agent", |api: HumanClient, it: RegisterAgent| async move {
            said(api.register_agent(&it.name, &it.description).await)
        })
        .effect(Effect::Act),
        Tool::new("band_get_my_profile", |api: HumanClient, _: GetProfile| async move { said(api.profile().await) })
            .read_only(),
        Tool::new("band_update_my_profile", |api: HumanClient, it: UpdateProfile| async move {
            if it.first_name.is_none() && it.last_name.is_none() {
                return Err(problem("At least one field (first_name or last_name) must be provided"));
            }
            said(api.update_profile(it.first_name.as_deref(), it.last_name.as_deref()).await)
        })
        .effect(Effect::Act),
        Tool::new("band_list_my_peers", |api: HumanClient, it: ListPeers| async move {
            let (room, kind) = (it.not_in_chat.as_deref(), it.peer_type.as_deref());
            said(api.peers(room, kind, page(it.page, it.page_size)).await)
        })
        .read_only(),
    ]
    .into_iter()
    .map(|tool| tool.group("chat"))
    .collect()
}

fn chats() -> Vec<Tool<HumanClient>> {
    vec![
        Tool::new("band_list_my_chats", |api: HumanClient, it: ListChats| async move {
            said(api.chats(page(it.page, it.page_size)).await)
        })
        .read_only(),
        Tool::new("band_create_my_chat_room", |api: HumanClient, it: CreateChat| async move {
            said(api.create_chat(it.task_id.as_deref().filter(|id| !id.is_empty())).await)
        })
        .effect(Effect::Act),
        Tool::new(
            "band_get_my_chat_room",
            |api: HumanClient, it: GetChat| async move { said(api.chat(&it.chat_id).await) },
        )
        .checked::<GetChat>()
        .read_only(),
        Tool::new("band_list_my_chat_messages", |api: HumanClient, it: ListMessages| async move {
            let query = HumanMessageQuery {
                page: page(it.page, it.page_size),
                message_type: it.message_type,
                since: it.since.filter(|since| !since.is_empty()),
            };
            said(api.messages(&it.chat_id, &query).await)
        })
        .checked::<ListMessages>()
        .read_only(),
        Tool::new("band_send_my_chat_message", send_message).checked::<SendMessage>().effect(Effect::Reply),
        Tool::new("band_list_my_chat_participants", |api: HumanClient, it: ListParticipants| async move {
            said(api.participants(&it.chat_id, it.participant_type.as_deref()).await)
        })
        .checked::<ListParticipants>()
        .read_only(),
        Tool::new("band_add_my_chat_participant", |api: HumanClient, it: AddParticipant| async move {
            let role = it.role.as_deref().filter(|role| !role.is_empty()).unwrap_or("member");
            api.add_participant(&it.chat_id, &it.participant_id, role).await.map_err(refused)?;
            Ok(format!("Added participant: {}", it.participant_id))
        })
        .checked::<AddParticipant>()
        .effect(Effect::Act),
        Tool::new("band_remove_my_chat_participant", |api: HumanClient, it: RemoveParticipant| async move {
            api.remove_participant(&it.chat_id, &it.participant_id).await.map_err(refused)?;
            Ok(format!("Removed participant: {}", it.participant_id))
        })
        .checked::<RemoveParticipant>()
        .effect(Effect::Act),
    ]
    .into_iter()
    .map(|tool| tool.group("chat"))
    .collect()
}

/// Recipients are named as people name them: each by a name, a username or a first name, in any case.
async fn send_message(api: HumanClient, it: SendMessage) -> Result<Value, ToolError> {
    let wanted: Vec<String> =
        it.recipients.split(',').map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty()).collect();
    if wanted.is_empty() {
        return Err(problem("recipients cannot be empty"));
    }
    let answer = api.participants(&it.chat_id, None).await.map_err(refused)?;
    let rows = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut known: Vec<(String, &Value)> = Vec::new();
    for row in rows {
        for field in ["name", "username", "first_name", "handle"] {
            if let Some(name) = row[field].as_str().filter(|name| !name.is_empty()) {
                let name = name.trim_start_matches('@').to_lowercase();
                if !known.iter().any(|(other, whom)| *other == name && whom["id"] == row["id"]) {
                    known.push((name, row));
                }
            }
        }
    }
    let mut mentions: Vec<(String, String)> = Vec::new();
    let mut unknown = Vec::new();
    for name in wanted {
        let bare = name.trim_start_matches('@');
        let mut found = known.iter().filter(|(known, _)| known == bare).map(|(_, row)| *row);
        match (found.next(), found.next()) {
            (Some(row), None) => {
                let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
                let (id, name) = (text("id"), text("name"));
                if !mentions.iter().any(|(known, _)| *known == id) {
                    mentions.push((id, name));
                }
            }
            (Some(_), Some(_)) => {
                return Err(problem(format!("More than one participant is called {bare}; use a handle instead.")));
            }
            (None, _) => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        let available: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        return Err(problem(format!("Not found: {}. Available: {}", unknown.join(", "), available.join(", "))));
    }
    said(api.post_message(&it.chat_id, &it.content, &mentions).await)
}

fn contacts() -> Vec<Tool<HumanClient>> {
    let answering = |name: &'static str, description: &'static str, answer: RequestAnswer| {
        let tool = Tool::new(name, move |api: HumanClient, it: RequestById| async move {
            said(api.answer_request(&it.request_id, answer).await)
        });
        tool.checked::<RequestById>().description(description).effect(Effect::Act)
    };
    vec![
        Tool::new("band_list_my_contacts", |api: HumanClient, it: ListContacts| async move {
            said(api.contacts(page(it.page, it.page_size)).await)
        })
        .read_only(),
        Tool::new("band_create_contact_request", |api: HumanClient, it: CreateContactRequest| async move {
            said(api.request_contact(&it.recipient_handle, it.message.as_deref()).await)
        })
        .effect(Effect::Act),
        Tool::new("band_list_received_contact_requests", |api: HumanClient, it: ListReceivedRequests| async move {
            said(api.received_requests(page(it.page, it.page_size)).await)
        })
        .read_only(),
        Tool::new("band_list_sent_contact_requests", |api: HumanClient, it: ListSentRequests| async move {
            let status = it.status.map(inputs::SentStatus::as_str);
            said(api.sent_requests(status, page(it.page, it.page_size)).await)
        })
        .read_only(),
        answering("band_approve_contact_request", "Approve a received contact request.", RequestAnswer::Approve),
        answering("band_reject_contact_request", "Reject a received contact request.", RequestAnswer::Reject),
        answering("band_cancel_contact_request", "Cancel a sent contact request.", RequestAnswer::Cancel),
        Tool::new("band_resolve_handle", |api: HumanClient, it: ResolveHandle| async move {
            said(api.resolve_handle(&it.handle).await)
        })
        .read_only(),
        Tool::new("band_remove_my_contact", |api: HumanClient, it: RemoveContact| async move {
            let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
            let (id, handle) = (given(&it.contact_id), given(&it.handle));
            if id.is_none() && handle.is_none() {
                return Err(problem("Either contact_id or handle must be provided"));
            }
            said(api.remove_contact(id.as_deref(), handle.as_deref()).await)
        })
        .effect(Effect::Act),
    ]
    .into_iter()
    .map(|tool| tool.group("contacts"))
    .collect()
}

fn memories() -> Vec<Tool<HumanClient>> {
    vec![
        Tool::new("band_list_user_memories", |api: HumanClient, it: ListMemories| async move {
            let query = HumanMemoryQuery {
                chat_room_id: it.chat_room_id,
                scope: it.scope,
                system: it.system,
                kind: it.memory_type,
                segment: it.segment,
                content_query: it.content_query,
                page_size: it.page_size,
                status: it.status,
            };
            said(api.memories(&query).await)
        })
        .read_only(),
        by_id(
            "band_get_user_memory",
            "Get a single user memory by ID.",
            |api, id| async move { api.memory(&id).await },
        )
        .read_only(),
        by_id("band_supersede_user_memory", "Mark a user memory as superseded.", |api, id| async move {
            api.supersede_memory(&id).await
        }),
        by_id(
            "band_archive_user_memory",
            "Archive a user memory.",
            |api, id| async move { api.archive_memory(&id).await },
        ),
        by_id("band_restore_user_memory", "Restore an archived user memory.", |api, id| async move {
            api.restore_memory(&id).await
        }),
        by_id("band_delete_user_memory", "Delete a user memory permanently.", |api, id| async move {
            api.delete_memory(&id).await.map(|()| json!({"deleted": true, "id": id}))
        }),
    ]
    .into_iter()
    .map(|tool| tool.group("memory"))
    .collect()
}

/// A tool that takes a memory's id alone.
fn by_id<F, Fut>(name: &'static str, description: &'static str, ask: F) -> Tool<HumanClient>
where
    F: Fn(HumanClient, String) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, ClientError>> + Send + 'static,
{
    let tool =
        Tool::new(name, move |api: HumanClient, it: MemoryById| async move { said(ask(api, it.memory_id).await) });
    let effect = if name.contains("_get_") { Effect::Observe } else { Effect::Act };
    tool.checked::<MemoryById>().description(description).effect(effect)
}

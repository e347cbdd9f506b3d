//! Domain values as they travel, for HTTP and the socket alike.

pub mod board;
pub mod bulk_deletion;
pub mod contact;
pub mod control;
pub mod dead_letter;
pub mod delivery;
pub mod memory;

use bandstand_domain::delivery::{Attempt, Delivery};
use bandstand_domain::file as domain;
use bandstand_domain::identity::{Agent, User};
use bandstand_domain::membership::{self, Participant};
use bandstand_domain::message::{Mention, Message, MessageKind};
use bandstand_domain::room::Room;
use bandstand_wire::ids::IdentityKind;
use bandstand_wire::rest::identity::{AgentMe, MyAgent, Peer, UserDetails};
use bandstand_wire::rest::message::{
    Attachment, ChatMessage, Deliveries, DeliveryAttempt, MentionRef, MessageRecipient, Metadata, RawBox,
    RecipientDelivery, TextMetadata,
};
use bandstand_wire::rest::participant::{ChatParticipant, ChatParticipantDetails};
use bandstand_wire::rest::room::{ChatRoom, MeChatRoom, RoomOverview};
use serde_json::value::RawValue;

/// A row of a room's history.
pub fn message(message: &Message) -> ChatMessage {
    ChatMessage {
        id: message.id,
        content: message.content.clone(),
        message_type: message.kind.as_str(),
        sender_id: message.sender.id,
        sender_type: message.sender.kind,
        sender_name: message.sender.name.clone(),
        chat_room_id: message.room,
        thread_id: None,
        metadata: metadata(message),
        attachments: message.attachments.iter().map(attachment).collect(),
        inserted_at: message.inserted_at,
        updated_at: message.updated_at,
    }
}

fn metadata(message: &Message) -> Metadata {
    match message.kind {
        MessageKind::Text => Metadata::Text(TextMetadata {
            mentions: message.mentions.iter().map(mention).collect(),
            status: "sent",
            delivery_status: Deliveries(
                message.deliveries.iter().filter_map(|one| Some((one.recipient, delivery(one)?))).collect(),
            ),
        }),
        MessageKind::ToolCall
        | MessageKind::ToolResult
        | MessageKind::Thought
        | MessageKind::Error
        | MessageKind::Task
        | MessageKind::Attention => {
            // It was checked to be JSON before it was stored; were it damaged since, null is what a client can read.
            Metadata::Event(message.metadata.clone().and_then(|text| RawValue::from_string(text).ok()).map(RawBox))
        }
    }
}

fn mention(mention: &Mention) -> MentionRef {
    MentionRef {
        id: mention.id,
        handle: mention.handle.clone(),
        name: mention.name.clone(),
        kind: mention.reference.then_some("reference"),
    }
}

fn delivery(delivery: &Delivery) -> Option<RecipientDelivery> {
    Some(RecipientDelivery {
        status: delivery.state.wire()?,
        delivered_at: delivery.delivered_at,
        processed_at: delivery.processed_at,
        current_attempt: delivery.attempts.last().map(|attempt| attempt.number),
        attempts: delivery.attempts.iter().map(attempt).collect(),
    })
}

fn attempt(attempt: &Attempt) -> DeliveryAttempt {
    DeliveryAttempt {
        attempt_number: attempt.number,
        status: attempt.state.wire(),
        started_at: attempt.started_at,
        completed_at: attempt.completed_at,
        error: attempt.error.clone(),
    }
}

/// A file of a room.
pub fn attachment(file: &domain::Attachment) -> Attachment {
    Attachment {
        id: file.id,
        name: file.name.clone(),
        content_type: file.content_type.clone(),
        bytes: file.bytes,
        sha256: file.sha256.clone(),
        has_thumb: false,
        expires_at: file.expires_at,
    }
}

/// Who a posted message went to, in request order.
pub fn recipients(mentions: &[Mention]) -> Vec<MessageRecipient> {
    mentions
        .iter()
        .filter(|mention| !mention.reference)
        .map(|mention| MessageRecipient { id: mention.id, handle: mention.handle.clone(), name: mention.name.clone() })
        .collect()
}

/// A room as agents see it.
pub fn room(room: &Room) -> ChatRoom {
    ChatRoom {
        id: room.id,
        title: room.title.clone(),
        task_id: room.task_id,
        inserted_at: room.inserted_at,
        updated_at: room.updated_at,
    }
}

/// A room as people see it; `overview` while tasks are on.
pub fn me_room(room: &Room, overview: Option<RoomOverview>) -> MeChatRoom {
    MeChatRoom {
        id: room.id,
        title: room.title.clone(),
        task_id: room.task_id,
        status: room.status.as_str(),
        kind: room.kind.as_str(),
        last_message_at: room.last_message_at,
        inserted_at: room.inserted_at,
        updated_at: room.updated_at,
        overview,
    }
}

/// A participant as agents see it.
pub fn participant(participant: &Participant, online: bool) -> ChatParticipant {
    ChatParticipant {
        id: participant.profile.id,
        kind: participant.profile.kind,
        role: participant.role.as_str(),
        status: participant.status.as_str(),
        name: participant.profile.name.clone(),
        handle: participant.profile.handle.clone(),
        online,
    }
}

/// A participant as people see it.
pub fn participant_details(participant: &Participant, online: bool) -> ChatParticipantDetails {
    let is_agent = participant.profile.kind == IdentityKind::Agent;
    ChatParticipantDetails {
        connection_status: is_agent.then_some(if online { "connected" } else { "disconnected" }),
        description: participant.profile.description.clone(),
        is_external: is_agent.then_some(true),
        participant: self::participant(participant, online),
    }
}

/// Somebody that the caller may recruit.
pub fn peer(peer: &membership::Peer, online: bool) -> Peer {
    let profile = &peer.profile;
    Peer {
        id: profile.id,
        name: profile.name.clone(),
        kind: profile.kind,
        handle: profile.handle.clone(),
        source: peer.source.as_str(),
        is_contact: peer.is_contact,
        online,
        description: profile.description.clone(),
        is_external: (profile.kind == IdentityKind::Agent).then_some(true),
    }
}

/// An agent as it sees itself. The flags say which of the platform's optional parts this server has.
pub fn agent_me(agent: &Agent, with_tasks: bool) -> AgentMe {
    AgentMe {
        id: agent.profile.id,
        name: agent.profile.name.clone(),
        handle: agent.profile.handle.clone(),
        description: agent.profile.description.clone(),
        owner_uuid: agent.owner,
        inserted_at: agent.inserted_at,
        updated_at: agent.updated_at,
        feature_flags: [("ff_file_transfer", true), ("ff_room_tasks", with_tasks)].into(),
        listed_in_directory: agent.listed_in_directory,
    }
}

/// An agent as its owner sees it.
pub fn my_agent(agent: &Agent) -> MyAgent {
    MyAgent {
        id: agent.profile.id,
        name: agent.profile.name.clone(),
        description: agent.profile.description.clone(),
        slug: agent.slug.clone(),
        is_external: true,
        model_type: None,
        registry_access: agent.registry_access,
        shared_with_organization: agent.shared_with_organization,
        listed_in_directory: agent.listed_in_directory,
        inserted_at: agent.inserted_at,
        updated_at: agent.updated_at,
    }
}

/// A user as it sees itself.
pub fn user(user: &User) -> UserDetails {
    UserDetails {
        id: user.profile.id,
        email: user.email.clone(),
        handle: user.profile.handle.clone(),
        role: user.role.as_str(),
        first_name: user.first_name.clone(),
        last_name: user.last_name.clone(),
        listed_in_directory: user.listed_in_directory,
    }
}

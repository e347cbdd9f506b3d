//! What agents remember.

use bandstand_domain::memory::Memory;
use bandstand_wire::ids::IdentityKind;
use bandstand_wire::rest::memory::{AgentMemory, UserMemory};
use bandstand_wire::rest::message::RawBox;
use serde_json::value::RawValue;

use crate::service::memories as service;

/// A memory as agents see it.
pub fn agent(memory: &Memory) -> AgentMemory {
    AgentMemory {
        id: memory.id,
        content: memory.content.clone(),
        thought: memory.thought.clone(),
        system: memory.system.as_str(),
        kind: memory.kind.as_str(),
        segment: memory.segment.as_str(),
        scope: memory.scope.as_str(),
        status: memory.status.as_str(),
        // It was checked to be JSON before it was stored; were it damaged since, null is what a client can read.
        metadata: memory.metadata.clone().and_then(|text| RawValue::from_string(text).ok()).map(RawBox),
        subject_id: memory.subject,
        source_agent_id: memory.source.as_ref().map(|(id, _)| *id),
        organization_id: memory.organization,
        inserted_at: memory.inserted_at,
        updated_at: memory.updated_at,
    }
}

/// A memory as people see it.
pub fn user(row: &service::UserMemory) -> UserMemory {
    let kind = |kind| match kind {
        IdentityKind::User => "user",
        IdentityKind::Agent => "agent",
    };
    UserMemory {
        memory: agent(&row.memory),
        chat_room_id: None,
        chat_room_title: None,
        chat_room_status: None,
        chat_room_type: None,
        source_agent_name: row.memory.source.as_ref().map(|(_, name)| name.clone()),
        subject_name: row.subject.as_ref().map(|(name, _)| name.clone()),
        subject_type: row.subject.as_ref().map(|(_, is)| kind(*is)),
    }
}

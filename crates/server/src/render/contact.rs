//! Contacts and their requests as they travel.

use bandstand_domain::contact::{Contact, ContactRequest, Party};
use bandstand_domain::identity::Profile;
use bandstand_wire::ids::IdentityKind;
use bandstand_wire::rest::contact as wire;

/// A contact as an agent has it.
pub fn agent_contact(contact: &Contact, online: bool) -> wire::AgentContact {
    let Contact { id, profile, email: _, listed_in_directory, inserted_at } = contact;
    wire::AgentContact {
        id: *id,
        kind: profile.kind,
        handle: profile.handle.clone(),
        name: profile.name.clone(),
        description: profile.description.clone(),
        is_external: is_external(profile),
        listed_in_directory: *listed_in_directory,
        online,
        inserted_at: *inserted_at,
    }
}

/// A contact as a person has it.
pub fn contact(contact: &Contact, online: bool) -> wire::Contact {
    let Contact { id, profile, email, listed_in_directory, inserted_at } = contact;
    wire::Contact {
        id: *id,
        contact_id: profile.id,
        contact_type: profile.kind,
        status: "active",
        source: "request",
        online,
        inserted_at: *inserted_at,
        user: wire::ContactUser {
            id: profile.id,
            handle: profile.handle.clone(),
            name: profile.name.clone(),
            email: email.clone(),
            listed_in_directory: *listed_in_directory,
        },
    }
}

/// Whether somebody runs outside the server: every agent does, and for people there is nothing to say.
pub(crate) fn is_external(profile: &Profile) -> Option<bool> {
    (profile.kind == IdentityKind::Agent).then_some(true)
}

/// A request as people see it.
pub fn contact_request(request: &ContactRequest) -> wire::ContactRequest {
    let ContactRequest { id, requester, recipient, status, message, inserted_at, responded_at } = request;
    wire::ContactRequest {
        id: *id,
        status: status.as_str(),
        requester_id: requester.id,
        requester_type: requester.kind,
        requester: party(requester),
        recipient_id: recipient.id,
        recipient_type: recipient.kind,
        recipient: party(recipient),
        message: message.clone(),
        inserted_at: *inserted_at,
        responded_at: *responded_at,
    }
}

fn party(party: &Party) -> wire::ContactParty {
    wire::ContactParty { id: party.id, handle: party.handle.clone(), name: party.name.clone() }
}

/// A request as the agent that received it sees it.
pub fn received_request(request: &ContactRequest) -> wire::ReceivedContactRequest {
    wire::ReceivedContactRequest {
        id: request.id,
        status: request.status.as_str(),
        from_handle: request.requester.handle.clone(),
        from_name: request.requester.name.clone(),
        message: request.message.clone(),
        inserted_at: request.inserted_at,
    }
}

/// A request as the agent that sent it sees it.
pub fn sent_request(request: &ContactRequest) -> wire::SentContactRequest {
    wire::SentContactRequest {
        id: request.id,
        status: request.status.as_str(),
        to_handle: request.recipient.handle.clone(),
        to_name: request.recipient.name.clone(),
        message: request.message.clone(),
        inserted_at: request.inserted_at,
    }
}

/// What became of a request.
pub fn request_action(request: &ContactRequest) -> wire::ContactRequestAction {
    wire::ContactRequestAction { id: request.id, status: request.status.as_str() }
}

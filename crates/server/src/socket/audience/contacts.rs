//! Who hears of contacts: each on its own channel, agents and people in their own form.

use bandstand_domain::contact::{Contact, ContactRequest};
use bandstand_wire::ids::{ContactId, IdentityId, IdentityKind};
use bandstand_wire::push::{ContactAdded, ContactRemoved, ContactRequestReceived, ContactRequestUpdated, event};

use super::tell;
use crate::render::contact as render;
use crate::socket::hub::Shared;
use crate::socket::locked;

pub(super) fn request_received(shared: &Shared, request: &ContactRequest) {
    let directory = locked(&shared.directory);
    let listeners = directory.contacts_channels(request.recipient.id);
    match request.recipient.kind {
        IdentityKind::User => {
            tell(listeners, event::CONTACT_REQUEST_RECEIVED, || render::contact_request(request));
        }
        IdentityKind::Agent => tell(listeners, event::CONTACT_REQUEST_RECEIVED, || ContactRequestReceived {
            id: request.id,
            from_handle: request.requester.handle.as_deref().unwrap_or_default(),
            from_name: &request.requester.name,
            message: request.message.as_deref(),
            status: request.status.as_str(),
            inserted_at: request.inserted_at,
        }),
    }
}

pub(super) fn request_updated(shared: &Shared, request: &ContactRequest) {
    let directory = locked(&shared.directory);
    let listeners = [request.requester.id, request.recipient.id];
    let listeners = listeners.into_iter().flat_map(|party| directory.contacts_channels(party));
    tell(listeners, event::CONTACT_REQUEST_UPDATED, || ContactRequestUpdated {
        id: request.id,
        status: request.status.as_str(),
    });
}

pub(super) fn added(shared: &Shared, identity: IdentityId, contact: &Contact) {
    let Contact { id, profile, email: _, listed_in_directory, inserted_at } = contact;
    let is_agent = profile.kind == IdentityKind::Agent;
    tell(locked(&shared.directory).contacts_channels(identity), event::CONTACT_ADDED, || ContactAdded {
        id: *id,
        handle: &profile.handle,
        name: &profile.name,
        kind: profile.kind,
        description: profile.description.as_deref(),
        is_external: render::is_external(profile),
        listed_in_directory: is_agent.then_some(*listed_in_directory),
        inserted_at: *inserted_at,
    });
}

pub(super) fn removed(shared: &Shared, identity: IdentityId, contact: ContactId) {
    let directory = locked(&shared.directory);
    tell(directory.contacts_channels(identity), event::CONTACT_REMOVED, || ContactRemoved { id: contact });
}

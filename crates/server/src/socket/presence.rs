//! Who comes and goes, for the people who watch a room's participants.

use bandstand_domain::membership::ParticipantStatus;
use bandstand_store::{Store, StoreError};
use bandstand_wire::ids::{IdentityId, IdentityKind, RoomId};
use bandstand_wire::push::{AgentConnection, ParticipantPresence, PresenceSnapshot, event};

use super::audience::{count, json};
use super::channel::Subscriber;
use super::hub::Hub;
use super::locked;
use crate::auth::Caller;
use crate::service::access;

/// Tells the people in the rooms of `who` whether it is connected now. Costs nothing while no person watches any room.
pub(crate) async fn announce(hub: &Hub, store: &Store, who: Caller) {
    let shared = hub.shared();
    if !shared.rooms.are_watched() {
        return;
    }
    let rooms = match access::rooms_of(store, who.identity).await {
        Ok(rooms) => rooms,
        Err(error) => {
            tracing::warn!(%error, identity.id = %who.identity, "cannot announce presence");
            return;
        }
    };
    for room in rooms {
        shared.rooms.with(room, |state| {
            let mut watchers = state.participants.users().peekable();
            if watchers.peek().is_none() {
                return;
            }
            // Read while the room is locked: of two announcements that race, the later one tells the later state.
            let online = locked(&shared.directory).is_online(who.identity);
            tell(watchers, who.identity, who.kind, online);
        });
    }
}

/// Tells some people of a room whether somebody in it is connected.
pub(super) fn tell<'a>(
    watchers: impl Iterator<Item = &'a Subscriber>,
    id: IdentityId,
    kind: IdentityKind,
    online: bool,
) {
    let changed = json(&ParticipantPresence { id, kind, online });
    let connection = (kind == IdentityKind::Agent).then(|| json(&AgentConnection::new(id, online))).flatten();
    let mut told = 0;
    for watcher in watchers {
        if let Some(payload) = &changed {
            watcher.push(event::PARTICIPANT_PRESENCE_CHANGED, payload, None);
            told += 1;
        }
        if let Some(payload) = &connection {
            let name = if online { event::AGENT_CONNECTED } else { event::AGENT_DISCONNECTED };
            watcher.push(name, payload, None);
            told += 1;
        }
    }
    count(told);
}

/// Who of a room is connected, for the reply to a person's join.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn snapshot(hub: &Hub, store: &Store, room: RoomId) -> Result<PresenceSnapshot, StoreError> {
    let participants = access::participants(store, room).await?;
    let participant_presence = participants
        .into_iter()
        .filter(|participant| participant.status != ParticipantStatus::Blocked)
        .map(|participant| ParticipantPresence {
            id: participant.profile.id,
            kind: participant.profile.kind,
            online: hub.is_online(participant.profile.id),
        })
        .collect();
    Ok(PresenceSnapshot { participant_presence })
}

//! What all rooms of an agent share.

use std::sync::{Arc, OnceLock};

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use tokio::sync::Semaphore;

use super::settings::RuntimeSettings;
use crate::adapter::Adapter;
use crate::client::Client;
use crate::client::model::Me;
use crate::roster::Roster;
use crate::tools::{AgentTools, Binding, Toolbox};
use crate::turn::Turn;

/// What all rooms of an agent share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) me: Me,
    pub(super) adapter: Arc<dyn Adapter>,
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) settings: RuntimeSettings,
    /// A turn runs only with one of these; who waits longest gets the next.
    pub(super) places: Arc<Semaphore>,
    /// The room for contact events, once there is one.
    pub(super) hub: OnceLock<RoomId>,
}

impl Shared {
    pub(super) fn id(&self) -> IdentityId {
        self.me.id
    }

    pub(super) fn is_hub(&self, room: RoomId) -> bool {
        self.hub.get() == Some(&room)
    }

    /// The tools of one turn in a room.
    pub(super) fn tools(&self, room: RoomId, roster: &Roster, turn: &Turn, message: MessageId) -> AgentTools {
        let binding = Binding {
            agent: Some(self.me.id),
            roster: roster.clone(),
            hub_room: self.hub.get().copied(),
            turn: turn.clone(),
            message: Some(message),
            toolbox: if self.toolbox.changes() { self.toolbox.for_turn() } else { Arc::clone(&self.toolbox) },
        };
        AgentTools::new(self.client.clone(), room, binding)
    }
}

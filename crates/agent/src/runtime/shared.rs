//! What all rooms of an agent share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::settings::RuntimeSettings;
use crate::adapter::Adapter;
use crate::client::Client;
use crate::client::model::Me;
use crate::roster::Roster;
use crate::tools::{AgentTools, Binding, Toolbox};
use crate::turn::Turn;

/// Rooms that ask at the same time what there is to do.
pub(super) const LOOKS: usize = 16;

/// A room that has waited so long for that asks all the same: those before it may be waiting for a server that hangs.
const LOOK_WAIT: Duration = Duration::from_secs(1);

/// What all rooms of an agent share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) me: Me,
    pub(super) adapter: Arc<dyn Adapter>,
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) settings: RuntimeSettings,
    /// A turn runs only with one of these; who waits longest gets the next.
    pub(super) places: Arc<Semaphore>,
    /// After a start or a reconnect all rooms ask what there is to do; with these they do not all ask at once, each on a
    /// connection of its own.
    pub(super) looks: Semaphore,
    /// The room for contact events, once there is one.
    pub(super) hub: OnceLock<RoomId>,
}

impl Shared {
    pub(super) fn id(&self) -> IdentityId {
        self.me.id
    }

    /// A place to ask what there is to do, or none when that takes long.
    pub(super) async fn look(&self) -> Option<SemaphorePermit<'_>> {
        tokio::time::timeout(LOOK_WAIT, self.looks.acquire()).await.ok()?.ok()
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

//! Who may read or hear what, in the form that channels ask it.

use bandstand_domain::membership::Participant;
use bandstand_store::{Store, StoreError, participants};
use bandstand_wire::ids::{IdentityId, IdentityKind, RoomId};

/// Somebody may read a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomAccess {
    /// The room's sequence when this was read: whatever has a higher one came later.
    pub sequence: i64,
    /// Whether it is a participant itself, rather than the owner of one.
    pub is_participant: bool,
}

/// Whether `who` may read and hear `room`: a participant that is not blocked, or a user who owns an agent in it.
///
/// # Errors
/// When the store cannot be read.
pub async fn room_access(
    store: &Store,
    who: IdentityId,
    kind: IdentityKind,
    room: RoomId,
) -> Result<Option<RoomAccess>, StoreError> {
    let found = store.read("room_access", move |tx| Box::pin(participants::access(tx, who, kind, room))).await;
    let found: Option<participants::Access> = found?;
    Ok(found.map(|access| RoomAccess { sequence: access.sequence, is_participant: access.membership.is_some() }))
}

/// Everybody in a room; empty when there is no such room.
///
/// # Errors
/// When the store cannot be read.
pub async fn participants(store: &Store, room: RoomId) -> Result<Vec<Participant>, StoreError> {
    store.read("participants", move |tx| Box::pin(participants::of_room(tx, room))).await
}

/// The rooms that somebody takes part in.
///
/// # Errors
/// When the store cannot be read.
pub async fn rooms_of(store: &Store, who: IdentityId) -> Result<Vec<RoomId>, StoreError> {
    store.read("rooms_of", move |tx| Box::pin(participants::rooms_of(tx, who))).await
}

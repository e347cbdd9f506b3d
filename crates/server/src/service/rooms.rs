//! Creating, renaming, archiving and deleting rooms.

use bandstand_domain::event::Event;
use bandstand_domain::membership::{Participant, Role};
use bandstand_domain::room::{Room, RoomKind, RoomStatus};
use bandstand_store::participants::{self, Access, NewParticipant};
use bandstand_store::quotas::{LimitReached, Resource};
use bandstand_store::{StoreError, Writer, boards, rooms};
use bandstand_wire::ids::{IdentityKind, RoomId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::auth::Caller;
use crate::state::Services;

/// Why a change of a room is refused.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// No such room, or the caller may not know of it.
    #[error("room not found")]
    NotFound,
    /// Only an owner of the room may do that.
    #[error("only an owner of the room may do this")]
    NotOwner,
    /// The room is archived or closed.
    #[error("the room is {}: it can be read but not written to", .0.as_str())]
    NotActive(RoomStatus),
    /// A quota is used up.
    #[error(transparent)]
    Quota(#[from] LimitReached),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Services {
    /// Creates a room whose owner is the caller.
    ///
    /// # Errors
    /// [`RoomError::Quota`], or when the store fails.
    pub async fn create_room(
        &self,
        caller: Caller,
        title: Option<String>,
        task_id: Option<Uuid>,
    ) -> Result<Room, RoomError> {
        let (id, now) = (self.ids.room(), self.clock.now());
        let execution = (caller.kind == IdentityKind::Agent).then(|| self.ids.execution());
        let room = Room {
            id,
            title,
            description: None,
            task_id,
            status: RoomStatus::Active,
            kind: if task_id.is_some() { RoomKind::Task } else { RoomKind::Direct },
            creator: caller.identity,
            last_message_at: None,
            inserted_at: now,
            updated_at: now,
        };
        let quota = self.quota_rule(Resource::Rooms);
        self.store
            .write("create_room", move |tx| {
                Box::pin(async move {
                    if let Some(quota) = quota {
                        quota.claim::<RoomError>(tx, caller.identity).await?;
                    }
                    let advanced = rooms::insert(tx, &room).await?;
                    let status = Participant::initial_status(caller.kind);
                    let creator = NewParticipant {
                        room_key: advanced.key,
                        who: caller.identity,
                        role: Role::Owner,
                        status,
                        joined_sequence: 0,
                        execution,
                        at: now,
                    };
                    participants::insert(tx, creator).await?;
                    rooms::membership_changed(tx, advanced.key, 1, now).await?;
                    let (member, _) =
                        participants::one(tx, advanced.key, caller.identity).await?.ok_or(RoomError::NotFound)?;
                    tx.emit(Event::RoomAdded { member: member.clone(), room: room.clone() });
                    tx.emit(Event::ParticipantAdded { room: room.id, participant: member });
                    Ok(room)
                })
            })
            .await
    }

    /// Renames a room. The same title again changes nothing.
    ///
    /// # Errors
    /// [`RoomError`].
    pub async fn rename_room(&self, caller: Caller, id: RoomId, title: String) -> Result<Room, RoomError> {
        let now = self.clock.now();
        self.store
            .write("rename_room", move |tx| {
                Box::pin(async move {
                    let access = owned(tx, caller, id).await?;
                    match access.room.status {
                        RoomStatus::Active => {}
                        status @ (RoomStatus::Archived | RoomStatus::Closed) => {
                            return Err(RoomError::NotActive(status));
                        }
                    }
                    if access.room.title.as_deref() == Some(title.as_str()) {
                        return Ok(access.room);
                    }
                    rooms::set_title(tx, access.room_key, &title, now).await?;
                    updated(tx, access.room_key, Room { title: Some(title), updated_at: now, ..access.room }).await
                })
            })
            .await
    }

    /// Archives a room or opens it again; the same status again changes nothing.
    ///
    /// # Errors
    /// [`RoomError`].
    pub async fn set_room_status(&self, caller: Caller, id: RoomId, status: RoomStatus) -> Result<Room, RoomError> {
        let now = self.clock.now();
        self.store
            .write("set_room_status", move |tx| {
                Box::pin(async move {
                    let access = owned(tx, caller, id).await?;
                    if access.room.status == status {
                        return Ok(access.room);
                    }
                    rooms::set_status(tx, access.room_key, status, now).await?;
                    updated(tx, access.room_key, Room { status, updated_at: now, ..access.room }).await
                })
            })
            .await
    }

    /// Deletes a room: nobody finds it any more, and its open deliveries end as cancelled. Allowed to an owner of the
    /// room and to the user who owns an agent that owns it.
    ///
    /// # Errors
    /// [`RoomError`].
    pub async fn delete_room(&self, caller: Caller, id: RoomId) -> Result<Room, RoomError> {
        let now = self.clock.now();
        let room = self
            .store
            .write("delete_room", move |tx| {
                Box::pin(async move {
                    rooms::advance(tx, id).await?.ok_or(RoomError::NotFound)?;
                    let access = participants::access(tx, caller.identity, caller.kind, id).await?;
                    let access = access.ok_or(RoomError::NotFound)?;
                    if !participants::belongs_to(tx, access.room_key, access.member_key).await? {
                        return Err(RoomError::NotOwner);
                    }
                    let room = delete_in(tx, access.room_key, access.room, now).await?;
                    Ok::<_, RoomError>(room)
                })
            })
            .await?;
        self.removals.wake();
        Ok(room)
    }
}

/// Deletes a room whose sequence this transaction took. Its participants are taken out in the background: there may be
/// many, each with open deliveries.
pub(super) async fn delete_in(tx: &mut Writer, room_key: i64, room: Room, now: Timestamp) -> Result<Room, StoreError> {
    let members = participants::of_room(tx, room.id).await?;
    rooms::delete(tx, room_key, now).await?;
    let room = Room { updated_at: now, ..room };
    tx.emit(Event::RoomDeleted { room: room.clone(), members });
    Ok(room)
}

/// The caller's place in a room that it owns, whose sequence this takes.
async fn owned(tx: &mut Writer, caller: Caller, id: RoomId) -> Result<Access, RoomError> {
    rooms::advance(tx, id).await?.ok_or(RoomError::NotFound)?;
    let access = participants::access(tx, caller.identity, caller.kind, id).await?.ok_or(RoomError::NotFound)?;
    match access.membership {
        Some(own) if own.role == Role::Owner => Ok(access),
        _ => Err(RoomError::NotOwner),
    }
}

/// Announces a changed room to the people who may read it.
pub(super) async fn updated<E: From<StoreError>>(tx: &mut Writer, room_key: i64, room: Room) -> Result<Room, E> {
    let users = participants::readers(tx, room_key).await?;
    let overview = boards::overview(tx, room_key).await?;
    tx.emit(Event::RoomUpdated { room: room.clone(), overview, users });
    Ok(room)
}

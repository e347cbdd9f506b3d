//! Adding and removing participants.

use bandstand_domain::event::Event;
use bandstand_domain::membership::{self, MembershipError, Participant, Role};
use bandstand_domain::room::{Room, RoomKind, RoomStatus};
use bandstand_store::participants::NewParticipant;
use bandstand_store::quotas::Resource;
use bandstand_store::{StoreError, Writer, contacts, deliveries, participants, peers, rooms, tasks};
use bandstand_wire::ids::{IdentityId, IdentityKind, RoomId};
use bandstand_wire::time::Timestamp;

use crate::auth::Caller;
use crate::service::removals;
use crate::service::rooms::{delete_in, updated};
use crate::state::Services;

/// Why adding or removing a participant is refused.
#[derive(Debug, thiserror::Error)]
pub enum ParticipantError {
    /// No such room, or the caller is not in it.
    #[error("room not found")]
    RoomNotFound,
    /// Nobody of that id exists, or nobody of that id is in the room.
    #[error("participant not found")]
    NotFound,
    /// It is in the room already.
    #[error("already a participant of this room")]
    AlreadyIn,
    /// A rule of membership stands against it.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// The room has as many participants as it may have.
    #[error("a room may have at most {limit} participants")]
    Full {
        /// How many it may have.
        limit: i64,
        /// How many it has.
        current: i64,
    },
    /// The room is archived or closed.
    #[error("the room is {}: it can be read but not written to", .0.as_str())]
    NotActive(RoomStatus),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Services {
    /// Adds somebody to a room.
    ///
    /// # Errors
    /// [`ParticipantError`]; what the caller may grant is checked before whether the target is in already.
    pub async fn add_participant(
        &self,
        caller: Caller,
        id: RoomId,
        target: IdentityId,
        role: Role,
    ) -> Result<Participant, ParticipantError> {
        let (now, limit) = (self.clock.now(), self.limits.room_participants);
        let quota = self.quota_rule(Resource::Participants);
        let execution = self.ids.execution();
        self.store
            .write("add_participant", move |tx| {
                Box::pin(async move {
                    let advanced = rooms::advance(tx, id).await?.ok_or(ParticipantError::RoomNotFound)?;
                    let access = participants::access(tx, caller.identity, caller.kind, id).await?;
                    let access = access.ok_or(ParticipantError::RoomNotFound)?;
                    let own = access.membership.ok_or(ParticipantError::RoomNotFound)?;
                    active(access.room.status)?;
                    membership::may_grant(own.role, role)?;
                    let target_peerage = peers::peerage(tx, target).await?.ok_or(ParticipantError::NotFound)?;
                    let already = participants::one(tx, access.room_key, target).await?.is_some();
                    if already {
                        return Err(ParticipantError::AlreadyIn);
                    }
                    let own_peerage =
                        peers::peerage(tx, caller.identity).await?.ok_or(ParticipantError::RoomNotFound)?;
                    let is_contact = contacts::are_contacts(tx, caller.identity, target).await?;
                    if !membership::is_peer(&own_peerage, &target_peerage, is_contact) {
                        return Err(MembershipError::NotAPeer.into());
                    }
                    let status = Participant::initial_status(target_peerage.kind);
                    let key = access.room_key;
                    let newcomer = NewParticipant {
                        room_key: key,
                        who: target,
                        role,
                        status,
                        joined_sequence: advanced.sequence,
                        execution: (target_peerage.kind == IdentityKind::Agent).then_some(execution),
                        at: now,
                    };
                    if !participants::insert(tx, newcomer).await? {
                        return Err(ParticipantError::AlreadyIn);
                    }
                    let count = rooms::membership_changed(tx, key, 1, now).await?;
                    let limit = match quota {
                        Some(quota) => quota.most(tx, access.room.creator).await?,
                        None => i64::try_from(limit).unwrap_or(i64::MAX),
                    };
                    if count > limit {
                        return Err(ParticipantError::Full { limit, current: count - 1 });
                    }
                    let mut room = Room { updated_at: now, ..access.room };
                    if count > 2 && room.kind == RoomKind::Direct {
                        room.kind = RoomKind::Group;
                        rooms::set_kind(tx, key, room.kind).await?;
                    }
                    let (participant, _) =
                        participants::one(tx, key, target).await?.ok_or(ParticipantError::NotFound)?;
                    tx.emit(Event::RoomAdded { member: participant.clone(), room: room.clone() });
                    tx.emit(Event::ParticipantAdded { room: id, participant: participant.clone() });
                    updated::<ParticipantError>(tx, key, room).await?;
                    Ok(participant)
                })
            })
            .await
    }

    /// Removes somebody from a room, or lets the caller leave it. What was still open for it ends as cancelled.
    ///
    /// # Errors
    /// [`ParticipantError`].
    pub async fn remove_participant(
        &self,
        caller: Caller,
        id: RoomId,
        target: IdentityId,
    ) -> Result<Participant, ParticipantError> {
        let now = self.clock.now();
        let removed = self
            .store
            .write("remove_participant", move |tx| {
                Box::pin(async move {
                    let advanced = rooms::advance(tx, id).await?.ok_or(ParticipantError::RoomNotFound)?;
                    let access = participants::access(tx, caller.identity, caller.kind, id).await?;
                    let access = access.ok_or(ParticipantError::RoomNotFound)?;
                    access.membership.ok_or(ParticipantError::RoomNotFound)?;
                    active(access.room.status)?;
                    let key = access.room_key;
                    let (own, _) =
                        participants::one(tx, key, caller.identity).await?.ok_or(ParticipantError::RoomNotFound)?;
                    let (target, target_key) =
                        participants::one(tx, key, target).await?.ok_or(ParticipantError::NotFound)?;
                    let owners = participants::owners(tx, key).await?;
                    membership::may_remove(&own, &target, owners)?;
                    let gone = Gone { member: &target, member_key: target_key, reason: removals::REMOVED };
                    take_out(tx, access.room, key, advanced.sequence, gone, now).await?;
                    Ok::<_, ParticipantError>(target)
                })
            })
            .await?;
        self.removals.wake();
        Ok(removed)
    }
}

fn active(status: RoomStatus) -> Result<(), ParticipantError> {
    match status {
        RoomStatus::Active => Ok(()),
        RoomStatus::Archived | RoomStatus::Closed => Err(ParticipantError::NotActive(status)),
    }
}

/// Who leaves a room, and why its open deliveries end.
pub(super) struct Gone<'a> {
    pub(super) member: &'a Participant,
    pub(super) member_key: i64,
    pub(super) reason: &'static str,
}

/// Ends a participation, cancels what is open as far as one operation may, and announces it.
pub(super) async fn take_out(
    tx: &mut Writer,
    room: Room,
    room_key: i64,
    sequence: i64,
    gone: Gone<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    participants::leave(tx, room_key, gone.member_key, now).await?;
    let ended = deliveries::cancel_open(tx, room_key, gone.member_key, sequence, gone.reason, now).await?;
    if deliveries::is_full(&ended) {
        deliveries::remember_removal(tx, room_key, gone.member_key, sequence, gone.reason).await?;
    }
    if !ended.is_empty() {
        tx.emit(Event::DeliveriesEnded { room: room.id, sequences: ended });
    }
    tasks::remember_departure(tx, room_key, gone.member_key, sequence).await?;
    rooms::membership_changed(tx, room_key, -1, now).await?;
    let room = Room { updated_at: now, ..room };
    let who = gone.member.profile.id;
    let still_reads =
        gone.member.profile.kind == IdentityKind::User && !participants::agents_in(tx, who, room_key).await?.is_empty();
    tx.emit(Event::ParticipantRemoved { room: room.id, participant: gone.member.profile.clone() });
    tx.emit(Event::RoomRemoved { member: gone.member.clone(), room: room.clone(), still_reads });
    if gone.member.role == Role::Owner && participants::owners(tx, room_key).await? == 0 {
        // Only the deletion of an agent leaves a room without an owner; without an heir nobody could find the room.
        match participants::heir(tx, room_key, gone.member_key).await? {
            Some(heir) => participants::make_owner(tx, room_key, heir).await?,
            None => return delete_in(tx, room_key, room, now).await.map(drop),
        }
    }
    updated::<StoreError>(tx, room_key, room).await?;
    Ok(())
}

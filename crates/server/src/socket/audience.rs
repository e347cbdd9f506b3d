//! Who hears an event, and what they read. A payload is serialised once, and only when somebody hears it.

mod boards;
mod contacts;
mod control;

use std::sync::Arc;

use bandstand_domain::board::Overview;
use bandstand_domain::event::Event;
use bandstand_domain::identity::Profile;
use bandstand_domain::membership::{Participant, ParticipantStatus};
use bandstand_domain::message::Message;
use bandstand_domain::room::{Room, UNTITLED};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId, RoomId};
use bandstand_wire::phoenix::close_code;
use bandstand_wire::push::{ParticipantAdded, ParticipantRemoved, RoomAdded, RoomDeleted, RoomRemoved, event};
use bandstand_wire::time::Timestamp;
use serde::Serialize;

use super::activity;
use super::channel::Subscriber;
use super::closing::Closing;
use super::hub::Shared;
use super::locked;
use super::outbound::{Item, Mark};
use super::presence;
use crate::auth::Method;
use crate::render;

/// Announces one event to all who are entitled to it.
pub(crate) fn announce(shared: &Shared, event: &Event) {
    match event {
        Event::MessageCreated { message, held_back } => message_created(shared, message, held_back),
        Event::MessageReplayed { message, agents } => control::replayed(shared, message, agents),
        Event::AgentsSignalled { signal, agents } => control::signalled(shared, *signal, agents),
        Event::MessageUpdated { message } => to_readers(shared, event::MESSAGE_UPDATED, message),
        Event::EventCreated { message } => to_readers(shared, event::EVENT_CREATED, message),
        Event::RoomAdded { member, room } => room_added(shared, member, room),
        Event::RoomRemoved { member, room, still_reads } => room_removed(shared, member, room, *still_reads),
        Event::RoomUpdated { room, overview, users } => room_updated(shared, room, overview, users),
        Event::RoomDeleted { room, members } => room_deleted(shared, room, members),
        Event::ParticipantAdded { room, participant } => participant_added(shared, *room, participant),
        Event::ParticipantRemoved { room, participant } => participant_removed(shared, *room, participant),
        Event::ContactRequestReceived { request } => contacts::request_received(shared, request),
        Event::ContactRequestUpdated { request } => contacts::request_updated(shared, request),
        Event::ContactAdded { identity, contact } => contacts::added(shared, *identity, contact),
        Event::ContactRemoved { identity, contact } => contacts::removed(shared, *identity, *contact),
        Event::TaskCreated { task } => boards::task_created(shared, task),
        Event::TaskUpdated { task } => boards::task_updated(shared, task),
        Event::BoardUpdated { board } => boards::board_updated(shared, board),
        Event::KeyRevoked { key } => key_revoked(shared, *key),
        Event::KeyExpires { key, at } => locked(&shared.directory).key_ends(*key, *at),
        Event::TokensRevoked => tokens_revoked(shared),
        Event::IdentityRemoved { id } => identity_removed(shared, *id),
        // Only caches care, and who listens to the ledger.
        Event::IdentityChanged { .. } | Event::DeliveriesEnded { .. } => {}
    }
}

/// Serialises a payload. It can only fail by a bug in a type of ours; then the event is lost and the log says so.
pub(crate) fn json(payload: &impl Serialize) -> Option<Arc<str>> {
    match serde_json::to_string(payload) {
        Ok(text) => Some(text.into()),
        Err(error) => {
            tracing::error!(%error, "cannot serialise a payload");
            None
        }
    }
}

/// Counts pushes.
pub(crate) fn count(pushes: u64) {
    if pushes > 0 {
        metrics::counter!("socket_pushes_total").increment(pushes);
    }
}

/// Queues an event for each of them, serialised when there is a first.
pub(super) fn tell<'a, P: Serialize>(
    listeners: impl Iterator<Item = &'a Subscriber>,
    event: &'static str,
    payload: impl FnOnce() -> P,
) {
    let mut listeners = listeners.peekable();
    if listeners.peek().is_none() {
        return;
    }
    let Some(payload) = json(&payload()) else { return };
    let mut told = 0;
    for listener in listeners {
        listener.push(event, &payload, None);
        told += 1;
    }
    count(told);
}

/// Agents hear only what is work for them: a message that mentions them, and never their own. Their clients take
/// whatever arrives as work, so this is the only filter; who is stopped hears it when it may go on. People hear
/// everything, their own messages as well.
fn message_created(shared: &Shared, message: &Message, held_back: &[IdentityId]) {
    shared.rooms.with(message.room, |room| {
        let mark = Mark { room: message.room, sequence: message.sequence };
        let mentioned = message
            .mentions
            .iter()
            .filter(|mention| !mention.reference && mention.id != message.sender.id && !held_back.contains(&mention.id))
            .flat_map(|mention| room.chat.agent(mention.id))
            .map(|agent| (agent, Some(mark)));
        let mut listeners = mentioned.chain(room.chat.users().map(|user| (user, None))).peekable();
        if listeners.peek().is_none() {
            return;
        }
        let Some(payload) = json(&render::message(message)) else { return };
        let mut told = 0;
        for (listener, mark) in listeners {
            listener.push(event::MESSAGE_CREATED, &payload, mark);
            told += 1;
        }
        count(told);
    });
}

/// A row of the room's history, to people.
fn to_readers(shared: &Shared, event: &'static str, message: &Message) {
    shared.rooms.with(message.room, |room| tell(room.chat.users(), event, || render::message(message)));
}

fn room_added(shared: &Shared, member: &Participant, room: &Room) {
    let Participant { profile, owner, .. } = member;
    let directory = locked(&shared.directory);
    tell(directory.rooms_channels(profile.id), event::ROOM_ADDED, || RoomAdded {
        id: room.id,
        title: title(room),
        task_id: room.task_id,
        status: room.status.as_str(),
        kind: room.kind.as_str(),
        inserted_at: room.inserted_at,
        updated_at: room.updated_at,
    });
    drop(directory);
    shared.rooms.with(room.id, |state| {
        state.silence(profile.id, profile.kind, false);
        owner.iter().for_each(|owner| recheck(state, *owner));
    });
}

fn room_removed(shared: &Shared, member: &Participant, room: &Room, still_reads: bool) {
    let Participant { profile, owner, .. } = member;
    tell_removed(shared, profile.id, room);
    shared.rooms.with(room.id, |state| {
        if still_reads {
            state.silence_tasks(profile.id);
        } else {
            state.silence(profile.id, profile.kind, true);
        }
        owner.iter().for_each(|owner| recheck(state, *owner));
        if activity::end(&mut state.working, profile.id) {
            activity::announce(state);
        }
    });
}

fn tell_removed(shared: &Shared, member: IdentityId, room: &Room) {
    let now = shared.clock.now();
    tell(locked(&shared.directory).rooms_channels(member), event::ROOM_REMOVED, || removed(room, now));
}

fn removed(room: &Room, now: Timestamp) -> RoomRemoved<'_> {
    RoomRemoved {
        id: room.id,
        title: title(room),
        task_id: room.task_id,
        status: "removed",
        kind: room.kind.as_str(),
        inserted_at: room.inserted_at,
        updated_at: room.updated_at,
        removed_at: now,
    }
}

/// A user may read a room because of its agents in it. When one of them comes or goes, the user's channels hear nothing
/// more until their connections have asked again whether they may.
fn recheck(room: &mut super::rooms::Room, user: IdentityId) {
    for subscriber in room.reopen(user) {
        let Subscriber { socket, channel } = subscriber;
        socket.outbound.hold(channel.id);
        socket.outbound.push(Item::Recheck(channel));
    }
}

fn room_updated(shared: &Shared, room: &Room, overview: &Overview, users: &[IdentityId]) {
    let is_working = shared.rooms.with(room.id, |state| !state.working.is_empty()).unwrap_or(false);
    let overview = shared.limits.tasks.then(|| render::board::overview(room, overview, is_working));
    let directory = locked(&shared.directory);
    let listeners = users.iter().flat_map(|user| directory.rooms_channels(*user));
    tell(listeners, event::ROOM_UPDATED, || render::me_room(room, overview));
}

fn room_deleted(shared: &Shared, room: &Room, members: &[Participant]) {
    shared.rooms.with(room.id, |state| {
        tell(state.participants.all(), event::ROOM_DELETED, || RoomDeleted { id: room.id });
        state.silence_all();
        state.working.clear();
    });
    members.iter().for_each(|member| tell_removed(shared, member.profile.id, room));
}

fn participant_added(shared: &Shared, room: RoomId, participant: &Participant) {
    let Participant { profile, role, status, .. } = participant;
    let is_agent = profile.kind == IdentityKind::Agent;
    shared.rooms.with(room, |state| {
        tell(state.participants.all(), event::PARTICIPANT_ADDED, || ParticipantAdded {
            id: profile.id,
            name: &profile.name,
            kind: profile.kind,
            handle: Some(&profile.handle),
            description: profile.description.as_deref(),
            is_external: is_agent.then_some(true),
            role: role.as_str(),
            status: status.as_str(),
        });
        // Who is connected already will not come online: nothing else would tell those who watch.
        if *status != ParticipantStatus::Blocked && locked(&shared.directory).is_online(profile.id) {
            presence::tell(state.participants.users(), profile.id, profile.kind, true);
        }
    });
}

fn participant_removed(shared: &Shared, room: RoomId, participant: &Profile) {
    shared.rooms.with(room, |state| {
        tell(state.participants.all(), event::PARTICIPANT_REMOVED, || ParticipantRemoved {
            id: participant.id,
            name: &participant.name,
            kind: participant.kind,
            handle: Some(&participant.handle),
        });
    });
}

fn key_revoked(shared: &Shared, key: KeyId) {
    let closing = Closing { code: close_code::GOING_AWAY, reason: "key revoked" };
    locked(&shared.directory).with_key(key).for_each(|socket| socket.outbound.close_now(closing));
}

fn tokens_revoked(shared: &Shared) {
    let closing = Closing { code: close_code::GOING_AWAY, reason: "token revoked" };
    let directory = locked(&shared.directory);
    directory
        .all()
        .filter(|socket| socket.method == Method::Token)
        .for_each(|socket| socket.outbound.close_now(closing));
}

fn identity_removed(shared: &Shared, id: IdentityId) {
    let closing = Closing { code: close_code::GOING_AWAY, reason: "identity removed" };
    locked(&shared.directory).of(id).for_each(|socket| socket.outbound.close_now(closing));
}

fn title(room: &Room) -> &str {
    room.title.as_deref().unwrap_or(UNTITLED)
}

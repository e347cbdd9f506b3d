//! Who may join a topic, and what the reply to a join holds.

use std::sync::Arc;

use bandstand_store::{Store, StoreError};
use bandstand_wire::ids::{IdentityKind, RoomId};
use bandstand_wire::phoenix::{Ref, Topic};
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::channel::Channel;
use super::directory::is_own;
use super::hub::Hub;
use super::presence;
use crate::auth::Caller;
use crate::service::access;

/// The response of a join that has nothing more to say.
pub(crate) const NOTHING: &str = "{}";

/// What decides about a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The topic is about the caller itself.
    Own,
    /// The caller's control channel: joining it makes the connection the live one.
    Control,
    /// Whoever may hear this room.
    Room(RoomId),
    /// Nobody of the caller's kind, or another identity.
    Closed,
}

/// Looks at the topic and the caller, without the store.
pub(crate) fn gate(topic: &Topic, caller: Caller) -> Gate {
    match *topic {
        Topic::ChatRoom(room) | Topic::RoomParticipants(room) | Topic::RoomTasks(room) => Gate::Room(room),
        Topic::RoomActivity(room) => match caller.kind {
            IdentityKind::User => Gate::Room(room),
            IdentityKind::Agent => Gate::Closed,
        },
        Topic::AgentControl(_) if is_own(topic, caller.identity, caller.kind) => Gate::Control,
        _ if is_own(topic, caller.identity, caller.kind) => Gate::Own,
        _ => Gate::Closed,
    }
}

/// What became of a question that a connection asked on the side.
#[derive(Debug)]
pub(crate) enum Settled {
    /// A join of a room's topic: the response, or that it is refused.
    Join {
        /// The channel, subscribed and held.
        channel: Arc<Channel>,
        /// What the reply repeats.
        reference: Ref,
        /// The response of the reply; none when the caller may not hear it.
        verdict: Result<Option<String>, StoreError>,
    },
    /// Whether a channel may still be heard.
    Recheck {
        /// The channel, held.
        channel: Arc<Channel>,
        /// Whether it may.
        verdict: Result<bool, StoreError>,
    },
    /// Something that leaves nothing to do.
    Done,
}

/// A question on its way.
pub(crate) type Asked = BoxFuture<'static, Settled>;

/// Asks whether a channel's topic may be heard, and what the reply then holds.
pub(crate) fn ask(
    hub: Hub,
    store: Store,
    caller: Caller,
    channel: Arc<Channel>,
    room: RoomId,
    reference: Ref,
) -> Asked {
    Box::pin(async move {
        let verdict = response(&hub, &store, caller, &channel.topic, room).await;
        Settled::Join { channel, reference, verdict }
    })
}

/// Asks again, for a channel that was joined before.
pub(crate) fn ask_again(store: Store, caller: Caller, channel: Arc<Channel>, room: RoomId) -> Asked {
    Box::pin(async move {
        let verdict = may_hear(&store, caller, &channel.topic, room).await.map(|sequence| sequence.is_some());
        Settled::Recheck { channel, verdict }
    })
}

/// The room's sequence, if the caller may hear the topic.
async fn may_hear(store: &Store, caller: Caller, topic: &Topic, room: RoomId) -> Result<Option<i64>, StoreError> {
    let access = access::room_access(store, caller.identity, caller.kind, room).await?;
    // The task board is for those who take part; the owner of a participating agent only reads the talk.
    let enough = |access: &access::RoomAccess| access.is_participant || !matches!(topic, Topic::RoomTasks(_));
    Ok(access.filter(enough).map(|access| access.sequence))
}

async fn response(
    hub: &Hub,
    store: &Store,
    caller: Caller,
    topic: &Topic,
    room: RoomId,
) -> Result<Option<String>, StoreError> {
    // While tasks are off, their topic is as absent as their routes.
    if matches!(topic, Topic::RoomTasks(_)) && !hub.has_tasks() {
        return Ok(None);
    }
    let Some(sequence) = may_hear(store, caller, topic, room).await? else { return Ok(None) };
    hub.joined(room, sequence);
    // People see at once who is there and who works; agents read nothing from the reply.
    Ok(Some(match (topic, caller.kind) {
        (Topic::RoomParticipants(_), IdentityKind::User) => object(&presence::snapshot(hub, store, room).await?),
        (Topic::RoomActivity(_), IdentityKind::User) => {
            let activity_snapshot = bandstand_wire::push::ActivityChanged { working_agents: hub.activity(room) };
            object(&ActivityReply { activity_snapshot })
        }
        _ => NOTHING.to_owned(),
    }))
}

#[derive(Serialize)]
struct ActivityReply {
    activity_snapshot: bandstand_wire::push::ActivityChanged,
}

fn object(response: &impl Serialize) -> String {
    super::audience::json(response).map_or_else(|| NOTHING.to_owned(), |text| text.as_ref().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::ids::{IdentityId, KeyId};
    use uuid::Uuid;

    #[test]
    fn the_table_of_topics() {
        let (me, other) = (IdentityId(Uuid::from_u128(1)), IdentityId(Uuid::from_u128(2)));
        let room = RoomId(Uuid::from_u128(3));
        let caller = |kind| Caller { identity: me, kind, key: KeyId(Uuid::from_u128(4)) };
        let table = [
            (Topic::AgentControl(me), Gate::Control, Gate::Closed),
            (Topic::AgentControl(other), Gate::Closed, Gate::Closed),
            (Topic::AgentRooms(me), Gate::Own, Gate::Closed),
            (Topic::AgentContacts(me), Gate::Own, Gate::Closed),
            (Topic::AgentRooms(other), Gate::Closed, Gate::Closed),
            (Topic::UserRooms(me), Gate::Closed, Gate::Own),
            (Topic::UserContacts(me), Gate::Closed, Gate::Own),
            (Topic::Tasks(me), Gate::Closed, Gate::Own),
            (Topic::UserRooms(other), Gate::Closed, Gate::Closed),
            (Topic::ChatRoom(room), Gate::Room(room), Gate::Room(room)),
            (Topic::RoomParticipants(room), Gate::Room(room), Gate::Room(room)),
            (Topic::RoomTasks(room), Gate::Room(room), Gate::Room(room)),
            (Topic::RoomActivity(room), Gate::Closed, Gate::Room(room)),
        ];
        for (topic, agent, user) in table {
            assert_eq!(gate(&topic, caller(IdentityKind::Agent)), agent, "an agent, {topic}");
            assert_eq!(gate(&topic, caller(IdentityKind::User)), user, "a user, {topic}");
        }
    }
}

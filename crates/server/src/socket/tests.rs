//! The hub with listeners that are queues without a network behind them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandstand_domain::clock::Clock;
use bandstand_domain::event::Event;
use bandstand_domain::identity::Profile;
use bandstand_domain::membership::{Participant, Role};
use bandstand_domain::message::{Mention, Message, MessageKind};
use bandstand_domain::room::{Room, RoomKind, RoomStatus};
use bandstand_store::{Commit, CommitSink};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId, MessageId, RoomId};
use bandstand_wire::phoenix::{Ref, Topic};
use bandstand_wire::time::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::activity::ActivityDetail;
use super::channel::{Channel, SocketHandle, Subscriber};
use super::hub::Hub;
use super::outbound::{Item, Work};
use crate::auth::{Authenticated, Caller, Method};
use crate::settings::Limits;

const ROOM: RoomId = RoomId(Uuid::from_u128(500));

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }
}

fn hub() -> Hub {
    Hub::new(Arc::new(Limits::default()), Arc::new(Still))
}

fn id(number: u128) -> IdentityId {
    IdentityId(Uuid::from_u128(number))
}

fn profile(number: u128, kind: IdentityKind) -> Profile {
    Profile { id: id(number), kind, handle: format!("p{number}"), name: format!("P{number}"), description: None }
}

fn member(number: u128, kind: IdentityKind, owner: Option<u128>) -> Participant {
    Participant {
        profile: profile(number, kind),
        owner: owner.map(id),
        role: Role::Member,
        status: Participant::initial_status(kind),
        joined_at: Timestamp::from_micros(0),
        stopped: false,
    }
}

fn room() -> Room {
    Room {
        id: ROOM,
        title: None,
        description: None,
        task_id: None,
        status: RoomStatus::Active,
        kind: RoomKind::Group,
        creator: id(1),
        last_message_at: None,
        inserted_at: Timestamp::from_micros(0),
        updated_at: Timestamp::from_micros(0),
    }
}

fn message(sequence: i64, sender: u128, mentions: &[(u128, bool)]) -> Message {
    let mention = |(number, reference): &(u128, bool)| Mention {
        id: id(*number),
        handle: format!("p{number}"),
        name: format!("P{number}"),
        reference: *reference,
    };
    Message {
        id: MessageId(Uuid::from_u128(sequence as u128)),
        room: ROOM,
        sequence,
        kind: MessageKind::Text,
        sender: profile(sender, IdentityKind::Agent),
        content: "hi".into(),
        mentions: mentions.iter().map(mention).collect(),
        attachments: Vec::new(),
        metadata: None,
        deliveries: Vec::new(),
        inserted_at: Timestamp::from_micros(0),
        updated_at: Timestamp::from_micros(0),
    }
}

/// A connection without a network.
struct Listener {
    hub: Hub,
    socket: Arc<SocketHandle>,
}

impl Listener {
    fn connect(hub: &Hub, number: u128, kind: IdentityKind) -> Self {
        let caller = Caller { identity: id(number), kind, key: KeyId(Uuid::from_u128(number)) };
        Self::with(hub, Authenticated { caller, method: Method::Key, until: None })
    }

    fn with(hub: &Hub, who: Authenticated) -> Self {
        Self { hub: hub.clone(), socket: hub.register(who).0 }
    }

    fn channel(&self, topic: Topic) -> Subscriber {
        Subscriber { socket: Arc::clone(&self.socket), channel: self.hub.channel(topic, &topic.to_string(), Ref::NONE) }
    }

    fn join(&self, topics: &[Topic]) -> Vec<Arc<Channel>> {
        let join = |topic: &Topic| {
            let subscriber = self.channel(*topic);
            let channel = Arc::clone(&subscriber.channel);
            self.hub.subscribe(subscriber);
            channel
        };
        topics.iter().map(join).collect()
    }

    fn in_room(hub: &Hub, number: u128, kind: IdentityKind) -> Self {
        let listener = Self::connect(hub, number, kind);
        let own = match kind {
            IdentityKind::Agent => Topic::AgentRooms(id(number)),
            IdentityKind::User => Topic::UserRooms(id(number)),
        };
        listener.join(&[own, Topic::ChatRoom(ROOM), Topic::RoomParticipants(ROOM)]);
        listener
    }

    /// What is queued, as `family event`.
    fn heard(&self) -> Vec<String> {
        let mut heard = Vec::new();
        while let Poll::Ready(work) = self.socket.outbound.poll_work(&Context::from_waker(Waker::noop())) {
            match work {
                Work::Batch { items, frames, bytes } => {
                    heard.extend(items.iter().map(|item| match item {
                        Item::Frame(text) => text.clone(),
                        Item::Push { channel, event, .. } => format!("{} {event}", channel.topic.family()),
                        Item::Recheck(channel) => format!("recheck {}", channel.topic.family()),
                        Item::Close(closing) => closing.code.to_string(),
                    }));
                    self.socket.outbound.written(frames, bytes);
                }
                Work::CloseNow(closing) => {
                    heard.push(format!("now {}", closing.code));
                    break;
                }
            }
        }
        heard
    }
}

async fn publish(hub: &Hub, sequence: i64, events: Vec<Event>) {
    hub.publish(vec![Commit { room: Some((ROOM, sequence)), events }]);
    hub.announced().await;
}

#[tokio::test]
async fn an_agent_hears_only_what_is_work_for_it() {
    let hub = hub();
    let [sender, mentioned, named, other] =
        [1, 2, 3, 4].map(|number| Listener::in_room(&hub, number, IdentityKind::Agent));
    let person = Listener::in_room(&hub, 5, IdentityKind::User);
    let message = message(1, 1, &[(2, false), (3, true), (1, false), (99, false)]);
    publish(&hub, 1, vec![Event::MessageCreated { message: message.clone(), held_back: Vec::new() }]).await;
    publish(&hub, 2, vec![Event::MessageUpdated { message: message.clone() }]).await;
    publish(&hub, 3, vec![Event::EventCreated { message }]).await;
    assert_eq!(mentioned.heard(), ["chat_room message_created"]);
    for silent in [sender, named, other] {
        assert!(silent.heard().is_empty());
    }
    let all = ["chat_room message_created", "chat_room message_updated", "chat_room event_created"];
    assert_eq!(person.heard(), all);
}

#[tokio::test]
async fn whoever_leaves_falls_silent_until_it_is_back() {
    let hub = hub();
    let agent = Listener::in_room(&hub, 2, IdentityKind::Agent);
    let gone = member(2, IdentityKind::Agent, None);
    let created =
        |sequence| Event::MessageCreated { message: message(sequence, 1, &[(2, false)]), held_back: Vec::new() };
    publish(&hub, 1, vec![Event::RoomRemoved { member: gone.clone(), room: room(), still_reads: false }]).await;
    publish(&hub, 2, vec![created(2)]).await;
    assert_eq!(agent.heard(), ["agent_rooms room_removed"]);
    publish(&hub, 3, vec![Event::RoomAdded { member: gone, room: room() }, created(3)]).await;
    assert_eq!(agent.heard(), ["agent_rooms room_added", "chat_room message_created"]);
}

#[tokio::test]
async fn an_owner_is_asked_again_when_its_agent_comes_or_goes() {
    let hub = hub();
    let owner = Listener::connect(&hub, 5, IdentityKind::User);
    let channels = owner.join(&[Topic::ChatRoom(ROOM)]);
    let agent = member(2, IdentityKind::Agent, Some(5));
    let removed = Event::RoomRemoved { member: agent, room: room(), still_reads: false };
    publish(&hub, 1, vec![removed]).await;
    publish(&hub, 2, vec![Event::MessageCreated { message: message(2, 1, &[]), held_back: Vec::new() }]).await;
    assert_eq!(owner.heard(), ["recheck chat_room"]);
    owner.socket.outbound.open(channels[0].id, None);
    assert_eq!(owner.heard(), ["chat_room message_created"]);
}

#[tokio::test]
async fn the_end_of_a_room() {
    let hub = hub();
    let agent = Listener::in_room(&hub, 2, IdentityKind::Agent);
    let person = Listener::in_room(&hub, 5, IdentityKind::User);
    let members = vec![member(2, IdentityKind::Agent, None), member(5, IdentityKind::User, None)];
    publish(&hub, 1, vec![Event::RoomDeleted { room: room(), members }]).await;
    publish(&hub, 2, vec![Event::ParticipantAdded { room: ROOM, participant: member(9, IdentityKind::Agent, None) }])
        .await;
    assert_eq!(agent.heard(), ["room_participants room_deleted", "agent_rooms room_removed"]);
    assert_eq!(person.heard(), ["room_participants room_deleted", "user_rooms room_removed"]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_overtakes_another_waits_for_it() {
    let hub = hub();
    let person = Listener::in_room(&hub, 5, IdentityKind::User);
    let created = Event::MessageCreated { message: message(2, 1, &[]), held_back: Vec::new() };
    let updated = Event::MessageUpdated { message: message(2, 1, &[]) };
    hub.joined(ROOM, 1);
    publish(&hub, 3, vec![updated.clone()]).await;
    assert!(person.heard().is_empty());
    publish(&hub, 2, vec![created]).await;
    assert_eq!(person.heard(), ["chat_room message_created", "chat_room message_updated"]);
    publish(&hub, 5, vec![updated]).await;
    assert!(person.heard().is_empty());
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(person.heard(), ["chat_room message_updated"]);
}

#[tokio::test]
async fn a_revoked_key_or_a_removed_identity_ends_its_connections() {
    let hub = hub();
    let [one, two, three] = [1, 2, 3].map(|number| Listener::connect(&hub, number, IdentityKind::Agent));
    hub.publish(vec![Commit {
        room: None,
        events: vec![Event::KeyRevoked { key: one.socket.caller.key }, Event::IdentityRemoved { id: id(2) }],
    }]);
    hub.announced().await;
    assert_eq!(one.heard(), ["now 1001"]);
    assert_eq!(two.heard(), ["now 1001"]);
    assert!(three.heard().is_empty());
}

#[tokio::test]
async fn the_newer_connection_takes_over_at_its_control_join() {
    let hub = hub();
    let control = Topic::AgentControl(id(1));
    let [old, new, polite] = [1, 1, 1].map(|number| Listener::connect(&hub, number, IdentityKind::Agent));
    assert!(!hub.is_live(id(1)));
    assert!(hub.take_over(old.channel(control), false).is_ok());
    assert!(hub.take_over(old.channel(control), true).is_ok(), "it does not give way to itself");
    assert!(hub.is_live(id(1)));
    assert!(hub.take_over(polite.channel(control), true).is_err());
    assert!(old.heard().is_empty());
    assert!(hub.take_over(new.channel(control), false).is_ok());
    assert_eq!(old.heard(), ["agent_control supersede", "1000"]);
    hub.deregister(&old.socket);
    assert!(hub.is_live(id(1)));
    hub.deregister(&new.socket);
    assert!(!hub.is_live(id(1)));
    assert!(hub.is_online(id(1)));
    hub.deregister(&polite.socket);
    assert!(!hub.is_online(id(1)));
    assert_eq!(hub.sockets(), 0);
}

#[tokio::test(start_paused = true)]
async fn activity_is_told_once_and_expires() {
    let hub = hub();
    let person = Listener::connect(&hub, 5, IdentityKind::User);
    person.join(&[Topic::RoomActivity(ROOM)]);
    let agent = profile(2, IdentityKind::Agent);
    let detail = Some(ActivityDetail { kind: "tool_call".into(), name: Some("search".into()) });
    hub.report_activity(ROOM, &agent, true, None);
    hub.report_activity(ROOM, &agent, true, None);
    hub.report_activity(ROOM, &agent, true, detail);
    assert_eq!(person.heard().len(), 2);
    assert_eq!(hub.activity(ROOM).len(), 1);
    tokio::time::sleep(Limits::default().activity_ttl + Duration::from_millis(300)).await;
    assert_eq!(person.heard(), ["room_activity activity_changed"]);
    assert!(hub.activity(ROOM).is_empty());
    hub.report_activity(ROOM, &agent, false, None);
    assert!(person.heard().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_announces_what_was_committed_and_waits() {
    let hub = hub();
    let person = Listener::in_room(&hub, 5, IdentityKind::User);
    let token = hub.track();
    hub.publish(vec![Commit {
        room: Some((ROOM, 1)),
        events: vec![Event::MessageCreated { message: message(1, 1, &[]), held_back: Vec::new() }],
    }]);
    let stopping = tokio::spawn({
        let hub = hub.clone();
        async move { hub.shutdown(Duration::from_secs(10)).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(person.heard(), ["chat_room message_created", "1012"]);
    assert!(!stopping.is_finished());
    drop(token);
    stopping.await.unwrap();
    let late = Listener::connect(&hub, 6, IdentityKind::User);
    assert_eq!(late.heard(), ["1012"]);
}

#[tokio::test]
async fn nothing_stays_of_rooms_that_nobody_hears() {
    let hub = hub();
    let person = Listener::connect(&hub, 5, IdentityKind::User);
    let topics = [Topic::ChatRoom(ROOM), Topic::RoomParticipants(ROOM)];
    let subscribers = topics.map(|topic| person.channel(topic));
    subscribers.iter().cloned().for_each(|subscriber| hub.subscribe(subscriber));
    assert!(hub.shared().rooms.are_watched());
    // A channel that was never subscribed takes nothing away.
    hub.unsubscribe(&person.channel(topics[0]));
    assert!(hub.shared().rooms.contains(ROOM));
    subscribers.iter().for_each(|subscriber| hub.unsubscribe(subscriber));
    assert!(!hub.shared().rooms.contains(ROOM));
    assert!(!hub.shared().rooms.are_watched());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    // Whoever joined, whoever left and whoever is mentioned: nobody hears what is not for them.
    #[test]
    fn no_event_reaches_someone_not_entitled_to_it(
        agents in proptest::collection::btree_set(1..12_u128, 0..8),
        gone in proptest::collection::btree_set(1..12_u128, 0..4),
        mentions in proptest::collection::btree_map(1..12_u128, any::<bool>(), 0..8),
        sender in 1..12_u128,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let hub = hub();
            let listeners: Vec<_> =
                agents.iter().map(|number| (*number, Listener::in_room(&hub, *number, IdentityKind::Agent))).collect();
            for (at, number) in gone.iter().enumerate() {
                let member = member(*number, IdentityKind::Agent, None);
                publish(&hub, at as i64, vec![Event::RoomRemoved { member, room: room(), still_reads: false }]).await;
            }
            listeners.iter().for_each(|(_, listener)| drop(listener.heard()));
            let mentions: Vec<(u128, bool)> = mentions.into_iter().collect();
            let sequence = gone.len() as i64;
            publish(&hub, sequence, vec![Event::MessageCreated { message: message(sequence, sender, &mentions), held_back: Vec::new() }]).await;
            let heard: BTreeSet<u128> =
                listeners.iter().filter(|(_, one)| !one.heard().is_empty()).map(|(number, _)| *number).collect();
            let entitled: BTreeSet<u128> = mentions
                .iter()
                .filter(|(number, reference)| !reference && *number != sender)
                .map(|(number, _)| *number)
                .filter(|number| agents.contains(number) && !gone.contains(number))
                .collect();
            assert_eq!(heard, entitled);
        });
    }
}

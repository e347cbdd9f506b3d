//! For any agents, rooms and mentions: nobody hears what it is not mentioned in, everybody is served what it is
//! mentioned in, and the order is kept.

use std::collections::BTreeSet;

use bandstand_server::settings::Limits;
use bandstand_store::testing::TestEngine;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Caller, Room, TestApp};

const AGENTS: usize = 4;
const ROOMS: usize = 2;

/// A message of an agent in a room: whom it mentions and whom it only refers to.
#[derive(Clone, Debug)]
struct Said {
    room: usize,
    sender: usize,
    mentions: BTreeSet<usize>,
    references: BTreeSet<usize>,
}

fn said() -> impl Strategy<Value = Said> {
    let some = || proptest::collection::btree_set(0..AGENTS, 0..AGENTS);
    (0..ROOMS, 0..AGENTS, some(), some()).prop_map(|(room, sender, mentions, references)| {
        let mentions: BTreeSet<usize> = mentions.into_iter().filter(|who| *who != sender).collect();
        let references = references.into_iter().filter(|who| *who != sender && !mentions.contains(who)).collect();
        Said { room, sender, mentions, references }
    })
}

/// Each room's members, and what is said.
fn story() -> impl Strategy<Value = (Vec<BTreeSet<usize>>, Vec<Said>)> {
    let members = proptest::collection::vec(proptest::collection::btree_set(0..AGENTS, 1..=AGENTS), ROOMS);
    (members, proptest::collection::vec(said(), 0..10))
}

fn messages_reach_whom_they_mention(engine: TestEngine) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(crate::support::run(engine, Limits::default(), |app| async move {
        let agents = app.agents(["ana", "bob", "cy", "dee"]).await;
        let handle = tokio::runtime::Handle::current();
        // Proptest is not asynchronous, so it runs on a thread of its own.
        let tested = tokio::task::spawn_blocking(move || {
            let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
            let holds = |(members, said): (Vec<BTreeSet<usize>>, Vec<Said>)| {
                handle.block_on(Box::pin(holds(&app, &agents, &members, &said)));
                Ok(())
            };
            runner.run(&story(), holds).map_err(|why| why.to_string())
        });
        if let Err(why) = tested.await.unwrap() {
            panic!("{why}");
        }
    }));
}

async fn holds(app: &TestApp, agents: &[Caller], members: &[BTreeSet<usize>], said: &[Said]) {
    let olga = app.owner();
    let mut rooms: Vec<Room> = Vec::new();
    for members in members {
        let members: Vec<&Caller> = members.iter().map(|who| &agents[*who]).collect();
        rooms.push(app.room_with(&olga, &members).await);
    }
    let mut sockets = Vec::new();
    for (who, agent) in agents.iter().enumerate() {
        let mut socket = agent.socket().await;
        for (room, members) in rooms.iter().zip(members) {
            let joined = socket.try_join(&format!("chat_room:{}", room.id)).await;
            assert_eq!(joined.is_ok(), members.contains(&who), "{joined:?}");
        }
        sockets.push(socket);
    }

    // What each agent is to be told, room by room, in order.
    let mut due: Vec<Vec<(usize, String)>> = vec![Vec::new(); agents.len()];
    for message in said {
        let room = &rooms[message.room];
        let all = |kind: &str, of: &BTreeSet<usize>| -> Vec<serde_json::Value> {
            of.iter().map(|who| serde_json::json!({"id": agents[*who].id, "kind": kind})).collect()
        };
        let mentions = [all("reference", &message.references), all("mention", &message.mentions)].concat();
        let body = serde_json::json!({"message": {"content": "x", "mentions": mentions}});
        let reply = agents[message.sender].post(&room.path("/messages"), body).await;
        let inside = |who: &usize| members[message.room].contains(who);
        let named_are_inside = message.mentions.iter().chain(&message.references).all(inside);
        if !inside(&message.sender) {
            reply.assert_error(404, "not_found");
        } else if !named_are_inside {
            reply.assert_error(422, "mentioned_participant_not_in_room");
        } else if message.mentions.is_empty() {
            reply.assert_error(422, "mentions_required");
        } else {
            let id = reply.assert_status(201).id();
            for who in &message.mentions {
                due[*who].push((message.room, id.clone()));
            }
        }
    }

    for ((agent, socket), due) in agents.iter().zip(&mut sockets).zip(&due) {
        for (room, id) in due {
            let push = socket.push().await;
            assert_eq!(push.event, "message_created");
            assert_eq!(push.topic, format!("chat_room:{}", rooms[*room].id));
            assert_eq!(push.payload["id"], *id);
        }
        socket.assert_silent().await;
        for (number, room) in rooms.iter().enumerate() {
            let here: Vec<&String> = due.iter().filter(|(of, _)| *of == number).map(|(_, id)| id).collect();
            if !members[number].iter().any(|who| agents[*who].id == agent.id) {
                agent.get(&room.path("/messages/next")).await.assert_error(404, "not_found");
                continue;
            }
            assert_eq!(
                agent.get(&room.path("/messages?limit=100")).await.strings("id").iter().collect::<Vec<_>>(),
                here
            );
            for id in here {
                assert_eq!(agent.next_id(room).await.as_ref(), Some(id));
                agent.handles(room, id).await;
            }
            assert_eq!(agent.next_id(room).await, None);
        }
    }
    for socket in sockets {
        socket.close().await;
    }
}

mod messages_reach_whom_they_mention {
    use bandstand_store::testing::TestEngine;

    #[test]
    fn sqlite() {
        super::messages_reach_whom_they_mention(TestEngine::Sqlite);
    }

    #[test]
    fn postgres() {
        super::messages_reach_whom_they_mention(TestEngine::Postgres);
    }
}

//! What the machine could do at best: a handler on the server's own HTTP library that makes the same inserts through the
//! same store, and neither authenticates nor checks nor renders anything. Runs in a process of its own, as the server.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use bandstand_domain::identity::{Agent, Profile, User, UserRole};
use bandstand_domain::membership::{ParticipantStatus, Role};
use bandstand_domain::message::{Mention, MessageKind};
use bandstand_domain::room::{Room, RoomKind, RoomStatus};
use bandstand_store::deliveries::{self, Place};
use bandstand_store::messages::{self, NewMessage};
use bandstand_store::participants::NewParticipant;
use bandstand_store::{Database, Store, StoreError, Writer, identities, participants, rooms};
use bandstand_wire::ids::{IdentityId, IdentityKind, MessageId, RoomId};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::measure::posts::{ROOMS, SENDERS};
use crate::options::CeilingOptions;
use crate::process::LISTENING;
use crate::setup::TEXT;
use crate::world::{Ids, now, open_store};

/// The request of one sender for one room.
pub(crate) fn path(room: usize, sender: usize) -> String {
    format!("/{room}/{sender}")
}

pub(crate) fn run(options: &CeilingOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(Box::pin(serve(options)))
}

async fn serve(options: &CeilingOptions) -> Result<()> {
    let database = match &options.postgres {
        Some(url) => Database::Postgres { url: url.clone() },
        None => Database::Sqlite { path: options.data.join("ceiling.db") },
    };
    let store = open_store(database).await?;
    let ids = Ids::default();
    let rooms = furnish(&store, &ids).await?;
    let ceiling = Arc::new(Ceiling { store, ids, rooms });
    let router = Router::new().route("/{room}/{sender}", post(insert)).with_state(ceiling);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{LISTENING}{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(router.clone());
        // A client that goes away ends its connection, and nothing else.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

struct Ceiling {
    store: Store,
    ids: Ids,
    rooms: Vec<Furnished>,
}

/// A room, and the keys of those in it.
struct Furnished {
    id: RoomId,
    senders: Vec<i64>,
    recipient: i64,
    mention: Mention,
}

async fn insert(
    State(ceiling): State<Arc<Ceiling>>,
    Path((room, sender)): Path<(usize, usize)>,
    // Read as the server reads it; what is stored is as long as what the server stores.
    _body: Bytes,
) -> Result<(StatusCode, String), StatusCode> {
    let room = ceiling.rooms.get(room).ok_or(StatusCode::NOT_FOUND)?;
    let sender_key = *room.senders.get(sender).ok_or(StatusCode::NOT_FOUND)?;
    let (id, at) = (MessageId(ceiling.ids.next()), now());
    let (room_id, recipient, mentions) = (room.id, room.recipient, [room.mention.clone()]);
    let content = format!("@[[{}]] {TEXT}", room.mention.id);
    let stored = ceiling.store.write("ceiling", move |tx| {
        Box::pin(async move {
            let advanced = rooms::advance(tx, room_id).await?.ok_or_else(|| missing("room"))?;
            let (room_key, sequence) = (advanced.key, advanced.sequence);
            let at = rooms::message_posted(tx, room_key, MessageKind::Text, at).await?;
            let message = NewMessage {
                room_key,
                sequence,
                id,
                kind: MessageKind::Text,
                sender_key,
                content: &content,
                mentions: &mentions,
                attachments: &[],
                metadata: None,
                at,
            };
            messages::insert(tx, &message).await?;
            deliveries::insert(tx, Place { room_key, sequence, member_key: recipient }, at).await?;
            participants::tally_sent(tx, room_key, sender_key, Some(sequence), at).await?;
            Ok(())
        })
    });
    let stored: Result<(), StoreError> = stored.await;
    stored.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok((StatusCode::CREATED, format!(r#"{{"data":{{"id":"{id}","success":true}}}}"#)))
}

/// Creates the rooms, all senders in each of them, and a recipient of its own for each.
async fn furnish(store: &Store, ids: &Ids) -> Result<Vec<Furnished>, StoreError> {
    let owner = IdentityId(ids.next());
    let senders: Vec<Profile> = (0..SENDERS).map(|number| profile(ids, &format!("sender-{number}"))).collect();
    let known = senders.clone();
    let made: Result<(), StoreError> = store
        .write("furnish", move |tx| {
            Box::pin(async move {
                insert_owner(tx, owner).await?;
                for sender in known {
                    insert_agent(tx, owner, sender).await?;
                }
                Ok(())
            })
        })
        .await;
    made?;
    let mut rooms = Vec::new();
    for number in 0..=ROOMS {
        let (id, senders) = (RoomId(ids.next()), senders.clone());
        let recipient = profile(ids, &format!("recipient-{number}"));
        let room: Result<Furnished, StoreError> = store
            .write("furnish", move |tx| Box::pin(async move { insert_room(tx, owner, id, &senders, recipient).await }))
            .await;
        rooms.push(room?);
    }
    Ok(rooms)
}

fn profile(ids: &Ids, name: &str) -> Profile {
    Profile {
        id: IdentityId(ids.next()),
        kind: IdentityKind::Agent,
        handle: format!("owner/{name}"),
        name: name.to_owned(),
        description: Some("An agent that only measures.".to_owned()),
    }
}

async fn insert_owner(tx: &mut Writer, id: IdentityId) -> Result<(), StoreError> {
    let owner = User {
        profile: Profile {
            id,
            kind: IdentityKind::User,
            handle: "owner".to_owned(),
            name: "owner".to_owned(),
            description: None,
        },
        email: String::new(),
        first_name: String::new(),
        last_name: String::new(),
        role: UserRole::Admin,
        listed_in_directory: false,
        disabled_at: None,
        inserted_at: now(),
        updated_at: now(),
    };
    identities::insert_user(tx, &owner).await.map(drop)
}

async fn insert_agent(tx: &mut Writer, owner: IdentityId, profile: Profile) -> Result<(), StoreError> {
    let agent = Agent {
        slug: profile.name.clone(),
        profile,
        owner,
        is_global: false,
        shared_with_organization: false,
        listed_in_directory: false,
        registry_access: false,
        inserted_at: now(),
        updated_at: now(),
    };
    identities::insert_agent(tx, &agent).await.map(drop)
}

async fn insert_room(
    tx: &mut Writer,
    owner: IdentityId,
    id: RoomId,
    senders: &[Profile],
    recipient: Profile,
) -> Result<Furnished, StoreError> {
    let room = Room {
        id,
        title: Some("Room".to_owned()),
        description: None,
        task_id: None,
        status: RoomStatus::Active,
        kind: RoomKind::Group,
        creator: owner,
        last_message_at: None,
        inserted_at: now(),
        updated_at: now(),
    };
    let mention =
        Mention { id: recipient.id, handle: recipient.handle.clone(), name: recipient.name.clone(), reference: false };
    insert_agent(tx, owner, recipient).await?;
    let key = rooms::insert(tx, &room).await?.key;
    let mut keys = Vec::new();
    for member in senders.iter().map(|sender| sender.id).chain([mention.id]) {
        let new = NewParticipant {
            room_key: key,
            who: member,
            role: Role::Member,
            status: ParticipantStatus::Inactive,
            joined_sequence: 1,
            execution: None,
            at: now(),
        };
        participants::insert(tx, new).await?;
        keys.push(participants::member_key(tx, member).await?.ok_or_else(|| missing("member"))?);
    }
    let recipient = keys.pop().ok_or_else(|| missing("recipient"))?;
    Ok(Furnished { id, senders: keys, recipient, mention })
}

fn missing(what: &str) -> StoreError {
    StoreError::Bug(format!("the {what} is not there"))
}

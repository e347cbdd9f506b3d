//! Reading: rooms, participants, peers, and pages of a room's history. Each is one snapshot.

use std::collections::HashMap;

use bandstand_domain::board::Overview;
use bandstand_domain::delivery::StatusFilter;
use bandstand_domain::identity::Agent;
use bandstand_domain::membership::{Participant, Peer};
use bandstand_domain::message::{Message, MessageKind};
use bandstand_domain::room::Room;
use bandstand_store::identities::AgentQuery;
use bandstand_store::participants::Access;
use bandstand_store::peers::PeerQuery;
use bandstand_store::rooms::{ListedRoom, RoomQuery};
use bandstand_store::walk::{self, Window};
use bandstand_store::{Reader, StoreError, boards, identities, messages, participants, peers, rooms};
use bandstand_wire::ids::{IdentityId, IdentityKind, MessageId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::auth::Caller;
use crate::state::Services;

/// Why a room cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such room, or the caller may not know of it.
    #[error("room not found")]
    RoomNotFound,
    /// An anchor is no message of the room.
    #[error("message not found")]
    MessageNotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Most participants that a list of rooms shows for each.
pub const ROSTER_MAX: i64 = 100;

/// Rows, and how many there are in all where that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<T> {
    /// The rows: one more than asked for when more follow.
    pub rows: Vec<T>,
    /// All of them.
    pub total: Option<i64>,
}

/// A room of an agent, with its first participants where they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRoom {
    /// The room.
    pub room: Room,
    /// The first participants by id, and how many there are.
    pub roster: Option<(Vec<Participant>, i64)>,
}

/// A room of a user, with what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRoom {
    /// The room and the user's own place in it.
    pub listed: ListedRoom,
    /// The first participants by id, and how many there are.
    pub roster: Option<(Vec<Participant>, i64)>,
    /// The newest row, if there is one.
    pub last_message: Option<Option<Message>>,
    /// The user's agents in the room.
    pub via: Option<Vec<IdentityId>>,
    /// What people see of the room besides, while tasks are on.
    pub overview: Option<Overview>,
}

/// What to add to each room of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomExtras {
    /// The first participants.
    pub participants: bool,
    /// The newest row.
    pub last_message: bool,
    /// The user's agents in it.
    pub membership: bool,
    /// How many rooms there are in all.
    pub total: bool,
}

/// Which part of a room's history to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// A page by position.
    Window(Window),
    /// Newest first, but only what was posted after a moment.
    Since(Timestamp, Window),
    /// What is newer than a message, oldest first.
    After(MessageId, i64),
    /// What is older than a message, newest first.
    Before(MessageId, i64),
    /// What is around a message, newest first.
    Around(MessageId, i64),
}

/// A page of a room's history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPage {
    /// The rows: one more than asked for when more follow.
    pub rows: Vec<Message>,
    /// Rows in all (of the kinds asked for), for offset pages.
    pub total: i64,
    /// Whether there is anything older and newer than an `Around` page.
    pub beyond: Option<(bool, bool)>,
}

async fn readable(tx: &mut Reader, caller: Caller, room: RoomId) -> Result<Access, ReadError> {
    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
    access.ok_or(ReadError::RoomNotFound)
}

async fn roster(tx: &mut Reader, room_key: i64) -> Result<(Vec<Participant>, i64), StoreError> {
    let shown = participants::page(tx, room_key, None, None, ROSTER_MAX, 0).await?;
    Ok((shown, participants::count(tx, room_key, None).await?))
}

impl Services {
    /// A room that the caller may read, with its row counts by kind.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn room(&self, caller: Caller, id: RoomId) -> Result<(Room, Vec<(MessageKind, i64)>), ReadError> {
        self.store
            .read("room", move |tx| {
                Box::pin(async move {
                    let access = readable(tx, caller, id).await?;
                    let counts = rooms::message_counts(tx, access.room_key).await?;
                    Ok((access.room, counts))
                })
            })
            .await
    }

    /// The caller's own place in a room that it takes part in.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn place(&self, caller: Caller, room: RoomId) -> Result<Access, ReadError> {
        self.store
            .read("place", move |tx| {
                Box::pin(async move {
                    let access = readable(tx, caller, room).await?;
                    access.membership.is_some().then_some(access).ok_or(ReadError::RoomNotFound)
                })
            })
            .await
    }

    /// An agent's rooms, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn agent_rooms(
        &self,
        agent: IdentityId,
        limit: i64,
        offset: i64,
        with_roster: bool,
    ) -> Result<Listed<AgentRoom>, StoreError> {
        self.store
            .read("agent_rooms", move |tx| {
                Box::pin(async move {
                    let total = rooms::count_of_member(tx, agent).await?;
                    let mut rows = Vec::new();
                    for (room, key) in rooms::of_member(tx, agent, limit, offset).await? {
                        let roster = if with_roster { Some(roster(tx, key).await?) } else { None };
                        rows.push(AgentRoom { room, roster });
                    }
                    Ok(Listed { rows, total: Some(total) })
                })
            })
            .await
    }

    /// A user's rooms.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn user_rooms(&self, query: RoomQuery, extras: RoomExtras) -> Result<Listed<UserRoom>, StoreError> {
        let with_tasks = self.limits.tasks;
        self.store
            .read("user_rooms", move |tx| {
                Box::pin(async move {
                    let total = if extras.total { Some(rooms::count_listed(tx, &query).await?) } else { None };
                    let mut rows = Vec::new();
                    let found = rooms::listed(tx, &query).await?;
                    let keys: Vec<i64> = found.iter().map(|listed| listed.key).collect();
                    let mut overviews = if with_tasks { boards::overviews(tx, &keys).await? } else { HashMap::new() };
                    for listed in found {
                        let overview = overviews.remove(&listed.key);
                        let roster = if extras.participants { Some(roster(tx, listed.key).await?) } else { None };
                        let last_message = if extras.last_message {
                            Some(match messages::newest(tx, listed.key).await? {
                                Some(newest) => messages::one(tx, listed.room.id, listed.key, newest).await?,
                                None => None,
                            })
                        } else {
                            None
                        };
                        let via = if extras.membership {
                            Some(participants::agents_in(tx, query.user, listed.key).await?)
                        } else {
                            None
                        };
                        rows.push(UserRoom { listed, roster, last_message, via, overview });
                    }
                    Ok(Listed { rows, total })
                })
            })
            .await
    }

    /// Everybody in a room that the caller may read, in id order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn participants(&self, caller: Caller, room: RoomId) -> Result<Vec<Participant>, ReadError> {
        self.store
            .read("participants", move |tx| {
                Box::pin(async move {
                    readable(tx, caller, room).await?;
                    Ok(participants::of_room(tx, room).await?)
                })
            })
            .await
    }

    /// A page of the participants of a room that the caller may read, in id order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn participants_page(
        &self,
        caller: Caller,
        room: RoomId,
        kind: Option<IdentityKind>,
        after: Option<IdentityId>,
        limit: i64,
        offset: i64,
    ) -> Result<Listed<Participant>, ReadError> {
        self.store
            .read("participants_page", move |tx| {
                Box::pin(async move {
                    let access = readable(tx, caller, room).await?;
                    let rows = participants::page(tx, access.room_key, kind, after, limit, offset).await?;
                    Ok(Listed { rows, total: Some(participants::count(tx, access.room_key, kind).await?) })
                })
            })
            .await
    }

    /// Whom an agent or user may recruit. A room to leave out that the caller may not read counts as one that does not
    /// exist: what the list lacks would tell who is in it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn peers(&self, caller: Caller, query: PeerQuery) -> Result<Listed<Peer>, StoreError> {
        self.store
            .read("peers", move |tx| {
                Box::pin(async move {
                    let mut query = query;
                    if let Some(room) = query.not_in
                        && participants::access(tx, caller.identity, caller.kind, room).await?.is_none()
                    {
                        query.not_in = None;
                    }
                    let rows = peers::list(tx, &query).await?;
                    Ok(Listed { rows, total: Some(peers::count(tx, &query).await?) })
                })
            })
            .await
    }

    /// A user's agents, each with the key that a cursor needs.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn agents_of(&self, query: AgentQuery) -> Result<Listed<(Agent, i64)>, StoreError> {
        self.store
            .read("agents_of", move |tx| {
                Box::pin(async move {
                    let rows = identities::agents_of(tx, &query).await?;
                    Ok(Listed { rows, total: Some(identities::count_agents_of(tx, &query).await?) })
                })
            })
            .await
    }

    /// The messages that mention the calling agent, by what became of them.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn agent_messages(
        &self,
        caller: Caller,
        room: RoomId,
        filter: StatusFilter,
        window: Window,
    ) -> Result<Listed<Message>, ReadError> {
        self.store
            .read("agent_messages", move |tx| {
                Box::pin(async move {
                    let access = readable(tx, caller, room).await?;
                    let own = access.membership.ok_or(ReadError::RoomNotFound)?;
                    // What was open when it was removed from the room ended then, even where that is not yet written.
                    let floor = match filter {
                        StatusFilter::Unprocessed
                        | StatusFilter::Pending
                        | StatusFilter::Processing
                        | StatusFilter::Failed => own.joined_sequence,
                        StatusFilter::Processed | StatusFilter::All => 0,
                    };
                    let window = Window { after: window.after.max(floor), ..window };
                    let sequences = walk::deliveries(tx, access.room_key, access.member_key, filter, window).await?;
                    let rows = messages::at(tx, room, access.room_key, &sequences).await?;
                    Ok(Listed { rows, total: Some(own.tallies.of(filter)) })
                })
            })
            .await
    }

    /// What the calling agent needs to remember: all it sent, and all texts that mention it.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn agent_context(
        &self,
        caller: Caller,
        room: RoomId,
        window: Window,
    ) -> Result<Listed<Message>, ReadError> {
        self.store
            .read("agent_context", move |tx| {
                Box::pin(async move {
                    let access = readable(tx, caller, room).await?;
                    let own = access.membership.ok_or(ReadError::RoomNotFound)?;
                    let sequences = walk::context(tx, access.room_key, access.member_key, window).await?;
                    let rows = messages::at(tx, room, access.room_key, &sequences).await?;
                    Ok(Listed { rows, total: Some(own.tallies.context()) })
                })
            })
            .await
    }

    /// A page of the history of a room that the caller may read: texts and events of these kinds.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn history(
        &self,
        caller: Caller,
        room: RoomId,
        kinds: Vec<MessageKind>,
        place: Place,
    ) -> Result<HistoryPage, ReadError> {
        self.store
            .read("history", move |tx| {
                Box::pin(async move {
                    let access = readable(tx, caller, room).await?;
                    let key = access.room_key;
                    let (sequences, beyond) = sequences_at(tx, key, &kinds, place).await?;
                    let rows = messages::at(tx, room, key, &sequences).await?;
                    let counts = rooms::message_counts(tx, key).await?;
                    let total = counts.iter().filter(|(kind, _)| kinds.contains(kind)).map(|(_, count)| count).sum();
                    Ok(HistoryPage { rows, total, beyond })
                })
            })
            .await
    }
}

async fn anchor(tx: &mut Reader, room_key: i64, id: MessageId) -> Result<i64, ReadError> {
    messages::locate(tx, room_key, id).await?.ok_or(ReadError::MessageNotFound)
}

async fn sequences_at(
    tx: &mut Reader,
    key: i64,
    kinds: &[MessageKind],
    place: Place,
) -> Result<(Vec<i64>, Option<(bool, bool)>), ReadError> {
    match place {
        Place::Window(window) => Ok((walk::history(tx, key, kinds, window).await?, None)),
        Place::Since(moment, window) => {
            let after = walk::last_until(tx, key, moment).await?.max(window.after);
            Ok((walk::history(tx, key, kinds, Window { after, ..window }).await?, None))
        }
        Place::After(id, limit) => {
            let after = anchor(tx, key, id).await?;
            Ok((walk::history(tx, key, kinds, Window { after, ..Window::oldest(limit + 1) }).await?, None))
        }
        Place::Before(id, limit) => {
            let before = anchor(tx, key, id).await?;
            Ok((walk::history(tx, key, kinds, Window { before, ..Window::newest(limit + 1) }).await?, None))
        }
        Place::Around(id, limit) => {
            let anchor = anchor(tx, key, id).await?;
            around(tx, key, kinds, anchor, limit).await
        }
    }
}

/// The anchor in the middle of a window, newest first. What one side is short of, the other makes up.
async fn around(
    tx: &mut Reader,
    key: i64,
    kinds: &[MessageKind],
    anchor: i64,
    limit: i64,
) -> Result<(Vec<i64>, Option<(bool, bool)>), ReadError> {
    let mut newer = walk::history(tx, key, kinds, Window { after: anchor, ..Window::oldest(limit + 1) }).await?;
    let mut older = walk::history(tx, key, kinds, Window { before: anchor + 1, ..Window::newest(limit + 1) }).await?;
    let found = |rows: &[i64]| i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let older_shown = found(&older).min((limit - limit / 2).max(limit - found(&newer)));
    let newer_shown = found(&newer).min(limit - older_shown);
    let beyond = (found(&older) > older_shown, found(&newer) > newer_shown);
    older.truncate(usize::try_from(older_shown).unwrap_or(0));
    newer.truncate(usize::try_from(newer_shown).unwrap_or(0));
    newer.reverse();
    newer.extend(older);
    Ok((newer, Some(beyond)))
}

//! What happens in a room, as it happens: live over the socket, and after an interruption what was missed over REST.
//! Rows come in the room's order, none twice and none left out.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::phoenix::{Topic, event};
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::{Client, refused, row_of};
use super::model::{Delivery, Participant, Working};
use super::socket::{NoSocket, Push, Socket};

/// Happenings that wait to be looked at.
const WAITING: usize = 1024;
/// Rows that are known again when they come a second time.
const KNOWN: usize = 4096;
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LONGEST: Duration = Duration::from_secs(10);

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A row was posted: as it came.
    Row(Value),
    /// A message came further.
    Delivery { message: MessageId, deliveries: Vec<Delivery> },
    /// Who works just now.
    Working(Vec<Working>),
    /// Who is connected: of everybody, or a change.
    Presence(Vec<(IdentityId, bool)>),
    /// Somebody joined.
    Joined(Participant),
    /// Somebody left.
    Left(IdentityId),
    /// The connection is there, and what was missed was told.
    Connected,
    /// It is lost, for this reason; it will come back.
    Lost(String),
    /// Nothing more will come.
    Ended(anyhow::Error),
}

/// Follows a room.
pub(crate) struct Feed {
    client: Client,
    room: RoomId,
    me: IdentityId,
    /// The newest row that was told.
    last: Option<MessageId>,
    known: Known,
    out: mpsc::Sender<Happening>,
}

impl Feed {
    /// Starts to follow a room: everything after the row `last` is told, or everything when there was none. It ends with
    /// the receiver.
    pub(crate) fn start(
        client: &Client,
        room: RoomId,
        me: IdentityId,
        last: Option<MessageId>,
    ) -> mpsc::Receiver<Happening> {
        let (out, happenings) = mpsc::channel(WAITING);
        let mut known = Known::default();
        if let Some(last) = last {
            known.note(last);
        }
        let feed = Self { client: client.clone(), room, me, last, known, out };
        tokio::spawn(feed.run());
        happenings
    }

    async fn run(mut self) {
        let mut wait = RETRY_FIRST;
        loop {
            let ended = self.connected().await;
            let why = match ended {
                Ended::Unheard => return,
                Ended::Final(error) => {
                    let _ = self.out.send(Happening::Ended(error)).await;
                    return;
                }
                Ended::Lost { why, worked } => {
                    if worked {
                        wait = RETRY_FIRST;
                    }
                    why
                }
            };
            if self.out.send(Happening::Lost(format!("{why:#}"))).await.is_err() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.out.closed() => return,
            }
            wait = (wait * 2).min(RETRY_LONGEST);
        }
    }

    /// One connection, to its end.
    async fn connected(&mut self) -> Ended {
        let topics = [
            Topic::ChatRoom(self.room),
            Topic::RoomParticipants(self.room),
            Topic::RoomActivity(self.room),
            Topic::UserRooms(self.me),
        ];
        let (mut socket, joined) = match Socket::open(&self.client.credentials, &topics).await {
            Ok(opened) => opened,
            Err(NoSocket::Final(error)) => return Ended::Final(error),
            Err(NoSocket::Later(why)) => return Ended::Lost { why, worked: false },
        };
        // After the join, so that nothing falls between the two: what is pushed from now on waits in the socket.
        if let Err(error) = self.catch_up().await {
            let gone = refused(&error).is_some_and(|refused| matches!(refused.status, 401 | 403 | 404));
            return if gone { Ended::Final(error) } else { Ended::Lost { why: error, worked: false } };
        }
        if self.out.send(Happening::Connected).await.is_err() {
            return Ended::Unheard;
        }
        for push in joined {
            if let Some(ended) = self.pushed(push).await {
                return ended;
            }
        }
        loop {
            let push = tokio::select! {
                push = socket.next() => match push {
                    Ok(push) => push,
                    Err(why) => return Ended::Lost { why, worked: true },
                },
                () = self.out.closed() => {
                    socket.close().await;
                    return Ended::Unheard;
                }
            };
            if let Some(ended) = self.pushed(push).await {
                return ended;
            }
        }
    }

    /// Tells what was posted after the last row.
    async fn catch_up(&mut self) -> anyhow::Result<()> {
        loop {
            let (rows, more) = match self.last {
                Some(last) => {
                    let page = self.client.newer(self.room, last).await?;
                    (page.rows, page.has_more)
                }
                None => (self.everything().await?, false),
            };
            let none = rows.is_empty();
            for row in rows {
                self.row(row).await?;
            }
            if !more || none {
                return Ok(());
            }
        }
    }

    /// A room that had no row when it was looked at first: all there is, oldest first.
    async fn everything(&self) -> anyhow::Result<Vec<Value>> {
        let mut rows: Vec<Value> = Vec::new();
        loop {
            let before = rows.last().map(|row| row_of(row).map(|row| row.id)).transpose()?;
            let page = self.client.older(self.room, before, super::client::PAGE).await?;
            let more = page.has_more && !page.rows.is_empty();
            rows.extend(page.rows);
            if !more {
                rows.reverse();
                return Ok(rows);
            }
        }
    }

    /// Tells a row, unless it was told before.
    async fn row(&mut self, row: Value) -> anyhow::Result<()> {
        let id = row_of(&row)?.id;
        if self.known.note(id) {
            self.last = Some(id);
            // Whether anybody listens is seen at the next await of the feed.
            let _ = self.out.send(Happening::Row(row)).await;
        }
        Ok(())
    }

    async fn pushed(&mut self, push: Push) -> Option<Ended> {
        let here = push.topic.room().is_none_or(|room| room == self.room);
        let payload = if push.event == event::REPLY {
            push.payload.get("response").cloned().unwrap_or_default()
        } else {
            push.payload
        };
        let happening = match (push.topic, push.event.as_str()) {
            (Topic::ChatRoom(_), "message_created" | "event_created") if here => {
                if let Err(why) = self.row(payload).await {
                    return Some(Ended::Lost { why, worked: true });
                }
                None
            }
            (Topic::UserRooms(_), "delivery_updated") => self.delivery(&payload),
            (Topic::UserRooms(_), "room_removed") if self.is_this(&payload) => {
                return Some(Ended::Final(anyhow::anyhow!("you are no longer in this room")));
            }
            (Topic::RoomActivity(_), event::REPLY | "activity_changed") => {
                list(&payload, "working_agents").map(Happening::Working)
            }
            (Topic::RoomParticipants(_), event::REPLY) => {
                let rows = payload.get("participant_presence").and_then(Value::as_array);
                rows.map(|rows| Happening::Presence(rows.iter().filter_map(presence).collect()))
            }
            (Topic::RoomParticipants(_), "participant_presence_changed") => {
                presence(&payload).map(|one| Happening::Presence(vec![one]))
            }
            (Topic::RoomParticipants(_), "participant_added") => {
                serde_json::from_value(payload).ok().map(Happening::Joined)
            }
            (Topic::RoomParticipants(_), "participant_removed") => identity(&payload).map(Happening::Left),
            (Topic::RoomParticipants(_), "room_deleted") => {
                return Some(Ended::Final(anyhow::anyhow!("the room was deleted")));
            }
            _ => None,
        };
        self.out.send(happening?).await.err().map(|_| Ended::Unheard)
    }

    fn delivery(&self, payload: &Value) -> Option<Happening> {
        let id = |key: &str| payload.get(key)?.as_str();
        if id("chat_room_id")?.parse::<RoomId>().ok()? != self.room {
            return None;
        }
        let message = id("message_id")?.parse().ok()?;
        Some(Happening::Delivery { message, deliveries: list(payload, "deliveries")? })
    }

    fn is_this(&self, payload: &Value) -> bool {
        payload.get("id").and_then(Value::as_str).and_then(|id| id.parse::<RoomId>().ok()) == Some(self.room)
    }
}

enum Ended {
    /// Nobody listens any more.
    Unheard,
    /// For good.
    Final(anyhow::Error),
    /// For a while; and whether the connection had worked.
    Lost { why: anyhow::Error, worked: bool },
}

fn list<T: serde::de::DeserializeOwned>(payload: &Value, key: &str) -> Option<Vec<T>> {
    serde_json::from_value(payload.get(key)?.clone()).ok()
}

fn identity(payload: &Value) -> Option<IdentityId> {
    payload.get("id")?.as_str()?.parse().ok()
}

fn presence(payload: &Value) -> Option<(IdentityId, bool)> {
    Some((identity(payload)?, payload.get("online")?.as_bool()?))
}

/// The newest ids, to know a row again.
#[derive(Default)]
struct Known {
    ids: HashSet<MessageId>,
    order: VecDeque<MessageId>,
}

impl Known {
    /// Whether it is new.
    fn note(&mut self, id: MessageId) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_row_is_new_once() {
        let mut known = Known::default();
        let id = |n: usize| MessageId(Uuid::from_u128(n as u128));
        assert!(known.note(id(1)) && !known.note(id(1)));
        for n in 2..=KNOWN + 1 {
            assert!(known.note(id(n)));
        }
        assert_eq!((known.ids.len(), known.order.len()), (KNOWN, KNOWN));
        assert!(!known.note(id(KNOWN + 1)));
    }
}

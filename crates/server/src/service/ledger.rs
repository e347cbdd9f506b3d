//! The delivery ledger: gathers what is recorded and what this server sees, and lets the one rule answer.

use bandstand_domain::identity::Profile;
use bandstand_domain::ledger::{self, Account, Facts, Named};
use bandstand_store::ledger::{Endings, Head, Record, Subject};
use bandstand_store::participants::Access;
use bandstand_store::{Reader, ledger as records, messages, participants};
use bandstand_wire::ids::{IdentityId, IdentityKind, MessageId, RoomId};
use bandstand_wire::time::Timestamp;

pub use bandstand_store::ledger::Asked;

use crate::auth::Caller;
use crate::service::lists::ReadError;
use crate::service::removals::{AGENT_DELETED, REMOVED};
use crate::state::Services;

/// What the reasons of deliveries are called that end in the background.
pub const ENDINGS: Endings = Endings { removed: REMOVED, deleted: AGENT_DELETED, expired: "age" };

/// Whom an answer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// Somebody who is in the room, or was.
    Member(Profile),
    /// Nobody whom the room ever knew, as asked for: whether there is such a one is not told.
    Nobody {
        /// The id that was asked for.
        id: Option<IdentityId>,
        /// The handle that was asked for.
        handle: Option<String>,
    },
}

/// What became of a message for one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounted {
    /// Which message.
    pub message: MessageId,
    /// Where.
    pub room: RoomId,
    /// For whom.
    pub whom: Whom,
    /// Whether the message was delivered to it.
    pub is_recipient: bool,
    /// The answer.
    pub account: Account,
    /// When it was so.
    pub as_of: Timestamp,
}

/// What may be told to a caller of a message.
enum Reach {
    /// Of everybody.
    All,
    /// Of the caller itself, by its key.
    Own(i64),
}

impl Services {
    /// What became of a message for each agent that it was delivered to, or who marked it: after the position `after`,
    /// each with its own position.
    ///
    /// People who may read the room see all of it, and so does the agent that sent the message. An agent that merely
    /// received it, or marked it, sees what became of it for itself. To other agents the message does not exist.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn message_deliveries(
        &self,
        caller: Caller,
        room: RoomId,
        message: MessageId,
        after: Option<i64>,
        limit: i64,
    ) -> Result<Vec<(Accounted, i64)>, ReadError> {
        let (head, found) = self
            .store
            .read("message_deliveries", move |tx| {
                Box::pin(async move {
                    let (access, sequence, head) = readable(tx, caller, room, message).await?;
                    let subject = subject(&access, sequence, &head);
                    let found = match reach(&access, &head) {
                        Reach::All => records::of_message(tx, subject, after.unwrap_or(0), limit).await?,
                        Reach::Own(key) => {
                            let own = own(tx, subject, &access).await?;
                            own.into_iter().filter(|_| after.is_none_or(|after| after < key)).collect()
                        }
                    };
                    Ok::<_, ReadError>((head, found))
                })
            })
            .await?;
        Ok(found
            .into_iter()
            .map(|record| (record.member_key, record))
            .map(|(key, record)| (self.accounted(room, message, &head, record), key))
            .collect())
    }

    /// What became of a message for one participant, be it a recipient or not.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn message_delivery(
        &self,
        caller: Caller,
        room: RoomId,
        message: MessageId,
        asked: Asked,
    ) -> Result<Accounted, ReadError> {
        let about = asked.clone();
        let (head, found) = self
            .store
            .read("message_delivery", move |tx| {
                Box::pin(async move {
                    let (access, sequence, head) = readable(tx, caller, room, message).await?;
                    let subject = subject(&access, sequence, &head);
                    let found = match reach(&access, &head) {
                        Reach::All => records::of_member(tx, subject, &asked).await?,
                        Reach::Own(_) => {
                            let own = own(tx, subject, &access).await?;
                            let is_own = match &asked {
                                Asked::Id(id) => *id == access.member.id,
                                Asked::Handle(handle) => *handle == access.member.handle,
                            };
                            own.filter(|_| is_own).map(Some).ok_or(ReadError::MessageNotFound)?
                        }
                    };
                    Ok::<_, ReadError>((head, found))
                })
            })
            .await?;
        Ok(match found {
            Some(record) => self.accounted(room, message, &head, record),
            None => self.stranger(room, message, &head, about),
        })
    }

    /// Lets the rule answer about somebody in the room.
    pub(super) fn accounted(&self, room: RoomId, message: MessageId, head: &Head, record: Record) -> Accounted {
        let Record { member, stay, delivery, known, superseded_at, limited, stopped, active_at, busy_with, member_key } =
            record;
        let glimpse = self.sightings.of(member.id);
        let named = named(head, member_key, member.id);
        let is_recipient = delivery.as_ref().is_some_and(|delivery| delivery.recipient);
        let facts = Facts {
            posted_at: head.posted_at,
            kind: Some(member.kind),
            named,
            stay,
            delivery,
            connection: ledger::connection(glimpse.live, known),
            superseded_at: superseded_at.max(glimpse.superseded_at),
            limited: [limited, glimpse.limited].into_iter().flatten().max_by_key(|limited| limited.last_at),
            stopped,
            active_at: active_at.max(self.sightings.activity(room, member.id)),
            busy_with,
            activity_ttl: self.activity_ttl(),
        };
        let as_of = self.clock.now();
        let account = ledger::account(&facts, as_of);
        Accounted { message, room, whom: Whom::Member(member), is_recipient, account, as_of }
    }

    /// The answer about somebody whom the room never knew.
    fn stranger(&self, room: RoomId, message: MessageId, head: &Head, asked: Asked) -> Accounted {
        let (id, handle) = match asked {
            Asked::Id(id) => (Some(id), None),
            Asked::Handle(handle) => (None, Some(handle)),
        };
        let facts = Facts {
            posted_at: head.posted_at,
            kind: None,
            named: Named::No,
            stay: ledger::Stay::Not { joined_at: None, left_at: None },
            delivery: None,
            connection: ledger::Connection::Unknown { missing: ledger::Missing::Record, last_at: None },
            superseded_at: None,
            limited: None,
            stopped: None,
            active_at: None,
            busy_with: None,
            activity_ttl: self.activity_ttl(),
        };
        let as_of = self.clock.now();
        let account = ledger::account(&facts, as_of);
        Accounted { message, room, whom: Whom::Nobody { id, handle }, is_recipient: false, account, as_of }
    }

    fn activity_ttl(&self) -> i64 {
        i64::try_from(self.limits.activity_ttl.as_micros()).unwrap_or(i64::MAX)
    }
}

/// The caller's place in the room, and the message.
async fn readable(
    tx: &mut Reader,
    caller: Caller,
    room: RoomId,
    message: MessageId,
) -> Result<(Access, i64, Head), ReadError> {
    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
    let access = access.ok_or(ReadError::RoomNotFound)?;
    let sequence = messages::locate(tx, access.room_key, message).await?.ok_or(ReadError::MessageNotFound)?;
    let head = records::head(tx, access.room_key, sequence).await?.ok_or(ReadError::MessageNotFound)?;
    Ok((access, sequence, head))
}

fn subject(access: &Access, sequence: i64, head: &Head) -> Subject<'static> {
    Subject { room_key: access.room_key, sequence, posted_at: head.posted_at, endings: &ENDINGS }
}

fn reach(access: &Access, head: &Head) -> Reach {
    match access.member.kind {
        IdentityKind::User => Reach::All,
        IdentityKind::Agent if access.member_key == head.sender_key => Reach::All,
        IdentityKind::Agent => Reach::Own(access.member_key),
    }
}

/// What is recorded of the caller itself, if it has to do with the message.
async fn own(tx: &mut Reader, subject: Subject<'_>, access: &Access) -> Result<Option<Record>, ReadError> {
    let own = records::of_member(tx, subject, &Asked::Id(access.member.id)).await?;
    let own = own.filter(|record| record.delivery.is_some());
    own.map(Some).ok_or(ReadError::MessageNotFound)
}

fn named(head: &Head, member_key: i64, id: IdentityId) -> Named {
    if head.sender_key == member_key {
        return Named::Sender;
    }
    match head.mentions.iter().find(|mention| mention.id == id) {
        Some(mention) if mention.reference => Named::Reference,
        Some(_) => Named::Mention,
        None => Named::No,
    }
}

//! Posting messages and events.

use bandstand_domain::content;
use bandstand_domain::delivery::Delivery;
use bandstand_domain::event::Event;
use bandstand_domain::file::Attachment;
use bandstand_domain::handle;
use bandstand_domain::membership::Participant;
use bandstand_domain::mention::{self, MentionError, Requested};
use bandstand_domain::message::{Mention, Message, MessageKind};
use bandstand_domain::room::{self, Room, RoomStatus};
use bandstand_domain::task::TaskRef;
use bandstand_store::deliveries;
use bandstand_store::messages::{self, NewMessage};
use bandstand_store::participants::{self, Access};
use bandstand_store::quotas::{LimitReached, Resource};
use bandstand_store::{Reader, StoreError, Writer, files, rooms, tasks};
use bandstand_wire::ids::{FileId, IdentityKind, MessageId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::auth::Caller;
use crate::service::rooms::updated;
use crate::state::Services;

/// A text message as the caller sent it.
#[derive(Clone, Debug)]
pub struct PostMessage {
    /// Where.
    pub room: RoomId,
    /// Who.
    pub caller: Caller,
    /// The text.
    pub content: String,
    /// Whom it mentions.
    pub mentions: Vec<Requested>,
    /// Files of the room that it carries.
    pub attachments: Vec<FileId>,
}

/// An event as the caller sent it.
#[derive(Clone, Debug)]
pub struct PostEvent {
    /// Where.
    pub room: RoomId,
    /// Who.
    pub caller: Caller,
    /// What kind; never text.
    pub kind: MessageKind,
    /// The text.
    pub content: String,
    /// JSON text.
    pub metadata: Option<String>,
    /// The earlier `attention` event that this one resolves.
    pub resolves: Option<MessageId>,
    /// The task that an `attention` event is about.
    pub task: Option<TaskRef>,
}

/// A posted message.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Its id.
    pub id: MessageId,
    /// Whom it mentions, resolved.
    pub mentions: Vec<Mention>,
}

/// Why a post is refused.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// No such room, or the caller is not in it.
    #[error("room not found")]
    RoomNotFound,
    /// The room is archived or closed.
    #[error("the room is {}: it can be read but not written to", .0.as_str())]
    NotActive(RoomStatus),
    /// The agent is stopped in this room.
    #[error("the agent's execution is stopped in this room")]
    Stopped,
    /// The text cannot be posted.
    #[error("{0}")]
    Content(&'static str),
    /// The mentions cannot be resolved.
    #[error(transparent)]
    Mention(#[from] MentionError),
    /// An attachment is not a file of this room.
    #[error("an attachment is not a file of this room")]
    UnknownAttachment,
    /// `resolves` names no earlier attention event of this room.
    #[error("must be the id of an earlier attention event of this room")]
    Resolves,
    /// `task_id` names no task of this room.
    #[error("must be a task of this room")]
    UnknownTask,
    /// A quota is used up.
    #[error(transparent)]
    Quota(#[from] LimitReached),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const BLANK: &str = "can't be blank";
const NUL: &str = "must not contain the character NUL";

/// Checks what a message may say, before anything is looked up.
fn check_content(text: &str) -> Result<(), PostError> {
    let refusal = if !content::is_visible(text) {
        BLANK
    } else if text.contains('\0') {
        NUL
    } else if text.len() > content::MESSAGE_MAX_BYTES {
        "should be at most 524288 byte(s)"
    } else if content::json_bytes(text) > content::MESSAGE_MAX_JSON_BYTES {
        "should be at most 900000 byte(s) when written as JSON"
    } else {
        return Ok(());
    };
    Err(PostError::Content(refusal))
}

fn check_event_content(text: &str) -> Result<(), PostError> {
    let refusal = if !content::is_visible(text) {
        BLANK
    } else if text.contains('\0') {
        NUL
    } else if text.chars().count() > content::EVENT_MAX_CHARACTERS {
        "should be at most 16384 character(s)"
    } else {
        return Ok(());
    };
    Err(PostError::Content(refusal))
}

/// The caller's own place in a room that it writes to.
async fn writable(tx: &mut Reader, caller: Caller, room: RoomId) -> Result<Access, PostError> {
    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
    let access = access.filter(|access| access.membership.is_some()).ok_or(PostError::RoomNotFound)?;
    if access.is_stopped() {
        return Err(PostError::Stopped);
    }
    match access.room.status {
        RoomStatus::Active => Ok(access),
        status @ (RoomStatus::Archived | RoomStatus::Closed) => Err(PostError::NotActive(status)),
    }
}

/// The participants that a message names, each with its key.
async fn named(tx: &mut Reader, room_key: i64, requested: &[Requested]) -> Result<Vec<(Participant, i64)>, PostError> {
    if requested.len() > mention::MENTIONS_MAX {
        return Err(MentionError::TooMany.into());
    }
    let (mut ids, mut handles) = (Vec::new(), Vec::new());
    for wanted in requested {
        match (wanted.id, wanted.handle.as_deref().map(handle::folded)) {
            (Some(id), _) => ids.push(id),
            // No handle holds a NUL, and the store takes none as a parameter.
            (None, Some(handle)) if !handle.is_empty() && !handle.contains('\0') => handles.push(handle),
            (None, _) => {}
        }
    }
    Ok(participants::named(tx, room_key, &ids, &handles).await?)
}

impl Services {
    /// Posts a text message: stores it with a delivery for each mentioned agent, in one transaction.
    ///
    /// # Errors
    /// [`PostError`]; then nothing is stored.
    pub async fn post_message(&self, post: PostMessage) -> Result<Posted, PostError> {
        check_content(&post.content)?;
        let (id, now) = (self.ids.message(), self.clock.now());
        let quota = self.quota_rule(Resource::Messages);
        let (caller, room) = (post.caller, post.room);
        let posted: Result<Posted, PostError> = self
            .store
            .write("post_message", move |tx| {
                Box::pin(async move {
                    let advanced = rooms::advance(tx, post.room).await?.ok_or(PostError::RoomNotFound)?;
                    let access = writable(tx, post.caller, post.room).await?;
                    let named = named(tx, access.room_key, &post.mentions).await?;
                    let (present, keys): (Vec<Participant>, Vec<i64>) = named.into_iter().unzip();
                    let mentions = mention::resolve(post.caller.identity, &present, &post.mentions)?;
                    let content = mention::normalize(&post.content, &mentions);
                    let attachments = attached(tx, access.room_key, &post.attachments, now).await?;
                    if let Some(quota) = quota {
                        quota.count_message::<PostError>(tx, post.caller.identity, now).await?;
                    }
                    let at = rooms::message_posted(tx, access.room_key, MessageKind::Text, now).await?;
                    messages::insert(
                        tx,
                        &NewMessage {
                            room_key: access.room_key,
                            sequence: advanced.sequence,
                            id,
                            kind: MessageKind::Text,
                            sender_key: access.member_key,
                            content: &content,
                            mentions: &mentions,
                            attachments: &attachments,
                            metadata: None,
                            at,
                        },
                    )
                    .await?;
                    let (mut held_back, mut recipients) = (Vec::new(), Vec::new());
                    for recipient in mention::recipients(&present, &mentions) {
                        if recipient.stopped {
                            held_back.push(recipient.profile.id);
                        }
                        let place = present.iter().position(|one| one.profile.id == recipient.profile.id);
                        recipients.extend(place.and_then(|place| keys.get(place)));
                    }
                    deliveries::insert_all(tx, access.room_key, advanced.sequence, &recipients, at).await?;
                    count_sent(tx, &access, Some(advanced.sequence), at).await?;
                    describe_by(tx, &access, &content, at).await?;
                    tx.emit(Event::MessageCreated {
                        message: Message {
                            id,
                            room: post.room,
                            sequence: advanced.sequence,
                            kind: MessageKind::Text,
                            sender: access.member,
                            content,
                            mentions: mentions.clone(),
                            attachments,
                            metadata: None,
                            deliveries: Vec::<Delivery>::new(),
                            inserted_at: at,
                            updated_at: at,
                        },
                        held_back,
                    });
                    Ok(Posted { id, mentions })
                })
            })
            .await;
        if posted.is_ok() && caller.kind == IdentityKind::Agent {
            self.observed.posted(caller.identity, room);
        }
        posted
    }

    /// Posts an event: a record of what an agent does, heard by people only.
    ///
    /// # Errors
    /// [`PostError`]; then nothing is stored.
    pub async fn post_event(&self, post: PostEvent) -> Result<MessageId, PostError> {
        check_event_content(&post.content)?;
        let (id, now, with_tasks) = (self.ids.message(), self.clock.now(), self.limits.tasks);
        let (caller, room) = (post.caller, post.room);
        let posted: Result<MessageId, PostError> = self
            .store
            .write("post_event", move |tx| {
                Box::pin(async move {
                    let advanced = rooms::advance(tx, post.room).await?.ok_or(PostError::RoomNotFound)?;
                    let access = writable(tx, post.caller, post.room).await?;
                    if let Some(earlier) = post.resolves {
                        let kind = messages::kind_of(tx, access.room_key, earlier).await?;
                        if kind != Some(MessageKind::Attention) {
                            return Err(PostError::Resolves);
                        }
                    }
                    if let Some(task) = post.task
                        && (!with_tasks || tasks::number(tx, access.room_key, task).await?.is_none())
                    {
                        return Err(PostError::UnknownTask);
                    }
                    let at = rooms::message_posted(tx, access.room_key, post.kind, now).await?;
                    messages::insert(
                        tx,
                        &NewMessage {
                            room_key: access.room_key,
                            sequence: advanced.sequence,
                            id,
                            kind: post.kind,
                            sender_key: access.member_key,
                            content: &post.content,
                            mentions: &[],
                            attachments: &[],
                            metadata: post.metadata.as_deref(),
                            at,
                        },
                    )
                    .await?;
                    count_sent(tx, &access, None, at).await?;
                    tx.emit(Event::EventCreated {
                        message: Message {
                            id,
                            room: post.room,
                            sequence: advanced.sequence,
                            kind: post.kind,
                            sender: access.member,
                            content: post.content,
                            mentions: Vec::new(),
                            attachments: Vec::new(),
                            metadata: post.metadata,
                            deliveries: Vec::new(),
                            inserted_at: at,
                            updated_at: at,
                        },
                    });
                    Ok(id)
                })
            })
            .await;
        if posted.is_ok() && caller.kind == IdentityKind::Agent {
            self.observed.posted(caller.identity, room);
        }
        posted
    }
}

/// The files that a message carries, each once.
async fn attached(
    tx: &mut Reader,
    room_key: i64,
    wanted: &[FileId],
    now: Timestamp,
) -> Result<Vec<Attachment>, PostError> {
    let mut found: Vec<Attachment> = Vec::with_capacity(wanted.len());
    for id in wanted {
        let file = files::one(tx, room_key, *id, now).await?.ok_or(PostError::UnknownAttachment)?;
        if !found.contains(&file) {
            found.push(file);
        }
    }
    Ok(found)
}

/// An agent's context counts what it sent; people have no context.
async fn count_sent(tx: &mut Writer, access: &Access, text: Option<i64>, at: Timestamp) -> Result<(), StoreError> {
    match access.member.kind {
        IdentityKind::Agent => participants::tally_sent(tx, access.room_key, access.member_key, text, at).await,
        IdentityKind::User => Ok(()),
    }
}

/// The first text describes its room, and names it when it is untitled.
async fn describe_by(tx: &mut Writer, access: &Access, content: &str, at: Timestamp) -> Result<(), StoreError> {
    if access.room.description.is_some() {
        return Ok(());
    }
    let (title, description) = (room::automatic_title(content), room::automatic_description(content));
    let (Some(title), Some(description)) = (title, description) else { return Ok(()) };
    if let Some(title) = rooms::describe(tx, access.room_key, &title, &description).await? {
        let (title, description, last_message_at) = (Some(title), Some(description), Some(at));
        let room = Room { title, description, last_message_at, ..access.room.clone() };
        updated::<StoreError>(tx, access.room_key, room).await?;
    }
    Ok(())
}

//! Messages, events, participants, peers and rooms.

use bandstand_llm::registry::{Effect, ToolError};
use bandstand_wire::ids::{IdentityId, RoomId};
use serde::Serialize;
use serde_json::{Value, json};

use super::{AgentTools, resolve, text, tool_error};
use crate::client::model::{Page, Participant, Peer, PostedEvent, PostedMessage};
use crate::client::{ClientError, DraftMention, EventDraft, MessageDraft, RoomDraft};
use crate::failure::{AgentFailure, FailureReport};
use crate::roster::Member;
use crate::tools::resolve::ResolveError;
use crate::turn::ClosingText;

/// The answer to silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NoReply {
    /// `no_reply`.
    pub status: &'static str,
}

/// Somebody who was added, or was there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParticipantAdded {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// The role that was asked for; of somebody who was there already, not the one it has.
    pub role: String,
    /// `added` or `already_in_room`.
    pub status: &'static str,
}

/// Somebody who was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParticipantRemoved {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: String,
    /// `removed`.
    pub status: &'static str,
}

const PEER_PAGE: i64 = 100;
/// A server whose last page never comes must not keep a turn for ever.
const PEER_PAGES_MAX: i64 = 200;

impl AgentTools {
    /// Posts a message to those who are mentioned, by id, handle or name; at least one. It is the turn's reply.
    ///
    /// Without visible content nothing is posted, and nothing is returned.
    ///
    /// # Errors
    /// [`ToolError`]; somebody unknown is looked up in the room once more before that is an error.
    pub async fn send_message(
        &self,
        content: &str,
        mentions: &[impl AsRef<str> + Sync],
    ) -> Result<Option<PostedMessage>, ToolError> {
        self.send_message_with(content, mentions, Vec::new()).await
    }

    /// [`Self::send_message`] with files of the room, at most ten.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn send_message_with(
        &self,
        content: &str,
        mentions: &[impl AsRef<str> + Sync],
        attachment_ids: Vec<String>,
    ) -> Result<Option<PostedMessage>, ToolError> {
        if !text::has_visible_content(content) {
            return Ok(None);
        }
        let mentions = self.resolve_mentions(mentions).await?;
        self.post_reply(content, mentions, attachment_ids).await.map(Some)
    }

    pub(super) async fn post_reply(
        &self,
        content: &str,
        mentions: Vec<DraftMention>,
        attachment_ids: Vec<String>,
    ) -> Result<PostedMessage, ToolError> {
        let posted = self.post(content, mentions, attachment_ids).await;
        match posted {
            Ok(posted) => {
                self.turn().record(Effect::Reply);
                for recipient in posted.recipients.iter().filter(|it| it.handle.as_deref().is_none_or(str::is_empty)) {
                    // Delivered all the same: a second post would be a second message.
                    tracing::warn!(message.id = %posted.id, recipient.id = %recipient.id, "a receipt names no handle");
                }
                Ok(posted)
            }
            // It is in the room, whatever the receipt looks like.
            Err(Delivery::Unconfirmed) => {
                self.turn().record(Effect::Reply);
                let text = "unconfirmed_recipient: the message was delivered; do not resend";
                Err(ToolError::refused(text))
            }
            Err(Delivery::Failed(error)) => Err(error),
        }
    }

    /// Posts a message that the adapter writes itself: a question for approval, a word that it is busy. It records
    /// nothing, so it never stands in for the model's reply.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn send_notice(
        &self,
        content: &str,
        mentions: &[impl AsRef<str> + Sync],
    ) -> Result<Option<PostedMessage>, ToolError> {
        if !text::has_visible_content(content) {
            return Ok(None);
        }
        let mentions = self.resolve_mentions(mentions).await?;
        match self.post(content, mentions, Vec::new()).await {
            Ok(posted) => Ok(Some(posted)),
            Err(Delivery::Unconfirmed) => {
                Err(ToolError::refused("unconfirmed_recipient: the message was delivered; do not resend"))
            }
            Err(Delivery::Failed(error)) => Err(error),
        }
    }

    async fn post(
        &self,
        content: &str,
        mentions: Vec<DraftMention>,
        attachment_ids: Vec<String>,
    ) -> Result<PostedMessage, Delivery> {
        let draft = MessageDraft { content: content.to_owned(), mentions, attachment_ids };
        self.client().post_message(self.room(), &draft).await.map_err(|error| match error {
            ClientError::Unreadable { status, .. } if (200..300).contains(&status) => Delivery::Unconfirmed,
            ClientError::NoData { .. } => Delivery::Unconfirmed,
            error
                if error
                    .refusal()
                    .is_some_and(|refusal| refusal.message == NOT_IN_ROOM || refusal.code == NOT_IN_ROOM) =>
            {
                Delivery::Failed(ToolError::refused(format!("{NOT_IN_ROOM}: mentioned participant is not in the room")))
            }
            error => Delivery::Failed(tool_error(error)),
        })
    }

    /// Posts the closing text of a model, if there is something to see in it and nothing answered yet. It then is the
    /// reply. Whether it was posted.
    ///
    /// # Errors
    /// [`ToolError`], which is an error of the delivery, not of the model.
    pub async fn relay(&self, text: Option<&str>, mentions: &[impl AsRef<str> + Sync]) -> Result<bool, ToolError> {
        match text {
            Some(text) if text::has_visible_content(text) && !self.turn().replied() => {
                Ok(self.send_message(text, mentions).await?.is_some())
            }
            _ => Ok(false),
        }
    }

    /// What becomes of the text with which a model ended its turn; see [`Self::relay`]. Whether it was posted.
    ///
    /// # Errors
    /// [`ToolError`], which is an error of the delivery, not of the model.
    pub async fn close(
        &self,
        closing: ClosingText,
        text: Option<&str>,
        mentions: &[impl AsRef<str> + Sync],
    ) -> Result<bool, ToolError> {
        match closing {
            ClosingText::Withheld => Ok(false),
            ClosingText::Relayed => self.relay(text, mentions).await,
        }
    }

    /// Ends the turn without a word. Nothing is posted; the reason is kept with the turn.
    pub fn no_reply(&self, reason: Option<&str>) -> NoReply {
        tracing::info!(room.id = %self.room(), has_reason = reason.is_some(), "no reply this turn");
        // The reason is a model's text about what was said.
        tracing::trace!(room.id = %self.room(), reason, "no reply this turn");
        self.turn().decline(reason);
        NoReply { status: "no_reply" }
    }

    /// Posts an event of any type. Without visible content nothing is posted, and nothing is returned; more than 16,384
    /// characters are cut in the middle.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn send_event(&self, mut event: EventDraft) -> Result<Option<PostedEvent>, ToolError> {
        if !text::has_visible_content(&event.content) {
            return Ok(None);
        }
        event.content = text::cut_event(event.content);
        let posted = self.client().post_event(self.room(), &event).await.map_err(tool_error)?;
        self.turn().record(Effect::Observe);
        Ok(Some(posted))
    }

    /// Tells the room of a failure, and notes it on the turn, which thereby is complete: the adapter must return an error
    /// all the same, so that the message is marked as failed. Never fails itself.
    pub async fn send_failure(&self, failure: &AgentFailure) -> FailureReport {
        match self.send_event(failure.to_event()).await {
            Ok(Some(_)) => {
                self.turn().note_reported();
                FailureReport::Posted
            }
            Ok(None) => FailureReport::NotPosted { reason: "there is nothing to see in it".into() },
            Err(ToolError::Stopped(_)) => FailureReport::Stopped { room: self.room() },
            Err(error) => {
                tracing::warn!(room.id = %self.room(), %error, "a failure could not be reported");
                FailureReport::NotPosted { reason: error.to_string() }
            }
        }
    }

    /// A page of another room's context: what the agent sent and what mentions it, oldest first.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn fetch_room_context(&self, room: RoomId, page: i64, page_size: i64) -> Result<Value, ToolError> {
        let mut answer = self.client().context_page(room, page, page_size).await.map_err(tool_error)?;
        let data = answer["data"].take();
        let rows = data.as_array().map_or(0, Vec::len);
        let meta = [answer["metadata"].take(), answer["meta"].take()].into_iter().find(Value::is_object);
        let alone = || {
            let pages = i64::from(rows > 0);
            json!({"page": page, "page_size": page_size, "total_count": rows, "total_pages": pages})
        };
        Ok(json!({"data": data, "meta": meta.unwrap_or_else(alone)}))
    }

    /// Everybody in the room, from the server; the roster is up to date afterwards.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn get_participants(&self) -> Result<Vec<Participant>, ToolError> {
        let participants = self.client().participants(self.room()).await.map_err(tool_error)?;
        if !self.roster().replace(participants.iter().cloned().map(Member::from).collect()) {
            tracing::warn!(room.id = %self.room(), "a list of participants names somebody twice");
        }
        Ok(participants)
    }

    /// Adds somebody to the room by id, handle or name, as `owner`, `admin` or `member`. Who is there already stays.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn add_participant(&self, identifier: &str, role: &str) -> Result<ParticipantAdded, ToolError> {
        self.get_participants().await?;
        let done = |member: &Member, status| {
            self.turn().record(Effect::Act);
            let name = member.name.clone().unwrap_or_else(|| identifier.to_owned());
            ParticipantAdded { id: member.id, name, role: role.to_owned(), status }
        };
        let members = self.participants();
        match resolve::find(&members, identifier) {
            Ok(member) => return Ok(done(member, "already_in_room")),
            Err(error @ ResolveError::Ambiguous { .. }) => return Err(ToolError::failed(error.to_string())),
            Err(ResolveError::Unknown { .. }) => {}
        }
        let peer = self.find_peer(identifier).await?;
        match self.client().add_participant(self.room(), peer.id, role).await {
            Ok(_) => {}
            // Somebody else was faster.
            Err(error) if error.status() == Some(409) => {
                self.roster().add(peer.clone());
                return Ok(done(&peer, "already_in_room"));
            }
            Err(error) => return Err(tool_error(error)),
        }
        self.roster().add(peer.clone());
        Ok(done(&peer, "added"))
    }

    async fn find_peer(&self, identifier: &str) -> Result<Member, ToolError> {
        let mut peers = Vec::new();
        for page in 1..=PEER_PAGES_MAX {
            let found = self.client().peers(Some(self.room()), page, PEER_PAGE).await.map_err(tool_error)?;
            peers.extend(found.data.into_iter().map(Member::from));
            // A handle or an id is nobody else's; for a name, every page must be seen.
            let wanted = identifier.trim().trim_start_matches('@').to_lowercase();
            let exact = peers.iter().find(|peer| {
                peer.handle.as_ref().is_some_and(|handle| handle.to_lowercase() == wanted)
                    || peer.id.to_string() == wanted
            });
            if let Some(exact) = exact {
                return Ok(exact.clone());
            }
            if !found.metadata.has_next(page) {
                break;
            }
        }
        resolve::find(&peers, identifier).cloned().map_err(|error| match error {
            ResolveError::Unknown { .. } => ToolError::failed(format!(
                "Participant '{identifier}' not found. Use band_lookup_peers to find available peers."
            )),
            error @ ResolveError::Ambiguous { .. } => ToolError::failed(error.to_string()),
        })
    }

    /// Removes somebody from the room by id, handle or name.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn remove_participant(&self, identifier: &str) -> Result<ParticipantRemoved, ToolError> {
        self.get_participants().await?;
        let members = self.participants();
        let member = resolve::find(&members, identifier).map_err(|error| match error {
            ResolveError::Unknown { .. } => {
                ToolError::failed(format!("Participant '{identifier}' not found in this room."))
            }
            error @ ResolveError::Ambiguous { .. } => ToolError::failed(error.to_string()),
        })?;
        self.client().remove_participant(self.room(), member.id).await.map_err(tool_error)?;
        self.roster().remove(member.id);
        self.turn().record(Effect::Act);
        let name = member.name.clone().unwrap_or_else(|| identifier.to_owned());
        Ok(ParticipantRemoved { id: member.id, name, status: "removed" })
    }

    /// Whom the agent could add to the room. Pages start at 1 and have at most 100 rows.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn lookup_peers(&self, page: i64, page_size: i64) -> Result<Page<Peer>, ToolError> {
        self.client().peers(Some(self.room()), page, page_size).await.map_err(tool_error)
    }

    /// Creates another room, linked to a task if one is given; its id.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn create_chatroom(&self, task_id: Option<&str>) -> Result<RoomId, ToolError> {
        let draft = RoomDraft { task_id: task_id.map(str::to_owned), title: None };
        let room = self.client().create_room(&draft).await.map_err(tool_error)?;
        self.turn().record(Effect::Act);
        Ok(room.id)
    }

    /// Who is meant, each once. Somebody unknown may have joined just now, so the room is asked once before that is an
    /// error.
    pub(super) async fn resolve_mentions(
        &self,
        mentions: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<DraftMention>, ToolError> {
        let unknown = match self.known_mentions(mentions) {
            Ok(mentions) => return Ok(mentions),
            Err(Mentioning::Final(error)) => return Err(error),
            Err(Mentioning::Unknown(unknown)) => unknown,
        };
        if let Err(error @ ToolError::Stopped(_)) = self.get_participants().await {
            return Err(error);
        }
        match self.known_mentions(mentions) {
            Ok(mentions) => Ok(mentions),
            Err(Mentioning::Final(error)) => Err(error),
            Err(Mentioning::Unknown(_)) => Err(self.with_handles(&unknown.to_string())),
        }
    }

    fn known_mentions(&self, mentions: &[impl AsRef<str>]) -> Result<Vec<DraftMention>, Mentioning> {
        let members = self.participants();
        let mut resolved: Vec<DraftMention> = Vec::new();
        for mention in mentions {
            let member = match resolve::find(&members, mention.as_ref()) {
                Ok(member) => member,
                Err(unknown @ ResolveError::Unknown { .. }) => return Err(Mentioning::Unknown(unknown)),
                Err(error) => return Err(Mentioning::Final(ToolError::failed(error.to_string()))),
            };
            if Some(member.id) == self.agent_id() {
                return Err(Mentioning::Final(self.with_handles("You cannot mention yourself")));
            }
            if !resolved.iter().any(|known| known.id == member.id) {
                resolved.push(DraftMention { id: member.id, handle: member.handle.clone() });
            }
        }
        if resolved.is_empty() {
            let hint = resolve::mentionable(&members, self.agent_id());
            let hint =
                hint.map(|handles| format!(". Available handles: {handles}. Use participant handles from the list."));
            let text = format!("At least one mention is required{}", hint.unwrap_or_default());
            return Err(Mentioning::Final(ToolError::refused(text)));
        }
        Ok(resolved)
    }

    fn with_handles(&self, problem: &str) -> ToolError {
        let handles = resolve::mentionable(&self.participants(), self.agent_id());
        ToolError::failed(format!("{problem}. Available handles: {}", handles.unwrap_or_else(|| "[]".into())))
    }
}

const NOT_IN_ROOM: &str = "mentioned_participant_not_in_room";

/// Why a message has no receipt.
enum Delivery {
    /// The server took it, but its receipt says nothing.
    Unconfirmed,
    /// It was not delivered.
    Failed(ToolError),
}

/// Why mentions are not resolved.
enum Mentioning {
    /// Somebody may have joined since.
    Unknown(ResolveError),
    /// Looking again is no use.
    Final(ToolError),
}

//! Messages, marks, events, context, activity, files, delegation.

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::memories::segment;
use super::{ContextPlace, EventDraft, MessageDraft, MessageQuery};
use crate::client::call::Call;
use crate::client::model::{Attachment, ChatMessage, CursorPage, DelegationToken, Marked, PostedEvent, PostedMessage};
use crate::client::retry::Repeat;
use crate::client::{Client, ClientError, MarkFate};

/// Longest reason of a decline that is sent, in characters.
const REASON_MAX: usize = 500;

impl Client {
    /// Posts a message.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Stopped`] when the agent may not speak in the room just now.
    pub async fn post_message(&self, room: RoomId, draft: &MessageDraft) -> Result<PostedMessage, ClientError> {
        let call = Call::post("send message", Self::room(room, "/messages")).room(room);
        self.data(call.json(&json!({"message": draft}))?).await
    }

    /// Posts an event.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Stopped`] when the agent may not speak in the room just now.
    pub async fn post_event(&self, room: RoomId, draft: &EventDraft) -> Result<PostedEvent, ClientError> {
        let call = Call::post("send event", Self::room(room, "/events")).room(room);
        self.data(call.json(&json!({"event": draft}))?).await
    }

    /// Messages that mention the agent, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn messages(&self, room: RoomId, query: &MessageQuery) -> Result<CursorPage<ChatMessage>, ClientError> {
        let call = Call::get("list messages", Self::room(room, "/messages"))
            .query("status", query.status.as_ref())
            .query("sort_order", query.newest_first.then_some("desc"))
            .query("cursor", query.cursor.as_ref())
            .query("limit", query.limit);
        self.whole(call).await
    }

    /// The oldest message that is not processed; none also while the agent is stopped in the room.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn next_message(&self, room: RoomId) -> Result<Option<ChatMessage>, ClientError> {
        let call = Call::get("read next message", Self::room(room, "/messages/next")).room(room);
        let answer = self.transport.send(call).await?;
        if answer.status == StatusCode::NO_CONTENT { Ok(None) } else { answer.data().map(Some) }
    }

    /// Says that the agent starts to work on a message: a claim. Repeating it makes a new attempt, which is harmless.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Stopped`] when the agent may not work in the room just now. Anything but `Ok`
    /// means that the message was not claimed.
    pub async fn mark_processing(&self, room: RoomId, message: MessageId) -> Result<Marked, ClientError> {
        self.mark(room, message, "processing", None, Repeat::Safe).await
    }

    /// Says that a message is done. One try only: the caller keeps the mark until it is confirmed.
    ///
    /// # Errors
    /// [`ClientError`], of which [`ClientError::mark_fate`] says what to do.
    pub async fn mark_processed(&self, room: RoomId, message: MessageId) -> Result<Marked, ClientError> {
        self.mark(room, message, "processed", None, Repeat::Never).await
    }

    /// Says that a message is done and needed no answer, which our own server notes with the reason; any other is told
    /// that it is done. One try only, as above.
    ///
    /// # Errors
    /// [`ClientError`], of which [`ClientError::mark_fate`] says what to do.
    pub async fn mark_declined(
        &self,
        room: RoomId,
        message: MessageId,
        reason: Option<&str>,
    ) -> Result<Marked, ClientError> {
        if self.transport.is_ours().await != Some(true) {
            return self.mark_processed(room, message).await;
        }
        let mut body = json!({"outcome": "declined"});
        if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
            body["reason"] = reason.chars().take(REASON_MAX).collect::<String>().into();
        }
        match self.mark(room, message, "processed", Some(body), Repeat::Never).await {
            // A reason that the server will not have must not keep the message open.
            Err(error) if error.status() == Some(422) && error.mark_fate() == MarkFate::Unconfirmed => {
                self.mark_processed(room, message).await
            }
            marked => marked,
        }
    }

    /// Says that work on a message failed. The text is seen by people; a blank one is replaced. One try only, as above.
    ///
    /// # Errors
    /// [`ClientError`], of which [`ClientError::mark_fate`] says what to do.
    pub async fn mark_failed(&self, room: RoomId, message: MessageId, error: &str) -> Result<Marked, ClientError> {
        let error = if error.trim().is_empty() { "Unknown error" } else { error };
        self.mark(room, message, "failed", Some(json!({"error": error})), Repeat::Never).await
    }

    /// What became of a message for each recipient, and why: of one that the agent sent, or its own part of one that it
    /// received; of one participant alone, by id or handle, if one is named. A row's fields are described in the server's
    /// own document. Only Bandstand has it.
    ///
    /// # Errors
    /// [`ClientError`]; 404 for a message that the agent may not see, and where there is no ledger.
    pub async fn deliveries(
        &self,
        room: RoomId,
        message: MessageId,
        participant: Option<&str>,
    ) -> Result<Value, ClientError> {
        let call = Call::get("read deliveries", Self::room(room, &format!("/messages/{message}/deliveries")));
        self.whole(call.query("participant", participant)).await
    }

    async fn mark(
        &self,
        room: RoomId,
        message: MessageId,
        mark: &'static str,
        body: Option<Value>,
        repeat: Repeat,
    ) -> Result<Marked, ClientError> {
        let mut call = Call::post("mark message", Self::room(room, &format!("/messages/{message}/{mark}")));
        if let Some(body) = body {
            call = call.json(&body)?;
        }
        let answer = self.transport.send(call.repeat(repeat).room(room)).await?;
        if answer.status == StatusCode::NO_CONTENT {
            return Err(ClientError::Stopped { room });
        }
        let status = answer.status.as_u16();
        let marked: Marked = answer.data()?;
        if marked.success {
            Ok(marked)
        } else {
            Err(ClientError::Unreadable { status, reason: "the mark was not taken".into() })
        }
    }

    /// What the agent remembers of a room: what it sent and what mentions it, oldest first. At most 100 rows a page.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn context(
        &self,
        room: RoomId,
        place: &ContextPlace,
        rows: i64,
    ) -> Result<CursorPage<ChatMessage>, ClientError> {
        let call = Call::get("read context", Self::room(room, "/context"));
        let call = match place {
            ContextPlace::Start => call.query("limit", Some(rows)),
            ContextPlace::Cursor(cursor) => call.query("cursor", Some(cursor)).query("limit", Some(rows)),
            ContextPlace::Page(page) => call.query("page", Some(page)).query("page_size", Some(rows)),
        };
        self.whole(call).await
    }

    /// A page of a room's context as it comes, with whatever metadata the server has for it.
    pub(crate) async fn context_page(&self, room: RoomId, page: i64, page_size: i64) -> Result<Value, ClientError> {
        let call = Call::get("read context", Self::room(room, "/context"))
            .query("page", Some(page))
            .query("page_size", Some(page_size));
        self.whole(call).await
    }

    /// Says that the agent is at work in a room, or is no more. The indicator goes out about 10 s after the last report.
    /// `false` in answer to `true` means that the agent is stopped. One try only, within `timeout`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn report_activity(
        &self,
        room: RoomId,
        working: bool,
        timeout: std::time::Duration,
    ) -> Result<bool, ClientError> {
        #[derive(Deserialize)]
        struct Activity {
            working: bool,
        }
        let call = Call::post("report activity", Self::room(room, "/activity")).repeat(Repeat::Never);
        let answer = self.data::<Activity>(call.json(&json!({"working": working}))?);
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => Ok(answer?.working),
            Err(_) => Err(ClientError::NoAnswer { reason: "timed out" }),
        }
    }

    /// Stores a file in a room. The same bytes twice are one file.
    ///
    /// # Errors
    /// [`ClientError`]; 404 where there are no files.
    pub async fn upload_file(
        &self,
        room: RoomId,
        name: &str,
        content_type: &str,
        content: Bytes,
    ) -> Result<Attachment, ClientError> {
        let checksum: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let call = Call::new("upload file", Method::PUT, Self::room(room, "/files"))
            .header("x-file-name", name)?
            .header("x-file-sha256", &checksum)?
            .header("content-type", content_type)?
            .bytes(content);
        self.data(call).await
    }

    /// A file's content, if it has at most `max_bytes`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn download_file(&self, room: RoomId, file: &str, max_bytes: usize) -> Result<Bytes, ClientError> {
        let call = Call::get("download file", Self::room(room, &format!("/files/{}", segment(file))));
        Ok(self.transport.send(call.reply_max_bytes(max_bytes)).await?.body)
    }

    /// A token to act for whoever wrote a message, at `audience`. Our own server has none.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delegation_token(
        &self,
        audience: IdentityId,
        message: MessageId,
    ) -> Result<DelegationToken, ClientError> {
        let call = Call::post("get delegation token", "/delegation/token").repeat(Repeat::Never);
        self.whole(call.json(&json!({"audience": audience, "message_id": message}))?).await
    }
}

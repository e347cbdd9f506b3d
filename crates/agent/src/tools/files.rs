//! The room's files. There is no list of them: a file is known by the messages that carry it.

use bandstand_llm::registry::{Effect, ToolError};
use bandstand_wire::ids::MessageId;
use bandstand_wire::time::Timestamp;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::{AgentTools, text, tool_error};
use crate::client::model::Attachment;
use crate::client::{ClientError, ContextPlace};

const UNAVAILABLE: &str = "File not found, or file transfer is unavailable in this room.";
/// Largest text that a model writes into one file, in bytes of UTF-8.
const SEND_MAX_BYTES: usize = 1_000_000;
/// Largest text that a model is shown, in bytes.
const TEXT_MAX_BYTES: usize = 16 * 1024;
/// Largest picture that a model is shown, in bytes.
const IMAGE_MAX_BYTES: usize = 5 * 1024 * 1024;
const PAGE: i64 = 50;
/// A room's context is walked so far for a file, and no further.
const PAGES_MAX: usize = 200;

/// A page of a room's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoomFiles {
    /// The files, each once.
    pub data: Vec<Attachment>,
    /// Where to go on; null at the end.
    pub next_cursor: Option<String>,
}

/// What a model is shown of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// A text.
    Text {
        /// Which file.
        file: Attachment,
        /// Its text.
        text: String,
        /// Whether bytes that are no text were replaced.
        lossy: bool,
    },
    /// A picture.
    Image {
        /// Its type.
        content_type: String,
        /// Its bytes.
        content: Bytes,
    },
    /// Too large, or nothing to be shown: only what is known of it.
    Description {
        /// Which file.
        file: Attachment,
        /// Why its content is not here.
        reason: String,
    },
}

impl FileContent {
    /// In the form that a model is given: a picture as an MCP image block.
    pub fn to_value(&self) -> Value {
        let row = |file: &Attachment, more: &[(&str, &str)]| {
            let mut row = json!({"name": file.name, "content_type": file.content_type, "bytes": file.bytes});
            for (name, text) in more {
                row[*name] = (*text).into();
            }
            row
        };
        match self {
            Self::Text { file, text, lossy: false } => row(file, &[("text", text)]),
            Self::Text { file, text, lossy: true } => {
                let what = "The file is not all UTF-8; what could not be read stands as \u{fffd} in the text.";
                row(file, &[("text", text), ("description", what)])
            }
            Self::Image { content_type, content } => json!({"content": [
                {"type": "image", "data": BASE64_STANDARD.encode(content), "mimeType": content_type},
            ]}),
            Self::Description { file, reason } => row(file, &[("description", reason)]),
        }
    }
}

/// A file that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentFile {
    /// The file.
    pub attachment: Attachment,
    /// The message that carries it.
    pub message_id: MessageId,
}

impl AgentTools {
    /// The files of a page of the room's context, oldest first.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn list_room_files(&self, cursor: Option<&str>) -> Result<RoomFiles, ToolError> {
        let place = cursor.map_or(ContextPlace::Start, |cursor| ContextPlace::Cursor(cursor.to_owned()));
        let page = self.client().context(self.room(), &place, PAGE).await.map_err(tool_error)?;
        let mut data: Vec<Attachment> = Vec::new();
        for file in page.data.into_iter().flat_map(|message| message.attachments) {
            if !data.iter().any(|known| known.id == file.id) {
                data.push(file);
            }
        }
        Ok(RoomFiles { data, next_cursor: page.metadata.next_cursor })
    }

    /// What a file holds: a text of at most 16 KiB, a picture of at most 5 MiB; of anything else only what it is, and
    /// nothing is fetched.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn read_room_file(&self, file_id: &str) -> Result<FileContent, ToolError> {
        let file = self.find_file(file_id).await?;
        let (is_text, limit, what) = match file.content_type.as_str() {
            kind if kind.starts_with("text/") => (true, TEXT_MAX_BYTES, "text"),
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => (false, IMAGE_MAX_BYTES, "image"),
            _ => {
                let reason = "The content is not shown: it is neither a text nor a picture.".to_owned();
                return Ok(FileContent::Description { file, reason });
            }
        };
        if usize::try_from(file.bytes).map_or(true, |bytes| bytes > limit) {
            let reason = format!("The content is not shown: it has more than {limit} bytes, the limit for {what}.");
            return Ok(FileContent::Description { file, reason });
        }
        let content = self.client().download_file(self.room(), &file.id, limit).await.map_err(file_error)?;
        if !is_text {
            return Ok(FileContent::Image { content_type: file.content_type, content });
        }
        let (text, lossy) = match String::from_utf8(content.to_vec()) {
            Ok(text) => (text, false),
            Err(_) => (String::from_utf8_lossy(&content).into_owned(), true),
        };
        Ok(FileContent::Text { file, text, lossy })
    }

    async fn find_file(&self, file_id: &str) -> Result<Attachment, ToolError> {
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let page = self.list_room_files(cursor.as_deref()).await?;
            if let Some(file) = page.data.into_iter().find(|file| file.id == file_id) {
                return if self.has_expired(&file) { Err(ToolError::refused(UNAVAILABLE)) } else { Ok(file) };
            }
            // A cursor that stands still would be walked for ever.
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                break;
            }
            cursor = page.next_cursor;
        }
        Err(ToolError::refused(UNAVAILABLE))
    }

    fn has_expired(&self, file: &Attachment) -> bool {
        let expires = file.expires_at.as_deref().and_then(|text| Timestamp::parse(text).ok());
        expires.is_some_and(|expires| expires <= self.client().options().clock.now())
    }

    /// Writes a text into a file and shares it in the room: a message, and so the turn's reply. At most 1,000,000 bytes
    /// of UTF-8; the name must be printable ASCII. Without a visible caption the message names the file.
    ///
    /// # Errors
    /// [`ToolError`].
    pub async fn send_room_file(
        &self,
        content: &str,
        filename: &str,
        caption: &str,
        mentions: &[impl AsRef<str> + Sync],
    ) -> Result<SentFile, ToolError> {
        if filename.is_empty() || !filename.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) {
            return Err(ToolError::refused(format!(
                "The file name {filename:?} must be printable ASCII, without accents, emoji and line breaks. \
                 Choose another name."
            )));
        }
        if content.len() > SEND_MAX_BYTES {
            return Err(ToolError::refused(format!(
                "The file would have {} bytes; band_send_room_file takes at most {SEND_MAX_BYTES}. Send less.",
                content.len()
            )));
        }
        // Before the upload: a file that no message carries is of no use.
        let mentions = self.resolve_mentions(mentions).await?;
        let body = Bytes::copy_from_slice(content.as_bytes());
        let file = self.client().upload_file(self.room(), filename, "text/plain", body).await.map_err(file_error)?;
        let named = format!("Shared a file: {filename}");
        let caption = if text::has_visible_content(caption) { caption } else { &named };
        let message = self.post_reply(caption, mentions, vec![file.id.clone()]).await?;
        self.turn().record(Effect::Reply);
        Ok(SentFile { attachment: file, message_id: message.id })
    }
}

fn file_error(error: ClientError) -> ToolError {
    if error.is_not_found() { ToolError::refused(UNAVAILABLE) } else { tool_error(error) }
}

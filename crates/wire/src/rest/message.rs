//! Messages and events.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::ids::{FileId, IdentityId, IdentityKind, MessageId, RoomId};
use crate::time::Timestamp;

/// A row of a room's history.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChatMessage {
    /// Which.
    pub id: MessageId,
    /// The text, mentions as `@[[uuid]]`.
    pub content: String,
    /// `text` or an event's type.
    #[schemars(with = "crate::rest::words::MessageType")]
    pub message_type: &'static str,
    /// Who.
    pub sender_id: IdentityId,
    /// Person or program.
    pub sender_type: IdentityKind,
    /// Its name.
    pub sender_name: String,
    /// Where.
    pub chat_room_id: RoomId,
    /// Always null: there are no threads.
    pub thread_id: Option<MessageId>,
    /// Mentions and deliveries of a text; an event's own metadata.
    pub metadata: Metadata,
    /// Files that it carries.
    pub attachments: Vec<Attachment>,
    /// When it was posted.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A file of a room.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Attachment {
    /// Which.
    pub id: FileId,
    /// What its uploader called it.
    pub name: String,
    /// What it is, worked out from its bytes.
    pub content_type: String,
    /// How long it is.
    pub bytes: i64,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Always false: there are no thumbnails.
    pub has_thumb: bool,
    /// When it goes away; null means never.
    pub expires_at: Option<Timestamp>,
}

/// JSON passed through as it was supplied.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RawBox(#[schemars(with = "serde_json::Map<String, serde_json::Value>")] pub Box<RawValue>);

/// `metadata` of a row.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Metadata {
    /// Of a text message.
    Text(TextMetadata),
    /// Of an event: what its sender supplied, or null.
    Event(Option<RawBox>),
}

/// `metadata` of a text message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TextMetadata {
    /// Whom it mentions.
    pub mentions: Vec<MentionRef>,
    /// Always `sent`.
    pub status: &'static str,
    /// What became of it, by recipient; a recipient with nothing yet is left out.
    pub delivery_status: Deliveries,
}

/// A map from recipient to delivery, in the order of the rows.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Deliveries(
    #[schemars(with = "std::collections::BTreeMap<String, RecipientDelivery>")] pub Vec<(IdentityId, RecipientDelivery)>,
);

impl Serialize for Deliveries {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, delivery)| (id, delivery)))
    }
}

/// Somebody mentioned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MentionRef {
    /// Who.
    pub id: IdentityId,
    /// Its handle when the message was posted.
    pub handle: String,
    /// Its name then.
    pub name: String,
    /// `reference` when it is named but not delivered to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::rest::words::MentionKind>")]
    pub kind: Option<&'static str>,
}

/// What became of a message for one recipient.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecipientDelivery {
    /// `delivered`, `processing`, `processed` or `failed`.
    #[schemars(with = "crate::rest::words::DeliveryStatus")]
    pub status: &'static str,
    /// When it first reached the recipient.
    pub delivered_at: Option<Timestamp>,
    /// When it was processed.
    pub processed_at: Option<Timestamp>,
    /// The newest attempt's number.
    pub current_attempt: Option<i64>,
    /// All attempts, oldest first.
    pub attempts: Vec<DeliveryAttempt>,
}

/// One try.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryAttempt {
    /// From 1.
    pub attempt_number: i64,
    /// `processing`, `success` or `failed`.
    #[schemars(with = "crate::rest::words::AttemptStatus")]
    pub status: &'static str,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
}

/// The receipt of a posted message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessageSent {
    /// The new message.
    pub id: MessageId,
    /// Always true.
    pub success: bool,
    /// Who is mentioned (references left out), in request order.
    pub recipients: Vec<MessageRecipient>,
}

/// Somebody that a message went to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessageRecipient {
    /// Who.
    pub id: IdentityId,
    /// Its handle; never null, or the client cannot read the receipt.
    pub handle: String,
    /// Its name.
    pub name: String,
}

/// The answer to a mark.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessageStatusChange {
    /// The message.
    pub id: MessageId,
    /// Always true.
    pub success: bool,
    /// `processing`, `processed` or `failed`.
    #[schemars(with = "crate::rest::words::MarkStatus")]
    pub status: &'static str,
    /// The attempt that the mark opened or closed.
    pub attempt_number: i64,
}

/// The receipt of a posted event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventCreated {
    /// The new row.
    pub id: MessageId,
    /// Always true.
    pub success: bool,
    /// Its type.
    #[schemars(with = "crate::rest::words::EventType")]
    pub message_type: &'static str,
}

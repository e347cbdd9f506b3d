//! The delivery ledger: what became of a message for each participant, and why.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::ids::{IdentityId, IdentityKind, MessageId, RoomId};
use crate::time::Timestamp;

/// What became of a message for one participant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MessageDelivery {
    /// Which message.
    pub message_id: MessageId,
    /// Where.
    pub chat_room_id: RoomId,
    /// For whom.
    pub participant: DeliveryParticipant,
    /// Whether the message was delivered to it; false also for an agent that merely marked the message.
    pub is_recipient: bool,
    /// How far it came: `none`, `stored`, `pushed`, `served`, `picked_up`, `lapsed`, `processed`, `failed`, `cancelled`
    /// or `dead_lettered`.
    #[schemars(with = "crate::rest::words::LedgerStage")]
    pub stage: &'static str,
    /// What that comes to: `done`, `working`, `waiting`, `failed`, `ended`, `not_sent` or `unknown`.
    #[schemars(with = "crate::rest::words::LedgerVerdict")]
    pub verdict: &'static str,
    /// Why nothing happened; null where something did, or does.
    pub reason: Option<DeliveryReason>,
    /// What the agent made of it, once it is processed.
    pub outcome: Option<DeliveryOutcome>,
    /// How many attempts there were.
    pub attempts: i64,
    /// Every stage that was reached, in order; of many attempts the newest.
    pub stages: Vec<DeliveryStage>,
    /// The answer in a sentence.
    pub summary: String,
    /// When this was so.
    pub as_of: Timestamp,
}

/// For whom. Nobody of this id or handle, and somebody who was never in the room, look the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryParticipant {
    /// Its id, as far as known.
    pub id: Option<Uuid>,
    /// Its handle, as far as known.
    pub handle: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Person or program.
    #[serde(rename = "type")]
    pub kind: Option<IdentityKind>,
}

/// A stage that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryStage {
    /// Which.
    #[schemars(with = "crate::rest::words::LedgerStage")]
    pub stage: &'static str,
    /// When.
    pub at: Timestamp,
    /// The attempt that it belongs to.
    pub attempt: Option<i64>,
    /// Why, where it ended without success.
    pub note: Option<String>,
}

/// What an agent made of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryOutcome {
    /// It said that the message is not for it.
    pub declined: bool,
    /// Why, in its words.
    pub reason: Option<String>,
    /// Whether it posted a text in the room during the attempt; null where that was not recorded.
    pub replied: Option<bool>,
}

/// Why nothing happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeliveryReason {
    /// One of a closed list: `not_mentioned`, `not_a_participant`, `never_connected`, `offline`, `not_taken`,
    /// `no_activity`, `stopped`, `superseded`, `rate_limited`, `expired`, `unknown`.
    #[schemars(with = "crate::rest::words::LedgerReason")]
    pub code: &'static str,
    /// Since when it holds, where it has a beginning.
    pub since: Option<Timestamp>,
    /// What it rests on. Which keys there are depends on the code.
    pub evidence: DeliveryEvidence,
}

/// What a reason rests on; a key that does not apply is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeliveryEvidence {
    /// How else the message names it: `sender` or `reference`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_as: Option<&'static str>,
    /// When it joined the room, after the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<Timestamp>,
    /// When it left the room, before the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_at: Option<Timestamp>,
    /// When it was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
    /// Since when it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected_since: Option<Timestamp>,
    /// Since when it is offline; the earliest moment, if it is not exactly known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline_since: Option<Timestamp>,
    /// The latest moment at which it went offline, where a server died and nobody saw when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline_latest: Option<Timestamp>,
    /// When the message reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_at: Option<Timestamp>,
    /// Another message of the room that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_with: Option<MessageId>,
    /// Which attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    /// Its last sign of life in the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity_at: Option<Timestamp>,
    /// Who stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<DeliveryParticipant>,
    /// When it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// When a newer connection took the place of the one that had the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<Timestamp>,
    /// When a request of its was first refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_refused_at: Option<Timestamp>,
    /// When one was last refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refused_at: Option<Timestamp>,
    /// Until when it was told to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// When it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired_at: Option<Timestamp>,
    /// What is not known: `connection`, `record`, `reading` or `consistency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
    /// The last certain fact: `posted`, `pushed`, `served`, `picked_up`, `active` or `connected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_certain: Option<&'static str>,
    /// When that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_certain_at: Option<Timestamp>,
}

impl From<IdentityId> for DeliveryParticipant {
    fn from(id: IdentityId) -> Self {
        Self { id: Some(id.0), handle: None, name: None, kind: None }
    }
}

/// `delivery_updated`: all deliveries of a message, as they are now.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeliveryUpdated {
    /// Which message.
    pub message_id: MessageId,
    /// Where.
    pub chat_room_id: RoomId,
    /// The first hundred; `has_more` tells of others, which the resource pages through.
    pub deliveries: Vec<MessageDelivery>,
    /// Whether there are more.
    pub has_more: bool,
}

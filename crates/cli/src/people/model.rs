//! What the Human API answers, as far as it is used here. Whatever else a reply has is left alone, so that an older
//! program reads a newer server.

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who a key belongs to.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Me {
    pub(crate) id: IdentityId,
    pub(crate) handle: String,
}

/// A room.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Room {
    pub(crate) id: RoomId,
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) last_message_at: Option<String>,
    #[serde(default)]
    pub(crate) participants: Vec<Participant>,
    #[serde(default)]
    pub(crate) participant_count: Option<i64>,
}

impl Room {
    /// What to call it.
    pub(crate) fn name(&self) -> &str {
        self.title.as_deref().unwrap_or("New room")
    }
}

/// Somebody in a room, or somebody who could be.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Participant {
    pub(crate) id: IdentityId,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) handle: Option<String>,
    #[serde(default)]
    pub(crate) role: Option<String>,
    /// Left out where it is not known.
    #[serde(default)]
    pub(crate) online: Option<bool>,
    #[serde(default)]
    pub(crate) description: Option<String>,
}

impl Participant {
    /// `@handle`, or the name of somebody without one.
    pub(crate) fn label(&self) -> String {
        self.handle.as_ref().map_or_else(|| self.name.clone(), |handle| format!("@{}", handle.trim_start_matches('@')))
    }

    /// The handle without `@`, in lower case.
    pub(crate) fn folded_handle(&self) -> Option<String> {
        self.handle.as_ref().map(|handle| handle.trim_start_matches('@').to_lowercase())
    }
}

/// A row of a room's history.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: MessageId,
    pub(crate) content: String,
    pub(crate) message_type: String,
    pub(crate) sender_id: IdentityId,
    #[serde(default)]
    pub(crate) sender_type: String,
    #[serde(default)]
    pub(crate) sender_name: Option<String>,
    #[serde(default)]
    pub(crate) metadata: Option<Value>,
    pub(crate) inserted_at: String,
}

impl Row {
    /// Whether it is a message, and not an event.
    pub(crate) fn is_text(&self) -> bool {
        self.message_type == "text"
    }
}

/// What became of a message for one participant.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) participant: DeliveredTo,
    pub(crate) stage: String,
    #[serde(default)]
    pub(crate) verdict: String,
    #[serde(default)]
    pub(crate) reason: Option<Reason>,
    #[serde(default)]
    pub(crate) attempts: i64,
    #[serde(default)]
    pub(crate) stages: Vec<Stage>,
    pub(crate) summary: String,
}

/// For whom.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct DeliveredTo {
    #[serde(default)]
    pub(crate) id: Option<IdentityId>,
    #[serde(default)]
    pub(crate) handle: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
}

impl DeliveredTo {
    /// `@handle`, else the name, else a word for nobody known.
    pub(crate) fn label(&self) -> String {
        match (&self.handle, &self.name) {
            (Some(handle), _) => format!("@{}", handle.trim_start_matches('@')),
            (None, Some(name)) => name.clone(),
            (None, None) => "somebody unknown".to_owned(),
        }
    }
}

/// Why nothing happened.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Reason {
    pub(crate) code: String,
}

/// A stage that a message reached.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Stage {
    pub(crate) stage: String,
    pub(crate) at: String,
    #[serde(default)]
    pub(crate) attempt: Option<i64>,
    #[serde(default)]
    pub(crate) note: Option<String>,
}

/// Somebody who works in a room just now.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Working {
    pub(crate) agent_id: IdentityId,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) activity: Option<Activity>,
}

/// What it does, when it said so.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
}

/// The receipt of a posted message.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    #[serde(default)]
    pub(crate) recipients: Vec<DeliveredTo>,
}

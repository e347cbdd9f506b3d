//! A room comes and goes, as seen by one of its participants.

use serde::Serialize;
use uuid::Uuid;

use crate::ids::RoomId;
use crate::time::Timestamp;

/// `room_added`. `title` is never null: both SDKs drop the event otherwise, and with it the room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoomAdded<'a> {
    /// Which room.
    pub id: RoomId,
    /// Its title, or what to call it until it has one.
    pub title: &'a str,
    /// The creator's opaque link.
    pub task_id: Option<Uuid>,
    /// `active`, …
    pub status: &'a str,
    /// `direct`, `group` or `task`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// When the room was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// `room_removed`: the union of what the Python and the TypeScript validators require.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoomRemoved<'a> {
    /// Which room.
    pub id: RoomId,
    /// Its title, or what it was called without one.
    pub title: &'a str,
    /// The creator's opaque link.
    pub task_id: Option<Uuid>,
    /// Always `removed`: the standing of the receiver, not of the room.
    pub status: &'static str,
    /// `direct`, `group` or `task`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// When the room was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When the receiver left it.
    pub removed_at: Timestamp,
}

/// `room_deleted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RoomDeleted {
    /// Which room.
    pub id: RoomId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_of_each() {
        let id = RoomId(Uuid::from_u128(7));
        let (inserted_at, updated_at) = (Timestamp::from_micros(0), Timestamp::from_micros(1));
        let added = RoomAdded {
            id,
            title: "New room",
            task_id: None,
            status: "active",
            kind: "direct",
            inserted_at,
            updated_at,
        };
        assert_eq!(
            serde_json::to_string(&added).unwrap(),
            r#"{"id":"00000000-0000-0000-0000-000000000007","title":"New room","task_id":null,"status":"active","type":"direct","inserted_at":"1970-01-01T00:00:00.000000Z","updated_at":"1970-01-01T00:00:00.000001Z"}"#
        );
        let removed = RoomRemoved {
            id,
            title: "Plans",
            task_id: Some(Uuid::from_u128(1)),
            status: "removed",
            kind: "task",
            inserted_at,
            updated_at,
            removed_at: Timestamp::from_micros(2),
        };
        assert_eq!(
            serde_json::to_string(&removed).unwrap(),
            r#"{"id":"00000000-0000-0000-0000-000000000007","title":"Plans","task_id":"00000000-0000-0000-0000-000000000001","status":"removed","type":"task","inserted_at":"1970-01-01T00:00:00.000000Z","updated_at":"1970-01-01T00:00:00.000001Z","removed_at":"1970-01-01T00:00:00.000002Z"}"#
        );
        assert_eq!(
            serde_json::to_string(&RoomDeleted { id }).unwrap(),
            r#"{"id":"00000000-0000-0000-0000-000000000007"}"#
        );
    }
}

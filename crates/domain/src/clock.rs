//! Time and ids are passed in, so that a test decides both.

use bandstand_wire::ids::{
    BulkDeletionId, ContactId, ContactRequestId, ExecutionId, IdentityId, KeyId, MemoryId, MessageId, OrganizationId,
    RoomId, TaskId,
};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

/// Tells the time of day. Order, leases and pages never depend on it (they follow sequences); it is for people.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Hands out fresh ids that sort by the time they were made.
pub trait IdSource: Send + Sync {
    /// A fresh UUID, version 7.
    fn uuid(&self) -> Uuid;

    /// A fresh room id.
    fn room(&self) -> RoomId {
        RoomId(self.uuid())
    }

    /// A fresh message id.
    fn message(&self) -> MessageId {
        MessageId(self.uuid())
    }

    /// A fresh identity id.
    fn identity(&self) -> IdentityId {
        IdentityId(self.uuid())
    }

    /// A fresh id of an agent's execution in a room.
    fn execution(&self) -> ExecutionId {
        ExecutionId(self.uuid())
    }

    /// A fresh id of a bulk deletion.
    fn bulk_deletion(&self) -> BulkDeletionId {
        BulkDeletionId(self.uuid())
    }

    /// A fresh key id.
    fn key(&self) -> KeyId {
        KeyId(self.uuid())
    }

    /// A fresh id of a contact's record.
    fn contact(&self) -> ContactId {
        ContactId(self.uuid())
    }

    /// A fresh id of a contact request.
    fn contact_request(&self) -> ContactRequestId {
        ContactRequestId(self.uuid())
    }

    /// A fresh task id.
    fn task(&self) -> TaskId {
        TaskId(self.uuid())
    }

    /// A fresh memory id.
    fn memory(&self) -> MemoryId {
        MemoryId(self.uuid())
    }

    /// A fresh organization id.
    fn organization(&self) -> OrganizationId {
        OrganizationId(self.uuid())
    }
}

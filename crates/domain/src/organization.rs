//! Organizations: people whom an administrator put together. A user is in one at most.

use bandstand_wire::ids::OrganizationId;
use bandstand_wire::time::Timestamp;

use crate::identity::Profile;

/// An organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Which.
    pub id: OrganizationId,
    /// What it is called; no two are called alike, whatever the case of the letters.
    pub name: String,
    /// Its users, in the order in which they joined.
    pub members: Vec<Profile>,
    /// When it was made.
    pub inserted_at: Timestamp,
}

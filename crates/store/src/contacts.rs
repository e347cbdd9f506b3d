//! Who knows whom with consent: two rows for each pair, one for each side.
//!
//! Whatever changes the contacts or requests of two first takes [`lock`] of both and then looks how they stand: so of
//! many that answer one request, or of two that ask each other at once, the second sees what the first did.

use bandstand_domain::contact::{Contact, RequestStatus};
use bandstand_wire::ids::{ContactId, IdentityId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::columns::{PROFILE_COLUMNS, profile, profile_columns};
use crate::{Param, Reader, Row, StoreError, Writer, params};

/// How many pairs one operation ends at most: each touches about six rows.
pub const BATCH: i64 = 50;

/// Locks what these have to do with contacts until the transaction ends. In the order of their keys, so that two
/// operations never wait for each other; which is why a transaction calls it once, for all that it needs.
pub async fn lock(tx: &mut Writer, keys: &[i64]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO contact_tallies (identity_key) VALUES (?1) \
                       ON CONFLICT (identity_key) DO UPDATE SET contacts = contact_tallies.contacts";
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let rows: Vec<Vec<Param<'_>>> = keys.into_iter().map(|key| vec![Param::Int(key)]).collect();
    tx.execute_many(SQL, &rows).await.map(drop)
}

/// How many contacts and requests somebody has; or, with signs, by how much that changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Contacts.
    pub contacts: i64,
    /// Pending requests of others.
    pub received: i64,
    /// Own requests, by [`RequestStatus::ALL`].
    pub(crate) sent: [i64; RequestStatus::ALL.len()],
}

impl Tallies {
    /// Own requests of one status or any.
    pub fn sent(&self, status: Option<RequestStatus>) -> i64 {
        let counted = RequestStatus::ALL.iter().zip(self.sent);
        counted.filter(|(of, _)| status.is_none_or(|status| status == **of)).map(|(_, count)| count).sum()
    }

    /// With so many more own requests of a status.
    pub(crate) fn add_sent(mut self, status: RequestStatus, count: i64) -> Self {
        for (of, slot) in RequestStatus::ALL.iter().zip(&mut self.sent) {
            *slot += if *of == status { count } else { 0 };
        }
        self
    }
}

/// How many contacts and requests somebody has.
pub async fn tallies(tx: &mut Reader, who: IdentityId) -> Result<Tallies, StoreError> {
    const SQL: &str = "SELECT t.contacts, t.received, t.pending, t.approved, t.rejected, t.expired, t.cancelled \
                       FROM contact_tallies t JOIN identities i ON i.key = t.identity_key WHERE i.id = ?1";
    let Some(row) = tx.query_opt(SQL, params![who]).await? else { return Ok(Tallies::default()) };
    let mut tallies = Tallies { contacts: row.int(0)?, received: row.int(1)?, ..Tallies::default() };
    for (place, slot) in tallies.sent.iter_mut().enumerate() {
        *slot = row.int(2 + place)?;
    }
    Ok(tallies)
}

/// Counts what changed for somebody that is locked.
pub(crate) async fn tally(tx: &mut Writer, key: i64, change: Tallies) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE contact_tallies SET contacts = contacts + ?2, received = received + ?3, \
                       pending = pending + ?4, approved = approved + ?5, rejected = rejected + ?6, \
                       expired = expired + ?7, cancelled = cancelled + ?8 WHERE identity_key = ?1";
    let mut values = params![key, change.contacts, change.received].to_vec();
    values.extend(change.sent.map(Param::Int));
    tx.execute(SQL, &values).await.map(drop)
}

/// The key of somebody who is not deleted.
pub async fn key_of(tx: &mut Reader, who: IdentityId) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT key FROM identities WHERE id = ?1 AND deleted_at IS NULL";
    tx.query_opt(SQL, params![who]).await?.map(|row| row.int(0)).transpose()
}

/// The key of somebody who is not deleted, by its folded handle.
pub async fn key_of_handle(tx: &mut Reader, handle: &str) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT key FROM identities WHERE handle = ?1 AND deleted_at IS NULL";
    tx.query_opt(SQL, params![handle]).await?.map(|row| row.int(0)).transpose()
}

/// Whether somebody is not deleted. Asked under [`lock`], which a deletion takes as well, it stays true.
pub async fn exists(tx: &mut Reader, key: i64) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM identities WHERE key = ?1 AND deleted_at IS NULL";
    Ok(tx.query_opt(SQL, params![key]).await?.is_some())
}

/// Whether two are contacts.
pub async fn are_contacts(tx: &mut Reader, one: IdentityId, other: IdentityId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM contacts WHERE identity_key = (SELECT key FROM identities WHERE id = ?1) \
                       AND contact_key = (SELECT key FROM identities WHERE id = ?2)";
    Ok(tx.query_opt(SQL, params![one, other]).await?.is_some())
}

/// Whether two are contacts, by their keys.
pub async fn are_linked(tx: &mut Reader, one_key: i64, other_key: i64) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM contacts WHERE identity_key = ?1 AND contact_key = ?2";
    Ok(tx.query_opt(SQL, params![one_key, other_key]).await?.is_some())
}

/// Columns of a [`Contact`] under the aliases `c` (the record) and `i` (who it is).
macro_rules! contact_columns {
    () => {
        concat!(profile_columns!("i"), ", c.id, i.email, i.listed_in_directory, c.inserted_at")
    };
}

fn read_contact(row: &mut Row) -> Result<Contact, StoreError> {
    let at = PROFILE_COLUMNS;
    Ok(Contact {
        id: ContactId(row.id(at)?),
        email: row.take_opt_text(at + 1)?,
        listed_in_directory: row.bool(at + 2)?,
        inserted_at: Timestamp::from_micros(row.int(at + 3)?),
        profile: profile(row, 0)?,
    })
}

/// Makes one the contact of another who is locked too, and counts it: one of the two sides. `None` when it is one
/// already.
pub async fn insert(
    tx: &mut Writer,
    id: ContactId,
    identity_key: i64,
    contact_key: i64,
    at: Timestamp,
) -> Result<Option<Contact>, StoreError> {
    const SQL: &str = "INSERT INTO contacts (id, identity_key, contact_key, inserted_at) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT (identity_key, contact_key) DO NOTHING";
    const READ: &str = concat!(
        "SELECT ",
        contact_columns!(),
        " FROM contacts c JOIN identities i ON i.key = c.contact_key WHERE c.id = ?1"
    );
    if tx.execute(SQL, params![id, identity_key, contact_key, at.as_micros()]).await? == 0 {
        return Ok(None);
    }
    tally(tx, identity_key, Tallies { contacts: 1, ..Tallies::default() }).await?;
    read_contact(&mut tx.query_one(READ, params![id]).await?).map(Some)
}

/// Ends one of the two sides, and counts it: whose it was, and the record.
pub async fn remove(
    tx: &mut Writer,
    identity_key: i64,
    contact_key: i64,
) -> Result<Option<(IdentityId, ContactId)>, StoreError> {
    const SQL: &str = "DELETE FROM contacts WHERE identity_key = ?1 AND contact_key = ?2 RETURNING id, \
                       (SELECT i.id FROM identities i WHERE i.key = ?1)";
    let Some(row) = tx.query_opt(SQL, params![identity_key, contact_key]).await? else { return Ok(None) };
    tally(tx, identity_key, Tallies { contacts: -1, ..Tallies::default() }).await?;
    Ok(Some((IdentityId(row.id(1)?), ContactId(row.id(0)?))))
}

/// The key of one's contact, by the own record's id or by the contact's own id: clients know the one or the other
/// under the same name.
pub async fn find(tx: &mut Reader, identity_key: i64, id: Uuid) -> Result<Option<i64>, StoreError> {
    const SQL: &str = "SELECT c.contact_key FROM contacts c WHERE c.id = ?2 AND c.identity_key = ?1 \
                       UNION SELECT c.contact_key FROM identities i \
                       JOIN contacts c ON c.identity_key = ?1 AND c.contact_key = i.key WHERE i.id = ?2 LIMIT 1";
    tx.query_opt(SQL, params![identity_key, id]).await?.map(|row| row.int(0)).transpose()
}

const LIST: &str = concat!(
    "SELECT ",
    contact_columns!(),
    " FROM contacts c JOIN identities i ON i.key = c.contact_key \
     WHERE c.identity_key = (SELECT key FROM identities WHERE id = ?1) ORDER BY c.key DESC LIMIT ?2 OFFSET ?3"
);

/// Somebody's contacts, newest first.
pub async fn list(tx: &mut Reader, who: IdentityId, limit: i64, offset: i64) -> Result<Vec<Contact>, StoreError> {
    tx.query(LIST, params![who, limit, offset]).await?.iter_mut().map(read_contact).collect()
}

/// The keys of some of somebody's contacts.
pub async fn some_of(tx: &mut Reader, key: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    const SQL: &str = "SELECT contact_key FROM contacts WHERE identity_key = ?1 ORDER BY key LIMIT ?2";
    tx.query(SQL, params![key, limit]).await?.iter().map(|row| row.int(0)).collect()
}

/// Somebody who is deleted and still has contacts or pending requests, if there is anybody.
pub async fn of_deleted(tx: &mut Reader) -> Result<Option<IdentityId>, StoreError> {
    const SQL: &str = "SELECT i.id FROM identities i WHERE i.deleted_at IS NOT NULL AND (\
                       EXISTS (SELECT 1 FROM contacts c WHERE c.identity_key = i.key) \
                       OR EXISTS (SELECT 1 FROM contact_requests q WHERE q.requester_key = i.key AND q.status = 'pending') \
                       OR EXISTS (SELECT 1 FROM contact_requests q WHERE q.recipient_key = i.key AND q.status = 'pending')) \
                       LIMIT 1";
    tx.query_opt(SQL, params![]).await?.map(|row| Ok(IdentityId(row.id(0)?))).transpose()
}

/// The statements that list, for the test of their plans.
pub fn statements() -> Vec<&'static str> {
    vec![LIST]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_by_status() {
        let tallies = Tallies::default().add_sent(RequestStatus::Pending, 2).add_sent(RequestStatus::Cancelled, 3);
        assert_eq!(tallies.sent(None), 5);
        assert_eq!(tallies.sent(Some(RequestStatus::Pending)), 2);
        assert_eq!(tallies.sent(Some(RequestStatus::Cancelled)), 3);
        assert_eq!(tallies.sent(Some(RequestStatus::Approved)), 0);
        let moved = tallies.add_sent(RequestStatus::Pending, -1).add_sent(RequestStatus::Approved, 1);
        assert_eq!((moved.sent(None), moved.sent(Some(RequestStatus::Approved))), (5, 1));
    }
}

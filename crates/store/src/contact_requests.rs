//! Requests to become contacts. Between two there is at most one pending request, whichever asked: an index says so.

use bandstand_domain::contact::{ContactRequest, Party, RequestStatus, Side};
use bandstand_wire::ids::{ContactRequestId, IdentityId};
use bandstand_wire::time::Timestamp;

use crate::columns::{identity_kind, unknown};
use crate::contacts::{Tallies, tally};
use crate::{Reader, Row, StoreError, Writer, params};

/// A request with the keys that an answer needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The request.
    pub request: ContactRequest,
    /// Its key.
    pub key: i64,
    /// Who asked.
    pub requester_key: i64,
    /// Who was asked.
    pub recipient_key: i64,
}

impl KeyedRequest {
    /// On which side somebody is, if on any.
    pub fn side_of(&self, key: i64) -> Option<Side> {
        match key {
            key if key == self.requester_key => Some(Side::Requester),
            key if key == self.recipient_key => Some(Side::Recipient),
            _ => None,
        }
    }
}

/// A request to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest<'a> {
    /// Its id.
    pub id: ContactRequestId,
    /// Who asks.
    pub requester_key: i64,
    /// Who is asked.
    pub recipient_key: i64,
    /// What the requester says of itself.
    pub message: Option<&'a str>,
    /// When.
    pub inserted_at: Timestamp,
}

/// Columns of a [`KeyedRequest`] and where they come from: `q` is the request, `a` who asked, `b` who was asked.
macro_rules! select_requests {
    () => {
        "SELECT q.id, q.status, q.message, q.inserted_at, q.responded_at, q.key, q.requester_key, q.recipient_key, \
         a.id, a.kind, a.handle, a.name, a.deleted_at, b.id, b.kind, b.handle, b.name, b.deleted_at \
         FROM contact_requests q JOIN identities a ON a.key = q.requester_key JOIN identities b ON b.key = q.recipient_key "
    };
}

const PARTY_COLUMNS: usize = 5;

fn read_party(row: &mut Row, from: usize) -> Result<Party, StoreError> {
    let is_deleted = row.opt_int(from + 4)?.is_some();
    Ok(Party {
        id: IdentityId(row.id(from)?),
        kind: identity_kind(row.int(from + 1)?)?,
        handle: row.take_opt_text(from + 2)?.filter(|_| !is_deleted),
        name: row.take_text(from + 3)?,
    })
}

fn read_request(row: &mut Row) -> Result<KeyedRequest, StoreError> {
    let status = row.text(1)?;
    Ok(KeyedRequest {
        key: row.int(5)?,
        requester_key: row.int(6)?,
        recipient_key: row.int(7)?,
        request: ContactRequest {
            id: ContactRequestId(row.id(0)?),
            status: RequestStatus::parse(status).ok_or_else(|| unknown("status of a contact request", status))?,
            inserted_at: Timestamp::from_micros(row.int(3)?),
            responded_at: row.opt_int(4)?.map(Timestamp::from_micros),
            message: row.take_opt_text(2)?,
            requester: read_party(row, 8)?,
            recipient: read_party(row, 8 + PARTY_COLUMNS)?,
        },
    })
}

fn read_one(row: Option<Row>) -> Result<Option<KeyedRequest>, StoreError> {
    row.map(|mut row| read_request(&mut row)).transpose()
}

/// A request by its id.
pub async fn by_id(tx: &mut Reader, id: ContactRequestId) -> Result<Option<KeyedRequest>, StoreError> {
    const SQL: &str = concat!(select_requests!(), "WHERE q.id = ?1");
    read_one(tx.query_opt(SQL, params![id]).await?)
}

/// The pending request between two, whichever asked.
pub async fn open_between(tx: &mut Reader, one_key: i64, other_key: i64) -> Result<Option<KeyedRequest>, StoreError> {
    const SQL: &str =
        concat!(select_requests!(), "WHERE q.lower_key = ?1 AND q.higher_key = ?2 AND q.status = 'pending'");
    let pair = params![one_key.min(other_key), one_key.max(other_key)];
    read_one(tx.query_opt(SQL, pair).await?)
}

/// Stores a pending request between two who are locked, and counts it. `None` when one is pending between them.
pub async fn insert(tx: &mut Writer, new: NewRequest<'_>) -> Result<Option<ContactRequest>, StoreError> {
    const SQL: &str = "INSERT INTO contact_requests \
                       (id, requester_key, recipient_key, lower_key, higher_key, status, message, inserted_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?7) \
                       ON CONFLICT (lower_key, higher_key) WHERE status = 'pending' DO NOTHING";
    let NewRequest { id, requester_key, recipient_key, message, inserted_at } = new;
    let (lower, higher) = (requester_key.min(recipient_key), requester_key.max(recipient_key));
    let values = params![id, requester_key, recipient_key, lower, higher, message, inserted_at.as_micros()];
    if tx.execute(SQL, values).await? == 0 {
        return Ok(None);
    }
    tally(tx, requester_key, Tallies::default().add_sent(RequestStatus::Pending, 1)).await?;
    tally(tx, recipient_key, Tallies { received: 1, ..Tallies::default() }).await?;
    Ok(by_id(tx, id).await?.map(|keyed| keyed.request))
}

/// Gives a pending request between two who are locked its final status, and counts it: the request as it is now.
/// `None` when it was pending no more.
pub async fn settle(
    tx: &mut Writer,
    keyed: &KeyedRequest,
    status: RequestStatus,
    at: Timestamp,
) -> Result<Option<ContactRequest>, StoreError> {
    const SQL: &str =
        "UPDATE contact_requests SET status = ?2, responded_at = ?3 WHERE key = ?1 AND status = 'pending'";
    if tx.execute(SQL, params![keyed.key, status.as_str(), at.as_micros()]).await? == 0 {
        return Ok(None);
    }
    let moved = Tallies::default().add_sent(RequestStatus::Pending, -1).add_sent(status, 1);
    tally(tx, keyed.requester_key, moved).await?;
    tally(tx, keyed.recipient_key, Tallies { received: -1, ..Tallies::default() }).await?;
    Ok(Some(ContactRequest { status, responded_at: Some(at), ..keyed.request.clone() }))
}

const RECEIVED: &str = concat!(
    select_requests!(),
    "WHERE q.recipient_key = (SELECT key FROM identities WHERE id = ?1) AND q.status = 'pending' \
     ORDER BY q.key DESC LIMIT ?2 OFFSET ?3"
);
const SENT: &str = concat!(
    select_requests!(),
    "WHERE q.requester_key = (SELECT key FROM identities WHERE id = ?1) ORDER BY q.key DESC LIMIT ?2 OFFSET ?3"
);
const SENT_OF: &str = concat!(
    select_requests!(),
    "WHERE q.requester_key = (SELECT key FROM identities WHERE id = ?1) AND q.status = ?4 \
     ORDER BY q.key DESC LIMIT ?2 OFFSET ?3"
);

fn read_all(rows: Vec<Row>) -> Result<Vec<ContactRequest>, StoreError> {
    rows.into_iter().map(|mut row| read_request(&mut row).map(|keyed| keyed.request)).collect()
}

/// The pending requests that somebody received, newest first.
pub async fn received(
    tx: &mut Reader,
    who: IdentityId,
    limit: i64,
    offset: i64,
) -> Result<Vec<ContactRequest>, StoreError> {
    read_all(tx.query(RECEIVED, params![who, limit, offset]).await?)
}

/// The requests of one status or any that somebody sent, newest first.
pub async fn sent(
    tx: &mut Reader,
    who: IdentityId,
    status: Option<RequestStatus>,
    limit: i64,
    offset: i64,
) -> Result<Vec<ContactRequest>, StoreError> {
    let rows = match status {
        Some(status) => tx.query(SENT_OF, params![who, limit, offset, status.as_str()]).await?,
        None => tx.query(SENT, params![who, limit, offset]).await?,
    };
    read_all(rows)
}

/// Some of the pending requests that somebody sent or received.
pub async fn some_open_of(tx: &mut Reader, key: i64, limit: i64) -> Result<Vec<KeyedRequest>, StoreError> {
    const FROM: &str =
        concat!(select_requests!(), "WHERE q.requester_key = ?1 AND q.status = 'pending' ORDER BY q.key LIMIT ?2");
    const TO: &str =
        concat!(select_requests!(), "WHERE q.recipient_key = ?1 AND q.status = 'pending' ORDER BY q.key LIMIT ?2");
    let mut rows = tx.query(FROM, params![key, limit]).await?;
    let left = limit - i64::try_from(rows.len()).unwrap_or(limit);
    rows.extend(tx.query(TO, params![key, left]).await?);
    rows.iter_mut().map(read_request).collect()
}

/// The statements that list, for the test of their plans.
pub fn statements() -> Vec<&'static str> {
    vec![RECEIVED, SENT, SENT_OF]
}

//! Which account of an OpenID Connect issuer is which user.

use bandstand_domain::event::Event;
use bandstand_domain::identity::Profile;
use bandstand_wire::ids::{IdentityId, KeyId};
use bandstand_wire::time::Timestamp;

use crate::columns::{PROFILE_COLUMNS, profile, profile_columns};
use crate::{Reader, Row, StoreError, Writer, params};

/// An issuer's account and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The link's own id. It stands where a key's id would: sockets close and caches forget by it.
    pub id: KeyId,
    /// Whose account.
    pub user: Profile,
    /// `iss` of its tokens.
    pub issuer: String,
    /// `sub` of its tokens.
    pub subject: String,
    /// When they were linked.
    pub inserted_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Whose account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Of this user, by this link.
    Linked(KeyId, IdentityId),
    /// Of a user who was deleted or is disabled.
    Closed,
    /// Nobody's here.
    Unknown,
}

/// Whose account an issuer's subject is.
pub async fn account(tx: &mut Reader, issuer: &str, subject: &str) -> Result<Account, StoreError> {
    const SQL: &str = "SELECT l.id, i.id, coalesce(i.deleted_at, i.disabled_at) FROM identity_links l JOIN identities i ON i.key = l.identity_key \
                       WHERE l.issuer = ?1 AND l.subject = ?2";
    let Some(row) = tx.query_opt(SQL, params![issuer, subject]).await? else { return Ok(Account::Unknown) };
    Ok(match row.opt_int(2)? {
        None => Account::Linked(KeyId(row.id(0)?), IdentityId(row.id(1)?)),
        Some(_) => Account::Closed,
    })
}

/// Links an account to a user; false when it is linked already, or there is no such user.
pub async fn insert(
    tx: &mut Writer,
    id: KeyId,
    user: IdentityId,
    issuer: &str,
    subject: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO identity_links (id, identity_key, issuer, subject, inserted_at) \
                       SELECT ?1, key, ?3, ?4, ?5 FROM identities WHERE id = ?2 AND kind = 0 AND deleted_at IS NULL \
                       ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![id, user, issuer, subject, at.as_micros()]).await? == 1)
}

/// Ends a link and announces that its tokens count no longer; false when there is none.
pub async fn remove(tx: &mut Writer, issuer: &str, subject: &str) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM identity_links WHERE issuer = ?1 AND subject = ?2 RETURNING id";
    let Some(row) = tx.query_opt(SQL, params![issuer, subject]).await? else { return Ok(false) };
    tx.emit(Event::KeyRevoked { key: KeyId(row.id(0)?) });
    Ok(true)
}

/// All links of users who are there, oldest first.
pub async fn list(tx: &mut Reader) -> Result<Vec<Link>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", l.id, l.issuer, l.subject, l.inserted_at, l.last_used_at \
         FROM identity_links l JOIN identities i ON i.key = l.identity_key WHERE i.deleted_at IS NULL ORDER BY l.key"
    );
    tx.query(SQL, params![]).await?.iter_mut().map(read_link).collect()
}

/// A page of them, or of one user's: those after a key, each with its own.
pub async fn list_after(
    tx: &mut Reader,
    user: Option<IdentityId>,
    after: i64,
    limit: i64,
) -> Result<Vec<(Link, i64)>, StoreError> {
    const ALL: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", l.id, l.issuer, l.subject, l.inserted_at, l.last_used_at, l.key \
         FROM identity_links l JOIN identities i ON i.key = l.identity_key \
         WHERE i.deleted_at IS NULL AND l.key > ?1 ORDER BY l.key LIMIT ?2"
    );
    const OF_USER: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", l.id, l.issuer, l.subject, l.inserted_at, l.last_used_at, l.key \
         FROM identity_links l JOIN identities i ON i.key = l.identity_key \
         WHERE i.deleted_at IS NULL AND l.identity_key = (SELECT key FROM identities WHERE id = ?3) AND l.key > ?1 \
         ORDER BY l.key LIMIT ?2"
    );
    let mut rows = match user {
        Some(user) => tx.query(OF_USER, params![after, limit, user]).await?,
        None => tx.query(ALL, params![after, limit]).await?,
    };
    rows.iter_mut().map(|row| Ok((read_link(row)?, row.int(PROFILE_COLUMNS + 5)?))).collect()
}

fn read_link(row: &mut Row) -> Result<Link, StoreError> {
    Ok(Link {
        user: profile(row, 0)?,
        id: KeyId(row.id(PROFILE_COLUMNS)?),
        issuer: row.take_text(PROFILE_COLUMNS + 1)?,
        subject: row.take_text(PROFILE_COLUMNS + 2)?,
        inserted_at: Timestamp::from_micros(row.int(PROFILE_COLUMNS + 3)?),
        last_used_at: row.opt_int(PROFILE_COLUMNS + 4)?.map(Timestamp::from_micros),
    })
}

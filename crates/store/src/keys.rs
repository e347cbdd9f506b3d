//! API keys, by their hash.

use bandstand_domain::event::Event;
use bandstand_domain::identity::Profile;
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};
use bandstand_wire::time::Timestamp;

use crate::columns::{PROFILE_COLUMNS, identity_kind, profile, profile_columns};
use crate::{Reader, Row, StoreError, Writer, params};

/// Whom a valid key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHolder {
    /// The key.
    pub key: KeyId,
    /// Who.
    pub identity: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// From then on the key opens nothing.
    pub expires_at: Option<Timestamp>,
}

/// A key as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key.
    pub id: KeyId,
    /// Whose.
    pub holder: Profile,
    /// Its first characters.
    pub hint: String,
    /// When it was made.
    pub inserted_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// From then on it opens nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Who holds the key with this hash, unless it is revoked or expired, its holder deleted, or its holder or
/// that one's owner disabled.
pub async fn by_hash(tx: &mut Reader, hash: [u8; 32], now: Timestamp) -> Result<Option<KeyHolder>, StoreError> {
    const SQL: &str = "SELECT k.id, i.id, i.kind, k.expires_at FROM api_keys k \
                       JOIN identities i ON i.key = k.identity_key LEFT JOIN identities o ON o.key = i.owner_key \
                       WHERE k.hash = ?1 AND k.revoked_at IS NULL AND i.deleted_at IS NULL \
                       AND i.disabled_at IS NULL AND o.disabled_at IS NULL \
                       AND (k.expires_at IS NULL OR k.expires_at > ?2)";
    let row = tx.query_opt(SQL, params![&hash, now.as_micros()]).await?;
    row.map(|row| holder(&row)).transpose()
}

/// Who holds the key with this id, unless it is revoked or expired, its holder deleted, or its holder or
/// that one's owner disabled.
pub async fn by_id(tx: &mut Reader, key: KeyId, now: Timestamp) -> Result<Option<KeyHolder>, StoreError> {
    const SQL: &str = "SELECT k.id, i.id, i.kind, k.expires_at FROM api_keys k \
                       JOIN identities i ON i.key = k.identity_key LEFT JOIN identities o ON o.key = i.owner_key \
                       WHERE k.id = ?1 AND k.revoked_at IS NULL AND i.deleted_at IS NULL \
                       AND i.disabled_at IS NULL AND o.disabled_at IS NULL \
                       AND (k.expires_at IS NULL OR k.expires_at > ?2)";
    let row = tx.query_opt(SQL, params![key, now.as_micros()]).await?;
    row.map(|row| holder(&row)).transpose()
}

fn holder(row: &Row) -> Result<KeyHolder, StoreError> {
    Ok(KeyHolder {
        key: KeyId(row.id(0)?),
        identity: IdentityId(row.id(1)?),
        kind: identity_kind(row.int(2)?)?,
        expires_at: row.opt_int(3)?.map(Timestamp::from_micros),
    })
}

/// Stores a new key of `identity`; false when there is no such identity or the key is known already.
pub async fn insert(
    tx: &mut Writer,
    id: KeyId,
    identity: IdentityId,
    hash: [u8; 32],
    hint: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO api_keys (id, identity_key, hash, hint, inserted_at) \
                       SELECT ?1, key, ?3, ?4, ?5 FROM identities WHERE id = ?2 AND deleted_at IS NULL \
                       ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![id, identity, &hash, hint, at.as_micros()]).await? == 1)
}

/// A page of keys, oldest first: those after a key's place, each with its own. Of one holder, or of any.
pub async fn list_after(
    tx: &mut Reader,
    holder: Option<IdentityId>,
    after: i64,
    limit: i64,
) -> Result<Vec<(KeyInfo, i64)>, StoreError> {
    const ALL: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", k.id, k.hint, k.inserted_at, k.revoked_at, k.expires_at, k.last_used_at, k.key \
         FROM api_keys k JOIN identities i ON i.key = k.identity_key WHERE k.key > ?1 ORDER BY k.key LIMIT ?2"
    );
    const HELD: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", k.id, k.hint, k.inserted_at, k.revoked_at, k.expires_at, k.last_used_at, k.key FROM api_keys k JOIN identities i ON i.key = k.identity_key \
         WHERE k.identity_key = (SELECT key FROM identities WHERE id = ?3) AND k.key > ?1 ORDER BY k.key LIMIT ?2"
    );
    let mut rows = match holder {
        Some(holder) => tx.query(HELD, params![after, limit, holder]).await?,
        None => tx.query(ALL, params![after, limit]).await?,
    };
    rows.iter_mut().map(|row| Ok((read_info(row)?, row.int(PROFILE_COLUMNS + 6)?))).collect()
}

fn read_info(row: &mut Row) -> Result<KeyInfo, StoreError> {
    Ok(KeyInfo {
        holder: profile(row, 0)?,
        id: KeyId(row.id(PROFILE_COLUMNS)?),
        hint: row.take_text(PROFILE_COLUMNS + 1)?,
        inserted_at: Timestamp::from_micros(row.int(PROFILE_COLUMNS + 2)?),
        revoked_at: row.opt_int(PROFILE_COLUMNS + 3)?.map(Timestamp::from_micros),
        expires_at: row.opt_int(PROFILE_COLUMNS + 4)?.map(Timestamp::from_micros),
        last_used_at: row.opt_int(PROFILE_COLUMNS + 5)?.map(Timestamp::from_micros),
    })
}

/// All keys, newest last.
pub async fn list(tx: &mut Reader) -> Result<Vec<KeyInfo>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", k.id, k.hint, k.inserted_at, k.revoked_at, k.expires_at, k.last_used_at \
         FROM api_keys k JOIN identities i ON i.key = k.identity_key ORDER BY k.key"
    );
    tx.query(SQL, params![]).await?.iter_mut().map(read_info).collect()
}

/// Revokes one key and announces it; false when there is none, or it is revoked already.
pub async fn revoke(tx: &mut Writer, key: KeyId, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
    let revoked = tx.execute(SQL, params![key, at.as_micros()]).await? == 1;
    if revoked {
        tx.emit(Event::KeyRevoked { key });
    }
    Ok(revoked)
}

/// Announces that no key of a user or of its agents opens anything for now: their sockets close, caches forget them.
pub async fn suspend(tx: &mut Writer, user: IdentityId) -> Result<(), StoreError> {
    const SQL: &str = "SELECT k.id FROM identities u JOIN identities i ON i.key = u.key OR i.owner_key = u.key \
                       JOIN api_keys k ON k.identity_key = i.key \
                       WHERE u.id = ?1 AND i.deleted_at IS NULL AND k.revoked_at IS NULL";
    const LINKS: &str = "SELECT l.id FROM identity_links l JOIN identities u ON u.key = l.identity_key WHERE u.id = ?1";
    for sql in [SQL, LINKS] {
        for row in tx.query(sql, params![user]).await? {
            tx.emit(Event::KeyRevoked { key: KeyId(row.id(0)?) });
        }
    }
    Ok(())
}

/// Revokes every key of an identity and announces each; how many there were.
pub async fn revoke_all(tx: &mut Writer, identity: IdentityId, at: Timestamp) -> Result<usize, StoreError> {
    const SQL: &str = "UPDATE api_keys SET revoked_at = ?2 \
                       WHERE identity_key = (SELECT key FROM identities WHERE id = ?1) AND revoked_at IS NULL \
                       RETURNING id";
    let rows = tx.query(SQL, params![identity, at.as_micros()]).await?;
    for row in &rows {
        tx.emit(Event::KeyRevoked { key: KeyId(row.id(0)?) });
    }
    Ok(rows.len())
}

/// Lets every valid key of an identity end at `at`, unless it ends before, and announces each; how many there were.
pub async fn expire_all(tx: &mut Writer, identity: IdentityId, at: Timestamp) -> Result<usize, StoreError> {
    const SQL: &str = "UPDATE api_keys SET expires_at = ?2 \
                       WHERE identity_key = (SELECT key FROM identities WHERE id = ?1) AND revoked_at IS NULL \
                       AND (expires_at IS NULL OR expires_at > ?2) RETURNING id";
    let rows = tx.query(SQL, params![identity, at.as_micros()]).await?;
    for row in &rows {
        tx.emit(Event::KeyExpires { key: KeyId(row.id(0)?), at });
    }
    Ok(rows.len())
}

/// Lets one valid key end at `at`, unless it ends before, and announces it.
pub async fn expire(tx: &mut Writer, key: KeyId, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE api_keys SET expires_at = ?2 WHERE id = ?1 AND revoked_at IS NULL \
                       AND (expires_at IS NULL OR expires_at > ?2)";
    if tx.execute(SQL, params![key, at.as_micros()]).await? == 1 {
        tx.emit(Event::KeyExpires { key, at });
    }
    Ok(())
}

/// Notes that a key, or an issuer's account, was used; nothing when that is known to within `precision` microseconds.
pub async fn note_use(tx: &mut Writer, key: KeyId, at: Timestamp, precision: i64) -> Result<(), StoreError> {
    const KEY: &str = "UPDATE api_keys SET last_used_at = ?2 \
                       WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?3)";
    const LINK: &str = "UPDATE identity_links SET last_used_at = ?2 \
                        WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?3)";
    let before = at.plus_micros(-precision).as_micros();
    if tx.execute(KEY, params![key, at.as_micros(), before]).await? == 0 {
        tx.execute(LINK, params![key, at.as_micros(), before]).await?;
    }
    Ok(())
}

//! What the server signs people's tokens with.

use bandstand_domain::event::Event;
use bandstand_wire::time::Timestamp;

use crate::{Reader, Row, StoreError, Writer, params};

/// The secret half of a signing key. It prints as `[REDACTED]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[REDACTED]")
    }
}

/// The key that signs just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// The tokens' `kid`.
    pub name: String,
    /// Its secret half.
    pub seed: Seed,
}

/// What tokens are verified with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// The tokens' `kid`.
    pub name: String,
    /// The Ed25519 public key.
    pub public: [u8; 32],
    /// Verifies nothing from then on.
    pub expires_at: Option<Timestamp>,
}

/// The key that signs; `None` before the first start has made one.
pub async fn signing(tx: &mut Reader) -> Result<Option<SigningKey>, StoreError> {
    const SQL: &str = "SELECT name, seed FROM signing_keys WHERE algorithm = 'EdDSA' AND retired_at IS NULL";
    let Some(mut row) = tx.query_opt(SQL, params![]).await? else { return Ok(None) };
    Ok(Some(SigningKey { seed: Seed(bytes(&row, 1)?), name: row.take_text(0)? }))
}

/// The keys that verify at this time: the one that signs first, then retired ones from the newest.
pub async fn verifying(tx: &mut Reader, now: Timestamp) -> Result<Vec<VerifyingKey>, StoreError> {
    const SQL: &str = "SELECT name, public, expires_at FROM signing_keys \
                       WHERE expires_at IS NULL OR expires_at > ?1 ORDER BY key DESC";
    let rows = tx.query(SQL, params![now.as_micros()]).await?;
    rows.into_iter()
        .map(|mut row| {
            Ok(VerifyingKey {
                public: bytes(&row, 1)?,
                expires_at: row.opt_int(2)?.map(Timestamp::from_micros),
                name: row.take_text(0)?,
            })
        })
        .collect()
}

/// Stores the key that signs from now on; false when there is one.
pub async fn insert(tx: &mut Writer, new: &SigningKey, public: [u8; 32], at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO signing_keys (name, algorithm, seed, public, inserted_at) \
                       VALUES (?1, 'EdDSA', ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![&new.name, &new.seed.0, &public, at.as_micros()]).await? == 1)
}

/// The key that signs does no longer, and verifies until `until`; keys that verify nothing any more are removed.
pub async fn retire(tx: &mut Writer, at: Timestamp, until: Timestamp) -> Result<(), StoreError> {
    const RETIRE: &str = "UPDATE signing_keys SET retired_at = ?1, expires_at = ?2 WHERE retired_at IS NULL";
    const FORGET: &str = "DELETE FROM signing_keys WHERE expires_at <= ?1";
    tx.execute(RETIRE, params![at.as_micros(), until.as_micros()]).await?;
    tx.execute(FORGET, params![at.as_micros()]).await?;
    Ok(())
}

/// Removes every key and announces that their tokens count no longer.
pub async fn revoke_all(tx: &mut Writer) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM signing_keys";
    tx.execute(SQL, params![]).await?;
    tx.emit(Event::TokensRevoked);
    Ok(())
}

fn bytes(row: &Row, column: usize) -> Result<[u8; 32], StoreError> {
    row.bytes(column)?.try_into().map_err(|_| StoreError::Decode("a signing key that is not 32 bytes long".to_owned()))
}

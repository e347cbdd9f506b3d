//! The tokens that this server issues, and the keys that it signs and verifies them with.
//!
//! The signing keys are in the database, so that every node of a deployment verifies what another one issued, and a
//! rotation reaches all. A token names the API key that it was issued for, and dies with it.

use std::sync::{Arc, Mutex, PoisonError};

use bandstand_domain::clock::Clock;
use bandstand_domain::sign_in::Expected;
use bandstand_store::signing_keys::{self, Seed, SigningKey, VerifyingKey};
use bandstand_store::{Store, StoreError};
use bandstand_wire::ids::{IdentityId, KeyId};
use bandstand_wire::time::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::jwt::{self, Refused, Unverified};
use super::{SignIn, crypto};
use crate::settings::Limits;

/// What other parties are shown of the keys is read again after so long, in microseconds.
const PUBLISHED_LIFETIME: i64 = 60_000_000;

/// Why a signing key cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// There is no randomness.
    #[error("no randomness for a signing key: {0}")]
    Randomness(getrandom::Error),
    /// The random bytes make no key, which does not happen.
    #[error("the signing key cannot be used")]
    Unusable,
}

/// A fresh key and its public half.
///
/// # Errors
/// [`SigningKeyError`].
pub fn generate(
    mut random: impl FnMut(&mut [u8]) -> Result<(), getrandom::Error>,
) -> Result<(SigningKey, [u8; 32]), SigningKeyError> {
    let mut seed = [0_u8; 32];
    random(&mut seed).map_err(SigningKeyError::Randomness)?;
    let public = crypto::public_of(&seed).ok_or(SigningKeyError::Unusable)?;
    Ok((SigningKey { name: thumbprint(&public), seed: Seed(seed) }, public))
}

/// RFC 7638 with RFC 8037: the same key has the same name everywhere.
fn thumbprint(public: &[u8; 32]) -> String {
    let x = URL_SAFE_NO_PAD.encode(public);
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)))
}

/// A public key as others read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishedKey {
    /// Always `OKP`.
    kty: &'static str,
    /// Always `Ed25519`.
    crv: &'static str,
    /// Always `sig`.
    r#use: &'static str,
    /// Always `EdDSA`.
    alg: &'static str,
    /// Its name in tokens.
    kid: String,
    /// The key.
    x: String,
}

/// A token and how long it counts.
#[derive(Clone)]
pub struct IssuedToken {
    /// The token. It is shown to its owner and nowhere else.
    pub token: String,
    /// From then on it counts no longer.
    pub expires_at: Timestamp,
}

#[derive(Serialize)]
struct Issued<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: IdentityId,
    iat: i64,
    exp: i64,
    jti: uuid::Uuid,
    key_id: KeyId,
}

/// Whom a token of ours is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bearer {
    pub(crate) user: IdentityId,
    pub(crate) key: KeyId,
    pub(crate) until: Timestamp,
}

/// Verifies tokens of this server. Cheap to clone.
#[derive(Clone)]
pub struct Tokens {
    store: Store,
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    known: Arc<Mutex<Published>>,
}

#[derive(Default)]
struct Published {
    keys: Arc<[VerifyingKey]>,
    read_at: Option<Timestamp>,
    /// Counts how often they were forgotten: what was read before must not be put back after.
    forgotten: u64,
}

impl Tokens {
    /// Over this store.
    pub fn new(store: Store, clock: Arc<dyn Clock>, limits: Arc<Limits>) -> Self {
        crypto::install();
        Self { store, clock, limits, known: Arc::default() }
    }

    fn settings(&self) -> &SignIn {
        &self.limits.sign_in
    }

    /// Forgets the keys: one was made or revoked.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Published { forgotten: known.forgotten + 1, ..Published::default() };
    }

    /// Issues a token for the holder of an API key. It ends with the key.
    ///
    /// # Errors
    /// [`IssueError`].
    pub(crate) async fn issue(
        &self,
        user: IdentityId,
        key: KeyId,
        key_expires: Option<Timestamp>,
        id: uuid::Uuid,
    ) -> Result<IssuedToken, IssueError> {
        let found: Option<SigningKey> = self
            .store
            .read("signing_key", |tx| Box::pin(signing_keys::signing(tx)))
            .await
            .map_err(IssueError::Store)?;
        let signing = found.ok_or(IssueError::NoKey)?;
        let settings = self.settings();
        let now = self.clock.now();
        let end = now.plus_micros(super::micros(settings.token_lifetime));
        let end = key_expires.map_or(end, |key_expires| end.min(key_expires));
        let claims = Issued {
            iss: &settings.token_issuer,
            aud: &settings.token_issuer,
            sub: user,
            iat: now.as_micros().div_euclid(1_000_000),
            exp: end.as_micros().div_euclid(1_000_000),
            jti: id,
            key_id: key,
        };
        let header = Header { kid: Some(signing.name), ..Header::new(Algorithm::EdDSA) };
        let token = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_der(&signing.seed.0))
            .map_err(|why| IssueError::Signature(why.to_string()))?;
        Ok(IssuedToken { token, expires_at: Timestamp::from_micros(claims.exp.saturating_mul(1_000_000)) })
    }

    /// Whom a token is for, if it is ours and counts now.
    pub(super) async fn verify(
        &self,
        token: &str,
        unverified: &Unverified,
    ) -> Result<Result<Bearer, Refused>, StoreError> {
        let Some(name) = &unverified.key_name else { return Ok(Err(Refused::NoKey)) };
        let now = self.clock.now();
        let found = match find(&self.current(), name, now) {
            Some(found) => Some(found),
            // Made by another node, perhaps. Like an unknown API key, it costs one read.
            None => find(&self.read(now).await?, name, now),
        };
        let Some(public) = found else { return Ok(Err(Refused::NoKey)) };
        let settings = self.settings();
        let expected = Expected {
            issuer: &settings.token_issuer,
            audience: &settings.token_issuer,
            skew_micros: settings.skew_micros(),
        };
        let key = DecodingKey::from_ed_der(&public);
        let verified = match jwt::verify(token, &key, Algorithm::EdDSA, expected, now) {
            Ok(verified) => verified,
            Err(why) => return Ok(Err(why)),
        };
        let key_id = verified.more.get("key_id").and_then(serde_json::Value::as_str).and_then(|text| text.parse().ok());
        Ok(match (verified.subject.parse(), key_id) {
            (Ok(user), Some(key)) => Ok(Bearer { user, key, until: verified.until }),
            _ => Err(Refused::Malformed),
        })
    }

    /// The keys that verify, for whoever wants to check a token.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn published(&self) -> Result<Vec<PublishedKey>, StoreError> {
        let now = self.clock.now();
        let read_at = self.known.lock().unwrap_or_else(PoisonError::into_inner).read_at;
        let fresh = read_at.is_some_and(|at| at <= now && now < at.plus_micros(PUBLISHED_LIFETIME));
        let keys = if fresh { self.current() } else { self.read(now).await? };
        let shown = keys.iter().filter(|key| key.expires_at.is_none_or(|end| end > now));
        Ok(shown
            .map(|key| PublishedKey {
                kty: "OKP",
                crv: "Ed25519",
                r#use: "sig",
                alg: "EdDSA",
                kid: key.name.clone(),
                x: URL_SAFE_NO_PAD.encode(key.public),
            })
            .collect())
    }

    fn current(&self) -> Arc<[VerifyingKey]> {
        Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner).keys)
    }

    async fn read(&self, now: Timestamp) -> Result<Arc<[VerifyingKey]>, StoreError> {
        let forgotten = self.known.lock().unwrap_or_else(PoisonError::into_inner).forgotten;
        let read: Vec<VerifyingKey> =
            self.store.read("verifying_keys", move |tx| Box::pin(signing_keys::verifying(tx, now))).await?;
        let keys: Arc<[VerifyingKey]> = read.into();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.forgotten == forgotten {
            *known = Published { keys: Arc::clone(&keys), read_at: Some(now), forgotten };
        }
        Ok(keys)
    }
}

/// The public key of this name, if it verifies now.
fn find(keys: &[VerifyingKey], name: &str, now: Timestamp) -> Option<[u8; 32]> {
    let fits = |key: &&VerifyingKey| key.name == name && key.expires_at.is_none_or(|end| end > now);
    keys.iter().find(fits).map(|key| key.public)
}

/// Why no token is issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// There is none to sign with.
    #[error("there is no signing key; `bandstand key rotate-signing` makes one")]
    NoKey,
    /// It cannot be signed, which is a bug.
    #[error("the token cannot be signed: {0}")]
    Signature(String),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXPECTED: Expected<'static> = Expected { issuer: "bandstand", audience: "bandstand", skew_micros: 0 };

    fn token() -> (String, DecodingKey) {
        crypto::install();
        let (signing, public) = generate(|bytes| {
            bytes.fill(7);
            Ok(())
        })
        .unwrap();
        let claims = serde_json::json!({"iss": "bandstand", "aud": "bandstand", "sub": "x", "exp": 1_800_000_900});
        let header = Header { kid: Some(signing.name), ..Header::new(Algorithm::EdDSA) };
        let token = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_der(&signing.seed.0)).unwrap();
        (token, DecodingKey::from_ed_der(&public))
    }

    fn counts(token: &str, key: &DecodingKey) -> bool {
        Unverified::read(token).is_ok()
            && jwt::verify(token, key, Algorithm::EdDSA, EXPECTED, Timestamp::from_micros(1_800_000_000_000_000))
                .is_ok()
    }

    #[test]
    fn a_seed_never_prints_and_its_name_is_the_thumbprint() {
        let (signing, public) = generate(|bytes| {
            bytes.fill(1);
            Ok(())
        })
        .unwrap();
        assert!(format!("{signing:?}").contains("[REDACTED]"));
        // RFC 8037, appendix A.3.
        let x: [u8; 32] =
            URL_SAFE_NO_PAD.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap().try_into().unwrap();
        assert_eq!(thumbprint(&x), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        assert_ne!(thumbprint(&public), thumbprint(&x));
    }

    #[test]
    fn no_other_algorithm_and_no_unsigned_token_counts() {
        let (token, key) = token();
        assert!(counts(&token, &key));
        let [_, payload, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None","typ":"JWT"}"#,
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"ES256"}"#,
            r#"{"alg":"EdDSA","crit":["exp"]}"#,
            r#"{}"#,
        ] {
            let header = URL_SAFE_NO_PAD.encode(header);
            assert!(!counts(&format!("{header}.{payload}."), &key), "{header}");
            assert!(!counts(&format!("{header}.{payload}.{signature}"), &key), "{header}");
        }
        // The public key taken for a shared secret.
        let forged = {
            use ring::hmac;
            let public = key.try_get_as_bytes().unwrap();
            let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
            let message = format!("{head}.{payload}");
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, public), message.as_bytes());
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
        };
        assert!(!counts(&forged, &key));
    }

    proptest! {
        #[test]
        fn no_changed_token_counts(at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let (token, key) = token();
            let mut changed = token.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = to;
            if let Ok(changed) = String::from_utf8(changed) {
                prop_assert_eq!(counts(&changed, &key), changed == token);
            }
            prop_assert!(!counts(&token[..cut.index(token.len())], &key));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,200}", parts in "[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,60}") {
            let (_, key) = token();
            prop_assert!(!counts(&text, &key));
            prop_assert!(!counts(&parts, &key));
        }
    }
}

//! An issuer's published keys (RFC 7517), each with the one algorithm that it may verify.

use std::str::FromStr;

use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::jwt::Refused;

/// Most keys of a set that are looked at. Issuers publish a handful.
const MOST_KEYS: usize = 100;

/// The keys that verify.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    keys: Vec<PinnedKey>,
}

#[derive(Debug)]
struct PinnedKey {
    name: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// A text is no key set, or none of its keys can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeySetError {
    /// Not JSON, or of another form.
    #[error("it is no JSON Web Key Set: {0}")]
    Malformed(serde_json::Error),
    /// Nothing for signatures of a known kind.
    #[error("none of its keys can be used")]
    Empty,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// The members that matter. Private ones are not read.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. Keys of unknown kinds are passed over, as RFC 7517 asks; so are shared secrets, which have no place
    /// in a set that is published.
    pub(super) fn read(text: &[u8]) -> Result<Self, KeySetError> {
        let document: Document = serde_json::from_slice(text).map_err(KeySetError::Malformed)?;
        let read = |value: Value| serde_json::from_value::<Jwk>(value).ok().and_then(PinnedKey::read);
        let keys: Vec<PinnedKey> = document.keys.into_iter().take(MOST_KEYS).filter_map(read).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self { keys }) }
    }

    /// The key of this name for this algorithm. A token that names no key fits only when there is one key in all.
    pub(super) fn find(&self, name: Option<&str>, algorithm: Algorithm) -> Result<&DecodingKey, Refused> {
        let found = match (name, self.keys.as_slice()) {
            (Some(name), keys) => {
                keys.iter().find(|key| key.name.as_deref() == Some(name) && key.algorithm == algorithm)
            }
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        found.filter(|key| key.algorithm == algorithm).map(|found| &found.key).ok_or(Refused::NoKey)
    }
}

impl PinnedKey {
    fn read(jwk: Jwk) -> Option<Self> {
        let signs = jwk.r#use.as_deref().is_none_or(|used| used == "sig")
            && jwk.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|operation| operation == "verify"));
        if !signs {
            return None;
        }
        let declared = match jwk.alg.as_deref() {
            Some(name) => Some(Algorithm::from_str(name).ok()?),
            None => None,
        };
        let (possible, key): (&[Algorithm], _) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            // An RSA key that names no algorithm is for RS256, the one that OpenID Connect requires.
            ("RSA", _) => {
                let key = DecodingKey::from_rsa_components(jwk.n.as_deref()?, jwk.e.as_deref()?);
                (&RSA, key)
            }
            ("EC", Some("P-256")) => {
                (&[Algorithm::ES256], DecodingKey::from_ec_components(jwk.x.as_deref()?, jwk.y.as_deref()?))
            }
            ("EC", Some("P-384")) => {
                (&[Algorithm::ES384], DecodingKey::from_ec_components(jwk.x.as_deref()?, jwk.y.as_deref()?))
            }
            ("OKP", Some("Ed25519")) => (&[Algorithm::EdDSA], DecodingKey::from_ed_components(jwk.x.as_deref()?)),
            _ => return None,
        };
        let algorithm = match declared {
            Some(declared) => possible.iter().copied().find(|possible| *possible == declared)?,
            None => *possible.first()?,
        };
        Some(Self { name: jwk.kid, algorithm, key: key.ok()? })
    }
}

const RSA: [Algorithm; 6] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn algorithms(keys: Value) -> Vec<Algorithm> {
        let set = KeySet::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap_or_default();
        set.keys.iter().map(|key| key.algorithm).collect()
    }

    #[test]
    fn each_key_has_one_algorithm() {
        let rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
        let with = |mut key: Value, more: &[(&str, Value)]| {
            for (name, value) in more {
                key[*name] = value.clone();
            }
            key
        };
        assert_eq!(algorithms(json!([rsa])), [Algorithm::RS256]);
        assert_eq!(algorithms(json!([with(rsa.clone(), &[("alg", json!("PS384"))])])), [Algorithm::PS384]);
        for (name, value) in [
            ("alg", json!("HS256")),
            ("alg", json!("none")),
            ("alg", json!("ES256")),
            ("alg", json!("RSA-OAEP")),
            ("use", json!("enc")),
            ("key_ops", json!(["encrypt"])),
            ("kty", json!("oct")),
            ("n", json!("not base64!")),
            ("n", Value::Null),
        ] {
            assert_eq!(algorithms(json!([with(rsa.clone(), &[(name, value.clone())])])), [], "{name} {value}");
        }
        let secret = json!({"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"});
        let curve = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"});
        let edwards = json!({"kty": "OKP", "crv": "Ed25519", "x": "AA"});
        let other = json!({"kty": "OKP", "crv": "Ed448", "x": "AA"});
        assert_eq!(algorithms(json!([secret, curve, 5, edwards, other])), [Algorithm::ES256, Algorithm::EdDSA]);
    }

    #[test]
    fn a_token_that_names_no_key_fits_only_a_single_one() {
        let key = |name: &str| json!({"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": name});
        let set = |keys: Value| KeySet::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
        let one = set(json!([key("a")]));
        assert!(one.find(None, Algorithm::EdDSA).is_ok());
        assert!(one.find(Some("a"), Algorithm::EdDSA).is_ok());
        assert!(one.find(Some("b"), Algorithm::EdDSA).is_err());
        assert!(one.find(Some("a"), Algorithm::HS256).is_err());
        let two = set(json!([key("a"), key("b")]));
        assert!(two.find(None, Algorithm::EdDSA).is_err());
        assert!(two.find(Some("b"), Algorithm::EdDSA).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,200}") {
            let _ = KeySet::read(text.as_bytes());
        }
    }
}

//! Reading a token: what it claims, once its signature holds.

use bandstand_domain::sign_in::{ClaimFault, Claims, Expected, check};
use bandstand_wire::time::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, dangerous, decode, decode_header};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Longest token, in bytes. A request's head has 16 KiB.
const TOKEN_MAX_BYTES: usize = 12 * 1024;

/// Why a token is refused. For logs at debug level: the caller learns none of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// It is no JWT of the kind that is understood.
    #[error("it is no usable JWT")]
    Malformed,
    /// Its key is unknown, or its key's algorithm is another.
    #[error("no key of its issuer fits it")]
    NoKey,
    /// It was changed, or signed by somebody else.
    #[error("its signature is wrong")]
    Signature,
    /// It is for somebody else, or for another time.
    #[error(transparent)]
    Claims(#[from] ClaimFault),
}

/// What a token says of itself before anything is verified: it may choose which keys are tried, and nothing else.
pub(super) struct Unverified {
    pub(super) issuer: String,
    pub(super) key_name: Option<String>,
    pub(super) algorithm: Algorithm,
}

impl Unverified {
    pub(super) fn read(token: &str) -> Result<Self, Refused> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(Refused::Malformed);
        }
        let header = decode_header(token).map_err(|_| Refused::Malformed)?;
        // An extension that must be understood, and is not.
        if header.crit.is_some() {
            return Err(Refused::Malformed);
        }
        let payload: Payload = dangerous::insecure_decode_claims(token).map_err(|_| Refused::Malformed)?;
        let issuer = payload.iss.ok_or(ClaimFault::Issuer)?;
        Ok(Self { issuer, key_name: header.kid, algorithm: header.alg })
    }
}

/// The claims of a token whose signature holds, and until when they count.
pub(super) struct Verified {
    pub(super) subject: String,
    pub(super) until: Timestamp,
    pub(super) more: Map<String, Value>,
}

/// Verifies signature and claims. The algorithm is the key's; time is ours, so the library looks at no claim.
pub(super) fn verify(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    expected: Expected<'_>,
    now: Timestamp,
) -> Result<Verified, Refused> {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    let payload = decode::<Payload>(token, key, &validation).map_err(|_| Refused::Signature)?.claims;
    let claims = Claims {
        issuer: payload.iss.as_deref(),
        audience: payload.aud.as_slice(),
        subject: payload.sub.as_deref(),
        expires: payload.exp.map(|date| date.0),
        not_before: payload.nbf.map(|date| date.0),
        issued: payload.iat.map(|date| date.0),
    };
    let until = check(&claims, expected, now)?;
    Ok(Verified { subject: payload.sub.unwrap_or_default(), until, more: payload.more })
}

#[derive(Deserialize)]
struct Payload {
    iss: Option<String>,
    #[serde(default)]
    aud: Audience,
    sub: Option<String>,
    exp: Option<NumericDate>,
    nbf: Option<NumericDate>,
    iat: Option<NumericDate>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// One name or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    Name(String),
    Several(Vec<String>),
}

impl Default for Audience {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Audience {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::Name(name) => std::slice::from_ref(name),
            Self::Several(several) => several,
        }
    }
}

/// Seconds since 1970, whole or not.
struct NumericDate(Timestamp);

impl<'de> Deserialize<'de> for NumericDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let micros = match number.as_i64() {
            Some(seconds) => seconds.saturating_mul(1_000_000),
            None => number.as_f64().filter(|seconds| seconds.is_finite()).map(rounded).unwrap_or_default(),
        };
        Ok(Self(Timestamp::from_micros(micros)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what does not fit becomes the nearest moment that does")]
fn rounded(seconds: f64) -> i64 {
    (seconds * 1e6) as i64
}

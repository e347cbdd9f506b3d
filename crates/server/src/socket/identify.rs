//! Who wants to connect, from the headers and the query of the upgrade.

use axum::http::HeaderMap;
use bandstand_store::StoreError;
use bandstand_wire::ids::{IdentityId, IdentityKind};
use bandstand_wire::phoenix::Version;

use crate::auth::{Authenticator, Caller};

/// What the upgrade asks for. Holds a secret: never logged, and dropped once the connection stands.
#[derive(Clone)]
pub(crate) struct Claim {
    key: String,
    agent: Option<String>,
}

/// What else the upgrade's query says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// The serializer.
    pub(crate) version: Version,
    /// What to do when the agent is connected already.
    pub(crate) on_conflict: Option<OnConflict>,
}

/// What to do when the agent is connected already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnConflict {
    /// Take its place.
    Supersede,
    /// Give way.
    Reject,
}

/// The upgrade cannot be read, or shows no usable credential: answered with 403 and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unusable;

impl Claim {
    /// Reads credentials and wishes. `on_conflict` is `None` when its value is unknown.
    ///
    /// A key may be in the `x-api-key` header, in the query, or the same one in both. A JWT would outrank it, and no
    /// verifier is configured, so one makes the upgrade unusable.
    ///
    /// # Errors
    /// [`Unusable`].
    pub(crate) fn read(headers: &HeaderMap, query: Option<&str>) -> Result<(Self, Wishes), Unusable> {
        let query = Query(query.unwrap_or_default());
        let header = |name: &str| match headers.get(name) {
            Some(value) => value.to_str().map(str::trim).map(Some).map_err(|_| Unusable),
            None => Ok(None),
        };
        if query.get("token").is_some_and(|token| !token.is_empty()) || header("x-auth-token")?.is_some() {
            return Err(Unusable);
        }
        let version = Version::from_vsn(query.get("vsn").as_deref()).ok_or(Unusable)?;
        let in_header = header("x-api-key")?.filter(|key| !key.is_empty()).map(str::to_owned);
        let in_query = query.get("api_key").filter(|key| !key.is_empty());
        let key = match (in_header, in_query) {
            (Some(header), Some(query)) if header != query => return Err(Unusable),
            (Some(key), _) | (None, Some(key)) => key,
            (None, None) => return Err(Unusable),
        };
        let on_conflict = match query.get("on_conflict").as_deref() {
            None | Some("" | "supersede") => Some(OnConflict::Supersede),
            Some("reject") => Some(OnConflict::Reject),
            Some(_) => None,
        };
        let agent = query.get("agent_id").filter(|agent| !agent.is_empty());
        Ok((Self { key, agent }, Wishes { version, on_conflict }))
    }

    /// Whether the key was valid before, and is still.
    pub(crate) fn is_remembered(&self, auth: &Authenticator) -> bool {
        auth.remembered(&self.key).is_some()
    }

    /// Who that is: the key's identity, or the agent that the key's user owns and claims to be.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn resolve(&self, auth: &Authenticator) -> Result<Option<Caller>, StoreError> {
        let Some(caller) = auth.authenticate(&self.key).await? else { return Ok(None) };
        let Some(agent) = &self.agent else { return Ok(Some(caller)) };
        let Ok(agent) = agent.parse::<IdentityId>() else { return Ok(None) };
        match caller.kind {
            IdentityKind::Agent => Ok((caller.identity == agent).then_some(caller)),
            IdentityKind::User => {
                let owned = auth.owned_agent(caller.identity, agent).await?;
                Ok(owned.then_some(Caller { identity: agent, kind: IdentityKind::Agent, key: caller.key }))
            }
        }
    }
}

/// A query string; of a name that is there twice, the first counts.
struct Query<'a>(&'a str);

impl Query<'_> {
    fn get(&self, name: &str) -> Option<String> {
        self.0.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key) == name).then(|| decoded(value))
        })
    }
}

/// Undoes `application/x-www-form-urlencoded`; what is no valid escape stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'+', _) => {
                bytes.push(b' ');
                tail
            }
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
                bytes.push(digit(*high) << 4 | digit(*low));
                after
            }
            _ => {
                bytes.push(*first);
                tail
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(headers: &[(&'static str, &str)], query: &str) -> Result<(String, Option<String>, Wishes), Unusable> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Claim::read(&map, Some(query)).map(|(claim, wishes)| (claim.key, claim.agent, wishes))
    }

    #[test]
    fn where_a_key_may_be() {
        let key = |headers: &[(&'static str, &str)], query: &str| read(headers, query).map(|(key, ..)| key);
        assert_eq!(key(&[("x-api-key", "k")], "vsn=2.0.0"), Ok("k".into()));
        assert_eq!(key(&[], "api_key=a%2Bb+c&vsn=2.0.0"), Ok("a+b c".into()));
        assert_eq!(key(&[("x-api-key", "k")], "api_key=k"), Ok("k".into()));
        assert_eq!(key(&[("x-api-key", "k")], "api_key=other"), Err(Unusable));
        assert_eq!(key(&[], "vsn=2.0.0"), Err(Unusable));
        assert_eq!(key(&[("x-api-key", "k")], "token=jwt"), Err(Unusable));
        assert_eq!(key(&[("x-api-key", "k"), ("x-auth-token", "jwt")], ""), Err(Unusable));
    }

    #[test]
    fn wishes() {
        let wishes = |query: &str| read(&[("x-api-key", "k")], query).map(|(_, _, wishes)| wishes);
        let made = |version, on_conflict| Ok(Wishes { version, on_conflict });
        assert_eq!(wishes("vsn=2.0.0"), made(Version::V2, Some(OnConflict::Supersede)));
        assert_eq!(wishes(""), made(Version::V1, Some(OnConflict::Supersede)));
        assert_eq!(wishes("on_conflict=reject&vsn=2.0.0"), made(Version::V2, Some(OnConflict::Reject)));
        assert_eq!(wishes("on_conflict=fight"), made(Version::V1, None));
        assert_eq!(wishes("vsn=9.0.0"), Err(Unusable));
    }

    proptest! {
        #[test]
        fn any_query_is_answered_without_a_panic(query in ".{0,80}") {
            let _ = read(&[], &query);
        }

        #[test]
        fn an_escaped_value_reads_back(value in ".{0,40}") {
            let escaped: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decoded(&escaped), value);
        }
    }
}

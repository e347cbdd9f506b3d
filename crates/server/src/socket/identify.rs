//! Who wants to connect, from the headers and the query of the upgrade.

use axum::http::HeaderMap;
use axum::http::header::SEC_WEBSOCKET_PROTOCOL;
use bandstand_store::StoreError;
use bandstand_wire::ids::{IdentityId, IdentityKind};
use bandstand_wire::phoenix::Version;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::auth::{Authenticated, Authenticator, Caller, Credential};
use crate::http::bearer;

/// The sub-protocol of Phoenix's JavaScript client when it has a token.
pub(crate) const SUBPROTOCOL: &str = "phoenix";

/// What its other sub-protocol starts with; the token follows, in base64 without padding.
const TOKEN_SUBPROTOCOL: &str = "base64url.bearer.phx.";

/// What the upgrade asks for. Holds a secret: never logged, and dropped once the connection stands.
#[derive(Clone)]
pub(crate) struct Claim {
    credential: Credential,
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
    /// A token may be in the query (`token`), in the `x-auth-token` header or in Phoenix's sub-protocol, and outranks a
    /// key. A key may be in the `x-api-key` header, in the query, or the same one in both. A token in the `Authorization`
    /// header counts when there is nothing else: a proxy may have put it there.
    ///
    /// # Errors
    /// [`Unusable`].
    pub(crate) fn read(headers: &HeaderMap, query: Option<&str>) -> Result<(Self, Wishes), Unusable> {
        let query = Query(query.unwrap_or_default());
        let header = |name: &str| match headers.get(name) {
            Some(value) => value.to_str().map(str::trim).map(Some).map_err(|_| Unusable),
            None => Ok(None),
        };
        let version = Version::from_vsn(query.get("vsn").as_deref()).ok_or(Unusable)?;
        let in_header = header("x-api-key")?.filter(|key| !key.is_empty()).map(str::to_owned);
        let in_query = query.get("api_key").filter(|key| !key.is_empty());
        let token = one_of([
            header("x-auth-token")?.filter(|token| !token.is_empty()).map(str::to_owned),
            query.get("token").filter(|token| !token.is_empty()),
            in_subprotocol(headers)?,
        ])?;
        let key = one_of([in_header, in_query, None])?;
        let credential = match (token, key) {
            (Some(token), _) => Credential::Token(token),
            (None, Some(key)) => Credential::Key(key),
            (None, None) => Credential::Token(bearer(headers).ok_or(Unusable)?.to_owned()),
        };
        let on_conflict = match query.get("on_conflict").as_deref() {
            None | Some("" | "supersede") => Some(OnConflict::Supersede),
            Some("reject") => Some(OnConflict::Reject),
            Some(_) => None,
        };
        let agent = query.get("agent_id").filter(|agent| !agent.is_empty());
        Ok((Self { credential, agent }, Wishes { version, on_conflict }))
    }

    /// Whether the credential was valid before, and is still.
    pub(crate) fn is_remembered(&self, auth: &Authenticator) -> bool {
        auth.remembered(&self.credential).is_some()
    }

    /// Who that is: the key's or token's identity, or the agent that the key's user owns and claims to be. A token is a
    /// person's, and makes nobody an agent.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn resolve(&self, auth: &Authenticator) -> Result<Option<Authenticated>, StoreError> {
        let Some(who) = auth.authenticate(&self.credential).await? else { return Ok(None) };
        let Some(agent) = &self.agent else { return Ok(Some(who)) };
        let Ok(agent) = agent.parse::<IdentityId>() else { return Ok(None) };
        let caller = who.caller;
        match (caller.kind, &self.credential) {
            (IdentityKind::Agent, _) => Ok((caller.identity == agent).then_some(who)),
            (IdentityKind::User, Credential::Token(_)) => Ok(None),
            (IdentityKind::User, Credential::Key(_)) => {
                let owned = auth.owned_agent(caller.identity, agent).await?;
                let caller = Caller { identity: agent, kind: IdentityKind::Agent, key: caller.key };
                Ok(owned.then_some(Authenticated { caller, ..who }))
            }
        }
    }
}

/// The one that is there. Several must be the same.
fn one_of(shown: [Option<String>; 3]) -> Result<Option<String>, Unusable> {
    let mut shown = shown.into_iter().flatten();
    let first = shown.next();
    if shown.all(|other| Some(&other) == first.as_ref()) { Ok(first) } else { Err(Unusable) }
}

/// The token among the sub-protocols that the client offers. JavaScript writes it in either alphabet of base64.
fn in_subprotocol(headers: &HeaderMap) -> Result<Option<String>, Unusable> {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offered = offered.flat_map(|value| value.split(',')).map(str::trim);
    let Some(text) = offered.find_map(|name| name.strip_prefix(TOKEN_SUBPROTOCOL)) else { return Ok(None) };
    let text = text.replace('+', "-").replace('/', "_");
    let token = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| Unusable)?;
    String::from_utf8(token).map(Some).map_err(|_| Unusable)
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
        let shown = |credential| match credential {
            Credential::Key(key) => key,
            Credential::Token(token) => format!("token {token}"),
        };
        Claim::read(&map, Some(query)).map(|(claim, wishes)| (shown(claim.credential), claim.agent, wishes))
    }

    #[test]
    fn where_a_key_may_be() {
        let key = |headers: &[(&'static str, &str)], query: &str| read(headers, query).map(|(key, ..)| key);
        assert_eq!(key(&[("x-api-key", "k")], "vsn=2.0.0"), Ok("k".into()));
        assert_eq!(key(&[], "api_key=a%2Bb+c&vsn=2.0.0"), Ok("a+b c".into()));
        assert_eq!(key(&[("x-api-key", "k")], "api_key=k"), Ok("k".into()));
        assert_eq!(key(&[("x-api-key", "k")], "api_key=other"), Err(Unusable));
        assert_eq!(key(&[], "vsn=2.0.0"), Err(Unusable));
        assert_eq!(key(&[("x-api-key", "k"), ("authorization", "Bearer jwt")], ""), Ok("k".into()));
    }

    #[test]
    fn where_a_token_may_be() {
        let shown = |headers: &[(&'static str, &str)], query: &str| read(headers, query).map(|(shown, ..)| shown);
        let token = || Ok("token a.b".to_owned());
        let offered = "phoenix, base64url.bearer.phx.YS5i";
        assert_eq!(shown(&[("x-api-key", "k")], "token=a.b"), token());
        assert_eq!(shown(&[("x-api-key", "k"), ("x-auth-token", "a.b")], ""), token());
        assert_eq!(shown(&[("sec-websocket-protocol", offered)], ""), token());
        assert_eq!(shown(&[("authorization", "bEARER a.b")], ""), token());
        assert_eq!(shown(&[("authorization", "Basic a.b")], ""), Err(Unusable));
        assert_eq!(shown(&[("authorization", "Bearer ")], ""), Err(Unusable));
        assert_eq!(shown(&[("x-auth-token", "a.b"), ("sec-websocket-protocol", offered)], "token=a.b"), token());
        assert_eq!(shown(&[("x-auth-token", "a.b")], "token=c.d"), Err(Unusable));
        assert_eq!(shown(&[("sec-websocket-protocol", "base64url.bearer.phx.!")], "api_key=k"), Err(Unusable));
        assert_eq!(shown(&[("sec-websocket-protocol", "phoenix")], "api_key=k"), Ok("k".into()));
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

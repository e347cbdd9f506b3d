//! MCP over streamable HTTP: any number of clients, each with a key of its own.
//!
//! A session belongs to the key that opened it. Keys are checked by the server itself, by asking it who they belong to;
//! nothing here knows a key that the server would refuse, and every call of a tool is checked by it again.

mod refusal;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use bandstand_agent::client::{ApiKey, ClientError, tls_for};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::choices::{Choices, Scope};
use crate::door::Door;
use crate::session::{Keys, Session, SessionOptions};
use refusal::refuse;
use sessions::{KeyHash, Sessions};

const SESSION_ID: &str = "mcp-session-id";

/// A request that has not arrived by then is dropped.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest query of an address, in bytes.
const QUERY_MAX: usize = 1024;

/// How MCP is served over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where the server is that tools are carried out on.
    pub base_url: String,
    /// What the health check calls it, when that is not `base_url`.
    pub shown_url: Option<String>,
    /// Whether proxies of the environment are used on the way to the server.
    pub proxies: bool,
    /// Under which names clients reach this, as `host` or `host:port`. Empty means any: whoever can be reached from
    /// elsewhere under a name that is not known here, relies on the check of `Origin`.
    pub hosts: Vec<String>,
    /// Pages of which origins may ask, as `https://host:port`. Requests without `Origin` are of no page.
    pub origins: Vec<String>,
    /// Sessions that may be open; one more is answered 503.
    pub sessions: usize,
    /// Sessions that one key may have; one more closes the one that was used least recently.
    pub sessions_per_key: usize,
    /// A session without a request for so long is closed.
    pub idle: Duration,
    /// The largest request body.
    pub body_bytes: usize,
    /// Keys for clients that bring none, with what is served for them. Only for a server that nobody else can reach.
    pub own: Option<(Keys, Choices)>,
    /// Ends all sessions.
    pub shutdown: CancellationToken,
}

impl HttpOptions {
    /// The usual ones: this machine's names, 1,024 sessions, 16 for each key, half an hour, 1 MiB.
    pub fn new(base_url: &str, shutdown: CancellationToken) -> Self {
        Self {
            base_url: base_url.to_owned(),
            shown_url: None,
            proxies: true,
            hosts: ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
            origins: Vec::new(),
            sessions: 1024,
            sessions_per_key: 16,
            idle: Duration::from_secs(30 * 60),
            body_bytes: 1024 * 1024,
            own: None,
            shutdown,
        }
    }
}

#[derive(Clone)]
struct Mount {
    service: StreamableHttpService<Door, LocalSessionManager>,
    sessions: Arc<Sessions>,
    access: Arc<SessionOptions>,
    own: Option<Arc<(Keys, Choices)>>,
}

/// A router with the one route `/mcp`.
///
/// # Errors
/// When TLS cannot be set up.
pub fn routes(options: HttpOptions) -> Result<Router, ClientError> {
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = Some(options.idle);
    let manager = Arc::new(manager);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(options.hosts)
        .with_allowed_origins(options.origins)
        // Also with an empty list: then no page may ask.
        .enforce_origin_validation()
        .with_max_request_body_bytes(options.body_bytes)
        .with_cancellation_token(options.shutdown);
    let service = StreamableHttpService::new(|| Ok(Door::default()), Arc::clone(&manager), config);
    let access = SessionOptions {
        shown_url: options.shown_url,
        tls: Some(tls_for(&options.base_url)?),
        proxies: options.proxies,
        ..SessionOptions::new(&options.base_url)
    };
    let mount = Mount {
        service,
        sessions: Arc::new(Sessions::new(manager, options.sessions, options.sessions_per_key)),
        access: Arc::new(access),
        own: options.own.map(Arc::new),
    };
    Ok(Router::new().route("/mcp", any(handle)).with_state(mount))
}

async fn handle(State(mount): State<Mount>, request: Request) -> Response {
    mount.handle(request).await.unwrap_or_else(|refusal| refusal)
}

impl Mount {
    async fn handle(&self, request: Request) -> Result<Response, Response> {
        let key = key_of(request.headers());
        if key.is_none() && self.own.is_none() {
            return Err(refuse(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "A key is needed: in the header x-api-key, or as Authorization: Bearer.",
            ));
        }
        let request = self.whole(request).await?;
        let hash = KeyHash::of(key.as_ref().map_or("", ApiKey::reveal));
        let id = request.headers().get(SESSION_ID).map(|id| id.to_str().unwrap_or_default().to_owned());
        match id {
            // Somebody else's session is as absent as one that never was; the client then opens a new one.
            Some(id) if !self.sessions.use_of(&id, hash) => {
                Err(refuse(StatusCode::NOT_FOUND, "session_not_found", "There is no such session; open a new one."))
            }
            Some(id) => {
                let closes = request.method() == Method::DELETE;
                let response = self.pass(request).await;
                if closes && response.status().is_success() {
                    self.sessions.forget(&id);
                }
                Ok(response)
            }
            None if request.method() == Method::POST => self.open(request, key, hash).await,
            None => Ok(self.pass(request).await),
        }
    }

    /// The request with its body read, so that nobody waits for a slow one.
    async fn whole(&self, request: Request) -> Result<Request, Response> {
        let (parts, body) = request.into_parts();
        let read = Limited::new(body, self.service.config.max_request_body_bytes).collect();
        match timeout(BODY_TIMEOUT, read).await {
            Ok(Ok(body)) => Ok(Request::from_parts(parts, Body::from(body.to_bytes()))),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "The request is too large."))
            }
            Ok(Err(_)) => Err(refuse(StatusCode::BAD_REQUEST, "invalid_request", "The request ended too early.")),
            Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long to arrive.")),
        }
    }

    async fn pass(&self, request: Request) -> Response {
        self.service.handle(request).await.map(Body::new)
    }

    /// A request outside of any session: if it is one to open a session, and goes well, the session is the key's.
    async fn open(&self, mut request: Request, key: Option<ApiKey>, hash: KeyHash) -> Result<Response, Response> {
        let chosen = chosen(request.uri().query().unwrap_or_default())
            .map_err(|why| refuse(StatusCode::BAD_REQUEST, "invalid_request", &why))?;
        let (keys, choices) = match (key, &self.own) {
            (Some(key), _) => self.admit(key, chosen).await?,
            (None, Some(own)) => (own.0.clone(), own.1.clone()),
            (None, None) => return Err(refuse(StatusCode::UNAUTHORIZED, "unauthorized", "A key is needed.")),
        };
        let session = Session::new(&self.access, &keys, &choices)
            .map_err(|error| refuse(StatusCode::BAD_REQUEST, "invalid_request", &error.to_string()))?;
        // One at a time, so that what is counted is what there is.
        let opening = self.sessions.opening().await;
        if !self.sessions.make_room(hash).await {
            return Err(refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "too_many_sessions",
                "Too many MCP sessions are open on this server; try again later.",
            ));
        }
        request.extensions_mut().insert(Arc::new(session));
        let response = self.pass(request).await;
        if let Some(id) = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) {
            self.sessions.remember(id, hash);
        }
        drop(opening);
        Ok(response)
    }

    /// Whose key it is. The server itself is asked, first as its prefix suggests.
    async fn admit(&self, key: ApiKey, chosen: Choices) -> Result<(Keys, Choices), Response> {
        let person_first = key.reveal().starts_with("band_u_");
        let order = if person_first { [Scope::Human, Scope::Agent] } else { [Scope::Agent, Scope::Human] };
        for scope in order {
            let mut options = self.access.client(&key);
            // Whoever opens a session can do so again.
            options.retries = 0;
            let asked = match scope {
                Scope::Agent => match options.build() {
                    Ok(client) => client.me().await.map(drop),
                    Err(error) => Err(error),
                },
                Scope::Human => match options.build_human() {
                    Ok(client) => client.profile().await.map(drop),
                    Err(error) => Err(error),
                },
            };
            match asked {
                Ok(()) => {
                    let keys = match scope {
                        Scope::Agent => Keys { agent: Some(key), user: None },
                        Scope::Human => Keys { agent: None, user: Some(key) },
                    };
                    return Ok((keys, Choices { scopes: vec![scope], ..chosen }));
                }
                Err(ClientError::Options(_)) => break,
                Err(error) if matches!(error.status(), Some(401 | 403)) => {}
                Err(error) => {
                    tracing::warn!(%error, "a key cannot be checked");
                    return Err(refuse(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "unavailable",
                        "The key cannot be checked just now; try again later.",
                    ));
                }
            }
        }
        Err(refuse(StatusCode::UNAUTHORIZED, "unauthorized", "The key is not valid."))
    }
}

/// The key of a request: `x-api-key`, else `Authorization: Bearer`.
fn key_of(headers: &HeaderMap) -> Option<ApiKey> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty());
    let bearer = || {
        let (scheme, key) = text(AUTHORIZATION.as_str())?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim()).filter(|key| !key.is_empty())
    };
    text("x-api-key").or_else(bearer).map(ApiKey::from)
}

/// `?tools=contacts,memory&room=…`, which is all that an address may choose.
fn chosen(query: &str) -> Result<Choices, String> {
    if query.len() > QUERY_MAX {
        return Err("The query is too long.".to_owned());
    }
    let (mut tools, mut room) = (Vec::new(), None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "tools" => tools.push(value.into_owned()),
            "room" | "room_id" => room = Some(value.into_owned()),
            _ => {
                return Err(
                    "The query may have tools (contacts, memory, tasks, files) and room, and nothing else.".to_owned()
                );
            }
        }
    }
    let (choices, unknown) = Choices::read(None, Some(&tools), room).map_err(|(error, _)| error.to_string())?;
    // Whoever wrote the address should learn of it, rather than miss the tools.
    match unknown.first() {
        Some(unknown) => Err(unknown.to_string().replace(" ignoring.", "")),
        None => Ok(choices),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Group;

    #[test]
    fn a_key_is_in_either_header() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
        };
        for (name, value) in [("x-api-key", "k"), ("authorization", "Bearer k"), ("authorization", "bearer  k ")] {
            assert_eq!(key_of(&headers(name, value)), Some(ApiKey::from("k")), "{name}: {value}");
        }
        for (name, value) in [("x-api-key", " "), ("authorization", "Basic k"), ("authorization", "k"), ("cookie", "k")]
        {
            assert_eq!(key_of(&headers(name, value)), None, "{name}: {value}");
        }
    }

    #[test]
    fn an_address_chooses_groups_and_a_room_and_nothing_else() {
        let choices = chosen("tools=memory,tasks&tools=files&room=r").unwrap();
        assert_eq!((choices.groups.len(), choices.room.as_deref()), (3, Some("r")));
        assert_eq!(chosen("").unwrap(), Choices::default());
        assert!(!chosen("").unwrap().groups.contains(&Group::Memory));
        for query in ["tools=contact", "scope=human", &"a".repeat(QUERY_MAX + 1)] {
            assert!(chosen(query).is_err(), "{query}");
        }
    }
}

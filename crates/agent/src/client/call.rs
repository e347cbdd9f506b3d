//! One request: built, sent, sent again when that is right, and its answer read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bandstand_wire::ids::RoomId;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::unknown_outcome;
use super::retry::{self, Repeat};
use super::{ClientError, ClientOptions, Idempotency, Refusal};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Connections that are kept when nothing is asked. A burst opens more, each of which costs some 20 KiB while it stays.
const IDLE_CONNECTIONS: usize = 16;

/// Whose server it is, as far as known.
const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const OTHER: u8 = 2;

/// The connections to one server.
pub(super) struct Transport {
    options: ClientOptions,
    http: reqwest::Client,
    tls: Arc<rustls::ClientConfig>,
    key: HeaderValue,
    whose: AtomicU8,
}

/// A request to be made.
pub(super) struct Call {
    /// A verb phrase for errors: `store memory`.
    what: &'static str,
    /// Which API: `agent` or `me`.
    api: &'static str,
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Bytes>,
    headers: HeaderMap,
    repeat: Repeat,
    room: Option<RoomId>,
    reply_max_bytes: Option<usize>,
}

impl Call {
    /// A request below `/api/v1/agent`. Reads may be repeated, and so may PUT; a POST only with a key, and the keys of our
    /// own server count for nothing else.
    pub(super) fn new(what: &'static str, method: Method, path: String) -> Self {
        let repeat = match method {
            Method::GET | Method::PUT => Repeat::Safe,
            Method::POST => Repeat::WithKey,
            _ => Repeat::IfUndone,
        };
        Self {
            what,
            api: "agent",
            method,
            path,
            query: Vec::new(),
            body: None,
            headers: HeaderMap::new(),
            repeat,
            room: None,
            reply_max_bytes: None,
        }
    }

    pub(super) fn get(what: &'static str, path: impl Into<String>) -> Self {
        Self::new(what, Method::GET, path.into())
    }

    pub(super) fn post(what: &'static str, path: impl Into<String>) -> Self {
        Self::new(what, Method::POST, path.into())
    }

    /// A request of a person, below `/api/v1/me`.
    pub(super) fn of_a_person(mut self) -> Self {
        self.api = "me";
        self
    }

    /// A query parameter, when there is a value for it.
    pub(super) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(super) fn json(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Options(error.to_string()))?;
        self.body = Some(body.into());
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(self)
    }

    pub(super) fn bytes(mut self, body: Bytes) -> Self {
        self.body = Some(body);
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| ClientError::Options(format!("the header {name} cannot hold this text")))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    pub(super) fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// The room that may be stopped.
    pub(super) fn room(mut self, room: RoomId) -> Self {
        self.room = Some(room);
        self
    }

    /// The largest reply that is read, instead of the client's usual one.
    pub(super) fn reply_max_bytes(mut self, limit: usize) -> Self {
        self.reply_max_bytes = Some(limit);
        self
    }
}

/// An answer that is no refusal.
pub(super) struct Answer {
    what: &'static str,
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Answer {
    /// The whole body.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        if self.body.is_empty() {
            return Err(ClientError::NoData { what: self.what });
        }
        serde_json::from_slice(&self.body).map_err(|error| self.unreadable(&error))
    }

    /// What is under `data`.
    pub(super) fn data<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        #[derive(serde::Deserialize)]
        struct Envelope {
            #[serde(default)]
            data: Value,
        }
        if self.body.is_empty() {
            return Err(ClientError::NoData { what: self.what });
        }
        let envelope: Envelope = serde_json::from_slice(&self.body).map_err(|error| self.unreadable(&error))?;
        if envelope.data.is_null() {
            return Err(ClientError::NoData { what: self.what });
        }
        serde_json::from_value(envelope.data).map_err(|error| self.unreadable(&error))
    }

    /// serde's texts name types and fields, but may quote a value; only the kind of fault is kept.
    fn unreadable(&self, error: &serde_json::Error) -> ClientError {
        let reason = match error.classify() {
            serde_json::error::Category::Data => {
                let text = error.to_string();
                if text.starts_with("missing field") { text } else { "a field has another type than expected".into() }
            }
            _ => "it is no JSON".into(),
        };
        ClientError::Unreadable { status: self.status.as_u16(), reason }
    }
}

impl Transport {
    pub(super) fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let scheme = options.base_url.split_once("://").map(|(scheme, rest)| (scheme, rest.is_empty()));
        if !matches!(scheme, Some(("http" | "https", false))) {
            return Err(ClientError::Options("the server's address must start with http:// or https://".into()));
        }
        let mut key = HeaderValue::from_str(options.key.reveal())
            .map_err(|_| ClientError::Options("the key holds characters that a header cannot".into()))?;
        key.set_sensitive(true);
        let tls = match &options.tls {
            Some(tls) => Arc::clone(tls),
            None => tls_for(&options.base_url)?,
        };
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured((*tls).clone())
            .timeout(options.timeout)
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(IDLE_CONNECTIONS);
        if !options.proxies {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|_| ClientError::Options("the HTTP client cannot be set up".into()))?;
        Ok(Self { options, http, tls, key, whose: AtomicU8::new(UNKNOWN) })
    }

    pub(super) fn base_url(&self) -> &str {
        &self.options.base_url
    }

    pub(super) fn options(&self) -> &ClientOptions {
        &self.options
    }

    pub(super) fn tls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// Sends it, as often as is right.
    pub(super) async fn send(&self, call: Call) -> Result<Answer, ClientError> {
        let key = (call.repeat == Repeat::WithKey).then(|| self.options.randomness.uuid().to_string());
        let retries = if call.repeat == Repeat::Never { 0 } else { self.options.retries };
        let mut retry = 0;
        // A failure of which nobody can say yet whether the request may be repeated.
        let mut undecided = None;
        loop {
            let (error, wait) = match undecided.take() {
                Some(error) => (error, None),
                None => match self.try_once(&call, key.as_deref()).await {
                    Ok(answer) => return Ok(answer),
                    Err(failed) => failed,
                },
            };
            if retry >= retries {
                return Err(error);
            }
            let repeat = self.may_repeat(&call, &error).await;
            if repeat == Some(false) {
                return Err(error);
            }
            let options = &self.options;
            let own = || retry::backoff(options.retry_base, options.retry_max, retry, options.randomness.fraction());
            let wait = wait.unwrap_or_else(own);
            if wait > options.retry_max {
                return Err(error);
            }
            tracing::debug!(what = call.what, retry, wait_ms = wait.as_millis(), %error, "trying again");
            options.clock.sleep(wait).await;
            retry += 1;
            if repeat.is_none() {
                undecided = Some(error);
            }
        }
    }

    /// Whether it may be sent again; none while that cannot be found out.
    async fn may_repeat(&self, call: &Call, error: &ClientError) -> Option<bool> {
        match error {
            // Nothing happened, whatever it was.
            ClientError::Unreachable { .. } => Some(true),
            ClientError::Refused(refusal) if matches!(refusal.status, 429 | 503) => Some(true),
            ClientError::Refused(refusal) if !unknown_outcome(refusal.status) => Some(false),
            ClientError::Refused(_) | ClientError::NoAnswer { .. } => match call.repeat {
                Repeat::Safe => Some(true),
                Repeat::WithKey => self.understands_keys().await,
                Repeat::IfUndone | Repeat::Never => Some(false),
            },
            _ => Some(false),
        }
    }

    /// One try. With an error comes how long the server asks to wait.
    async fn try_once(
        &self,
        call: &Call,
        key: Option<&str>,
    ) -> Result<Answer, (ClientError, Option<std::time::Duration>)> {
        let mut url = format!("{}/api/v1/{}{}", self.options.base_url, call.api, call.path);
        if !call.query.is_empty() {
            let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&call.query).finish();
            url = format!("{url}?{query}");
        }
        let mut request = self
            .http
            .request(call.method.clone(), url)
            .header(API_KEY, self.key.clone())
            .header(USER_AGENT, concat!("bandstand-agent/", env!("CARGO_PKG_VERSION")))
            .headers(call.headers.clone());
        if let Some(key) = key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| (lost(&error), None))?;
        let status = response.status();
        let wait = retry::asked(response.headers(), self.options.clock.now());
        let limit = call.reply_max_bytes.unwrap_or(self.options.reply_max_bytes);
        let body = match read_within(response, limit).await {
            Ok(body) => body,
            Err(error) => return Err((error, None)),
        };
        if status.is_success() {
            return Ok(Answer { what: call.what, status, body });
        }
        let refusal = Refusal::read(status.as_u16(), &body);
        if let Some(room) = call.room
            && refusal.status == 403
            && refusal.message.to_lowercase().contains("execution is stopped")
        {
            return Err((ClientError::Stopped { room }, None));
        }
        Err((ClientError::Refused(Box::new(refusal)), wait))
    }

    /// Whether a second post with the same key has no second effect.
    async fn understands_keys(&self) -> Option<bool> {
        match self.options.idempotency {
            Idempotency::Supported => Some(true),
            Idempotency::Unsupported => Some(false),
            // Every server of ours does.
            Idempotency::Detect => self.is_ours().await,
        }
    }

    /// Whether it is one of our own servers; none when it does not answer. The hosted platform does not say who it is.
    /// Asked until it is known.
    pub(super) async fn is_ours(&self) -> Option<bool> {
        match self.whose.load(Ordering::Relaxed) {
            OURS => return Some(true),
            OTHER => return Some(false),
            _ => {}
        }
        let answer = self.http.get(format!("{}/api/version", self.options.base_url)).send().await;
        let version = match answer {
            Ok(response) if response.status().is_success() => {
                let body = read_within(response, 64 * 1024).await.ok()?;
                serde_json::from_slice(&body).unwrap_or_default()
            }
            Ok(response) if response.status().is_client_error() => Value::Null,
            // Nobody knows yet; the next time it matters, it is asked again.
            _ => return None,
        };
        let ours = version.get("name").is_some_and(|name| name == "bandstand");
        self.whose.store(if ours { OURS } else { OTHER }, Ordering::Relaxed);
        Some(ours)
    }
}

/// Reads a body that may not be larger than `limit` bytes.
async fn read_within(mut response: reqwest::Response, limit: usize) -> Result<Bytes, ClientError> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(ClientError::Unreadable { status, reason: format!("it has more than {limit} bytes") });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

/// reqwest's own texts show the address.
fn lost(error: &reqwest::Error) -> ClientError {
    if error.is_connect() {
        ClientError::Unreachable { reason: if error.is_timeout() { "timed out" } else { "no connection" } }
    } else if error.is_builder() {
        ClientError::Options("the request cannot be built".into())
    } else {
        ClientError::NoAnswer { reason: if error.is_timeout() { "timed out" } else { "the connection broke" } }
    }
}

/// TLS by the machine's own trust store, with ring. No provider of the whole process is needed or set. A client makes it
/// by itself; a program with many clients makes it once, for all their [`ClientOptions::tls`].
///
/// # Errors
/// When the machine has no trust store that can be read.
pub fn trusting_the_machine() -> Result<Arc<rustls::ClientConfig>, ClientError> {
    use rustls_platform_verifier::BuilderVerifierExt;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let wrong = |error: rustls::Error| ClientError::Options(format!("TLS cannot be set up: {error}"));
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_platform_verifier()
        .map_err(wrong)?
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// [`trusting_the_machine`] for a server's address. One without TLS (`http://`) also works on a machine that trusts nobody,
/// as small containers do; what such an address redirects to over TLS is then refused.
///
/// # Errors
/// When the address needs TLS, and the machine has no trust store that can be read.
pub fn tls_for(base_url: &str) -> Result<Arc<rustls::ClientConfig>, ClientError> {
    match trusting_the_machine() {
        Err(_) if base_url.starts_with("http://") => {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|error| ClientError::Options(format!("TLS cannot be set up: {error}")))?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            Ok(Arc::new(config))
        }
        tls => tls,
    }
}

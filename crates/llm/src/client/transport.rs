//! Requests and their replies over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bandstand_transcript::stream::{Delta, INCOMPLETE_STREAM, StreamReader};
use bandstand_transcript::tools::WireNames;
use bandstand_transcript::{DecodeError, Format, ProviderError, Reply, decode_reply};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::body::{self, Prepared};
use super::retry::{self, Asked};
use super::tapped::Received;
use super::{Ask, Model, ModelError, ModelOptions, Phase, Sent, WireTap, rename};

/// Anthropic's version of the API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The most of an error's body that is read, in bytes.
const ERROR_BYTES: usize = 64 << 10;

/// A model at an address. Cheap to clone.
#[derive(Clone)]
pub struct ModelClient {
    options: Arc<ModelOptions>,
    http: reqwest::Client,
    headers: HeaderMap,
    url: String,
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient")
            .field("api", &self.options.api)
            .field("model", &self.options.model)
            .finish_non_exhaustive()
    }
}

type OnDelta<'a> = &'a mut (dyn FnMut(&Delta) + Send);
type Tap<'a> = Option<&'a dyn WireTap>;

impl ModelClient {
    /// A client with these options.
    ///
    /// # Errors
    /// [`ModelError::Options`].
    pub fn new(options: ModelOptions) -> Result<Self, ModelError> {
        let wrong = |text: String| Err(ModelError::Options(text));
        let scheme = options.base_url.split_once("://").map(|(scheme, rest)| (scheme, rest.is_empty()));
        if !matches!(scheme, Some(("http" | "https", false))) {
            return wrong("the address must start with http:// or https://".to_owned());
        }
        if !options.profile.formats.contains(&options.api) {
            return wrong(format!("{} does not speak {}", options.profile.name, options.api));
        }
        if options.profile.body_version.is_some() && options.path.is_none() {
            return wrong(format!("{} has the model in the address: a path is needed", options.profile.name));
        }
        if options.model.trim().is_empty() {
            return wrong("the model has no name".to_owned());
        }
        let headers = headers(&options)?;
        let tls = match &options.tls {
            Some(tls) => (**tls).clone(),
            None => tls_for(&options.base_url)?,
        };
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(options.connect_timeout)
            // A redirect would take the key elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        if !options.proxies {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|_| ModelError::Options("the HTTP client cannot be set up".to_owned()))?;
        let url = options.url();
        Ok(Self { options: Arc::new(options), http, headers, url })
    }

    /// The options that it was made with.
    pub fn options(&self) -> &ModelOptions {
        &self.options
    }

    async fn ask(&self, ask: Ask<'_>, on_delta: OnDelta<'_>, tap: Tap<'_>) -> Result<Reply, ModelError> {
        let Prepared { body, names } = body::prepare(ask, &self.options)?;
        if let Some(tap) = tap {
            let ModelOptions { api, model, .. } = &*self.options;
            tap.on_request(Sent { api: *api, model, encode: self.options.encode(), body: &body, names: &names });
        }
        // A value of JSON always becomes text.
        let body = bytes::Bytes::from(body.to_string());
        let options = &self.options;
        let mut retry = 0;
        loop {
            let mut asked = Asked::default();
            let error = match self.once(body.clone(), &mut *on_delta, &mut asked, tap).await {
                Ok(mut reply) => {
                    rename(&mut reply, &names);
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if retry >= options.retries || !retry::may_pass(&error, asked) {
                return Err(self.without_key(error));
            }
            let own = || retry::backoff(options.retry_base, retry, options.timing.fraction());
            let wait = asked.wait.unwrap_or_else(own);
            if wait > options.retry_max {
                return Err(self.without_key(error));
            }
            tracing::debug!(
                kind = error.kind(),
                status = error.status(),
                retry,
                wait_ms = wait.as_millis(),
                "asking again"
            );
            options.timing.sleep(wait).await;
            retry += 1;
        }
    }

    async fn once(
        &self,
        body: bytes::Bytes,
        on_delta: OnDelta<'_>,
        asked: &mut Asked,
        tap: Tap<'_>,
    ) -> Result<Reply, ModelError> {
        let request = self.http.post(&self.url).headers(self.headers.clone()).body(body).send();
        let first = self.options.first_byte_timeout;
        let response = match self.within(first, request).await {
            None => return Err(ModelError::TimedOut { phase: Phase::FirstByte, after: first, partial: None }),
            Some(Err(error)) => return Err(self.lost(&error)),
            Some(Ok(response)) => response,
        };
        let status = response.status();
        let mut received = tap.map(|tap| Received::new(tap, status.as_u16(), self.options.key.as_ref()));
        if !status.is_success() {
            *asked = retry::asked(response.headers(), self.options.timing.now_micros());
            return Err(self.refusal(response, &mut received).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // Some servers answer unstreamed whatever they are asked.
        if self.options.stream && !kind.starts_with("application/json") {
            self.streamed(response, on_delta, asked, &mut received).await
        } else {
            self.plain(response, on_delta, asked, &mut received).await
        }
    }

    async fn plain(
        &self,
        mut response: Response,
        on_delta: OnDelta<'_>,
        asked: &mut Asked,
        received: &mut Option<Received<'_>>,
    ) -> Result<Reply, ModelError> {
        let mut body = Vec::new();
        loop {
            asked.received = !body.is_empty();
            match self.next(&mut response, body.is_empty()).await? {
                None => break,
                Some(chunk) if body.len() + chunk.len() > self.options.reply_max_bytes => {
                    return Err(ModelError::TooLarge { limit: self.options.reply_max_bytes });
                }
                Some(chunk) => {
                    note(received, &chunk);
                    body.extend_from_slice(&chunk);
                }
            }
        }
        let value = bandstand_transcript::read::value(&body)
            .ok_or_else(|| ModelError::Unreadable { at: "it is no JSON".to_owned() })?;
        let reply = decode_reply(&value, self.options.api).map_err(|error| match error {
            DecodeError::Provider(provider) => ModelError::Failed { provider, partial: None },
            DecodeError::Shape { at, .. } => ModelError::Unreadable { at },
        })?;
        reply.message.parts.iter().flat_map(Delta::of_part).for_each(|delta| on_delta(&delta));
        Ok(reply)
    }

    async fn streamed(
        &self,
        mut response: Response,
        on_delta: OnDelta<'_>,
        asked: &mut Asked,
        received: &mut Option<Received<'_>>,
    ) -> Result<Reply, ModelError> {
        let mut reader = StreamReader::new(self.options.api);
        let mut bytes = 0;
        if let Some(received) = received {
            received.streamed();
        }
        while !reader.is_over() {
            let chunk = match self.next(&mut response, bytes == 0).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // What was received is kept with the error.
                Err(ModelError::TimedOut { phase, after, .. }) => {
                    return Err(ModelError::TimedOut { phase, after, partial: partial(reader) });
                }
                Err(_) => return Err(ModelError::Broken { partial: partial(reader) }),
            };
            note(received, &chunk);
            bytes += chunk.len();
            if bytes > self.options.reply_max_bytes {
                return Err(ModelError::TooLarge { limit: self.options.reply_max_bytes });
            }
            for delta in reader.push(&chunk) {
                asked.received = true;
                on_delta(&delta);
            }
        }
        let assembled = reader.finish();
        assembled.deltas.iter().for_each(on_delta);
        match assembled.error {
            None => Ok(assembled.reply),
            Some(error) if error.kind == INCOMPLETE_STREAM => {
                Err(ModelError::Broken { partial: whatever_there_is(assembled.reply) })
            }
            Some(provider) => Err(ModelError::Failed { provider, partial: whatever_there_is(assembled.reply) }),
        }
    }

    /// The next piece of a body.
    async fn next(&self, response: &mut Response, first: bool) -> Result<Option<bytes::Bytes>, ModelError> {
        let options = &self.options;
        let (phase, after) =
            if first { (Phase::FirstByte, options.first_byte_timeout) } else { (Phase::Idle, options.idle_timeout) };
        match self.within(after, response.chunk()).await {
            None => Err(ModelError::TimedOut { phase, after, partial: None }),
            Some(chunk) => chunk.map_err(|_| ModelError::Broken { partial: None }),
        }
    }

    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.options.timing.sleep(limit) => None,
        }
    }

    /// reqwest's own texts show the address.
    fn lost(&self, error: &reqwest::Error) -> ModelError {
        if error.is_connect() && error.is_timeout() {
            ModelError::TimedOut { phase: Phase::Connect, after: self.options.connect_timeout, partial: None }
        } else if error.is_connect() {
            ModelError::Unreachable
        } else if error.is_builder() {
            ModelError::Options("the request cannot be built".to_owned())
        } else {
            ModelError::Broken { partial: None }
        }
    }

    async fn refusal(&self, mut response: Response, received: &mut Option<Received<'_>>) -> ModelError {
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let request_id = header("request-id").or_else(|| header("x-request-id"));
        let mut body = Vec::new();
        // An error that cannot be read to its end is one all the same.
        while let Ok(Some(chunk)) = self.next(&mut response, false).await {
            note(received, &chunk);
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BYTES {
                break;
            }
        }
        ModelError::Status { status: status.as_u16(), provider: said(status, &body), request_id }
    }

    /// Providers repeat keys that they refuse.
    fn without_key(&self, error: ModelError) -> ModelError {
        let Some(key) = self.options.key.as_ref().map(|key| key.reveal()).filter(|key| key.len() >= 8) else {
            return error;
        };
        let clean = |provider: ProviderError| ProviderError {
            kind: provider.kind.replace(key, "[REDACTED]"),
            message: provider.message.replace(key, "[REDACTED]"),
            ..provider
        };
        match error {
            ModelError::Status { status, provider, request_id } => {
                ModelError::Status { status, provider: clean(provider), request_id }
            }
            ModelError::Failed { provider, partial } => ModelError::Failed { provider: clean(provider), partial },
            other => other,
        }
    }
}

impl ModelClient {
    fn answer<'a>(
        &'a self,
        ask: Ask<'a>,
        on_delta: OnDelta<'a>,
        tap: Tap<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        async move {
            tokio::select! {
                biased;
                () = ask.cancel.cancelled() => Err(ModelError::Cancelled),
                reply = self.ask(ask, on_delta, tap) => reply,
            }
        }
        .boxed()
    }
}

impl Model for ModelClient {
    fn reply<'a>(&'a self, ask: Ask<'a>, on_delta: OnDelta<'a>) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.answer(ask, on_delta, None)
    }

    fn reply_tapped<'a>(
        &'a self,
        ask: Ask<'a>,
        on_delta: OnDelta<'a>,
        tap: &'a dyn WireTap,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.answer(ask, on_delta, Some(tap))
    }

    fn body(&self, ask: Ask<'_>) -> Option<(Value, WireNames)> {
        let Prepared { body, names } = body::write(ask, &self.options).ok()?;
        Some((body, names))
    }
}

fn note(received: &mut Option<Received<'_>>, bytes: &[u8]) {
    if let Some(received) = received {
        received.bytes(bytes);
    }
}

fn partial(reader: StreamReader) -> Option<Box<Reply>> {
    whatever_there_is(reader.finish().reply)
}

fn whatever_there_is(reply: Reply) -> Option<Box<Reply>> {
    (!reply.message.parts.is_empty()).then(|| Box::new(reply))
}

/// What the provider said: `{"error": {…}}`, `{"message": …}`, or a page of some proxy, whose text nobody wants.
fn said(status: StatusCode, body: &[u8]) -> ProviderError {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = match value.get("error") {
        Some(error) => error,
        None => &value,
    };
    if error.is_null() {
        return ProviderError {
            kind: "error".to_owned(),
            message: "the provider gave no message".to_owned(),
            retryable: status.is_server_error(),
        };
    }
    ProviderError::read(error)
}

fn headers(options: &ModelOptions) -> Result<HeaderMap, ModelError> {
    let wrong = |what: &str| ModelError::Options(format!("{what} holds characters that a header cannot"));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("bandstand/", env!("CARGO_PKG_VERSION"))));
    if options.api == Format::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some(key) = &options.key {
        let (name, text) = if options.bearer {
            (AUTHORIZATION, format!("Bearer {}", key.reveal()))
        } else {
            (HeaderName::from_static("x-api-key"), key.reveal().to_owned())
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| wrong("the key"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &options.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong("the name of a header"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("a header"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// TLS by the machine's own trust store, with ring. No provider of the whole process is needed or set. An address without
/// TLS (`http://`, a model of one's own) also works on a machine that trusts nobody, as small containers do.
fn tls_for(base_url: &str) -> Result<rustls::ClientConfig, ModelError> {
    use rustls_platform_verifier::BuilderVerifierExt as _;

    let wrong = |error: rustls::Error| ModelError::Options(format!("TLS cannot be set up: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = match builder.clone().with_platform_verifier() {
        Err(_) if base_url.starts_with("http://") => builder.with_root_certificates(rustls::RootCertStore::empty()),
        trusting => trusting.map_err(wrong)?,
    };
    Ok(builder.with_no_client_auth())
}

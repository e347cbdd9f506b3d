//! Tokens of a configured OpenID Connect issuer, and the issuer's keys: fetched when they are needed, kept while they are
//! current, and kept as they are while the issuer does not answer.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bandstand_domain::clock::Clock;
use bandstand_domain::sign_in::Expected;
use bandstand_wire::time::Timestamp;
use reqwest::Url;
use reqwest::redirect::Policy;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jwt::{self, Refused, Unverified};
use super::key_set::{KeySet, KeySetError};
use super::{KeyPlace, SignIn, crypto, micros, safe_url};
use crate::settings::Limits;

/// Most bytes of a key set or a configuration document.
const DOCUMENT_MAX_BYTES: usize = 256 * 1024;

/// An issuer that has not answered whole by then does not answer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// One that cannot be connected to by then cannot.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// An account of the issuer, from a token that counts now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Account {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) until: Timestamp,
    /// Whatever else its token claims.
    pub(crate) claims: Map<String, Value>,
}

/// Verifies tokens of the issuer. Cheap to clone.
#[derive(Clone)]
pub struct Issuer(Arc<Inner>);

struct Inner {
    limits: Arc<Limits>,
    clock: Arc<dyn Clock>,
    /// Built when it is first needed: many installations have no issuer, or its keys in a file.
    http: tokio::sync::OnceCell<reqwest::Client>,
    kept: Mutex<Kept>,
    /// One fetch at a time: who waits for it looks at what it brought.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Kept {
    keys: Arc<KeySet>,
    fetched_at: Option<Timestamp>,
    /// When it was last tried, with or without success.
    tried_at: Option<Timestamp>,
}

/// Why keys cannot be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Url(String),
    #[error("cannot read {path}: {cause}")]
    File { path: String, cause: std::io::Error },
    #[error("cannot fetch {url}: {cause}")]
    Http { url: Url, cause: reqwest::Error },
    #[error("{url} answered {status}")]
    Status { url: Url, status: reqwest::StatusCode },
    #[error("{0} is larger than {DOCUMENT_MAX_BYTES} bytes")]
    TooLarge(String),
    #[error("{place}: {cause}")]
    KeySet { place: String, cause: KeySetError },
    #[error("{0} is no configuration document of this issuer")]
    Configuration(Url),
}

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

impl Issuer {
    /// The issuer that the settings name, if they do.
    pub fn new(limits: Arc<Limits>, clock: Arc<dyn Clock>) -> Self {
        crypto::install();
        Self(Arc::new(Inner {
            limits,
            clock,
            http: tokio::sync::OnceCell::new(),
            kept: Mutex::default(),
            fetching: Arc::default(),
        }))
    }

    fn settings(&self) -> &SignIn {
        &self.0.limits.sign_in
    }

    /// Whether tokens with this `iss` are for it.
    pub(super) fn is(&self, issuer: &str) -> bool {
        self.settings().oidc.issuer.as_deref() == Some(issuer)
    }

    /// Whose token it is, if it counts now.
    pub(super) async fn verify(&self, token: &str, unverified: &Unverified) -> Result<Account, Refused> {
        let oidc = &self.settings().oidc;
        let (Some(issuer), Some(audience)) = (&oidc.issuer, &oidc.audience) else { return Err(Refused::NoKey) };
        let expected = Expected { issuer, audience, skew_micros: self.settings().skew_micros() };
        let keys = self.keys(unverified).await;
        let key = keys.find(unverified.key_name.as_deref(), unverified.algorithm)?;
        let verified = jwt::verify(token, key, unverified.algorithm, expected, self.0.clock.now())?;
        Ok(Account { issuer: issuer.clone(), subject: verified.subject, until: verified.until, claims: verified.more })
    }

    /// The keys, fetched before when they are not current any more or lack the token's.
    async fn keys(&self, unverified: &Unverified) -> Arc<KeySet> {
        let suffices = |keys: &KeySet| keys.find(unverified.key_name.as_deref(), unverified.algorithm).is_ok();
        if let Some(keys) = self.enough(suffices) {
            return keys;
        }
        let turn = Arc::clone(&self.0.fetching).lock_owned().await;
        // Whoever had the turn before may have fetched them.
        if let Some(keys) = self.enough(suffices) {
            return keys;
        }
        // In a task of its own: a client that goes away must not undo that it was tried, or it could have the issuer
        // asked as often as it likes.
        let issuer = self.clone();
        let fetched = tokio::spawn(async move {
            issuer.refresh().await;
            drop(turn);
        });
        if fetched.await.is_err() {
            tracing::error!("fetching the keys of the OpenID Connect issuer panicked");
        }
        Arc::clone(&self.kept().keys)
    }

    /// Fetches the keys, and keeps the last ones if that fails. Whoever asks meanwhile waits: that it was tried is noted
    /// when it is over.
    async fn refresh(&self) {
        let fetched = self.fetch().await;
        let now = self.0.clock.now();
        let mut kept = self.kept();
        kept.tried_at = Some(now);
        match fetched {
            Ok(keys) => {
                kept.keys = Arc::new(keys);
                kept.fetched_at = Some(now);
            }
            Err(error) => {
                drop(kept);
                tracing::warn!(%error, "the keys of the OpenID Connect issuer cannot be fetched; the last ones count");
                metrics::counter!("oidc_fetch_failures_total").increment(1);
            }
        }
    }

    /// The kept keys, unless they are to be fetched: because they are not current or do not suffice, and it was not just
    /// tried.
    fn enough(&self, suffices: impl Fn(&KeySet) -> bool) -> Option<Arc<KeySet>> {
        let oidc = &self.settings().oidc;
        let now = self.0.clock.now();
        let within = |since: Option<Timestamp>, span: Duration| {
            since.is_some_and(|since| since <= now && now < since.plus_micros(micros(span)))
        };
        let kept = self.kept();
        let current = within(kept.fetched_at, oidc.keys_lifetime) && suffices(&kept.keys);
        (current || within(kept.tried_at, oidc.refetch)).then(|| Arc::clone(&kept.keys))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) -> Result<KeySet, FetchError> {
        let oidc = &self.settings().oidc;
        match KeyPlace::of(oidc) {
            None => Ok(KeySet::default()),
            Some(KeyPlace::File(path)) => {
                let bytes = read_file(&path).await?;
                key_set(&path.display().to_string(), &bytes)
            }
            Some(KeyPlace::Url(url)) => self.fetch_keys(url.map_err(FetchError::Url)?).await,
            Some(KeyPlace::Discovered(url)) => {
                let url = url.map_err(FetchError::Url)?;
                let bytes = self.get(&url).await?;
                let document: Option<Configuration> = serde_json::from_slice(&bytes).ok();
                let named = document.filter(|document| Some(&document.issuer) == oidc.issuer.as_ref());
                let keys = named.ok_or(FetchError::Configuration(url))?.jwks_uri;
                self.fetch_keys(safe_url(&keys).map_err(FetchError::Url)?).await
            }
        }
    }

    async fn fetch_keys(&self, url: Url) -> Result<KeySet, FetchError> {
        let bytes = self.get(&url).await?;
        key_set(url.as_str(), &bytes)
    }

    /// Fetches a document of bounded size in bounded time. No redirect is followed: where keys come from is what the
    /// operator, or the issuer's own document, says.
    async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let failed = |cause: reqwest::Error| FetchError::Http { url: url.clone(), cause: cause.without_url() };
        let build = || async {
            // Fails only when one is installed already, which then serves.
            let _ = rustls::crypto::ring::default_provider().install_default();
            reqwest::Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(FETCH_TIMEOUT)
                .user_agent(concat!("bandstand/", env!("CARGO_PKG_VERSION")))
                .build()
        };
        let http = self.0.http.get_or_try_init(build).await.map_err(failed)?;
        let mut response = http.get(url.clone()).send().await.map_err(failed)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(FetchError::Status { url: url.clone(), status: response.status() });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > DOCUMENT_MAX_BYTES {
                return Err(FetchError::TooLarge(url.to_string()));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

async fn read_file(path: &Path) -> Result<Vec<u8>, FetchError> {
    use tokio::io::AsyncReadExt;
    let failed = |cause| FetchError::File { path: path.display().to_string(), cause };
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(DOCUMENT_MAX_BYTES as u64 + 1).read_to_end(&mut bytes).await.map_err(failed)?;
    if bytes.len() > DOCUMENT_MAX_BYTES {
        return Err(FetchError::TooLarge(path.display().to_string()));
    }
    Ok(bytes)
}

fn key_set(place: &str, bytes: &[u8]) -> Result<KeySet, FetchError> {
    KeySet::read(bytes).map_err(|cause| FetchError::KeySet { place: place.to_owned(), cause })
}

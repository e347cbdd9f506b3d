//! How a client is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::call::Transport;
use super::{Client, ClientError, HumanClient};
use crate::time::{Clock, Randomness, SystemClock, SystemRandomness};

/// An agent's key. It prints as `[REDACTED]`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key itself, for a header.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

/// Whether a post whose outcome is unknown may be repeated, which takes a server that knows the header
/// `Idempotency-Key`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idempotency {
    /// Find out from the server, the first time that it matters.
    #[default]
    Detect,
    /// It does.
    Supported,
    /// It does not: the hosted platform.
    Unsupported,
}

/// How a client is made. [`Self::build`] makes it.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(super) base_url: String,
    pub(super) key: ApiKey,
    /// How long one try may take, from connecting to the last byte. 60 s.
    pub timeout: Duration,
    /// How long connecting may take. 10 s.
    pub connect_timeout: Duration,
    /// How many more tries a request has. 3.
    pub retries: u32,
    /// How long the first retry waits when the server does not say; each next one twice as long. 1 s.
    pub retry_base: Duration,
    /// The longest wait before a retry. A server that asks for more is taken at its word: the error is returned. 60 s.
    pub retry_max: Duration,
    /// Whether posts may be repeated.
    pub idempotency: Idempotency,
    /// The largest reply that is read, other than a file's content, in bytes. 32 MiB.
    pub reply_max_bytes: usize,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Jitter and keys.
    pub randomness: Arc<dyn Randomness>,
    /// TLS, for certificates that the machine does not trust by itself. The machine's trust store otherwise.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Whether proxies of the environment are used for HTTP. Yes.
    pub proxies: bool,
}

impl ClientOptions {
    /// The usual options. `base_url` is where the server is, with or without a path; `/api/v1` is added.
    pub fn new(base_url: &str, key: impl Into<ApiKey>) -> Self {
        let base = base_url.trim().trim_end_matches('/');
        Self {
            base_url: base.strip_suffix("/api/v1").unwrap_or(base).trim_end_matches('/').to_owned(),
            key: key.into(),
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            retries: 3,
            retry_base: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            idempotency: Idempotency::default(),
            reply_max_bytes: 32 * 1024 * 1024,
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness::default()),
            tls: None,
            proxies: true,
        }
    }

    /// The key.
    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address is none, or the key cannot be sent.
    pub fn build(self) -> Result<Client, ClientError> {
        Ok(Client { transport: Arc::new(Transport::new(self)?) })
    }

    /// Makes the client of a person, whose key it must be. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address is none, or the key cannot be sent.
    pub fn build_human(self) -> Result<HumanClient, ClientError> {
        Ok(HumanClient { transport: Arc::new(Transport::new(self)?) })
    }
}

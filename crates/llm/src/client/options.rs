//! How a model is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bandstand_transcript::convert::EncodeOptions;
use bandstand_transcript::{Format, MidSystem, Profile};
use serde_json::{Map, Value};

use crate::time::{SystemTiming, Timing};

/// A provider's key. It prints as `[REDACTED]`.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelKey(String);

impl ModelKey {
    /// The key itself, for a header.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for ModelKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl From<&str> for ModelKey {
    fn from(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl fmt::Debug for ModelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

/// How a model is reached, and how long one waits for it.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Which API.
    pub api: Format,
    /// What the path of the API is put behind: `https://api.openai.com/v1`, `https://api.anthropic.com` and the like.
    pub base_url: String,
    /// The path behind it, where it is not the API's own: for gateways, and where the model stands in the address.
    pub path: Option<String>,
    /// The key; servers of one's own often want none.
    pub key: Option<ModelKey>,
    /// Whether the key goes out as `Authorization: Bearer`. OpenAI's APIs: yes; Anthropic's: no, as `x-api-key`.
    pub bearer: bool,
    /// More headers, for gateways.
    pub headers: Vec<(String, String)>,
    /// The model's name.
    pub model: String,
    /// What the server refuses and bends.
    pub profile: &'static Profile,
    /// Anthropic: what becomes of system text in the middle.
    pub mid_system: MidSystem,
    /// The longest reply, in tokens. Anthropic wants a limit: 4096 unless set.
    pub max_output_tokens: Option<u64>,
    /// Responses: whether the model reasons, so that its encrypted reasoning is asked for and sent back.
    pub reasoning: bool,
    /// Fields of the request's body that are sent as they are (`temperature`, `thinking`, …). They win over our own.
    pub extra: Map<String, Value>,
    /// Whether replies are streamed. Yes.
    pub stream: bool,
    /// How long connecting may take. 10 s.
    pub connect_timeout: Duration,
    /// How long the first byte of a reply may take; without streaming that is the whole thinking time. 10 min.
    pub first_byte_timeout: Duration,
    /// How long may pass between two pieces of a reply. 2 min.
    pub idle_timeout: Duration,
    /// The largest reply, in bytes. 64 MiB.
    pub reply_max_bytes: usize,
    /// How often a request is sent again when nothing of a reply was received. 2.
    pub retries: u32,
    /// The first wait before a retry; each next is twice as long. 0.5 s.
    pub retry_base: Duration,
    /// The longest wait, also of those that the server asks for: beyond it, the request fails at once. 60 s.
    pub retry_max: Duration,
    /// Whether the machine's proxy settings are used. Yes.
    pub proxies: bool,
    /// TLS of one's own, for private authorities.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Time and chance.
    pub timing: Arc<dyn Timing>,
}

impl ModelOptions {
    /// The usual options for a model at the API's own provider.
    pub fn new(api: Format, model: impl Into<String>) -> Self {
        let (base_url, profile) = match api {
            Format::OpenAiChat | Format::OpenAiResponses => ("https://api.openai.com/v1", "openai"),
            Format::Anthropic => ("https://api.anthropic.com", "anthropic"),
        };
        Self {
            api,
            base_url: base_url.to_owned(),
            path: None,
            key: None,
            bearer: api != Format::Anthropic,
            headers: Vec::new(),
            model: model.into(),
            profile: Profile::named(profile).unwrap_or_else(Profile::none),
            mid_system: MidSystem::default(),
            max_output_tokens: None,
            reasoning: false,
            extra: Map::new(),
            stream: true,
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            reply_max_bytes: 64 << 20,
            retries: 2,
            retry_base: Duration::from_millis(500),
            retry_max: Duration::from_secs(60),
            proxies: true,
            tls: None,
            timing: Arc::new(SystemTiming),
        }
    }

    pub(super) fn encode(&self) -> EncodeOptions {
        let (mid_system, reasoning_model) = (self.mid_system, self.reasoning);
        EncodeOptions { mid_system, reasoning_model, ..EncodeOptions::for_profile(self.profile) }
    }

    /// The address that requests go to.
    pub fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        if let Some(path) = &self.path {
            return format!("{base}/{}", path.trim_start_matches('/'));
        }
        match self.api {
            Format::OpenAiChat => format!("{base}/chat/completions"),
            Format::OpenAiResponses => format!("{base}/responses"),
            // The address is given with and without the version.
            Format::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
            Format::Anthropic => format!("{base}/v1/messages"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_keys() {
        for (api, base, path, url) in [
            (Format::OpenAiChat, "http://h/v1/", None, "http://h/v1/chat/completions"),
            (Format::OpenAiResponses, "http://h/v1", None, "http://h/v1/responses"),
            (Format::Anthropic, "http://h", None, "http://h/v1/messages"),
            (Format::Anthropic, "http://h/v1/", None, "http://h/v1/messages"),
            (Format::Anthropic, "http://h", Some("/models/m:rawPredict"), "http://h/models/m:rawPredict"),
        ] {
            let mut options = ModelOptions::new(api, "m");
            options.base_url = base.to_owned();
            options.path = path.map(str::to_owned);
            options.key = Some("sk-secret".into());
            assert_eq!(options.url(), url);
            assert!(!format!("{options:?}").contains("secret"));
        }
    }
}

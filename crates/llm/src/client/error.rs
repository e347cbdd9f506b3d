//! Why a model did not answer.

use std::time::Duration;

use bandstand_transcript::{ProviderError, Reply};

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connecting.
    Connect,
    /// The first byte of the reply.
    FirstByte,
    /// The next piece of the reply.
    Idle,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::FirstByte => "the first byte of the reply",
            Self::Idle => "the next piece of the reply",
        })
    }
}

/// Why a model did not answer. What is displayed holds no key, no body and no text of the provider; the provider's own
/// words are in [`ModelError::provider`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The options make no request.
    #[error("the model's options: {0}")]
    Options(String),
    /// The request would have been refused. Only looked for in debug builds: it is a fault of ours.
    #[error("the request has faults: {}", .codes.join(", "))]
    Lint {
        /// The findings, each with its place.
        codes: Vec<String>,
    },
    /// No connection.
    #[error("the model's server cannot be reached")]
    Unreachable,
    /// It took too long.
    #[error("the model's server took too long: {phase} ({} s)", .after.as_secs_f64())]
    TimedOut {
        /// What.
        phase: Phase,
        /// The limit.
        after: Duration,
        /// What had been received.
        partial: Option<Box<Reply>>,
    },
    /// The connection broke, or the stream ended without its end event.
    #[error("the model's reply broke off")]
    Broken {
        /// What had been received.
        partial: Option<Box<Reply>>,
    },
    /// The server refused.
    #[error("the model's server answered {status}{}", code(.provider))]
    Status {
        /// The HTTP status.
        status: u16,
        /// What it said.
        provider: ProviderError,
        /// The provider's id of the request, for its support.
        request_id: Option<String>,
    },
    /// The provider failed in the middle of a reply, or answered an error with a status of success.
    #[error("the model failed{}", code(.provider))]
    Failed {
        /// What it said.
        provider: ProviderError,
        /// What had been received.
        partial: Option<Box<Reply>>,
    },
    /// The reply is not one of its API.
    #[error("the model's reply cannot be read ({at})")]
    Unreadable {
        /// Where, as a JSON pointer, or what it is instead.
        at: String,
    },
    /// The reply is too large.
    #[error("the model's reply has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

impl ModelError {
    /// The provider's own words, where it said something. They may repeat what the model was asked.
    pub fn provider(&self) -> Option<&ProviderError> {
        match self {
            Self::Status { provider, .. } | Self::Failed { provider, .. } => Some(provider),
            _ => None,
        }
    }

    /// The HTTP status, where there was one of failure.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What had been received when the reply broke off. Nothing of it may be run, or kept as a finished turn.
    pub fn partial(&self) -> Option<&Reply> {
        match self {
            Self::TimedOut { partial, .. } | Self::Broken { partial } | Self::Failed { partial, .. } => {
                partial.as_deref()
            }
            _ => None,
        }
    }

    /// For the tool loop, which knows of no network.
    pub fn to_provider_error(&self) -> ProviderError {
        self.provider().cloned().unwrap_or_else(|| ProviderError {
            kind: self.kind().to_owned(),
            message: self.to_string(),
            retryable: !matches!(self, Self::Options(_) | Self::Lint { .. } | Self::Unreadable { .. }),
        })
    }

    /// A short name for logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Options(_) => "options",
            Self::Lint { .. } => "lint",
            Self::Unreachable => "unreachable",
            Self::TimedOut { .. } => "timed_out",
            Self::Broken { .. } => "incomplete_reply",
            Self::Status { .. } => "status",
            Self::Failed { .. } => "failed",
            Self::Unreadable { .. } => "unreadable",
            Self::TooLarge { .. } => "too_large",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The provider's code, unless it is more than a code.
fn code(provider: &ProviderError) -> String {
    let kind = &provider.kind;
    let plain = kind.len() <= 64 && kind.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.'));
    if plain && kind != "error" { format!(" ({kind})") } else { String::new() }
}

//! Models over HTTP: OpenAI Chat Completions, OpenAI Responses and Anthropic Messages at any address.
//!
//! ```no_run
//! use bandstand_llm::client::{Ask, Model as _, ModelClient, ModelOptions};
//! use bandstand_transcript::{Format, Message, Role, Transcript};
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = ModelOptions::new(Format::OpenAiChat, "llama3.2");
//! options.base_url = "http://localhost:11434/v1".to_owned();
//! let model = ModelClient::new(options)?;
//! let question = Transcript::new(vec![Message::text(Role::User, "High water at Kestrel Quay?")]);
//! let ask = Ask { transcript: &question, tools: &[], cancel: &CancellationToken::new() };
//! let reply = model.reply(ask, &mut |_| {}).await?;
//! println!("{}", reply.message.plain_text());
//! # Ok(())
//! # }
//! ```

mod body;
mod error;
mod options;
mod retry;
mod tapped;
mod transport;

use std::fmt;

use bandstand_transcript::stream::Delta;
use bandstand_transcript::tools::WireNames;
use bandstand_transcript::{EncodeOptions, Format, Reply, Transcript};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::registry::Spec;

pub use error::{ModelError, Phase};
pub use options::{ModelKey, ModelOptions};
pub use transport::ModelClient;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The conversation, its system text included. It is not changed: the copy that is sent is repaired.
    pub transcript: &'a Transcript,
    /// What the model may call.
    pub tools: &'a [Spec],
    /// Ends the request; the answer is then [`ModelError::Cancelled`]. Dropping the future does the same.
    pub cancel: &'a CancellationToken,
}

/// A request as it goes out: the body, never its headers.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The API.
    pub api: Format,
    /// The model.
    pub model: &'a str,
    /// How the history was written.
    pub encode: EncodeOptions,
    /// The body.
    pub body: &'a Value,
    /// The way back from its names of tools.
    pub names: &'a WireNames,
}

/// Is told what goes over the wire for one reply. A trace is made of it.
pub trait WireTap: Send + Sync {
    /// The request is about to be sent. When it is sent again after a failure, it is the same.
    fn on_request(&self, sent: Sent<'_>);

    /// A server answered, or began to: the bytes of the body as far as they came, from which the model's key is removed.
    /// After a retry, this comes again.
    fn on_response(&self, status: u16, streamed: bool, body: &[u8]);
}

/// Whatever answers a conversation.
pub trait Model: Send + Sync + fmt::Debug {
    /// The next turn of the conversation. `on_delta` is told as it grows when the model streams; what counts is the reply.
    ///
    /// The reply's calls have the registry's names, whatever stood on the wire.
    fn reply<'a>(
        &'a self,
        ask: Ask<'a>,
        on_delta: &'a mut (dyn FnMut(&Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// The same, with what goes over the wire told to `tap`, by models that have one.
    fn reply_tapped<'a>(
        &'a self,
        ask: Ask<'a>,
        on_delta: &'a mut (dyn FnMut(&Delta) + Send),
        tap: &'a dyn WireTap,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let _ = tap;
        self.reply(ask, on_delta)
    }

    /// The body that a request would have now, and the way back from its names; none where nothing goes over a wire.
    fn body(&self, ask: Ask<'_>) -> Option<(Value, WireNames)> {
        let _ = ask;
        None
    }
}

/// Gives calls their names of the registry back, and their arguments those of the tool.
fn rename(reply: &mut Reply, names: &WireNames) {
    names.restore_reply(reply);
}

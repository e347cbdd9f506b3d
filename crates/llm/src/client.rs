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
mod transport;

use std::fmt;

use bandstand_transcript::stream::Delta;
use bandstand_transcript::tools::WireNames;
use bandstand_transcript::{Reply, Transcript};
use futures_util::future::BoxFuture;
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
}

/// Gives calls their names of the registry back, and their arguments those of the tool.
fn rename(reply: &mut Reply, names: &WireNames) {
    names.restore_reply(reply);
}

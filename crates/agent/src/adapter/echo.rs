//! Says back what it is told.

use async_trait::async_trait;

use super::{Adapter, TurnError, TurnInput};

/// Answers every message with its own text, to whoever sent it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

#[async_trait]
impl Adapter for Echo {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        match input.message.sender.id() {
            Some(sender) => {
                input.tools.send_message(&input.message.content, &[sender.to_string().as_str()]).await?;
            }
            // Nobody to answer.
            None => {
                input.tools.no_reply(None);
            }
        }
        Ok(())
    }
}

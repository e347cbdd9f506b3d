//! Two agents in one process: a planner brings a worker into the room and hands over what it is asked; the worker
//! answers the planner, and the planner tells whoever asked.
//!
//!     PLANNER_KEY=band_a_… WORKER_KEY=band_a_… cargo run -p bandstand-agent --example delegate

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bandstand_agent::adapter::{Adapter, TurnError, TurnInput};
use bandstand_agent::client::Client;
use bandstand_agent::runtime::Agent;
use bandstand_agent::wire::ids::{IdentityId, RoomId};
use tokio_util::sync::CancellationToken;

/// Hands work to a worker, and the result to whoever asked last in the room.
struct Planner {
    worker: IdentityId,
    asked_by: Mutex<HashMap<RoomId, IdentityId>>,
}

#[async_trait]
impl Adapter for Planner {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let Some(sender) = input.message.sender.id() else { return Ok(()) };
        if sender == self.worker {
            let asked_by = self.asked_by.lock().unwrap_or_else(PoisonError::into_inner).remove(&input.message.room);
            match asked_by {
                Some(person) => {
                    let text = format!("Done. {}", words(&input.message.content));
                    input.tools.send_message(&text, &[person.to_string().as_str()]).await?;
                }
                None => {
                    input.tools.no_reply(Some("nobody waits for it"));
                }
            }
            return Ok(());
        }
        self.asked_by.lock().unwrap_or_else(PoisonError::into_inner).insert(input.message.room, sender);
        let worker = self.worker.to_string();
        input.tools.add_participant(&worker, "member").await?;
        input.tools.send_message(words(&input.message.content), &[worker.as_str()]).await?;
        Ok(())
    }
}

/// Counts the letters of what it is told.
struct Worker;

#[async_trait]
impl Adapter for Worker {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let letters = words(&input.message.content).chars().filter(|c| c.is_alphabetic()).count();
        let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
        input.tools.send_message(&format!("{letters} letters"), &[sender.as_str()]).await?;
        Ok(())
    }
}

/// A text without the mentions before it.
fn words(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('@') {
        rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("BANDSTAND_URL").unwrap_or_else(|_| "http://localhost:4000".to_owned());
    let worker = Client::new(&url, std::env::var("WORKER_KEY")?)?;
    let planner = Client::new(&url, std::env::var("PLANNER_KEY")?)?;
    let brain = Planner { worker: worker.me().await?.id, asked_by: Mutex::default() };
    let stop = CancellationToken::new();
    let helping = tokio::spawn(Agent::new(worker, Worker).run(stop.clone()));
    let ended = Agent::new(planner, brain).run_until_signal().await;
    stop.cancel();
    helping.await??;
    ended?;
    Ok(())
}

//! A program decides who becomes a contact: whoever says the word in its request.
//!
//!     BANDSTAND_KEY=band_a_… cargo run -p bandstand-agent --example contact_callback

use std::sync::Arc;

use async_trait::async_trait;
use bandstand_agent::adapter::Echo;
use bandstand_agent::client::Client;
use bandstand_agent::runtime::{
    Agent, ContactEvent, ContactHandler, ContactSettings, ContactStrategy, RuntimeSettings,
};
use bandstand_agent::tools::ContactTools;

struct Doorkeeper;

#[async_trait]
impl ContactHandler for Doorkeeper {
    async fn on_event(
        &self,
        event: &ContactEvent,
        tools: &ContactTools,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if let ContactEvent::RequestReceived(request) = event {
            let knows = request.message.as_deref().is_some_and(|message| message.contains("swordfish"));
            let action = if knows { "approve" } else { "reject" };
            tools.respond_contact_request(action, None, Some(&request.id)).await?;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("BANDSTAND_URL").unwrap_or_else(|_| "http://localhost:4000".to_owned());
    let client = Client::new(&url, std::env::var("BANDSTAND_KEY")?)?;
    let contacts =
        ContactSettings { strategy: ContactStrategy::Callback(Arc::new(Doorkeeper)), ..ContactSettings::default() };
    let settings = RuntimeSettings { contacts, ..RuntimeSettings::default() };
    Agent::new(client, Echo).settings(settings).run_until_signal().await?;
    Ok(())
}

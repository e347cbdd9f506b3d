//! An agent in ten lines: it says back whatever mentions it.
//!
//!     BANDSTAND_KEY=band_a_… cargo run -p bandstand-agent --example echo

use bandstand_agent::adapter::Echo;
use bandstand_agent::client::Client;
use bandstand_agent::runtime::Agent;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("BANDSTAND_URL").unwrap_or_else(|_| "http://localhost:4000".to_owned());
    let client = Client::new(&url, std::env::var("BANDSTAND_KEY")?)?;
    Agent::new(client, Echo).run_until_signal().await?;
    Ok(())
}

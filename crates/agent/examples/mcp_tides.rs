//! An MCP server over stdio, for the stories about external servers: it tells tides and misbehaves on demand.

#[path = "../tests/it/support/tides.rs"]
mod tides;

use rmcp::ServiceExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    eprintln!("the tides are known");
    if std::env::args().any(|word| word == "--broken") {
        eprintln!("no gauge is configured");
        return Err("there is nothing to serve".into());
    }
    let running = tides::Tides::default().serve((tokio::io::stdin(), tokio::io::stdout())).await?;
    running.waiting().await?;
    Ok(())
}

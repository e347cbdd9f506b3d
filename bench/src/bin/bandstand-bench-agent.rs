//! The agent of our SDK that `bandstand-bench agents` measures: a program of its own, as an agent's program is.

use bandstand_agent::adapter::{Scripted, Step};
use bandstand_agent::client::Client;
use bandstand_agent::runtime::{Agent, RuntimeSettings};

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::new(&std::env::var("BENCH_URL")?, std::env::var("BENCH_KEY")?)?;
        let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
        let agent = Agent::new(client, Scripted::always([Step::Reply("Heard.".to_owned())]));
        agent.settings(settings).run_until_signal().await?;
        Ok(())
    })
}

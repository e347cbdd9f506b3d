//! `bandstand run`: an agent whose turns are a model's, from a file, without code.

mod file;

use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use bandstand_agent::adapter::{Llm, LlmSettings};
use bandstand_agent::client::Client;
use bandstand_agent::llm::client::{ModelClient, ModelOptions};
use bandstand_agent::runtime::{Agent, RuntimeSettings};
use bandstand_agent::tools::{Capabilities, Toolbox};

use crate::cli::RunArguments;
use crate::output::Failure;
use crate::{environment, logging};

/// Everything that a run needs, checked.
struct Plan {
    url: String,
    key: String,
    model: ModelOptions,
    llm: LlmSettings,
    concurrent_turns: Option<usize>,
}

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let plan = file::plan(arguments, &environment).map_err(Failure::Usage)?;
    let model = ModelClient::new(plan.model).map_err(|error| Failure::Usage(error.to_string()))?;
    let client = Client::new(&plan.url, plan.key).map_err(|error| Failure::Usage(error.to_string()))?;
    if arguments.check {
        crate::output::say("The file is good: nothing was started.");
        return Ok(ExitCode::SUCCESS);
    }
    logging::init_plain(&arguments.log_level).map_err(|error| Failure::Usage(format!("--log-level: {error}")))?;
    let mut settings = RuntimeSettings::default();
    if let Some(turns) = plan.concurrent_turns {
        settings.concurrent_turns = turns;
    }
    let capabilities: Capabilities = plan.llm.capabilities.clone();
    let agent = Agent::new(client, Llm::with(model, plan.llm)).toolbox(Toolbox::new(capabilities)).settings(settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    let stopped =
        runtime.block_on(Box::pin(agent.run_until_signal())).map_err(|error| Failure::Failed(anyhow!(error)))?;
    if !stopped.clean {
        tracing::warn!("some turns were cut; their messages are served again");
    }
    Ok(ExitCode::SUCCESS)
}

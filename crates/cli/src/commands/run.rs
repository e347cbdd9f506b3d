//! `bandstand run`: an agent whose turns are a model's, from a file, without code.

mod file;
mod servers;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use bandstand_agent::adapter::{Llm, LlmSettings};
use bandstand_agent::client::Client;
use bandstand_agent::llm::client::{ModelClient, ModelOptions};
use bandstand_agent::mcp::{McpError, McpServer, McpServers, ServerReport};
use bandstand_agent::registry::{Approval, Spec};
use bandstand_agent::runtime::{Agent, RuntimeSettings};
use bandstand_agent::tools::Toolbox;
use bandstand_agent::trace::{Trace, TraceLimits};

use crate::cli::RunArguments;
use crate::output::{Failure, columns, say};
use crate::people::text::harmless;
use crate::{environment, logging};

/// Everything that a run needs, checked.
struct Plan {
    url: String,
    key: String,
    model: ModelOptions,
    llm: LlmSettings,
    concurrent_turns: Option<usize>,
    mcp: Vec<McpServer>,
    trace: Option<TracePlan>,
    /// Texts that must not be in a trace, should a tool or a provider repeat them.
    secrets: Vec<String>,
}

/// Where turns are traced, and how much is kept.
struct TracePlan {
    folder: PathBuf,
    limits: TraceLimits,
}

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let mut plan = file::plan(arguments, &environment).map_err(Failure::Usage)?;
    let model = ModelClient::new(plan.model).map_err(|error| Failure::Usage(error.to_string()))?;
    let client = Client::new(&plan.url, plan.key).map_err(|error| Failure::Usage(error.to_string()))?;
    if arguments.check && plan.mcp.is_empty() {
        say("The file is good: nothing was started.");
        return Ok(ExitCode::SUCCESS);
    }
    let level = if arguments.check { "off" } else { &arguments.log_level };
    logging::init_plain(level).map_err(|error| Failure::Usage(format!("--log-level: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    let toolbox = Toolbox::new(plan.llm.capabilities.clone());
    let servers = std::mem::take(&mut plan.mcp);
    if arguments.check {
        return runtime.block_on(check(servers, toolbox));
    }
    if let Some(TracePlan { folder, limits }) = plan.trace {
        let opened = Trace::open(&folder, limits, plan.secrets);
        plan.llm.trace = Some(opened.with_context(|| format!("cannot trace in {}", folder.display()))?);
    }
    let mut settings = RuntimeSettings::default();
    if let Some(turns) = plan.concurrent_turns {
        settings.concurrent_turns = turns;
    }
    let agent = Agent::new(client, Llm::with(model, plan.llm)).settings(settings);
    let stopped = runtime.block_on(Box::pin(async {
        let servers = McpServers::connect(servers).await.map_err(unusable)?;
        let ended = match toolbox.with_source(servers.clone()) {
            Ok(toolbox) => {
                agent.toolbox(toolbox).run_until_signal().await.map_err(|error| Failure::Failed(anyhow!(error)))
            }
            Err(conflict) => Err(Failure::Usage(conflict.to_string())),
        };
        servers.close().await;
        ended
    }))?;
    if !stopped.clean {
        tracing::warn!("some turns were cut; their messages are served again");
    }
    Ok(ExitCode::SUCCESS)
}

fn unusable(error: McpError) -> Failure {
    match error {
        McpError::Options { .. } => Failure::Usage(error.to_string()),
        error => Failure::Failed(anyhow!(harmless(&error.to_string()))),
    }
}

/// Starts or reaches the servers, says what they have, and ends them.
async fn check(servers: Vec<McpServer>, toolbox: Toolbox) -> Result<ExitCode, Failure> {
    let servers = McpServers::connect(servers).await.map_err(unusable)?;
    let conflict = toolbox.with_source(servers.clone()).err();
    let reports = servers.reports();
    servers.close().await;
    if let Some(conflict) = conflict {
        return Err(Failure::Usage(conflict.to_string()));
    }
    say("The file is good: no agent was started.");
    for report in reports {
        say(&format!("\n{}", harmless(&told(&report))));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a server has, in a few lines.
fn told(report: &ServerReport) -> String {
    let says = report.says.as_ref().map(|says| format!(" ({says})")).unwrap_or_default();
    let mut lines = vec![format!("MCP server {}: {}{says}", report.name, report.place)];
    if let Some(problem) = &report.problem {
        lines.push(format!("It cannot be used now: it {problem}. The agent starts without it and goes on trying."));
        return lines.join("\n");
    }
    let rows: Vec<[String; 4]> = report.tools.iter().map(row).collect();
    lines.push(if rows.is_empty() {
        "It has no tools for this agent.".to_owned()
    } else {
        columns(["TOOL", "EFFECT", "APPROVAL", "TIME LIMIT"], &rows)
    });
    lines.extend(report.left_out.iter().map(|(tool, why)| format!("left out: {tool}: {why}")));
    lines.extend(report.unknown.iter().map(|tool| format!("the server has no tool {tool}")));
    lines.join("\n")
}

fn row(spec: &Spec) -> [String; 4] {
    let approval = match spec.approval() {
        Approval::Allow => "allow",
        Approval::Ask => "ask",
        Approval::Deny => "deny",
    };
    let limit = spec.time_limit().map(|limit| format!("{} s", limit.as_secs_f64())).unwrap_or_default();
    [spec.name().to_owned(), spec.effect().to_string(), approval.to_owned(), limit]
}

//! The agent's file, and the flags that stand above it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandstand_agent::adapter::{Emit, LlmSettings};
use bandstand_agent::llm::client::ModelOptions;
use bandstand_agent::llm::transcript::profile::PROFILES;
use bandstand_agent::llm::transcript::{Format, Profile};
use bandstand_agent::tools::{Capabilities, Capability};
use bandstand_agent::trace::TraceLimits;
use serde::Deserialize;

use super::servers::{self, Reading, ServerTable};
use super::{Plan, TracePlan};
use crate::cli::RunArguments;
use crate::settings::{bytes, duration};

/// The environment variable of the agent's key, unless the file names another.
const AGENT_KEY: &str = "BANDSTAND_AGENT_KEY";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentFile {
    url: Option<String>,
    key: Option<String>,
    key_env: Option<String>,
    instructions: Option<String>,
    instructions_file: Option<PathBuf>,
    base_instructions: Option<bool>,
    #[serde(default)]
    capabilities: Vec<String>,
    emit: Option<Vec<String>>,
    #[serde(default)]
    model: ModelTable,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    trace: TraceTable,
    #[serde(default)]
    mcp: Vec<ServerTable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceTable {
    folder: Option<PathBuf>,
    steps: Option<usize>,
    bytes: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    api: Option<String>,
    name: Option<String>,
    base_url: Option<String>,
    path: Option<String>,
    key: Option<String>,
    key_env: Option<String>,
    bearer: Option<bool>,
    profile: Option<String>,
    stream: Option<bool>,
    max_output_tokens: Option<u64>,
    reasoning: Option<bool>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    extra: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    steps: Option<u32>,
    tokens: Option<u64>,
    time: Option<String>,
    history_tokens: Option<usize>,
    concurrent_turns: Option<usize>,
    first_byte: Option<String>,
    idle: Option<String>,
    retries: Option<u32>,
}

pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Reads the file, puts the flags above it, and checks everything that can be checked here.
pub(super) fn plan(arguments: &RunArguments, environment: Environment<'_>) -> Result<Plan, String> {
    let mut file = match &arguments.file {
        Some(path) => read(path)?,
        None => AgentFile::default(),
    };
    let above = |given: &Option<String>, place: &mut Option<String>| {
        if given.is_some() {
            place.clone_from(given);
        }
    };
    above(&arguments.url, &mut file.url);
    above(&arguments.instructions, &mut file.instructions);
    above(&arguments.model, &mut file.model.name);
    above(&arguments.api, &mut file.model.api);
    above(&arguments.base_url, &mut file.model.base_url);
    above(&arguments.profile, &mut file.model.profile);
    let folder = arguments.file.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    let key = match file.key.take() {
        Some(key) => key,
        None => {
            let name = file.key_env.as_deref().unwrap_or(AGENT_KEY);
            secret(name, environment).ok_or_else(|| {
                format!("the agent's key is missing: set {name} to the key that `bandstand agent add` printed")
            })?
        }
    };
    let llm = llm(&mut file, arguments, &folder)?;
    let mut reading = Reading { folder: &folder, environment, secrets: vec![key.clone()] };
    let mcp = servers::servers(std::mem::take(&mut file.mcp), &mut reading)?;
    let mut secrets = reading.secrets;
    let trace = trace(&file.trace, arguments, &folder)?;
    let model = model(file.model, &file.limits, environment)?;
    secrets.extend(model.key.as_ref().map(|key| key.reveal().to_owned()));
    let kept_secret = model.headers.iter().filter(|(name, _)| servers::is_secret(name));
    secrets.extend(kept_secret.map(|(_, value)| value.clone()));
    Ok(Plan {
        mcp,
        trace,
        secrets,
        url: file.url.unwrap_or_else(|| "http://127.0.0.1:4000".to_owned()),
        key,
        llm,
        concurrent_turns: file.limits.concurrent_turns,
        model,
    })
}

fn read(path: &Path) -> Result<AgentFile, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    toml::from_str(&text).map_err(|error| {
        // The error's own text shows the line, which may hold a key.
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
        format!("{shown}:{line}: {}", error.message())
    })
}

pub(super) fn secret(name: &str, environment: Environment<'_>) -> Option<String> {
    environment(name)?.into_string().ok().filter(|text| !text.trim().is_empty())
}

fn llm(file: &mut AgentFile, arguments: &RunArguments, folder: &Path) -> Result<LlmSettings, String> {
    let instructions = match (file.instructions.take(), &file.instructions_file) {
        (Some(_), Some(_)) if arguments.instructions.is_none() => {
            return Err("instructions and instructions_file are both given; one is enough".to_owned());
        }
        (Some(text), _) => text,
        (None, Some(path)) => {
            let path = folder.join(path);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("instructions_file {} cannot be read: {error}", path.display()))?
        }
        (None, None) => String::new(),
    };
    let words = file.capabilities.iter().chain(&arguments.capability);
    let capabilities: Result<Vec<Capability>, _> = words.map(|word| word.parse::<Capability>()).collect();
    let mut settings = LlmSettings {
        instructions,
        base_instructions: file.base_instructions.unwrap_or(true),
        capabilities: Capabilities::of(capabilities.map_err(|error| format!("capabilities: {error}"))?),
        ..LlmSettings::default()
    };
    if let Some(words) = &file.emit {
        settings.emit = Emit::SILENT;
        for word in words {
            match word.as_str() {
                "tool_calls" => settings.emit.tool_calls = true,
                "thoughts" => settings.emit.thoughts = true,
                "usage" => settings.emit.usage = true,
                other => return Err(format!("emit: unknown word `{other}`; expected tool_calls, thoughts or usage")),
            }
        }
    }
    let limits = &file.limits;
    if let Some(steps) = limits.steps {
        settings.policy.limits.max_steps = steps.max(1);
    }
    settings.policy.limits.max_tokens = limits.tokens;
    settings.time_limit = time("limits.time", limits.time.as_deref())?;
    if let Some(tokens) = limits.history_tokens {
        settings.history_tokens = tokens;
    }
    Ok(settings)
}

fn trace(table: &TraceTable, arguments: &RunArguments, folder: &Path) -> Result<Option<TracePlan>, String> {
    let mut limits = TraceLimits::default();
    if let Some(steps) = table.steps {
        limits.steps = steps;
    }
    if let Some(text) = &table.bytes {
        limits.bytes = bytes(text).map_err(|error| format!("trace.bytes: {error}"))?;
    }
    let folder = arguments.trace.clone().or_else(|| table.folder.as_ref().map(|path| folder.join(path)));
    Ok(folder.map(|folder| TracePlan { folder, limits }))
}

pub(super) fn time(name: &str, text: Option<&str>) -> Result<Option<Duration>, String> {
    text.map(duration).transpose().map_err(|error| format!("{name}: {error}"))
}

fn model(table: ModelTable, limits: &LimitsTable, environment: Environment<'_>) -> Result<ModelOptions, String> {
    let api = match table.api.as_deref() {
        None => Format::OpenAiChat,
        Some(name) => Format::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
            format!("unknown api `{name}`; expected {}", names.join(", "))
        })?,
    };
    let name = table.name.ok_or("no model: give --model, or `name` in the table [model] of the file")?;
    let mut options = ModelOptions::new(api, name);
    let elsewhere = table.base_url.is_some();
    if let Some(base_url) = table.base_url {
        options.base_url = base_url;
    }
    options.profile = match (table.profile.as_deref(), elsewhere, api) {
        (Some(name), _, _) => Profile::named(name).ok_or_else(|| {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            format!("unknown profile `{name}`; expected {}", names.join(", "))
        })?,
        // Servers of one's own take what every server takes.
        (None, true, Format::OpenAiChat) => Profile::named("compatible").unwrap_or_else(Profile::none),
        (None, _, _) => options.profile,
    };
    let usual = if api == Format::Anthropic { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
    options.key = match (table.key, table.key_env) {
        (Some(key), _) => Some(key.into()),
        (None, Some(name)) => {
            Some(secret(&name, environment).ok_or_else(|| format!("the model's key is missing: set {name}"))?.into())
        }
        // The provider's key is not shown to other servers.
        (None, None) if elsewhere => None,
        (None, None) => Some(
            secret(usual, environment)
                .ok_or_else(|| {
                    format!("the model's key is missing: set {usual}, or name another with key_env in [model]")
                })?
                .into(),
        ),
    };
    options.path = table.path;
    options.bearer = table.bearer.unwrap_or(options.bearer);
    options.stream = table.stream.unwrap_or(true);
    options.max_output_tokens = table.max_output_tokens;
    options.reasoning = table.reasoning.unwrap_or(false);
    options.headers = table.headers.into_iter().collect();
    options.extra = table.extra;
    if let Some(limit) = time("limits.first_byte", limits.first_byte.as_deref())? {
        options.first_byte_timeout = limit;
    }
    if let Some(limit) = time("limits.idle", limits.idle.as_deref())? {
        options.idle_timeout = limit;
    }
    if let Some(retries) = limits.retries {
        options.retries = retries;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn planned(toml: &str, flags: &[&str]) -> Result<Plan, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        std::fs::write(&path, toml).unwrap();
        let words = ["bandstand", "run", path.to_str().unwrap()];
        let Command::Run(arguments) = Cli::parse_from(words.iter().chain(flags)).command else { panic!("run") };
        let environment = |name: &str| match name {
            "BANDSTAND_AGENT_KEY" => Some("band_a_x".into()),
            "OPENAI_API_KEY" => Some("sk-1".into()),
            _ => None,
        };
        plan(&arguments, &environment).map_err(|error| error.replace(path.to_str().unwrap(), "agent.toml"))
    }

    #[test]
    fn flags_stand_above_the_file_and_the_rest_is_usual() {
        let plan = planned(
            "capabilities = [\"memory\"]\nemit = [\"usage\"]\ninstructions = \"Be brief.\"\n\
             [model]\nname = \"a\"\nextra = { temperature = 0.5 }\n[limits]\nsteps = 9\ntime = \"2m\"\n",
            &["--model", "b", "--url", "http://h:1", "--capability", "tasks"],
        )
        .map_err(|error| panic!("{error}"))
        .unwrap();
        assert_eq!((plan.url.as_str(), plan.key.as_str(), plan.model.model.as_str()), ("http://h:1", "band_a_x", "b"));
        assert_eq!(plan.model.key.as_ref().map(|key| key.reveal()), Some("sk-1"));
        assert_eq!((plan.model.profile.name, &plan.model.extra["temperature"]), ("openai", &0.5.into()));
        assert_eq!(plan.llm.capabilities, Capabilities::of([Capability::Memory, Capability::Tasks]));
        assert_eq!(plan.llm.emit, Emit { usage: true, ..Emit::SILENT });
        assert_eq!((plan.llm.policy.limits.max_steps, plan.llm.time_limit), (9, Some(Duration::from_secs(120))));
    }

    #[test]
    fn a_trace_is_where_the_flag_says() {
        let file = "[trace]\nfolder = \"here\"\nsteps = 9\nbytes = \"1MiB\"\n[model]\nname = \"a\"\n";
        let trace = |flags: &[&str]| planned(file, flags).map_err(|error| panic!("{error}")).unwrap().trace.unwrap();
        assert!(trace(&[]).folder.ends_with("here") && trace(&[]).folder.is_absolute());
        let there = trace(&["--trace", "there"]);
        assert_eq!((there.folder, there.limits), ("there".into(), TraceLimits { steps: 9, bytes: 1 << 20 }));
        assert!(planned("[model]\nname = \"a\"\n", &[]).is_ok_and(|plan| plan.trace.is_none()));
    }

    #[test]
    fn another_server_is_not_shown_the_providers_key() {
        let plan = planned("[model]\nname = \"a\"\nbase_url = \"http://localhost:11434/v1\"\n", &[]);
        let model = plan.map_err(|error| panic!("{error}")).unwrap().model;
        assert_eq!((model.key.is_none(), model.profile.name), (true, "compatible"));
    }

    #[test]
    fn faults_are_named_with_their_place() {
        for (toml, expected) in [
            ("", "no model: give --model"),
            ("[model]\nname = \"a\"\nkeys = \"sk-2\"\n", "agent.toml:3: unknown field `keys`"),
            (
                "[model]\nname = \"a\"\napi = \"grpc\"\n",
                "unknown api `grpc`; expected openai.chat, openai.responses, anthropic",
            ),
            ("[model]\nname = \"a\"\napi = \"anthropic\"\n", "set ANTHROPIC_API_KEY"),
            ("[model]\nname = \"a\"\nprofile = \"x\"\n", "unknown profile `x`"),
            ("capabilities = [\"x\"]\n[model]\nname = \"a\"\n", "capabilities: unsupported capability `x`"),
            ("emit = [\"x\"]\n[model]\nname = \"a\"\n", "emit: unknown word `x`"),
            ("[model]\nname = \"a\"\n[limits]\ntime = \"5\"\n", "limits.time: \"5\" is no duration"),
            ("key_env = \"NOPE\"\n[model]\nname = \"a\"\n", "set NOPE"),
            ("[trace]\nbytes = \"much\"\n[model]\nname = \"a\"\n", "trace.bytes: \"much\" is no size"),
            ("instructions_file = \"nope.md\"\n[model]\nname = \"a\"\n", "instructions_file"),
        ] {
            let error = planned(toml, &[]).err().unwrap_or_else(|| panic!("{toml}"));
            assert!(error.contains(expected) && !error.contains("sk-2"), "{error}");
        }
    }
}

//! The tables `[[mcp]]` of an agent's file: external MCP servers, and what of them the agent may use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bandstand_agent::mcp::{HttpServer, McpServer, McpTransport, Secret, StdioServer, ToolPolicy};
use serde::Deserialize;

use super::file::{Environment, secret, time};

/// One `[[mcp]]`. It is not printed: it may hold keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    name: String,
    transport: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    env_from: Vec<String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    headers_env: BTreeMap<String, String>,
    bearer_env: Option<String>,
    allow: Option<Vec<String>>,
    #[serde(default)]
    deny: Vec<String>,
    prefix: Option<String>,
    required: Option<bool>,
    connect_timeout: Option<String>,
    result_chars: Option<usize>,
    effect: Option<String>,
    approval: Option<String>,
    timeout: Option<String>,
    #[serde(default)]
    tools: BTreeMap<String, ToolTable>,
}

impl std::fmt::Debug for ServerTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTable").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolTable {
    effect: Option<String>,
    approval: Option<String>,
    timeout: Option<String>,
}

/// Where things come from, and what must be kept secret of them.
pub(super) struct Reading<'a> {
    /// The file's own folder.
    pub(super) folder: &'a Path,
    pub(super) environment: Environment<'a>,
    /// Values that came from the environment, and headers that look like keys.
    pub(super) secrets: Vec<String>,
}

impl Reading<'_> {
    fn secret(&mut self, key: &str, name: &str) -> Result<String, String> {
        let value = secret(name, self.environment).ok_or_else(|| format!("{key}: {name} is not set"))?;
        self.secrets.push(value.clone());
        Ok(value)
    }
}

/// Whether a header holds a key, by its name.
pub(super) fn is_secret(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"].iter().any(|word| header.contains(word))
}

/// The servers, in the order of the file.
pub(super) fn servers(tables: Vec<ServerTable>, reading: &mut Reading<'_>) -> Result<Vec<McpServer>, String> {
    tables
        .into_iter()
        .map(|table| {
            let name = table.name.clone();
            server(table, reading).map_err(|error| format!("mcp `{name}`: {error}"))
        })
        .collect()
}

fn server(mut table: ServerTable, reading: &mut Reading<'_>) -> Result<McpServer, String> {
    let transport = match (table.transport.as_deref(), &table.command, &table.url) {
        (_, Some(_), Some(_)) => return Err("command and url are both given; a server has one".to_owned()),
        (None | Some("stdio"), Some(_), None) => stdio(&mut table, reading)?,
        (None | Some("http"), None, Some(_)) => http(&mut table, reading)?,
        (Some("stdio"), None, _) => return Err("transport is stdio, so it needs a command".to_owned()),
        (Some("http"), _, None) => return Err("transport is http, so it needs a url".to_owned()),
        (None, None, None) => return Err("give a command to start, or the url of a server".to_owned()),
        (Some(other), ..) => return Err(format!("unknown transport `{other}`; expected stdio or http")),
    };
    let mut server = McpServer::new(table.name, transport);
    server.allow = table.allow.map(|names| names.into_iter().collect());
    server.deny = table.deny.into_iter().collect();
    server.prefix = table.prefix.unwrap_or_default();
    server.required = table.required.unwrap_or(true);
    if let Some(limit) = time("connect_timeout", table.connect_timeout.as_deref())? {
        server.connect_timeout = limit;
    }
    if let Some(characters) = table.result_chars {
        server.result_chars = characters;
    }
    server.defaults = policy(ToolTable { effect: table.effect, approval: table.approval, timeout: table.timeout })?;
    for (tool, said) in table.tools {
        let policy = policy(said).map_err(|error| format!("tools.{tool}: {error}"))?;
        server.tools.insert(tool, policy);
    }
    Ok(server)
}

fn policy(table: ToolTable) -> Result<ToolPolicy, String> {
    let ToolTable { effect, approval, timeout } = table;
    Ok(ToolPolicy {
        effect: effect.map(|word| word.parse()).transpose().map_err(|error| format!("effect: {error}"))?,
        approval: approval.map(|word| word.parse()).transpose().map_err(|error| format!("approval: {error}"))?,
        time_limit: time("timeout", timeout.as_deref())?,
    })
}

fn stdio(table: &mut ServerTable, reading: &mut Reading<'_>) -> Result<McpTransport, String> {
    let others = !table.headers.is_empty() || !table.headers_env.is_empty() || table.bearer_env.is_some();
    if others {
        return Err("headers are for servers with a url".to_owned());
    }
    let mut env: BTreeMap<String, Secret> =
        std::mem::take(&mut table.env).into_iter().map(|(name, value)| (name, value.into())).collect();
    for name in &table.env_from {
        let value = reading.secret("env_from", name)?;
        env.insert(name.clone(), value.into());
    }
    Ok(McpTransport::Stdio(StdioServer {
        command: table.command.take().unwrap_or_default(),
        args: std::mem::take(&mut table.args),
        env,
        cwd: table.cwd.take().map(|cwd| reading.folder.join(cwd)),
    }))
}

fn http(table: &mut ServerTable, reading: &mut Reading<'_>) -> Result<McpTransport, String> {
    if !table.args.is_empty() || !table.env.is_empty() || !table.env_from.is_empty() || table.cwd.is_some() {
        return Err("args, env, env_from and cwd are for servers with a command".to_owned());
    }
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for (name, value) in std::mem::take(&mut table.headers) {
        if is_secret(&name) {
            reading.secrets.push(value.strip_prefix("Bearer ").unwrap_or(&value).to_owned());
        }
        headers.push((name, value.into()));
    }
    for (header, name) in &table.headers_env {
        let value = reading.secret("headers_env", name)?;
        headers.push((header.clone(), value.into()));
    }
    if let Some(name) = &table.bearer_env {
        let value = reading.secret("bearer_env", name)?;
        headers.push(("authorization".to_owned(), format!("Bearer {value}").into()));
    }
    Ok(McpTransport::Http(HttpServer { url: table.url.take().unwrap_or_default(), headers, proxies: true }))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::time::Duration;

    use bandstand_agent::registry::{Approval, Effect};

    use super::*;

    #[derive(Deserialize)]
    struct File {
        mcp: Vec<ServerTable>,
    }

    fn read(text: &str) -> Result<Vec<McpServer>, String> {
        let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let environment = |name: &str| (name == "TIDES_KEY").then(|| OsString::from("secret-1"));
        let mut reading = Reading { folder: Path::new("/agents"), environment: &environment, secrets: Vec::new() };
        let servers = servers(file.mcp, &mut reading);
        assert!(reading.secrets.iter().all(|secret| secret == "secret-1"), "{:?}", reading.secrets);
        servers
    }

    #[test]
    fn both_kinds_of_server() {
        let servers = read(
            "[[mcp]]\nname = \"files\"\ncommand = \"mcp-files\"\nargs = [\"--root\", \"/srv\"]\nenv = { A = \"1\" }\n\
             env_from = [\"TIDES_KEY\"]\ncwd = \"work\"\nallow = [\"read\", \"write\"]\nprefix = \"files/\"\n\
             timeout = \"10s\"\n[mcp.tools.write]\neffect = \"act\"\napproval = \"ask\"\ntimeout = \"2m\"\n\
             [[mcp]]\nname = \"tides\"\ntransport = \"http\"\nurl = \"https://h/mcp\"\nheaders = { x-team = \"t\" }\n\
             headers_env = { x-key = \"TIDES_KEY\" }\nbearer_env = \"TIDES_KEY\"\nrequired = false\ndeny = [\"x\"]\n",
        );
        let servers = servers.map_err(|error| panic!("{error}")).unwrap();
        let McpTransport::Stdio(files) = &servers[0].transport else { panic!("{servers:?}") };
        assert_eq!(
            (files.command.as_str(), files.args.len(), files.cwd.as_deref()),
            ("mcp-files", 2, Some(Path::new("/agents/work")))
        );
        assert_eq!(files.env["TIDES_KEY"].reveal(), "secret-1");
        assert_eq!(servers[0].defaults.time_limit, Some(Duration::from_secs(10)));
        let write = servers[0].tools["write"];
        assert_eq!((write.effect, write.approval), (Some(Effect::Act), Some(Approval::Ask)));
        assert_eq!(write.time_limit, Some(Duration::from_secs(120)));
        let McpTransport::Http(tides) = &servers[1].transport else { panic!("{servers:?}") };
        let headers: Vec<(&str, &str)> =
            tides.headers.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        let bearer = ("authorization", "Bearer secret-1");
        assert_eq!(headers, [("x-team", "t"), ("x-key", "secret-1"), bearer]);
        assert!(!servers[1].required && !format!("{servers:?}").contains("secret-1"));
    }

    #[test]
    fn faults_name_the_server() {
        for (text, expected) in [
            ("", "give a command to start, or the url"),
            ("command = \"x\"\nurl = \"http://h\"", "both given"),
            ("transport = \"stdio\"\nurl = \"http://h\"", "needs a command"),
            ("transport = \"http\"\ncommand = \"x\"", "needs a url"),
            ("transport = \"sse\"\nurl = \"http://h\"", "unknown transport `sse`"),
            ("command = \"x\"\nbearer_env = \"TIDES_KEY\"", "headers are for servers with a url"),
            ("url = \"http://h\"\nargs = [\"x\"]", "are for servers with a command"),
            ("command = \"x\"\nenv_from = [\"NOPE\"]", "NOPE is not set"),
            ("url = \"http://h\"\nheaders_env = { a = \"NOPE\" }", "NOPE is not set"),
            ("command = \"x\"\neffect = \"work\"", "effect: unknown word `work`; expected one of observe, act"),
            ("command = \"x\"\n[mcp.tools.t]\napproval = \"maybe\"", "tools.t: approval: unknown word `maybe`"),
            ("command = \"x\"\n[mcp.tools.t]\ntimeout = \"5\"", "tools.t: timeout: \"5\" is no duration"),
        ] {
            let error = read(&format!("[[mcp]]\nname = \"a\"\n{text}\n")).unwrap_err();
            assert!(error.starts_with("mcp `a`: ") && error.contains(expected), "{error}");
        }
        assert!(read("[[mcp]]\nname = \"a\"\ncomand = \"x\"\n").unwrap_err().contains("unknown field `comand`"));
    }
}

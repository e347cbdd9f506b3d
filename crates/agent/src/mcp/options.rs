//! What is said about an external server before it is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};

use super::McpError;
use crate::registry::{Approval, Effect};

/// A text that prints as `[REDACTED]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

/// A program that speaks MCP on its standard input and output.
///
/// Of this process' environment it gets only what programs need anywhere (`PATH`, `HOME`, `USER`, `LANG`, …): the keys of
/// the agent and of its model are nobody else's.
#[derive(Clone, Debug, Default)]
pub struct StdioServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment, beside the usual ones.
    pub env: BTreeMap<String, Secret>,
    /// Where it runs; where this process runs unless set.
    pub cwd: Option<PathBuf>,
}

/// A server at an address, over streamable HTTP.
#[derive(Clone, Debug)]
pub struct HttpServer {
    /// The address.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// Whether the machine's proxy settings are used. Yes.
    pub proxies: bool,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// As a program that is started.
    Stdio(StdioServer),
    /// At an address.
    Http(HttpServer),
}

/// What holds for a tool. What is not set here is as the server's [defaults](McpServer::defaults) say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// What a successful call does to the turn; without one anywhere, it observes.
    pub effect: Option<Effect>,
    /// Whether a call may simply be made; without one anywhere, it may.
    pub approval: Option<Approval>,
    /// How long a call may take; without one anywhere, 60 s.
    pub time_limit: Option<Duration>,
}

impl ToolPolicy {
    pub(super) fn or(self, defaults: Self) -> Self {
        Self {
            effect: self.effect.or(defaults.effect),
            approval: self.approval.or(defaults.approval),
            time_limit: self.time_limit.or(defaults.time_limit),
        }
    }
}

/// An external server, and what of it an agent may use.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// What it is called in logs, errors and as the group of its tools (`mcp:<name>`). Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Only these of its tools, by the server's own names. All, unless set.
    pub allow: Option<BTreeSet<String>>,
    /// Not these.
    pub deny: BTreeSet<String>,
    /// What the names of its tools begin with. Nothing.
    pub prefix: String,
    /// Whether the agent does without it when it cannot be used at the start. It does not.
    pub required: bool,
    /// How long starting, greeting and listing may take together. 30 s.
    pub connect_timeout: Duration,
    /// How many characters of a result's text the model is shown. 100,000.
    pub result_chars: usize,
    /// What holds for all its tools.
    pub defaults: ToolPolicy,
    /// What holds for single tools, by the server's own names.
    pub tools: BTreeMap<String, ToolPolicy>,
}

impl McpServer {
    /// A server that is reached like this, with the usual options.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            allow: None,
            deny: BTreeSet::new(),
            prefix: String::new(),
            required: true,
            connect_timeout: Duration::from_secs(30),
            result_chars: 100_000,
            defaults: ToolPolicy::default(),
            tools: BTreeMap::new(),
        }
    }

    /// A program.
    pub fn stdio(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::new(name, McpTransport::Stdio(StdioServer { command: command.into(), args, ..StdioServer::default() }))
    }

    /// A server at an address.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, McpTransport::Http(HttpServer { url: url.into(), headers: Vec::new(), proxies: true }))
    }

    /// What holds for one of its tools.
    pub(super) fn policy(&self, tool: &str) -> ToolPolicy {
        let usual = ToolPolicy { time_limit: Some(Duration::from_secs(60)), ..ToolPolicy::default() };
        self.tools.get(tool).copied().unwrap_or_default().or(self.defaults).or(usual)
    }

    pub(super) fn admits(&self, tool: &str) -> bool {
        self.allow.as_ref().is_none_or(|names| names.contains(tool)) && !self.deny.contains(tool)
    }

    /// How it is reached, for people: never arguments or the part of an address that may hold a key.
    pub(super) fn place(&self) -> String {
        match &self.transport {
            McpTransport::Stdio(program) => program.command.clone(),
            McpTransport::Http(server) => {
                let plain = server.url.split(['?', '#']).next().unwrap_or_default();
                match plain.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
                    Some((scheme, rest)) => format!("{scheme}://{rest}"),
                    None => plain.to_owned(),
                }
            }
        }
    }
}

/// Finds what no server can be made of, before anything is started.
pub(super) fn check(servers: &[McpServer]) -> Result<(), McpError> {
    let mut names = BTreeSet::new();
    for server in servers {
        let wrong = |reason: &str| Err(McpError::Options { server: server.name.clone(), reason: reason.to_owned() });
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if server.name.is_empty() || server.name.len() > 64 || !server.name.chars().all(plain) {
            return wrong("its name must be 1 to 64 letters, digits, `_`, `-` or `.`");
        }
        if !names.insert(server.name.as_str()) {
            return wrong("there is another of this name");
        }
        match &server.transport {
            McpTransport::Stdio(program) => {
                if program.command.trim().is_empty() {
                    return wrong("no command is given");
                }
                if program.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
                    return wrong("a variable of its environment has a name that none can have");
                }
            }
            McpTransport::Http(http) => {
                let rest = http.url.strip_prefix("http://").or_else(|| http.url.strip_prefix("https://"));
                if rest.is_none_or(str::is_empty) || reqwest::Url::parse(&http.url).is_err() {
                    return wrong("its address must be one that begins with http:// or https://");
                }
                for (name, value) in &http.headers {
                    if let Err(reason) = header(name, value) {
                        return wrong(&reason);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Headers that the protocol itself sets.
const RESERVED: [&str; 5] = ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// A header as it is sent.
pub(super) fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no name of a header"))?;
    if RESERVED.contains(&name.as_str()) {
        return Err(format!("the header {name} is the protocol's own"));
    }
    let mut value =
        HeaderValue::from_str(value.reveal()).map_err(|_| format!("the header {name} holds what no header can"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_before_anything_is_started() {
        let stdio = |name: &str, command: &str| McpServer::stdio(name, command, [""; 0]);
        let with_header = |name: &str, value: &str| {
            let mut server = McpServer::http("a", "http://h/mcp");
            if let McpTransport::Http(http) = &mut server.transport {
                http.headers.push((name.to_owned(), value.into()));
            }
            server
        };
        for (servers, expected) in [
            (vec![stdio("", "x")], "its name must be"),
            (vec![stdio("a b", "x")], "its name must be"),
            (vec![stdio("a", " ")], "no command"),
            (vec![stdio("a", "x"), stdio("a", "y")], "another of this name"),
            (vec![McpServer::http("a", "ftp://h")], "must be one that begins with http"),
            (vec![McpServer::http("a", "https://")], "must be one that begins with http"),
            (vec![with_header("mcp-session-id", "x")], "is the protocol's own"),
            (vec![with_header("x-key", "se\ncret")], "holds what no header can"),
        ] {
            let error = check(&servers).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("cret"), "{error}");
        }
        assert_eq!(check(&[stdio("a", "x"), McpServer::http("b", "https://h/mcp?k=1")]), Ok(()));
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut server = McpServer::http("a", "https://user:secret-1@h:8/mcp?key=secret-2");
        if let McpTransport::Http(http) = &mut server.transport {
            http.headers.push(("authorization".to_owned(), "secret-3".into()));
        }
        assert_eq!(server.place(), "https://h:8/mcp");
        assert!(!format!("{server:?}").contains("secret-3"));
    }

    #[test]
    fn a_tool_stands_above_its_server() {
        let mut server = McpServer::stdio("a", "x", [""; 0]);
        server.defaults.approval = Some(Approval::Ask);
        server.tools.insert("t".to_owned(), ToolPolicy { effect: Some(Effect::Act), ..ToolPolicy::default() });
        let policy = server.policy("t");
        assert_eq!((policy.effect, policy.approval), (Some(Effect::Act), Some(Approval::Ask)));
        assert_eq!(policy.time_limit, Some(Duration::from_secs(60)));
        assert_eq!(server.policy("u").effect, None);
    }
}

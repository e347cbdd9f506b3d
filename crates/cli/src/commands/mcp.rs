//! `bandstand mcp`, and what `bandstand up` serves at `/mcp`.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use axum::Router;
use bandstand_agent::client::ClientError;
use bandstand_mcp::{Choices, HttpOptions, Keys, Session, SessionOptions, routes, serve_stdio};
use bandstand_server::serve::serve_router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::McpArguments;
use crate::logging;
use crate::output::{Failure, say};
use crate::settings::Settings;

pub(crate) fn run(arguments: &McpArguments) -> Result<ExitCode, Failure> {
    logging::init(&Settings { log_level: arguments.log_level.clone(), ..Settings::default() })
        .map_err(|error| Failure::Usage(format!("--log-level: {error}")))?;
    let plan = Plan::of(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    let ended = runtime.block_on(Box::pin(plan.serve()));
    // Standard input cannot be given up while it is read: the process need not wait for it.
    runtime.shutdown_background();
    ended
}

/// What is served, and where.
struct Plan {
    access: SessionOptions,
    keys: Keys,
    choices: Choices,
    http: Option<Http>,
}

struct Http {
    address: SocketAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Plan {
    fn of(arguments: &McpArguments) -> Result<Self, Failure> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let http = match (arguments.transport.to_lowercase().as_str(), arguments.http) {
            (_, true) | ("http", _) => true,
            ("stdio" | "", false) => false,
            ("sse", false) => {
                return Err(Failure::Usage(
                    "SSE, which MCP has given up, is not served. Use --transport http: clients connect to /mcp."
                        .to_owned(),
                ));
            }
            (other, false) => return Err(Failure::Usage(format!("--transport is stdio or http, not {other:?}"))),
        };
        let read = Choices::read(arguments.scope.as_deref(), arguments.tools.as_deref(), given(&arguments.room_id));
        let (choices, unknown, wrong) = match read {
            Ok((choices, unknown)) => (choices, unknown, None),
            Err((error, unknown)) => (Choices::default(), unknown, Some(error)),
        };
        for unknown in &unknown {
            tracing::warn!("{unknown}");
        }
        if let Some(error) = wrong {
            return Err(Failure::Usage(error.to_string()));
        }
        let keys = Keys {
            agent: given(&arguments.agent_key).map(Into::into),
            user: given(&arguments.user_key).map(Into::into),
        };
        // Read only where they are needed: a shell may have set HOST to its own name.
        let http = if http { Some(Http::of(arguments)?) } else { None };
        let has_keys = keys.agent.is_some() || keys.user.is_some();
        match &http {
            // Each client may bring its own.
            Some(http) if !has_keys => http.allowed()?,
            Some(http) if !http.address.ip().is_loopback() => {
                return Err(Failure::Usage(format!(
                    "{} can be reached from other machines, and whoever reaches it would act with your key. Serve \
                     without keys, and let each client send its own in the header x-api-key; or listen on 127.0.0.1.",
                    http.address
                )));
            }
            _ => {}
        }
        let access = SessionOptions::new(&arguments.base_url);
        let plan = Self { access, keys, choices, http };
        if plan.http.is_none() || has_keys {
            plan.session()?;
        }
        Ok(plan)
    }

    fn session(&self) -> Result<Session, Failure> {
        Session::new(&self.access, &self.keys, &self.choices).map_err(|error| match error {
            ClientError::Options(text) => Failure::Usage(text),
            error => Failure::Failed(error.into()),
        })
    }

    async fn serve(self) -> Result<ExitCode, Failure> {
        let shutdown = CancellationToken::new();
        let mut terminate = signal(SignalKind::terminate()).map_err(anyhow::Error::from)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(anyhow::Error::from)?;
        let ends = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            ends.cancel();
        });
        match &self.http {
            Some(http) => self.serve_http(http, shutdown).await?,
            None => {
                tracing::info!(server = self.access.base_url, "serving MCP on standard input and output");
                serve_stdio(self.session()?, shutdown).await.map_err(anyhow::Error::from)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn serve_http(&self, http: &Http, shutdown: CancellationToken) -> anyhow::Result<()> {
        let listener = TcpListener::bind(http.address)
            .await
            .with_context(|| format!("cannot listen on {}; name another with --host and --port", http.address))?;
        let bound = listener.local_addr()?;
        let mut options = HttpOptions::new(&self.access.base_url, shutdown.clone());
        options.hosts.push(bound.ip().to_string());
        options.hosts.extend(http.hosts.iter().cloned());
        options.origins = http.origins.clone();
        let has_keys = self.keys.agent.is_some() || self.keys.user.is_some();
        options.own = has_keys.then(|| (self.keys.clone(), self.choices.clone()));
        let routes = routes(options)?;
        say(&format!("MCP on http://{bound}/mcp"));
        tracing::info!(server = self.access.base_url, own_keys = has_keys, "serving MCP over HTTP");
        serve_router(listener, routes, shutdown).await;
        Ok(())
    }
}

impl Http {
    fn of(arguments: &McpArguments) -> Result<Self, Failure> {
        let host = if arguments.host == "localhost" { "127.0.0.1" } else { &arguments.host };
        let host: IpAddr =
            host.parse().map_err(|_| Failure::Usage(format!("--host is an IP address, not {host:?}")))?;
        let port: u16 = arguments
            .port
            .parse()
            .map_err(|_| Failure::Usage(format!("--port is a number below 65536, not {:?}", arguments.port)))?;
        Ok(Self {
            address: SocketAddr::new(host, port),
            hosts: arguments.allowed_hosts.iter().filter(|host| !host.is_empty()).cloned().collect(),
            origins: arguments.allowed_origins.iter().filter(|origin| !origin.is_empty()).cloned().collect(),
        })
    }

    /// Keys of clients would travel unencrypted beyond this machine.
    fn allowed(&self) -> Result<(), Failure> {
        if self.address.ip().is_loopback() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{} can be reached from other machines, and API keys would travel unencrypted. A server with TLS serves \
             MCP itself, at /mcp; or listen on 127.0.0.1.",
            self.address
        )))
    }
}

/// What a server serves at `/mcp`. Tools reach its API through `inside`, a listener of its own on this machine: the same
/// routes and the same checks, whatever stands in front of the public one.
pub(crate) fn mounted(
    settings: &Settings,
    bound: SocketAddr,
    url: &str,
    inside: &TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<Router> {
    let inside = inside.local_addr()?;
    let public = settings.public_url.as_deref();
    let listed = |list: &Option<String>| {
        let words = list.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut options = HttpOptions::new(&format!("http://{inside}"), shutdown);
    options.shown_url = Some(url.to_owned());
    options.proxies = false;
    options.sessions = settings.mcp_sessions;
    options.sessions_per_key = settings.mcp_sessions_per_key;
    options.idle = settings.mcp_session_idle;
    options.body_bytes = settings.limits.body_bytes;
    let named = listed(&settings.mcp_hosts);
    if !bound.ip().is_loopback() && public.is_none() && named.is_empty() {
        options.hosts.clear();
    } else {
        options.hosts.push(bound.ip().to_string());
        options.hosts.extend(public.and_then(host_of));
        options.hosts.extend(named);
    }
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    options.origins = vec![format!("{scheme}://{bound}"), format!("{scheme}://localhost:{}", bound.port())];
    options.origins.extend(public.map(origin_of));
    options.origins.extend(listed(&settings.mcp_origins));
    routes(options).map_err(|error| anyhow!("{error}"))
}

/// `band.example.org` of `https://band.example.org/path`.
fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    Some(rest.split('/').next().unwrap_or(rest).to_owned())
}

/// `https://band.example.org:443` of `https://band.example.org/path`.
fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let host = rest.split('/').next().unwrap_or(rest);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme == "https" { 443 } else { 80 };
    if has_port { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_an_origin() {
        for (url, host, origin) in [
            ("https://band.example.org", "band.example.org", "https://band.example.org:443"),
            ("http://band.example.org:8080/x", "band.example.org:8080", "http://band.example.org:8080"),
            ("http://[::1]", "[::1]", "http://[::1]:80"),
        ] {
            assert_eq!((host_of(url).as_deref(), origin_of(url).as_str()), (Some(host), origin));
        }
    }
}

//! `bandstand up`.

use std::fs::DirBuilder;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use axum::Router;
use bandstand_server::admin;
use bandstand_server::secret::ApiKey;
use bandstand_server::serve::{Drained, ServeOptions, serve_router, serve_with};
use bandstand_server::start::App;
use bandstand_server::telemetry::Metrics;
use bandstand_server::tls::{self, TlsConfig};
use bandstand_store::DataLock;
use sd_notify::NotifyState;
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{app_options, explain};
use crate::commands::mcp;
use crate::output::{Failure, say, try_to_say};
use crate::settings::flags::Flags;
use crate::settings::{OWNER_KEY, Settings, load};
use crate::{environment, logging, sys};

/// Connections that may wait to be accepted: after a restart, all agents come back within the same second.
const BACKLOG: u32 = 4096;

/// What to do when another server has the data.
const STOP_FIRST: &str = "stop that one first, or name another folder with --data";

pub(crate) fn run(flags: &Flags) -> Result<ExitCode, Failure> {
    let loaded = load(flags, &environment)?;
    let settings = loaded.settings;
    settings.check().map_err(Failure::Usage)?;
    let owner_key = preset_owner_key()?;
    logging::init(&settings)?;
    if let Some(file) = loaded.file {
        tracing::info!(file = %file.display(), "read the settings file");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    Ok(runtime.block_on(Box::pin(up(&settings, owner_key)))?)
}

fn preset_owner_key() -> Result<Option<ApiKey>, Failure> {
    let Some(text) = environment(OWNER_KEY).filter(|text| !text.is_empty()) else { return Ok(None) };
    let key = ApiKey::preset(&text.to_string_lossy());
    key.map(Some).map_err(|error| Failure::Usage(format!("{OWNER_KEY}: {error}")))
}

async fn up(settings: &Settings, owner_key: Option<ApiKey>) -> anyhow::Result<ExitCode> {
    // Before anything can take long: a signal from now on drains instead of killing half a start.
    let stop = Stop::on_signals()?;
    if let Err(error) = sys::raise_open_files() {
        tracing::warn!(%error, "cannot raise the number of open files; it limits how many clients can connect");
    }
    create_data_folder(&settings.data)?;
    let tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::load(certificate, key)?),
        _ => None,
    };
    // SQLite's store locks the folder itself; with PostgreSQL the folder still holds the admin socket.
    let _folder = match settings.database {
        Some(_) => {
            Some(DataLock::acquire(&settings.data).map_err(|error| explain(&error.into(), settings, STOP_FIRST))?)
        }
        None => None,
    };
    // Before the server's parts exist: they ask for their counters when they are built.
    let metrics = settings.metrics_listen.map(|_| Metrics::install()).transpose()?;
    let app = App::start(app_options(settings)).await.map_err(|error| explain(&error, settings, STOP_FIRST))?;
    let doors = match Doors::open(&app, settings, owner_key, metrics).await {
        Ok(doors) => doors,
        Err(error) => {
            app.shutdown(Instant::now()).await;
            return Err(error);
        }
    };
    Ok(doors.serve(&app, settings, tls, stop).await)
}

pub(crate) fn create_data_folder(data: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.with_context(|| format!("cannot create the data folder {}", data.display()))
}

/// The listeners of a server that is about to serve.
struct Doors {
    public: TcpListener,
    bound: SocketAddr,
    admin: UnixListener,
    metrics: Option<(TcpListener, Metrics)>,
    /// Through which MCP sessions reach the server's own API.
    mcp: Option<TcpListener>,
    first_start: Option<FirstStart>,
}

/// The owner was made just now.
struct FirstStart {
    handle: String,
    key: ApiKey,
    preset: bool,
}

impl Doors {
    async fn open(
        app: &App,
        settings: &Settings,
        owner_key: Option<ApiKey>,
        metrics: Option<Metrics>,
    ) -> anyhow::Result<Self> {
        let public = listen(settings.listen, "--listen")?;
        let bound = public.local_addr()?;
        let metrics = match settings.metrics_listen.zip(metrics) {
            Some((address, metrics)) => Some((listen(address, "--metrics-listen")?, metrics)),
            None => None,
        };
        let mcp = match settings.mcp {
            true => Some(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen for MCP sessions")?),
            false => None,
        };
        let path = settings.admin_socket();
        let admin = admin::listen(&path).with_context(|| {
            format!("cannot open the admin socket {} (its path may have about 100 characters)", path.display())
        })?;
        // Last, so that nothing can go wrong between making the key and printing it.
        let preset = owner_key.is_some();
        let made = app.state().services.bootstrap_owner(&settings.owner_handle, owner_key).await?;
        let first_start = made.map(|(owner, key)| FirstStart { handle: owner.profile.handle, key, preset });
        Ok(Self { public, bound, admin, metrics, mcp, first_start })
    }

    async fn serve(self, app: &App, settings: &Settings, tls: Option<TlsConfig>, stop: Stop) -> ExitCode {
        let url = settings.url(self.bound);
        let side_doors = TaskTracker::new();
        let routes = admin::routes(app.state().services.clone(), app.draining().clone(), url.clone());
        side_doors.spawn(serve_router(self.admin, routes, stop.drain.clone()));
        if let Some((listener, metrics)) = self.metrics {
            if let Ok(address) = listener.local_addr() {
                say(&format!("metrics on http://{address}/metrics"));
            }
            side_doors.spawn(metrics.serve(listener, stop.drain.clone()));
        }
        let extra = match self.mcp {
            Some(inside) => match mcp::mounted(settings, self.bound, &url, &inside, stop.drain.clone()) {
                Ok(routes) => {
                    side_doors.spawn(serve_router(inside, app.router(), stop.drain.clone()));
                    routes
                }
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "MCP clients cannot be served");
                    Router::new()
                }
            },
            None => Router::new(),
        };
        side_doors.close();

        if let Some(first) = &self.first_start {
            greet(first, settings, &url);
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        say(&format!("listening on {scheme}://{}", self.bound));
        tracing::info!(
            listen = %self.bound,
            data = %settings.data.display(),
            database = settings.database.as_ref().map_or_else(|| "embedded".to_owned(), ToString::to_string),
            version = env!("CARGO_PKG_VERSION"),
            "ready"
        );
        tell_manager(NotifyState::Ready);

        let options = ServeOptions {
            tls,
            extra,
            cut: stop.cut.clone(),
            ..ServeOptions::new(self.public, stop.drain.clone(), settings.drain_deadline)
        };
        let drained = serve_with(app, options).await;
        side_doors.wait().await;
        // The lock is still ours, so this is our own socket.
        let _ = std::fs::remove_file(settings.admin_socket());
        match drained {
            Drained::Clean => {
                tracing::info!("stopped");
                ExitCode::SUCCESS
            }
            Drained::Cut => {
                tracing::warn!("stopped, with connections cut; everything acknowledged is stored");
                ExitCode::FAILURE
            }
        }
    }
}

fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let bound = socket.and_then(|socket| {
        // Restarting on the same port must not wait for connections of the last run to be forgotten.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    });
    bound.map_err(|error| {
        anyhow!(
            "cannot listen on {address}: {error}; name another address or port with {flag} (port 0 takes a free one)"
        )
    })
}

/// Shows the owner's key, this once, on standard output and nowhere else.
fn greet(first: &FirstStart, settings: &Settings, url: &str) {
    let data = settings.data.display();
    let handle = &first.handle;
    if first.preset {
        return say(&format!(
            "First start: the owner is @{handle} with the key in {OWNER_KEY}, the data is in {data}."
        ));
    }
    let place = if settings.data == Settings::default().data { String::new() } else { format!(" --data {data}") };
    let shown = try_to_say(&format!(
        "First start: the owner is @{handle}, the data is in {data}.\n\n\
         The owner's key, shown this once:\n\n  \
           export BAND_REST_URL={url}\n  \
           export BAND_API_KEY={}\n\n\
         Next, in another terminal, register an agent and get a program for it, and log in to talk to it:\n\n  \
           bandstand agent add my-agent{place}\n  \
           bandstand login --url {url}\n\n\
         Lost the key? bandstand key rotate {handle}{place}\n",
        first.key.reveal()
    ));
    if let Err(error) = shown {
        tracing::error!(%error, "could not print the owner's key; `bandstand key rotate {handle}` makes a new one");
    }
}

/// Tells whoever started this process how far it is, when asked to (`Type=notify` of systemd).
fn tell_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "cannot tell the service manager how far this server is");
    }
}

/// The two steps of stopping.
struct Stop {
    drain: CancellationToken,
    cut: CancellationToken,
}

impl Stop {
    fn on_signals() -> anyhow::Result<Self> {
        let stop = Self { drain: CancellationToken::new(), cut: CancellationToken::new() };
        let signals = Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        };
        // It ends with the process.
        tokio::spawn(signals.watch(stop.drain.clone(), stop.cut.clone()));
        Ok(stop)
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    async fn watch(mut self, drain: CancellationToken, cut: CancellationToken) {
        self.next().await;
        tell_manager(NotifyState::Stopping);
        drain.cancel();
        self.next().await;
        tracing::warn!("second signal: cutting connections");
        cut.cancel();
    }

    /// Waits for a signal to stop.
    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => tracing::info!("SIGHUP ignored: settings are read at start only; restart to change them"),
            }
        }
    }
}

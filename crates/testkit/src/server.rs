//! The server of a test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bandstand_domain::identity::UserRole;
use bandstand_server::serve::{ServeOptions, serve_with};
use bandstand_server::service::admin::NewUser;
use bandstand_server::service::files::{FileOptions, FilePlace};
use bandstand_server::settings::Limits;
use bandstand_server::start::{App, AppOptions};
use bandstand_store::{Database, StoreOptions};
use bandstand_wire::ids::IdentityId;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::{CountedIds, ScriptedClock};
use crate::faults::Faults;
use crate::person::{AgentSeat, Person};
use crate::proxy;

/// Long enough for anything that will happen at all on a busy machine; what waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs in this process, on a free port, on a database of its own in a temporary folder. Everything goes
/// away with the value.
pub struct TestServer {
    folder: TempDir,
    limits: Limits,
    clock: Arc<ScriptedClock>,
    ids: Arc<CountedIds>,
    running: Mutex<Option<Running>>,
    place: watch::Sender<Option<SocketAddr>>,
    faults: Faults,
    proxy: (SocketAddr, JoinHandle<()>),
    http: reqwest::Client,
    owner: Mutex<Option<Person>>,
}

struct Running {
    app: Arc<App>,
    shutdown: CancellationToken,
    cut: CancellationToken,
    serving: JoinHandle<()>,
}

impl TestServer {
    /// Starts one with the usual limits.
    pub async fn start() -> Self {
        Self::with_limits(Limits::default()).await
    }

    /// Starts one with other limits.
    pub async fn with_limits(limits: Limits) -> Self {
        // Whoever installed a provider before chose it as well as we would.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("an HTTP client");
        let (place, server) = watch::channel(None);
        let faults = Faults::default();
        let proxy = proxy::start(server, faults.clone(), http.clone()).await;
        let server = Self {
            folder: TempDir::new().expect("a temporary folder"),
            limits,
            clock: Arc::default(),
            ids: Arc::default(),
            running: Mutex::default(),
            place,
            faults,
            proxy,
            http,
            owner: Mutex::default(),
        };
        server.run().await;
        let services = server.services();
        let owner = services.bootstrap_owner("owner", None).await.expect("the first user is added");
        let (user, key) = owner.expect("nobody was there before");
        let owner = server.seat(user.profile.id, "owner", key.reveal());
        *lock(&server.owner) = Some(owner);
        server
    }

    async fn run(&self) {
        let options = AppOptions {
            store: StoreOptions::new(
                Database::Sqlite { path: self.folder.path().join("bandstand.db") },
                bandstand_domain::clock::Clock::now(self.clock.as_ref()).as_micros(),
            ),
            files: FileOptions {
                spool: self.folder.path().join("uploads"),
                place: FilePlace::Folder(self.folder.path().join("files")),
            },
            limits: self.limits.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
        };
        let app = Arc::new(App::start(options).await.expect("the server starts"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (shutdown, cut) = (CancellationToken::new(), CancellationToken::new());
        let options =
            ServeOptions { cut: cut.clone(), ..ServeOptions::new(listener, shutdown.clone(), Duration::from_secs(10)) };
        let serving = tokio::spawn({
            let app = Arc::clone(&app);
            async move {
                serve_with(&app, options).await;
            }
        });
        *lock(&self.running) = Some(Running { app, shutdown, cut, serving });
        self.place.send_replace(Some(address));
    }

    fn services(&self) -> bandstand_server::state::Services {
        let running = lock(&self.running);
        running.as_ref().expect("the server is running").app.state().services.clone()
    }

    fn seat(&self, id: IdentityId, handle: &str, key: &str) -> Person {
        Person::new(self.url(), self.http.clone(), id, handle, key)
    }

    /// What clients connect to. The address stays the same over [`Self::restart`].
    pub fn url(&self) -> String {
        format!("http://{}", self.proxy.0)
    }

    /// Where the server keeps its data. A test may keep things beside it.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// What goes wrong between clients and the server.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The server's time of day.
    pub fn clock(&self) -> &ScriptedClock {
        &self.clock
    }

    /// The first user, an owner.
    pub fn owner(&self) -> Person {
        lock(&self.owner).clone().expect("the owner was added at the start")
    }

    /// Adds another user.
    pub async fn person(&self, handle: &str) -> Person {
        let new = NewUser {
            handle: handle.to_owned(),
            first_name: String::new(),
            last_name: String::new(),
            email: None,
            role: UserRole::User,
        };
        let (user, key) = self.services().add_user(new).await.expect("a user with this handle can be added");
        self.seat(user.profile.id, handle, key.reveal())
    }

    /// Registers an agent of the owner.
    pub async fn agent(&self, name: &str) -> AgentSeat {
        self.owner().registers(name).await
    }

    /// Takes the server down in order: sockets are closed with "service restart". Nothing answers until
    /// [`Self::come_back`].
    pub async fn go_down(&self) {
        let Some(running) = self.leave() else { return };
        running.shutdown.cancel();
        running.serving.await.expect("the server stops without a panic");
    }

    /// Takes it down without letting anything finish that is not yet stored: requests in flight get no answer.
    pub async fn crash(&self) {
        let Some(running) = self.leave() else { return };
        self.faults.cut_sockets();
        running.cut.cancel();
        running.shutdown.cancel();
        running.serving.await.expect("the server stops without a panic");
    }

    fn leave(&self) -> Option<Running> {
        self.place.send_replace(None);
        lock(&self.running).take()
    }

    /// Brings it back on the same data.
    pub async fn come_back(&self) {
        self.run().await;
    }

    /// Down and up again.
    pub async fn restart(&self) {
        self.go_down().await;
        self.come_back().await;
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.proxy.1.abort();
        if let Some(running) = self.leave() {
            running.cut.cancel();
            running.shutdown.cancel();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

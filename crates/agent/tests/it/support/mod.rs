//! The real server in this process, people who speak through its API, and a stand-in that misbehaves.

pub(crate) mod stand_in;
#[cfg(feature = "mcp")]
pub(crate) mod tides;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bandstand_agent::client::model::Me;
use bandstand_agent::client::{Client, ClientOptions};
use bandstand_agent::tools::{AgentTools, Binding};
use bandstand_agent::wire::ids::{IdentityId, RoomId};
use bandstand_agent::wire::time::Timestamp;
use bandstand_domain::clock::{Clock, IdSource};
use bandstand_server::serve::serve;
use bandstand_server::service::files::{FileOptions, FilePlace};
use bandstand_server::settings::Limits;
use bandstand_server::start::{App, AppOptions};
use bandstand_store::testing::{NOW_MICROS, TestDatabase, TestEngine};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Long enough for anything that will happen at all on a busy machine; a test that waits so long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(NOW_MICROS)
    }
}

struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn uuid(&self) -> Uuid {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(number))
    }
}

/// A running server with one person, who owns all agents.
pub(crate) struct World {
    pub(crate) app: Arc<App>,
    scheme: &'static str,
    pub(crate) address: SocketAddr,
    key: String,
    pub(crate) owner: IdentityId,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
    http: reqwest::Client,
    _database: TestDatabase,
}

/// An agent with its own client.
pub(crate) struct TestAgent {
    pub(crate) client: Client,
    pub(crate) key: String,
    pub(crate) me: Me,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Encrypted, with the certificate for 127.0.0.1 that the command line's tests use.
    pub(crate) async fn start_encrypted() -> Self {
        let files = certificates();
        let tls = bandstand_server::tls::load(&files.join("cert.pem"), &files.join("key.pem")).expect("a certificate");
        Self::start_with(Some(tls)).await
    }

    async fn start_with(tls: Option<bandstand_server::tls::TlsConfig>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let database = TestDatabase::create(TestEngine::Sqlite).await;
        let options = AppOptions {
            store: database.options(),
            files: FileOptions {
                spool: database.folder().join("uploads"),
                place: FilePlace::Folder(database.folder().join("files")),
            },
            limits: Limits::default(),
            clock: Arc::new(StandingClock),
            ids: Arc::new(CountingIds(AtomicU64::new(1))),
        };
        let app = Arc::new(App::start(options).await.expect("the server starts"));
        let made = app.state().services.bootstrap_owner("olga", None).await.expect("a user is added");
        let (owner, key) = made.expect("the first");
        let (owner, key) = (owner.profile.id, key.reveal().to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let stop = CancellationToken::new();
        let serving = tokio::spawn({
            let (app, stop) = (Arc::clone(&app), stop.clone());
            async move {
                serve(&app, listener, tls, stop, Duration::from_secs(15)).await;
            }
        });
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured((*trusting_the_tests()).clone())
            .no_proxy()
            .timeout(PATIENCE)
            .build()
            .expect("an HTTP client");
        Self { app, scheme, address, key, owner, stop, serving: Some(serving), http, _database: database }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// A request of the person.
    pub(crate) async fn person(&self, method: &str, path: &str, body: Value) -> Value {
        let method = method.parse().expect("a method");
        let request = self.http.request(method, format!("{}/api/v1/me/{path}", self.url()));
        let reply = request
            .header("x-api-key", &self.key)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("a reply");
        let status = reply.status();
        let text = reply.text().await.expect("a body");
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(crate) async fn agent(&self, name: &str) -> TestAgent {
        let body = json!({"agent": {"name": name, "description": format!("{name}, an agent of a test")}});
        let made = self.person("POST", "agents/register", body).await;
        let key = made["data"]["credentials"]["api_key"].as_str().expect("a key").to_owned();
        let client = client(&self.url(), &key);
        let me = client.me().await.expect("the agent's profile");
        TestAgent { client, key, me }
    }

    /// A room of the person's with these agents.
    pub(crate) async fn room(&self, agents: &[&TestAgent]) -> RoomId {
        let made = self.person("POST", "chats", json!({"chat": {}})).await;
        let room: RoomId = made["data"]["id"].as_str().expect("an id").parse().expect("a UUID");
        for agent in agents {
            let body = json!({"participant": {"participant_id": agent.me.id, "role": "member"}});
            self.person("POST", &format!("chats/{room}/participants"), body).await;
        }
        room
    }

    /// The person says something to agents.
    pub(crate) async fn says(&self, room: RoomId, text: &str, to: &[&TestAgent]) {
        let mentions: Vec<Value> = to.iter().map(|agent| json!({"id": agent.me.id})).collect();
        let body = json!({"message": {"content": text, "mentions": mentions}});
        self.person("POST", &format!("chats/{room}/messages"), body).await;
    }

    /// Everything in a room, oldest first, as `type: content`.
    pub(crate) async fn history(&self, room: RoomId) -> Vec<(String, String)> {
        let listed = self.person("GET", &format!("chats/{room}/messages?page_size=100"), Value::Null).await;
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let rows = listed["data"].as_array().expect("rows");
        rows.iter().map(|row| (text(row, "message_type"), text(row, "content"))).collect()
    }

    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        let serving = self.serving.take().expect("it runs");
        tokio::time::timeout(PATIENCE, serving).await.expect("the server drains").expect("it does not panic");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn certificates() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/tls")
}

/// TLS that trusts the certificate of the tests and nothing else.
fn trusting_the_tests() -> Arc<rustls::ClientConfig> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates().join("cert.pem")).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

pub(crate) fn options(url: &str, key: &str) -> ClientOptions {
    let mut options = ClientOptions::new(url, key);
    options.proxies = false;
    options.timeout = PATIENCE;
    options.retry_base = Duration::from_millis(1);
    options.tls = Some(trusting_the_tests());
    options
}

pub(crate) fn client(url: &str, key: &str) -> Client {
    options(url, key).build().expect("a client")
}

impl TestAgent {
    pub(crate) fn tools(&self, room: RoomId) -> AgentTools {
        self.tools_with(room, Binding::default())
    }

    pub(crate) fn tools_with(&self, room: RoomId, binding: Binding) -> AgentTools {
        AgentTools::new(self.client.clone(), room, Binding { agent: Some(self.me.id), ..binding })
    }
}

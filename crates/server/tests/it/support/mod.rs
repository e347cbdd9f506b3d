//! A real server in this process, and people, agents and sockets to drive it through its public API.

pub(crate) mod caller;
pub(crate) mod contract;
pub(crate) mod names;
pub(crate) mod socket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bandstand_domain::clock::{Clock, IdSource};
use bandstand_domain::identity::UserRole;
use bandstand_server::serve::{Drained, serve};
use bandstand_server::service::admin::{NewAgent, NewUser};
use bandstand_server::settings::Limits;
use bandstand_server::start::{App, AppOptions};
use bandstand_server::state::AppState;
use bandstand_store::testing::{NOW_MICROS, TestDatabase, TestEngine};
use bandstand_wire::ids::IdentityKind;
use bandstand_wire::time::Timestamp;
use reqwest::Method;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) use caller::{Caller, Reply, Room};
use names::Names;
pub(crate) use socket::Socket;

/// Long enough for anything that will happen at all on a busy machine; a test that waits so long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a test of each story for each engine: `story::sqlite` and `story::postgres`. With `limits:` the server has
/// the limits that the function gives.
macro_rules! stories {
    (limits: $limits:expr => $($story:ident),* $(,)?) => {
        $(mod $story {
            #[allow(unused_imports, reason = "the limits may be a path or an expression")]
            use super::*;

            #[tokio::test]
            async fn sqlite() {
                let engine = bandstand_store::testing::TestEngine::Sqlite;
                crate::support::run(engine, $limits, super::$story).await;
            }

            #[tokio::test]
            async fn postgres() {
                let engine = bandstand_store::testing::TestEngine::Postgres;
                crate::support::run(engine, $limits, super::$story).await;
            }
        })*
    };
    ($($story:ident),* $(,)?) => {
        crate::support::stories!(limits: bandstand_server::settings::Limits::default() => $($story),*);
    };
}
pub(crate) use stories;

/// Tells one story on one engine, then stops the server: it must drain cleanly, leave no socket behind, and its books
/// must balance.
pub(crate) async fn run<F: Future<Output = ()>>(engine: TestEngine, limits: Limits, story: impl FnOnce(TestApp) -> F) {
    let (app, serving) = TestApp::start(engine, limits).await;
    // Boxed: some stories are long.
    Box::pin(story(app.clone())).await;
    app.stop.cancel();
    let drained = tokio::time::timeout(PATIENCE, serving).await.expect("the server drains").expect("it does not panic");
    assert_eq!(drained, Drained::Clean, "requests or sockets were cut");
    assert_eq!(app.state().hub.sockets(), 0, "sockets were left over");
    app.check_books();
}

/// Time that stands still until the test moves it.
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

impl TestClock {
    /// Moves it on by seconds, or back.
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
}

/// Ids that count up from the same start in each test. They look like version 7.
struct TestIds(AtomicU64);

impl IdSource for TestIds {
    fn uuid(&self) -> Uuid {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(number))
    }
}

/// The running server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TestApp(Arc<Inner>);

pub(crate) struct Inner {
    app: Arc<App>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) database: TestDatabase,
    pub(crate) address: SocketAddr,
    pub(crate) http: reqwest::Client,
    pub(crate) names: Names,
    owner: (Uuid, String),
    stop: CancellationToken,
}

impl std::ops::Deref for TestApp {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl TestApp {
    async fn start(engine: TestEngine, limits: Limits) -> (Self, JoinHandle<Drained>) {
        let database = TestDatabase::create(engine).await;
        let clock = Arc::new(TestClock(AtomicI64::new(NOW_MICROS)));
        let options = AppOptions {
            store: database.options(),
            limits,
            clock: clock.clone(),
            ids: Arc::new(TestIds(AtomicU64::new(1))),
        };
        let app = Arc::new(App::start(options).await.expect("the server starts"));
        let (owner, key) =
            app.state().services.bootstrap_owner("olga", None).await.expect("a user is added").expect("the first");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let stop = CancellationToken::new();
        let serving = tokio::spawn({
            let (app, stop) = (Arc::clone(&app), stop.clone());
            async move { serve(&app, listener, None, stop, Duration::from_secs(15)).await }
        });
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("an HTTP client");
        let names = Names::default();
        let owner = (owner.profile.id.0, key.reveal().to_owned());
        (Self(Arc::new(Inner { app, clock, database, address, http, names, owner, stop })), serving)
    }

    /// The parts that a test may look at, never act through.
    pub(crate) fn state(&self) -> &AppState {
        self.app.state()
    }

    /// Drains: as SIGTERM does.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// The server's first user.
    pub(crate) fn owner(&self) -> Caller {
        Caller::new(self, IdentityKind::User, self.owner.0, "olga", "olga", &self.owner.1)
    }

    /// Another user. There is no request that adds one, so this is what the command line does.
    pub(crate) async fn user(&self, handle: &str) -> Caller {
        let new = NewUser {
            handle: handle.into(),
            first_name: String::new(),
            last_name: String::new(),
            email: Some(format!("{handle}@example.org")),
            role: UserRole::User,
        };
        let (user, key) = self.state().services.add_user(new).await.expect("a user is added");
        Caller::new(self, IdentityKind::User, user.profile.id.0, handle, handle, key.reveal())
    }

    /// An agent of the owner.
    pub(crate) async fn agent(&self, name: &str) -> Caller {
        self.owner().registers(name).await
    }

    /// Several of them.
    pub(crate) async fn agents<const N: usize>(&self, names: [&str; N]) -> [Caller; N] {
        let mut agents = Vec::new();
        for name in names {
            agents.push(self.agent(name).await);
        }
        agents.try_into().ok().expect("as many as names")
    }

    /// An agent that everybody may recruit. There is no request that makes one either.
    pub(crate) async fn global_agent(&self, owner: &Caller, name: &str) -> Caller {
        let new = NewAgent { owner: Some(owner.handle.clone()), name: name.into(), description: None, is_global: true };
        let (agent, key) = self.state().services.add_agent(new).await.expect("an agent is added");
        let handle = agent.profile.handle;
        Caller::new(self, IdentityKind::Agent, agent.profile.id.0, name, &handle, key.reveal())
    }

    /// A room of `owner`'s with these members.
    pub(crate) async fn room_with(&self, owner: &Caller, members: &[&Caller]) -> Room {
        let room = owner.creates_room().await;
        for member in members {
            owner.adds(&room, member).await.assert_status(201);
        }
        room
    }

    /// Somebody without a key.
    pub(crate) fn nobody(&self) -> Caller {
        Caller::new(self, IdentityKind::User, Uuid::nil(), "nobody", "nobody", "")
    }

    /// Somebody's key that opens nothing any more, as the command line revokes it.
    pub(crate) async fn revoke_key(&self, of: &Caller) {
        self.state().services.revoke_key(&of.id).await.expect("a key is revoked");
    }

    /// A request to any path, with any headers and body; the reply is checked against the contract.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Reply {
        let mut request = self.http.request(method.clone(), format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap_or_else(|why| panic!("{method} {path}: {why:?}"));
        let reply = Reply::read(self, &method, path, response).await;
        contract::check(&reply);
        reply
    }

    /// What counts in the database must be what is there.
    fn check_books(&self) {
        let wrong = |what: &str, sql: &str| {
            let rows = self.database.query(sql);
            assert!(rows.is_empty(), "{what}: {rows:?}");
        };
        for (state, column) in
            ["stored", "delivered", "processing", "failed", "processed", "cancelled", "dead_lettered"]
                .iter()
                .enumerate()
        {
            wrong(
                "a participant's tally differs from its deliveries",
                &format!(
                    "SELECT p.room_key, p.member_key, '{column}', p.{column}, count(d.state) FROM participants p
                     LEFT JOIN deliveries d ON d.room_key = p.room_key AND d.member_key = p.member_key
                         AND d.recipient = 1 AND d.state = {state}
                     GROUP BY p.room_key, p.member_key, p.{column} HAVING p.{column} <> count(d.state)"
                ),
            );
        }
        wrong(
            "a participant's count of what it sent is wrong",
            "SELECT p.room_key, p.member_key, p.sent, count(m.sequence) FROM participants p
             JOIN identities i ON i.key = p.member_key AND i.kind = 1
             LEFT JOIN messages m ON m.room_key = p.room_key AND m.sender_key = p.member_key
             GROUP BY p.room_key, p.member_key, p.sent HAVING p.sent <> count(m.sequence)",
        );
        wrong(
            "a room's count of participants is wrong",
            "SELECT r.key, r.participants, count(p.member_key) FROM rooms r
             LEFT JOIN participants p ON p.room_key = r.key AND p.left_at IS NULL
             GROUP BY r.key, r.participants HAVING r.participants <> count(p.member_key)",
        );
        for (kind, column) in
            ["texts", "tool_calls", "tool_results", "thoughts", "errors", "tasks", "attentions"].iter().enumerate()
        {
            wrong(
                "a room's count of rows is wrong",
                &format!(
                    "SELECT r.key, '{column}', r.{column}, count(m.sequence) FROM rooms r
                     LEFT JOIN messages m ON m.room_key = r.key AND m.kind = {kind}
                     GROUP BY r.key, r.{column} HAVING r.{column} <> count(m.sequence)"
                ),
            );
        }
        wrong(
            "a message is beyond its room's sequence",
            "SELECT m.room_key, m.sequence FROM messages m JOIN rooms r ON r.key = m.room_key WHERE m.sequence > r.sequence",
        );
        wrong(
            "an open delivery of somebody who left, which nobody will end",
            "SELECT d.room_key, d.sequence, d.member_key FROM deliveries d
             JOIN participants p ON p.room_key = d.room_key AND p.member_key = d.member_key AND p.left_at IS NOT NULL
             WHERE d.recipient = 1 AND d.state IN (0, 1, 2, 3) AND NOT EXISTS (
                 SELECT 1 FROM removals l WHERE l.room_key = d.room_key AND l.member_key = d.member_key)",
        );
        wrong(
            "a delivery's count of attempts is wrong, or several are open",
            "SELECT d.room_key, d.sequence, d.member_key FROM deliveries d
             LEFT JOIN attempts a
                 ON a.room_key = d.room_key AND a.sequence = d.sequence AND a.member_key = d.member_key
             GROUP BY d.room_key, d.sequence, d.member_key, d.attempts
             HAVING d.attempts <> count(a.number) OR sum(CASE WHEN a.completed_at IS NULL AND a.number IS NOT NULL THEN 1 ELSE 0 END) > 1",
        );
    }
}

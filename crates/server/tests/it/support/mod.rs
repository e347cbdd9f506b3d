//! A real server in this process, and people, agents and sockets to drive it through its public API.

pub(crate) mod caller;
pub(crate) mod contract;
pub(crate) mod issuer;
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
use bandstand_server::service::files::{FileOptions, FilePlace};
use bandstand_server::settings::Limits;
use bandstand_server::start::{App, AppOptions, services_only};
use bandstand_server::state::{AppState, Services};
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
            // The story, and whatever the limits name.
            use super::*;

            #[tokio::test]
            async fn sqlite() {
                let engine = bandstand_store::testing::TestEngine::Sqlite;
                crate::support::run(engine, $limits, $story).await;
            }

            #[tokio::test]
            async fn postgres() {
                let engine = bandstand_store::testing::TestEngine::Postgres;
                crate::support::run(engine, $limits, $story).await;
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
    let database = Arc::new(TestDatabase::create(engine).await);
    run_on(&database, limits, None, story).await;
}

/// The same on data that is there: with `earlier`, a server that ran on it. Returns the server, which is down by then.
pub(crate) async fn run_on<F: Future<Output = ()>>(
    database: &Arc<TestDatabase>,
    limits: Limits,
    earlier: Option<&TestApp>,
    story: impl FnOnce(TestApp) -> F,
) -> TestApp {
    let (app, serving) = TestApp::start(Arc::clone(database), limits, earlier).await;
    // Boxed: some stories are long.
    Box::pin(story(app.clone())).await;
    app.stop.cancel();
    let drained = tokio::time::timeout(PATIENCE, serving).await.expect("the server drains").expect("it does not panic");
    assert_eq!(drained, Drained::Clean, "requests or sockets were cut");
    assert_eq!(app.state().hub.sockets(), 0, "sockets were left over");
    app.check_books();
    app
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

/// How a server is started on this data. Its ids count up from `first_id`.
fn options(database: &TestDatabase, limits: Limits, clock: Arc<TestClock>, first_id: u64) -> AppOptions {
    AppOptions {
        store: database.options(),
        files: FileOptions {
            spool: database.folder().join("uploads"),
            place: FilePlace::Folder(database.folder().join("files")),
        },
        limits,
        clock,
        ids: Arc::new(TestIds(AtomicU64::new(first_id))),
    }
}

/// The use cases on the data of a server that is down, without one: no background job runs. Close its store in the end.
pub(crate) async fn without_jobs(earlier: &TestApp) -> Services {
    let first_id = earlier.generation * 1_000_000 + 500_000;
    let options = options(&earlier.database, Limits::default(), Arc::clone(&earlier.clock), first_id);
    services_only(options).await.expect("the store opens")
}

/// The running server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TestApp(Arc<Inner>);

pub(crate) struct Inner {
    app: Arc<App>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) database: Arc<TestDatabase>,
    /// How many servers ran on the data before: each has ids of its own.
    generation: u64,
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
    async fn start(
        database: Arc<TestDatabase>,
        limits: Limits,
        earlier: Option<&TestApp>,
    ) -> (Self, JoinHandle<Drained>) {
        let generation = earlier.map_or(0, |earlier| earlier.generation + 1);
        let clock = Arc::new(TestClock(AtomicI64::new(NOW_MICROS)));
        let options = options(&database, limits, clock.clone(), generation * 1_000_000 + 1);
        let app = Arc::new(App::start(options).await.expect("the server starts"));
        let owner = match earlier {
            Some(earlier) => earlier.owner.clone(),
            None => {
                let made = app.state().services.bootstrap_owner("olga", None).await.expect("a user is added");
                let (owner, key) = made.expect("the first");
                (owner.profile.id.0, key.reveal().to_owned())
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let stop = CancellationToken::new();
        let serving = tokio::spawn({
            let (app, stop) = (Arc::clone(&app), stop.clone());
            async move { serve(&app, listener, None, stop, Duration::from_secs(15)).await }
        });
        // The client is built without a provider of its own; that another test installed it is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("an HTTP client");
        let names = Names::default();
        (Self(Arc::new(Inner { app, clock, database, generation, address, http, names, owner, stop })), serving)
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

    /// Waits until a query finds nothing any more. It looks again and again, because nothing announces what a background
    /// job has done, and sends a request in between, so that the server has its turn.
    pub(crate) async fn until_none(&self, sql: &str) {
        let gone = async {
            while !self.database.query(sql).is_empty() {
                self.nobody().get("/healthz").await.assert_status(200);
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap_or_else(|_| panic!("still there: {sql}"));
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
                     WHERE NOT EXISTS (SELECT 1 FROM rooms r WHERE r.key = p.room_key AND r.deleted_at IS NOT NULL)
                         AND NOT EXISTS (SELECT 1 FROM removals l
                             WHERE l.room_key = p.room_key AND l.member_key = p.member_key)
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
             JOIN participants p ON p.room_key = d.room_key AND p.member_key = d.member_key
             JOIN rooms r ON r.key = d.room_key
             WHERE (p.left_at IS NOT NULL OR (r.deleted_at IS NOT NULL AND r.participants = 0))
                 AND d.recipient = 1 AND d.state IN (0, 1, 2, 3) AND NOT EXISTS (
                 SELECT 1 FROM removals l WHERE l.room_key = d.room_key AND l.member_key = d.member_key)",
        );
        wrong(
            "an agent's place in a room without an execution",
            "SELECT p.room_key, p.member_key FROM participants p JOIN identities i ON i.key = p.member_key
             WHERE i.kind = 1 AND p.execution_id IS NULL OR i.kind = 0 AND p.execution_id IS NOT NULL",
        );
        wrong(
            "half a stop, or one of somebody who left",
            "SELECT room_key, member_key FROM participants WHERE stopped_sequence IS NOT NULL AND left_at IS NOT NULL
                 OR (stopped_sequence IS NULL) <> (stopped_at IS NULL) OR (stopped_at IS NULL) <> (stopped_by IS NULL)",
        );
        wrong(
            "work that is not noted",
            "SELECT p.room_key, p.member_key FROM participants p JOIN identities i ON i.key = p.member_key AND i.kind = 1
             WHERE p.worked = 0 AND (p.sent > 0 OR EXISTS (
                 SELECT 1 FROM attempts a WHERE a.room_key = p.room_key AND a.member_key = p.member_key))",
        );
        wrong(
            "a room without an owner",
            "SELECT r.key FROM rooms r WHERE r.deleted_at IS NULL AND NOT EXISTS (
                 SELECT 1 FROM participants p WHERE p.room_key = r.key AND p.role = 'owner' AND p.left_at IS NULL)",
        );
        wrong(
            "a bulk deletion that is over but for some of its items, or the other way round",
            "SELECT b.key FROM bulk_deletions b WHERE (b.completed_at IS NULL) <> EXISTS (
                 SELECT 1 FROM bulk_deletion_items i WHERE i.job_key = b.key AND i.state = 0)",
        );
        wrong(
            "a contact that only one side has",
            "SELECT c.key FROM contacts c WHERE NOT EXISTS (
                 SELECT 1 FROM contacts d WHERE d.identity_key = c.contact_key AND d.contact_key = c.identity_key)",
        );
        wrong(
            "a pending request between contacts",
            "SELECT q.key FROM contact_requests q JOIN contacts c
                 ON c.identity_key = q.requester_key AND c.contact_key = q.recipient_key WHERE q.status = 'pending'",
        );
        for (column, counted) in [
            ("contacts", "contacts c ON c.identity_key = i.key"),
            ("received", "contact_requests c ON c.recipient_key = i.key AND c.status = 'pending'"),
            ("pending", "contact_requests c ON c.requester_key = i.key AND c.status = 'pending'"),
            ("approved", "contact_requests c ON c.requester_key = i.key AND c.status = 'approved'"),
            ("rejected", "contact_requests c ON c.requester_key = i.key AND c.status = 'rejected'"),
            ("expired", "contact_requests c ON c.requester_key = i.key AND c.status = 'expired'"),
            ("cancelled", "contact_requests c ON c.requester_key = i.key AND c.status = 'cancelled'"),
        ] {
            wrong(
                "a tally of contacts or their requests is wrong",
                &format!(
                    "SELECT i.handle, '{column}', t.{column}, count(c.key) FROM identities i
                     LEFT JOIN contact_tallies t ON t.identity_key = i.key LEFT JOIN {counted}
                     GROUP BY i.key, i.handle, t.{column} HAVING coalesce(t.{column}, 0) <> count(c.key)"
                ),
            );
        }
        wrong(
            "a board's count of tasks differs from its tasks, or their numbers have gaps",
            "SELECT b.room_key, b.last_number, count(t.number) FROM boards b LEFT JOIN tasks t ON t.room_key = b.room_key
             GROUP BY b.room_key, b.last_number
             HAVING b.last_number <> count(t.number) OR b.last_number <> coalesce(max(t.number), 0)",
        );
        for status in ["pending", "in_progress", "blocked", "in_review", "failed", "completed"] {
            wrong(
                "a board's count of a status differs from its tasks",
                &format!(
                    "SELECT b.room_key, '{status}', b.{status}, count(s.number) FROM boards b LEFT JOIN (
                         SELECT t.room_key, t.number, CASE
                             WHEN max(CASE WHEN a.status = 'failed' THEN 1 ELSE 0 END) = 1 THEN 'failed'
                             WHEN max(CASE WHEN a.status = 'blocked' THEN 1 ELSE 0 END) = 1 THEN 'blocked'
                             WHEN max(CASE WHEN a.status = 'in_progress' THEN 1 ELSE 0 END) = 1 THEN 'in_progress'
                             WHEN max(CASE WHEN a.status = 'in_review' THEN 1 ELSE 0 END) = 1 THEN 'in_review'
                             WHEN min(CASE WHEN a.status = 'completed' THEN 1 ELSE 0 END) = 1 THEN 'completed'
                             ELSE 'pending' END AS overall
                         FROM tasks t LEFT JOIN task_assignments a ON a.room_key = t.room_key AND a.number = t.number
                         WHERE t.state = 'active' GROUP BY t.room_key, t.number
                     ) s ON s.room_key = b.room_key AND s.overall = '{status}'
                     GROUP BY b.room_key, b.{status} HAVING b.{status} <> count(s.number)"
                ),
            );
        }
        wrong(
            "a task's count of its history's rows is wrong, or their places have gaps",
            "SELECT t.room_key, t.number, t.events, count(e.place) FROM tasks t
             LEFT JOIN task_events e ON e.room_key = t.room_key AND e.number = t.number
             GROUP BY t.room_key, t.number, t.events HAVING t.events <> count(e.place) OR t.events <> max(e.place)",
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

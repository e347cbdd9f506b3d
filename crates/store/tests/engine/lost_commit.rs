//! The connection to PostgreSQL is lost while COMMIT is under way: the operation's caller and the listeners hear what
//! became of it, or that nobody knows.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bandstand_store::testing::{TestDatabase, TestEngine};
use bandstand_store::{Commit, CommitSink, Database, Store, StoreError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_postgres::config::Host;

use crate::support::{SCHEMA, event, numbers, post};

/// What a link does when a COMMIT passes through it.
const PASS: u8 = 0;
/// It cuts the connection, and the COMMIT does not arrive.
const CUT_BEFORE: u8 = 1;
/// It cuts the connection once the answer is there, and the answer does not arrive.
const CUT_AFTER: u8 = 2;
/// The same, and nobody gets a new connection until it is mended.
const CUT_AFTER_AND_STAY: u8 = 3;
/// No new connections.
const DOWN: u8 = 4;

/// A link between the store and PostgreSQL that can be cut.
struct Link {
    address: SocketAddr,
    fault: Arc<AtomicU8>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

async fn upstream(config: &tokio_postgres::Config) -> Box<dyn Stream> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first().expect("a host") {
        Host::Tcp(host) => Box::new(TcpStream::connect((host.as_str(), port)).await.expect("PostgreSQL listens")),
        Host::Unix(folder) => {
            let path = folder.join(format!(".s.PGSQL.{port}"));
            Box::new(UnixStream::connect(path).await.expect("PostgreSQL listens"))
        }
    }
}

impl Link {
    async fn to(config: tokio_postgres::Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let link = Self { address: listener.local_addr().expect("its address"), fault: Arc::default() };
        let fault = Arc::clone(&link.fault);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if fault.load(Ordering::SeqCst) == DOWN {
                    continue;
                }
                tokio::spawn(carry(client, upstream(&config).await, Arc::clone(&fault)));
            }
        });
        link
    }
}

/// Carries bytes both ways until one side ends, or the fault strikes.
async fn carry(mut client: TcpStream, mut server: Box<dyn Stream>, fault: Arc<AtomicU8>) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let strikes = asked[..length].windows(7).any(|bytes| bytes == b"COMMIT\0");
                let what = if strikes { fault.swap(PASS, Ordering::SeqCst) } else { PASS };
                if what == CUT_BEFORE {
                    return;
                }
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
                if what != PASS {
                    let _ = server.read(&mut answered).await;
                    if what == CUT_AFTER_AND_STAY {
                        fault.store(DOWN, Ordering::SeqCst);
                    }
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Keeps what it is told, apart by how sure it is.
#[derive(Default)]
struct Heard {
    sure: Mutex<Vec<Commit>>,
    uncertain: Mutex<Vec<Commit>>,
}

impl CommitSink for Heard {
    fn publish(&self, commits: Vec<Commit>) {
        self.sure.lock().unwrap().extend(commits);
    }

    fn uncertain(&self, commits: Vec<Commit>) {
        self.uncertain.lock().unwrap().extend(commits);
    }
}

impl Heard {
    fn events(commits: &Mutex<Vec<Commit>>) -> Vec<bandstand_domain::event::Event> {
        commits.lock().unwrap().iter().flat_map(|commit| commit.events.clone()).collect()
    }
}

/// A store whose connections go through a link.
async fn linked(database: &TestDatabase) -> (Store, Link, Arc<Heard>) {
    let Database::Postgres { url } = database.database() else { panic!("PostgreSQL only") };
    let config: tokio_postgres::Config = url.parse().expect("an address");
    let link = Link::to(config.clone()).await;
    let (user, name) = (config.get_user().expect("a user"), config.get_dbname().expect("a database"));
    let password = config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let login = password.map_or_else(|| user.to_owned(), |password| format!("{user}:{password}"));
    let through = Database::Postgres { url: format!("postgres://{login}@{}/{name}", link.address) };
    let heard = Arc::new(Heard::default());
    let options = bandstand_store::StoreOptions { database: through, ..database.options() };
    let sink: Arc<dyn CommitSink> = Arc::clone(&heard) as Arc<dyn CommitSink>;
    let store = Store::open_with_migrations(options, sink, SCHEMA).await.expect("the store opens");
    (store, link, heard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_did_not_arrive_did_not_happen() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, link, heard) = linked(&database).await;
    post(&store, 1).await.unwrap();
    link.fault.store(CUT_BEFORE, Ordering::SeqCst);
    let error = post(&store, 2).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(text) if text.contains("did not happen")), "{error}");
    post(&store, 3).await.expect("it goes on");
    assert_eq!(numbers(&store).await.unwrap(), [1, 3]);
    assert_eq!(Heard::events(&heard.sure), [event(1), event(3)], "nothing is announced that did not happen");
    assert_eq!(Heard::events(&heard.uncertain), []);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_whose_answer_is_lost_is_answered_and_announced() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, link, heard) = linked(&database).await;
    link.fault.store(CUT_AFTER, Ordering::SeqCst);
    post(&store, 1).await.expect("it happened, and the store found out");
    post(&store, 2).await.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), [1, 2]);
    assert_eq!(Heard::events(&heard.sure), [event(1), event(2)]);
    assert_eq!(Heard::events(&heard.uncertain), []);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn where_nobody_can_be_asked_the_outcome_is_unknown() {
    let database = TestDatabase::create(TestEngine::Postgres).await;
    let (store, link, heard) = linked(&database).await;
    link.fault.store(CUT_AFTER_AND_STAY, Ordering::SeqCst);
    let error = tokio::time::timeout(Duration::from_secs(20), post(&store, 1)).await.expect("in time").unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(text) if text.contains("is unknown")), "{error}");
    assert!(error.is_unavailable(), "a server answers 503");
    assert_eq!((Heard::events(&heard.sure), Heard::events(&heard.uncertain)), (vec![], vec![event(1)]));
    link.fault.store(PASS, Ordering::SeqCst);
    assert_eq!(numbers(&store).await.unwrap(), [1], "in truth it did");
    store.close().await;
}

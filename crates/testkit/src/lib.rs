//! The real server in a test's own process.
//!
//! Everything an agent does in production it does here, over HTTP and a socket, against the same code and a database on
//! disk; only the machine is smaller, the time of day is the test's ([`ScriptedClock`]) and the line is as bad as the test
//! wants ([`Faults`]). A server takes a few milliseconds to start, so each test has its own.
//!
//! ```
//! use bandstand_testkit::TestServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = TestServer::start().await;
//! let agent = server.agent("echo").await;
//! let room = server.owner().room(&[&agent]).await;
//! let mut watch = room.watch().await;
//!
//! // Here an agent would connect to `server.url()` with `agent.key`. This one is written by hand.
//! let message = room.says("Hello?", &[&agent]).await;
//! agent.says(&room, "Hello!", &[&server.owner()]).await;
//!
//! assert!(watch.message_from(&agent).await.ends_with("Hello!"));
//! # let _ = message;
//! # }
//! ```
//!
//! Everything here panics with a word on what was expected, since only tests call it.
#![expect(clippy::expect_used, reason = "only tests call it")]

mod clock;
mod faults;
mod person;
mod proxy;
mod relay;
mod room;
mod server;
mod watch;

pub use clock::ScriptedClock;
pub use faults::{Faults, Held, PushFault, RequestFault};
pub use person::{AgentSeat, Member, Person};
pub use room::Room;
pub use server::{PATIENCE, TestServer};
pub use watch::Watch;

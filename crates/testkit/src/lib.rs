//! The real server in a test's own process.
//!
//! Everything an agent does in production it does here, over HTTP and a socket, against the same code and a database on
//! disk; only the machine is smaller, the time of day is the test's ([`ScriptedClock`]) and the line is as bad as the test
//! wants ([`Faults`]). A server takes a few milliseconds to start, so each test has its own.
//!
//! # An agent, tested
//!
//! The agent is the real one: its own client, runtime and adapter. A message goes in, what became of it comes out.
//!
//! ```
//! use bandstand_agent::adapter::Echo;
//! use bandstand_agent::client::Client;
//! use bandstand_agent::runtime::{Agent, RuntimeSettings};
//! use bandstand_testkit::TestServer;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start().await;
//! let seat = server.agent("echo").await;
//! let room = server.owner().room(&[&seat]).await;
//! let mut watch = room.watch().await;
//!
//! // Ids are the same in every test, so the lock that an agent takes on its machine is left out.
//! let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
//! let agent = Agent::new(Client::new(&server.url(), seat.key.clone())?, Echo).settings(settings);
//! let stop = CancellationToken::new();
//! let running = tokio::spawn(agent.run(stop.clone()));
//!
//! let message = room.says("Hello?", &[&seat]).await;
//! watch.status(message, &seat, "processed").await;
//! assert!(watch.message_from(&seat).await.ends_with("Hello?"));
//!
//! stop.cancel();
//! assert!(running.await??.clean);
//! # Ok(())
//! # }
//! ```
//!
//! # A fault
//!
//! The server writes down that the message is done, and the line is cut before the agent hears so. Does it answer twice?
//!
//! ```
//! use bandstand_agent::adapter::{Scripted, Step};
//! # use bandstand_agent::client::Client;
//! # use bandstand_agent::runtime::{Agent, RuntimeSettings};
//! use bandstand_testkit::{RequestFault, TestServer};
//! use reqwest::Method;
//! # use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start().await;
//! # let seat = server.agent("worker").await;
//! # let room = server.owner().room(&[&seat]).await;
//! # let mut watch = room.watch().await;
//! # let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
//! # let client = Client::new(&server.url(), seat.key.clone())?;
//! # let stop = CancellationToken::new();
//! server.faults().on_request(Method::POST, "/processed", 1, RequestFault::LoseReply);
//! let agent = Agent::new(client, Scripted::always([Step::Reply("Done.".to_owned())])).settings(settings);
//! # let running = tokio::spawn(agent.run(stop.clone()));
//!
//! room.says("Do it.", &[&seat]).await;
//! let second = room.says("And this.", &[&seat]).await;
//! watch.status(second, &seat, "processed").await;
//! assert_eq!(room.said_by(&seat).await.len(), 2);
//! # stop.cancel();
//! # assert!(running.await??.clean);
//! # Ok(())
//! # }
//! ```
//!
//! # A fake peer, and the time of day
//!
//! A peer needs no program: the test speaks for it, and looks at what it is served.
//!
//! ```
//! use std::time::Duration;
//!
//! # use bandstand_agent::adapter::{Scripted, Step};
//! # use bandstand_agent::client::Client;
//! # use bandstand_agent::runtime::{Agent, RuntimeSettings};
//! use bandstand_testkit::TestServer;
//! use serde_json::json;
//! # use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = TestServer::start().await;
//! let seat = server.agent("writer").await;
//! let peer = server.agent("reviewer").await;
//! let room = server.owner().room(&[&seat, &peer]).await;
//! # let mut watch = room.watch().await;
//! # let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
//! # let client = Client::new(&server.url(), seat.key.clone())?;
//! # let stop = CancellationToken::new();
//! let asks = json!({ "content": "Please review.", "mentions": [format!("@{}", peer.handle)] });
//! let script = Scripted::turns([
//!     vec![Step::call("band_send_message", asks)],
//!     vec![Step::Reply("Thank you.".to_owned())],
//! ]);
//! # let running = tokio::spawn(Agent::new(client, script).settings(settings).run(stop.clone()));
//! # let order =
//! room.says("Write a poem.", &[&seat]).await;
//! # watch.status(order, &seat, "processed").await;
//!
//! // The peer is served the question, and answers a day later.
//! let question = peer.next(&room).await.expect("the question");
//! assert!(question["content"].as_str().is_some_and(|text| text.ends_with("Please review.")));
//! server.clock().advance(Duration::from_secs(24 * 60 * 60));
//! peer.says(&room, "Looks good.", &[&seat]).await;
//! let thanks = watch.wait_for("thanks", |row| row["content"].as_str().is_some_and(|text| text.ends_with("you."))).await;
//! assert!(thanks["inserted_at"].as_str().is_some_and(|when| when.starts_with("2026-01-02")));
//! # stop.cancel();
//! # assert!(running.await??.clean);
//! # Ok(())
//! # }
//! ```
//!
//! Everything here panics with a word on what was expected, since only tests call it.
#![expect(clippy::expect_used, reason = "only tests call it")]

mod clock;
mod faults;
pub mod model;
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

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

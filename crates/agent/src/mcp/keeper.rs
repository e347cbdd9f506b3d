//! Keeps one server connected until it is told to stop.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::server::Server;
use super::transport::{self, NotOpened, Opened};
use crate::time::{Randomness as _, SystemRandomness};

/// The first pause before a server is tried again; each next is twice as long.
const BASE: Duration = Duration::from_millis(250);
/// The longest pause.
const MAX: Duration = Duration::from_secs(60);
/// A connection that held so long was a good one: pauses start anew.
const STABLE: Duration = Duration::from_secs(60);
/// rmcp takes up to 6 s to end a program; after this long nobody waits for it any more.
const ENDING: Duration = Duration::from_secs(15);

/// Connects, and connects again, until `stop`. `first` hears how the first try went.
pub(super) async fn keep(server: Arc<Server>, stop: CancellationToken, first: oneshot::Sender<Result<(), String>>) {
    let name = server.options.name.as_str();
    let randomness = SystemRandomness::default();
    let mut first = Some(first);
    let mut failures = 0_u32;
    loop {
        let since = Instant::now();
        let told = match open(&server, &stop).await {
            Some(Ok((opened, number))) => {
                tracing::info!(server = name, "an MCP server is connected");
                if let Some(first) = first.take() {
                    // Whoever asked may have gone.
                    let _ = first.send(Ok(()));
                }
                attend(&server, opened, number, &stop).await;
                if since.elapsed() >= STABLE {
                    failures = 0;
                }
                "the connection was lost".to_owned()
            }
            Some(Err(NotOpened { reason, last_words })) => {
                if let Some(first) = first.take() {
                    let more = if last_words.is_empty() { String::new() } else { format!("\n{last_words}") };
                    let _ = first.send(Err(format!("{reason}{more}")));
                }
                reason
            }
            None => "it was ended".to_owned(),
        };
        if stop.is_cancelled() {
            return server.lost("it was ended");
        }
        tracing::warn!(server = name, why = told, "an MCP server is not connected and is tried again");
        server.lost(&told);
        let pause = BASE.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(MAX);
        failures = failures.saturating_add(1);
        tokio::select! {
            biased;
            () = stop.cancelled() => return server.lost("it was ended"),
            () = tokio::time::sleep(pause.mul_f64(0.5 + 0.5 * randomness.fraction())) => {}
        }
    }
}

/// Connects and lists, within the time for both. `None` when it was told to stop.
async fn open(server: &Arc<Server>, stop: &CancellationToken) -> Option<Result<(Opened, u64), NotOpened>> {
    let limit = server.options.connect_timeout;
    let opening = async {
        let opened = transport::open(&server.options, server.changed()).await?;
        match opened.service.list_all_tools().await {
            Ok(tools) => {
                let number = server.connected(&opened.service, tools);
                Ok((opened, number))
            }
            Err(error) => {
                let reason = format!("does not list its tools: {}", super::server::words(&error));
                end(opened).await;
                Err(NotOpened { reason, last_words: String::new() })
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        opened = tokio::time::timeout(limit, opening) => Some(opened.unwrap_or_else(|_| {
            let reason = format!("did not answer within {} s", limit.as_secs_f64());
            Err(NotOpened { reason, last_words: String::new() })
        })),
    }
}

/// Stays with a connection until it ends, is broken, or is to be ended.
async fn attend(server: &Arc<Server>, opened: Opened, number: u64, stop: &CancellationToken) {
    let Opened { service, errors } = opened;
    let (peer, token) = (service.peer().clone(), service.cancellation_token());
    let changed = server.changed();
    let limit = server.options.connect_timeout;
    {
        let mut ended = pin!(service.waiting());
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = &mut ended => return,
                () = server.is_broken(number) => break,
                () = changed.notified() => match tokio::time::timeout(limit, peer.list_all_tools()).await {
                    Ok(Ok(tools)) => server.list(tools),
                    Ok(Err(error)) => {
                        let why = super::server::words(&error);
                        tracing::warn!(server = server.options.name, why, "the changed tools cannot be listed");
                    }
                    Err(_) => tracing::warn!(server = server.options.name, "the changed tools are not listed in time"),
                },
            }
        }
        server.lost("the connection is being made again");
        token.cancel();
        if tokio::time::timeout(ENDING, ended).await.is_err() {
            tracing::warn!(server = server.options.name, "an MCP server does not end");
        }
    }
    if let Some(errors) = errors {
        // What it started may still hold its standard error.
        errors.abort();
    }
}

async fn end(opened: Opened) {
    let Opened { mut service, errors } = opened;
    if !matches!(service.close_with_timeout(ENDING).await, Ok(Some(_))) {
        tracing::warn!("an MCP server does not end");
    }
    if let Some(errors) = errors {
        errors.abort();
    }
}

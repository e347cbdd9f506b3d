//! The accept loop: TLS, one task for each connection, and an end that drains.
//!
//! The end has two steps. The first signal stops accepting, lets requests in flight finish and then closes sockets
//! with 1012. The second signal, or the deadline, cuts whatever is left.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::start::App;
use crate::tls::TlsConfig;

/// A client that has not finished its TLS handshake by then is dropped.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that has not sent a whole request head by then is dropped; so is a kept-alive connection without a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes that a connection buffers, and so the largest request head. It bounds what an idle connection costs;
/// bodies of any size pass through it piece by piece.
const CONNECTION_BUFFER: usize = 16 * 1024;

/// The longest pause after the machine could not accept a connection.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The part of the drain deadline that is kept for closing sockets, at most.
const SOCKETS_SHARE: Duration = Duration::from_secs(2);

/// How to serve.
pub struct ServeOptions {
    /// Where.
    pub listener: TcpListener,
    /// With TLS, when given.
    pub tls: Option<TlsConfig>,
    /// Routes beside the server's own.
    pub extra: Router,
    /// Drains.
    pub shutdown: CancellationToken,
    /// Cuts.
    pub cut: CancellationToken,
    /// Cuts as well, so long after `shutdown`.
    pub drain: Duration,
}

impl ServeOptions {
    /// Without TLS and without other routes.
    pub fn new(listener: TcpListener, shutdown: CancellationToken, drain: Duration) -> Self {
        Self { listener, tls: None, extra: Router::new(), shutdown, cut: CancellationToken::new(), drain }
    }
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Each request in flight was answered.
    Clean,
    /// Something was cut. What was acknowledged is stored all the same.
    Cut,
}

/// Serves until `shutdown`, then drains within `drain` and closes the store.
pub async fn serve(
    app: &App,
    listener: TcpListener,
    tls: Option<TlsConfig>,
    shutdown: CancellationToken,
    drain: Duration,
) -> Drained {
    serve_with(app, ServeOptions { tls, ..ServeOptions::new(listener, shutdown, drain) }).await
}

/// [`serve`] with everything that can be chosen.
pub async fn serve_with(app: &App, options: ServeOptions) -> Drained {
    let ServeOptions { listener, tls, extra, shutdown, cut, drain } = options;
    let connections = Connections::new(app.router().merge(extra), shutdown.clone());
    match tls {
        None => connections.accept(&listener, |stream| async { Some(stream) }).await,
        Some(tls) => {
            let acceptor = TlsAcceptor::from(tls);
            connections
                .accept(&listener, |stream| {
                    let acceptor = acceptor.clone();
                    async move {
                        // A failed handshake is the client's affair: a scanner, a browser that trusts nothing.
                        let shaken = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await;
                        shaken.ok()?.inspect_err(|error| tracing::debug!(%error, "TLS handshake failed")).ok()
                    }
                })
                .await;
        }
    }
    // New connections are refused from here on, rather than left waiting for somebody who will not come.
    drop(listener);
    app.begin_drain();
    tracing::info!(drain_ms = drain.as_millis(), "draining");

    let deadline = Instant::now() + drain;
    let requests = connections.finish(deadline - SOCKETS_SHARE.min(drain / 4), &cut).await;
    let sockets = tokio::select! {
        biased;
        () = cut.cancelled() => Drained::Cut,
        () = app.close_sockets(deadline) => Drained::Clean,
    };
    // Whatever was cut, what was acknowledged is stored: the store's own queue is always finished.
    app.close_store().await;
    if requests == Drained::Clean { sockets } else { requests }
}

/// Serves a router on another listener (metrics, admin) until `shutdown`; requests in flight have a moment to end.
pub async fn serve_router(listener: impl Accept, router: Router, shutdown: CancellationToken) {
    let connections = Connections::new(router, shutdown);
    connections.accept(&listener, |stream| async { Some(stream) }).await;
    drop(listener);
    connections.finish(Instant::now() + SOCKETS_SHARE, &CancellationToken::new()).await;
}

/// The address at the other end of a request's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Something that hands out connections.
pub trait Accept: Send + Sync {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection; with the address that it comes from, if it has one.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Option<IpAddr>)>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Option<IpAddr>)> {
        let (stream, from) = self.accept().await?;
        // A push is one small write: without this it waits for the acknowledgement of the one before.
        stream.set_nodelay(true)?;
        Ok((stream, Some(from.ip())))
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Option<IpAddr>)> {
        self.accept().await.map(|(stream, _)| (stream, None))
    }
}

/// The open connections of one listener.
struct Connections {
    http: http1::Builder,
    router: Router,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    kill: CancellationToken,
}

impl Connections {
    fn new(router: Router, shutdown: CancellationToken) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(CONNECTION_BUFFER);
        Self { http, router, tasks: TaskTracker::new(), shutdown, kill: CancellationToken::new() }
    }

    /// Accepts until shutdown. `prepare` runs in the connection's own task, so a slow handshake delays nobody else.
    async fn accept<L, F, P, S>(&self, listener: &L, prepare: P)
    where
        L: Accept,
        P: Fn(L::Stream) -> F,
        F: Future<Output = Option<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut pause = Pause::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                accepted = listener.next() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    pause = Pause::default();
                    self.spawn(prepare(stream), from);
                }
                Err(error) if is_the_clients(&error) => {}
                Err(error) => {
                    // Out of file descriptors or memory: trying again at once would only spin until one is free.
                    let pause = pause.next(&error);
                    tokio::select! {
                        () = self.shutdown.cancelled() => return,
                        () = sleep(pause) => {}
                    }
                }
            }
        }
    }

    fn spawn<S>(&self, prepared: impl Future<Output = Option<S>> + Send + 'static, from: Option<IpAddr>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (http, router) = (self.http.clone(), self.router.clone());
        let (shutdown, kill) = (self.shutdown.clone(), self.kill.clone());
        self.tasks.spawn(async move {
            let stream = tokio::select! {
                () = shutdown.cancelled() => None,
                stream = prepared => stream,
            };
            let Some(stream) = stream else { return };
            let router = TowerToHyperService::new(router);
            let service = service_fn(move |mut request: Request<Incoming>| {
                if let Some(from) = from {
                    request.extensions_mut().insert(PeerAddress(from));
                }
                router.call(request)
            });
            let connection = http.serve_connection(TokioIo::new(stream), service);
            let mut connection = pin!(connection.with_upgrades());
            let ended = tokio::select! {
                ended = connection.as_mut() => Some(ended),
                () = shutdown.cancelled() => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    // Ends at once when idle, else after the reply that is under way.
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = kill.cancelled() => return,
                    }
                }
            };
            if let Err(error) = ended {
                // A client that goes away, sends no HTTP or is too slow: its own affair.
                tracing::debug!(%error, "connection ended");
            }
        });
    }

    /// Lets requests in flight end, until the deadline or the cut.
    async fn finish(self, deadline: Instant, cut: &CancellationToken) -> Drained {
        self.tasks.close();
        let drained = tokio::select! {
            biased;
            () = cut.cancelled() => Drained::Cut,
            ended = timeout_at(deadline, self.tasks.wait()) => {
                if ended.is_ok() { Drained::Clean } else { Drained::Cut }
            }
        };
        self.kill.cancel();
        self.tasks.wait().await;
        drained
    }
}

/// Whether accepting failed because of one client rather than this machine.
fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Longer and longer pauses while accepting fails.
#[derive(Default)]
struct Pause(Duration);

impl Pause {
    fn next(&mut self, error: &io::Error) -> Duration {
        metrics::counter!("accept_errors_total").increment(1);
        if self.0.is_zero() {
            tracing::error!(%error, "cannot accept connections; trying again until it works");
        }
        self.0 = (self.0 * 2).clamp(Duration::from_millis(5), LONGEST_PAUSE);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_no_further() {
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        let mut pause = Pause::default();
        let pauses: Vec<u128> = (0..10).map(|_| pause.next(&error).as_millis()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert!(!is_the_clients(&error));
    }
}

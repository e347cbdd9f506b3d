//! Metrics for Prometheus, on a listener of their own so that they are not public by accident. Without that listener
//! nothing is recorded. (Log lines are set up by the command line: a library does not decide where they go.)

use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::serve::serve_router;

/// Upper bounds of histograms of time, in seconds: from one quick fsync to a request that times out.
const SECONDS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Upper bounds of histograms of numbers, up to the largest batch.
const NUMBERS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// What starts every name outside this process. Inside, names go without.
const PREFIX: &str = "bandstand_";

/// What the metrics say. One that is missing here is served all the same, without a help line.
const HELP: [(&str, &str); 17] = [
    ("accept_errors_total", "Connections that this machine could not accept."),
    ("attempts_lapsed_total", "Attempts whose agent went away or fell silent, by why."),
    ("build_info", "The running version, in its label."),
    ("dead_letters_redelivered_total", "Dead letters that a person had delivered again."),
    ("dead_letters_total", "Messages that were given up for an agent, by reason."),
    ("delivered_marks_skipped_total", "Delivered marks that were not noted because the store could not keep up."),
    ("http_request_seconds", "Time from a request's head to its reply, by route."),
    ("http_requests_total", "Requests by method, route and status."),
    ("hub_missing_commits_total", "Commits that a room waited for in vain before it went on."),
    ("hub_repaired_rows_total", "Rows that were read from the database because their commits were not announced."),
    ("socket_closes_total", "Closed sockets by close code."),
    ("socket_connections", "Open sockets."),
    ("socket_overflow_total", "Sockets closed because they did not keep up."),
    ("socket_pushes_total", "Pushes handed to sockets."),
    ("store_batch_size", "Operations in one transaction."),
    ("store_commit_seconds", "Time to make one transaction durable."),
    ("store_operations_total", "Operations on the store by name and outcome."),
];

/// How often recorded samples are folded into their histograms, so that they do not pile up while nobody asks.
const UPKEEP: Duration = Duration::from_secs(5);

/// Why metrics cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The histogram bounds are wrong.
    #[error("cannot set up metrics: {0}")]
    Build(#[from] BuildError),
    /// Something else records metrics in this process.
    #[error("metrics are recorded by something else already")]
    Taken,
}

/// Recorded metrics.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts recording, for the whole process.
    ///
    /// # Errors
    /// When that has been done before.
    pub fn install() -> Result<Self, MetricsError> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
            .set_buckets(&NUMBERS)?
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(Prefixed(recorder)).map_err(|_| MetricsError::Taken)?;
        for (name, help) in HELP {
            // The kind does not matter: the exporter keeps the help text by name alone.
            metrics::with_recorder(|recorder| recorder.describe_gauge(name.into(), None, help.into()));
        }
        metrics::gauge!("build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self(handle))
    }

    /// Serves `GET /metrics` until shutdown.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let handle = self.0.clone();
        let render = move || {
            let text = handle.render();
            async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
        };
        let router = Router::new().route("/metrics", get(render));
        tokio::select! {
            () = serve_router(listener, router, shutdown) => {}
            () = self.upkeep() => {}
        }
    }

    async fn upkeep(&self) {
        let mut ticks = interval(UPKEEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.0.run_upkeep();
        }
    }
}

/// Puts [`PREFIX`] before every name.
struct Prefixed(PrometheusRecorder);

fn prefixed(name: &str) -> KeyName {
    KeyName::from(format!("{PREFIX}{name}"))
}

fn prefixed_key(key: &Key) -> Key {
    Key::from_parts(prefixed(key.name()), key.labels().cloned().collect::<Vec<_>>())
}

impl Recorder for Prefixed {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_counter(prefixed(key.as_str()), unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_gauge(prefixed(key.as_str()), unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_histogram(prefixed(key.as_str()), unit, description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.0.register_counter(&prefixed_key(key), metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.0.register_gauge(&prefixed_key(key), metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.0.register_histogram(&prefixed_key(key), metadata)
    }
}

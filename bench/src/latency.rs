//! Durations, kept as a histogram.

use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use crate::report::Figure;

/// Longest duration that is told from a longer one.
const LONGEST: Duration = Duration::from_secs(60);

/// Microseconds, to three digits.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Latencies {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Histogram::new_with_max(micros(LONGEST), 3)?))
    }

    pub(crate) fn record(&mut self, took: Duration) {
        self.0.saturating_record(micros(took));
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn p50_ms(&self) -> f64 {
        self.quantile_ms(0.5)
    }

    pub(crate) fn p99_ms(&self) -> f64 {
        self.quantile_ms(0.99)
    }

    pub(crate) fn max_ms(&self) -> f64 {
        self.quantile_ms(1.0)
    }

    fn quantile_ms(&self, quantile: f64) -> f64 {
        Duration::from_micros(self.0.value_at_quantile(quantile)).as_secs_f64() * 1000.0
    }

    /// The two percentiles that the report shows everywhere.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        vec![Figure::new("p50", self.p50_ms(), "ms"), Figure::new("p99", self.p99_ms(), "ms")]
    }
}

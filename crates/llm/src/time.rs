//! Time and chance, passed in so that a test decides both.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// Tells the time of day, waits, and says how far a delay is moved.
pub trait Timing: Send + Sync + fmt::Debug {
    /// Microseconds since 1970.
    fn now_micros(&self) -> i64;

    /// Resolves when so much time has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Anything from 0 up to, but not, 1.
    fn fraction(&self) -> f64;
}

/// The machine's clock, tokio's timer, the operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTiming;

impl Timing for SystemTiming {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is passed in")]
    fn now_micros(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }

    fn fraction(&self) -> f64 {
        let mut bytes = [0; 4];
        // Without randomness every client waits in the middle, which is no worse than no jitter.
        if getrandom::fill(&mut bytes).is_err() {
            return 0.5;
        }
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }
}

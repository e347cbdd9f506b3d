//! Time and randomness, passed in so that a test decides both.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, UNIX_EPOCH};

use bandstand_wire::time::Timestamp;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use uuid::{ContextV7, Uuid};

/// Tells the time of day, and waits.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Resolves when so much time has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's clock, and tokio's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is passed in")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

/// Hands out what must differ from time to time.
pub trait Randomness: Send + Sync + fmt::Debug {
    /// Anything from 0 up to, but not, 1: how far a delay is moved.
    fn fraction(&self) -> f64;

    /// A fresh id.
    fn uuid(&self) -> Uuid;
}

/// The operating system's randomness.
pub struct SystemRandomness {
    context: Mutex<ContextV7>,
}

impl Default for SystemRandomness {
    fn default() -> Self {
        Self { context: Mutex::new(ContextV7::new()) }
    }
}

impl fmt::Debug for SystemRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemRandomness")
    }
}

impl Randomness for SystemRandomness {
    fn fraction(&self) -> f64 {
        let mut bytes = [0; 4];
        // Without randomness every client waits in the middle, which is no worse than no jitter.
        if getrandom::fill(&mut bytes).is_err() {
            return 0.5;
        }
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }

    fn uuid(&self) -> Uuid {
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::now(&*context))
    }
}

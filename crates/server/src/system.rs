//! The machine's own clock and ids: the only place that takes them directly.

use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use bandstand_domain::clock::{Clock, IdSource};
use bandstand_wire::time::Timestamp;
use uuid::{ContextV7, Uuid};

/// The machine's time of day.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is passed in")]
    fn now(&self) -> Timestamp {
        // A clock set before 1970 is wrong anyway; nothing but what people see depends on it.
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Fresh ids that sort by the time they were made, within a millisecond too, and do not go back when the clock does.
#[derive(Debug)]
pub struct SystemIds {
    context: Mutex<ContextV7>,
}

impl Default for SystemIds {
    fn default() -> Self {
        Self { context: Mutex::new(ContextV7::new()) }
    }
}

impl IdSource for SystemIds {
    fn uuid(&self) -> Uuid {
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::now(&*context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_in_the_order_they_were_made() {
        let ids = SystemIds::default();
        let made: Vec<Uuid> = (0..10_000).map(|_| ids.uuid()).collect();
        assert!(made.is_sorted_by(|earlier, later| earlier < later));
    }
}

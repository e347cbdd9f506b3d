//! How often one key may open a connection.

use std::collections::HashMap;
use std::time::Duration;

use bandstand_wire::ids::KeyId;
use tokio::time::Instant;

/// A token bucket for each key; a full one is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    buckets: HashMap<KeyId, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Throttle {
    /// Takes one of `rate` tokens a second.
    ///
    /// # Errors
    /// Whole seconds to wait, when there is none.
    pub(crate) fn take(&mut self, key: KeyId, rate: u32, now: Instant) -> Result<(), u64> {
        let rate = f64::from(rate.max(1));
        let bucket = self.buckets.entry(key).or_insert(Bucket { tokens: rate, at: now });
        bucket.tokens = (bucket.tokens + now.duration_since(bucket.at).as_secs_f64() * rate).min(rate);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            // The rate is at least one a second, so a second is always enough.
            return Err(1);
        }
        bucket.tokens -= 1.0;
        Ok(())
    }

    /// Forgets buckets that are full by now: a bucket fills within a second.
    pub(crate) fn tidy(&mut self, now: Instant) {
        self.buckets.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(1));
        self.buckets.shrink_to(self.buckets.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn each_key_has_its_own_bucket_that_fills_again() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        let key = |number| KeyId(Uuid::from_u128(number));
        assert_eq!(throttle.take(key(1), 2, start), Ok(()));
        assert_eq!(throttle.take(key(1), 2, start), Ok(()));
        assert_eq!(throttle.take(key(1), 2, start), Err(1));
        assert_eq!(throttle.take(key(2), 2, start), Ok(()));
        assert_eq!(throttle.take(key(1), 2, start + Duration::from_millis(500)), Ok(()));
        throttle.tidy(start + Duration::from_millis(1200));
        assert_eq!(throttle.buckets.len(), 1);
        throttle.tidy(start + Duration::from_secs(2));
        assert!(throttle.buckets.is_empty());
    }
}

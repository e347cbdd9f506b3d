//! When a request is sent again, and how long that waits.

use std::time::Duration;

use bandstand_wire::time::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Whether a request may be sent a second time when nobody knows whether the first took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Yes: it reads, or doing it twice is like doing it once.
    Safe,
    /// Only with an idempotency key that the server understands.
    WithKey,
    /// No: only when it is known that nothing happened.
    IfUndone,
    /// The caller decides about each try: no retries here at all.
    Never,
}

/// How long the server asks to wait: `Retry-After` in seconds or as a date, else `X-RateLimit-Reset` in seconds since
/// 1970.
pub(super) fn asked(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim).map(str::to_owned);
    let until =
        |micros: i64| u64::try_from(micros - now.as_micros()).ok().filter(|wait| *wait > 0).map(Duration::from_micros);
    if let Some(text) = text(RETRY_AFTER.as_str()) {
        if let Ok(seconds) = text.parse::<u64>() {
            return (seconds > 0).then(|| Duration::from_secs(seconds));
        }
        if let Some(wait) = http_date(&text).and_then(until) {
            return Some(wait);
        }
    }
    let reset: i64 = text("x-ratelimit-reset")?.parse().ok()?;
    until(reset.saturating_mul(1_000_000))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, in microseconds since 1970.
fn http_date(text: &str) -> Option<i64> {
    let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(moment.as_microsecond())
}

/// How long the `retry`-th retry (from 0) waits by itself: twice as long each time, moved by up to a tenth.
pub(super) fn backoff(base: Duration, max: Duration, retry: u32, fraction: f64) -> Duration {
    let plain = base.saturating_mul(2_u32.saturating_pow(retry)).min(max);
    plain.mul_f64(0.9 + 0.2 * fraction.clamp(0.0, 1.0)).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &'static str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        asked(&headers, Timestamp::parse("1994-11-06T08:49:30Z").unwrap())
    }

    #[test]
    fn the_server_says_how_long() {
        for (name, value, seconds) in [
            ("retry-after", "7", Some(7)),
            ("retry-after", "0", None),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:17 GMT", None),
            ("retry-after", "soon", None),
            ("x-ratelimit-reset", "784111777", Some(7)),
            ("x-ratelimit-reset", "1", None),
        ] {
            assert_eq!(wait(name, value), seconds.map(Duration::from_secs), "{name}: {value}");
        }
    }

    #[test]
    fn each_wait_is_twice_the_last_and_has_an_end() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        let waits: Vec<u64> = (0..8).map(|retry| backoff(second, minute, retry, 0.5).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(second, minute, 0, 0.0), Duration::from_millis(900));
        assert!(backoff(second, minute, 40, 1.0) <= minute);
    }
}

//! When a request is sent again, and after how long.

use std::time::Duration;

use reqwest::header::HeaderMap;

use super::ModelError;

/// What the server asked for in the headers of a refusal, and what is known besides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// `x-should-retry`.
    pub(super) should: Option<bool>,
    /// `retry-after-ms`, else `retry-after` in seconds or as a date.
    pub(super) wait: Option<Duration>,
    /// Something of a reply was received: the request is not sent again by itself.
    pub(super) received: bool,
}

pub(super) fn asked(headers: &HeaderMap, now_micros: i64) -> Asked {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let should = match text("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    let amount = |name: &str, unit: f64| {
        let amount: f64 = text(name)?.parse().ok()?;
        Duration::try_from_secs_f64(amount * unit).ok()
    };
    let date = || {
        let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text("retry-after")?).ok()?;
        u64::try_from(moment.as_microsecond() - now_micros).ok().map(Duration::from_micros)
    };
    let wait = amount("retry-after-ms", 0.001).or_else(|| amount("retry-after", 1.0)).or_else(date);
    Asked { should, wait: wait.filter(|wait| !wait.is_zero()), received: false }
}

/// Whether the same request may succeed, as far as the failure says.
pub(super) fn may_pass(error: &ModelError, asked: Asked) -> bool {
    if asked.received {
        return false;
    }
    match error {
        ModelError::Unreachable | ModelError::TimedOut { .. } | ModelError::Broken { .. } => true,
        ModelError::Status { status, provider, .. } => asked.should.unwrap_or_else(|| {
            // An exhausted account comes as 429 too, and stays exhausted.
            provider.kind != "insufficient_quota" && matches!(status, 408 | 409 | 429 | 500..=599)
        }),
        ModelError::Failed { provider, .. } => provider.retryable,
        _ => false,
    }
}

/// How long the `retry`-th retry (from 0) waits by itself: twice as long each time, up to 8 s, shortened by up to a quarter.
pub(super) fn backoff(base: Duration, retry: u32, fraction: f64) -> Duration {
    let plain = base.saturating_mul(2_u32.saturating_pow(retry)).min(Duration::from_secs(8));
    plain.mul_f64(1.0 - 0.25 * fraction.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_server_says_whether_and_when() {
        let now = 784_111_770_000_000;
        for (pairs, should, wait) in [
            (&[("retry-after", "7")][..], None, Some(7000)),
            (&[("retry-after", "1.5")], None, Some(1500)),
            (&[("retry-after-ms", "250"), ("retry-after", "7")], None, Some(250)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], None, Some(7000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:17 GMT")], None, None),
            (&[("retry-after", "-1")], None, None),
            (&[("retry-after", "soon"), ("x-should-retry", "false")], Some(false), None),
            (&[("x-should-retry", "true"), ("retry-after", "0")], Some(true), None),
        ] {
            let expected = Asked { should, wait: wait.map(Duration::from_millis), received: false };
            assert_eq!(asked(&headers(pairs), now), expected, "{pairs:?}");
        }
    }

    #[test]
    fn waits_grow_to_an_end() {
        let waits: Vec<u128> =
            (0..6).map(|retry| backoff(Duration::from_millis(500), retry, 0.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(backoff(Duration::from_secs(1), 0, 1.0), Duration::from_millis(750));
    }
}

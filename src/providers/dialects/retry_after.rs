//! How long a provider asks to wait: `retry-after-ms`, or `Retry-After` in its two forms (RFC 9110, section 10.2.3).

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

use crate::clock::Time;

/// The wait that the headers ask for, relative to `now`; `None` if they ask for none or are invalid.
pub(in crate::providers) fn read(headers: &HeaderMap, now: Time) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    Some(Time::parse_http(value)?.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        // 2026-11-20T19:26:00Z
        read(&headers, Time::from_unix_ms(1_795_202_760_000))
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_understood() {
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "1250"), Some(Duration::from_millis(1250)));
        assert_eq!(wait("retry-after", "Fri, 20 Nov 2026 19:26:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("retry-after", "Fri, 20 Nov 2026 19:00:00 GMT"), Some(Duration::ZERO));
    }

    #[test]
    fn invalid_values_are_ignored() {
        for value in ["soon", "-3", "NaN", "inf", "1e300", ""] {
            assert_eq!(wait("retry-after", value), None, "{value}");
        }
    }
}

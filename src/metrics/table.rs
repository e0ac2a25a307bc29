//! Every metric, in the order of the page: the source of what the manual and the page say about them.

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, starting at zero with the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// The distribution of durations: the series `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// A metric's description.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in queries; a counter's ends in `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The unit at the end of its name (before `_total`), for metrics that measure something; otherwise empty.
    pub unit: &'static str,
    /// A sentence of description.
    pub help: &'static str,
}

const MODEL: &[&str] = &["provider", "model"];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, unit: "", help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, unit: "", help }
}

const fn duration(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, unit: "seconds", help }
}

pub(super) static BUILD: Metric = gauge("mk_build_info", &["version"], "Always 1; the version is the label.");

pub(super) static STARTED: Metric = Metric {
    unit: "seconds",
    ..gauge("process_start_time_seconds", &[], "When the server started, in seconds since the Unix epoch.")
};

pub(super) static REQUESTS: Metric = counter(
    "mk_http_requests_total",
    &["route", "method", "status"],
    "Finished requests; route is a path with placeholders such as `{app_id}` for ids, or `other`; status is \
     `cancelled` if the caller left before the answer began.",
);

pub(super) static REQUEST_DURATION: Metric = duration(
    "mk_http_request_duration_seconds",
    &["route"],
    "Time from the request's headers to the complete answer; for a stream, to its end.",
);

pub(super) static CONNECTIONS: Metric = gauge("mk_connections_open", &[], "Open client connections.");

pub(super) static EVICTED: Metric = counter(
    "mk_connections_evicted_total",
    &[],
    "Idle connections closed to make room, because the limit of open connections was reached.",
);

pub(super) static STREAMS: Metric =
    gauge("mk_streams_open", &[], "Streamed answers in progress (verifications and completions).");

pub(super) static LIMITED: Metric = counter(
    "mk_rate_limited_total",
    &["subject", "window"],
    "Requests refused with 429; subject is what was counted: a key, a session of the dashboard, or an address that opens pages, logs in or fails to authenticate.",
);

pub(super) static AUTH_FAILURES: Metric = counter(
    "mk_auth_failures_total",
    &["reason"],
    "Requests refused because of their key or session, by error code.",
);

pub(super) static ATTEMPTS: Metric = counter(
    "mk_attempts_total",
    &["provider", "model", "outcome"],
    "Finished model calls; outcome is `ok`, `cached` (no model was called), `cancelled`, `interrupted` (made by a server that crashed, recorded \
     by this one) or the error code, as in the ledger.",
);

pub(super) static ATTEMPT_DURATION: Metric =
    duration("mk_attempt_duration_seconds", MODEL, "Duration of model calls.");

pub(super) static FIRST_TOKEN: Metric =
    duration("mk_first_token_seconds", MODEL, "Time to the first event of streamed model calls.");

pub(super) static TOKENS: Metric = counter(
    "mk_tokens_total",
    &["provider", "model", "kind"],
    "Tokens used by calls, including failed and cancelled ones; kind is `prompt` or `completion`.",
);

pub(super) static CACHED_TOKENS: Metric = counter(
    "mk_cached_tokens_total",
    &["provider", "model", "kind"],
    "Prompt tokens (also in mk_tokens_total) that providers read from or wrote to their caches; kind is `read` \
     or `write`.",
);

pub(super) static COST: Metric = Metric {
    unit: "usd",
    ..counter("mk_cost_usd_total", MODEL, "Cost of calls with a known price, in US dollars.")
};

pub(super) static UNPRICED: Metric = counter(
    "mk_attempts_unpriced_total",
    MODEL,
    "Calls that used tokens at an unknown price; not included in mk_cost_usd_total.",
);

pub(super) static RETRIES: Metric =
    counter("mk_retries_total", MODEL, "Calls that were retried with the same model.");

pub(super) static FALLBACKS: Metric = counter(
    "mk_fallbacks_total",
    MODEL,
    "How often another model replaced this one: a fallback, or a panel's standby.",
);

pub(super) static BREAKER: Metric = gauge(
    "mk_breaker_state",
    MODEL,
    "State of circuit breakers: 0 closed, 1 half open (one test call at a time), 2 open (no calls); model is \
     empty for a whole provider.",
);

pub(super) static DATABASE: Metric = gauge(
    "mk_database_up",
    &[],
    "Whether keys can be looked up in the database, without which no key is accepted: 1 or 0.",
);

pub(super) static LEDGER_QUEUE: Metric =
    gauge("mk_ledger_queue", &[], "Usage rows waiting to be written to the database.");

pub(super) static LEDGER_LOST: Metric = counter(
    "mk_ledger_rows_lost_total",
    &[],
    "Usage rows dropped because the database could not be written for too long.",
);

pub(super) static LIMITS_STORE: Metric = gauge(
    "mk_limits_store_up",
    &[],
    "Whether the shared limits store is available: 1 or 0; absent if `limits_url` is memory.",
);

pub(super) static LIMITED_ALONE: Metric = counter(
    "mk_limits_alone_total",
    &[],
    "Requests whose limits this server counted alone, because the limits store was unavailable or too slow.",
);

pub(super) static VERDICTS: Metric = counter(
    "mk_verdict_cache_total",
    &["entry", "outcome"],
    "Lookups in the verdict cache; entry is the claims of a text, the votes on a claim or the answer of a model; outcome is hit or miss.",
);

pub(super) static SPANS: Metric = counter(
    "mk_trace_spans_total",
    &["outcome"],
    "Trace spans; outcome is sent, dropped (the queue was full) or failed (the collector did not accept them); \
     absent without tracing.",
);

/// All metrics, in the order of the page.
pub static ALL: [&Metric; 26] = [
    &BUILD,
    &STARTED,
    &REQUESTS,
    &REQUEST_DURATION,
    &CONNECTIONS,
    &EVICTED,
    &STREAMS,
    &LIMITED,
    &AUTH_FAILURES,
    &ATTEMPTS,
    &ATTEMPT_DURATION,
    &FIRST_TOKEN,
    &TOKENS,
    &CACHED_TOKENS,
    &COST,
    &UNPRICED,
    &RETRIES,
    &FALLBACKS,
    &BREAKER,
    &DATABASE,
    &LEDGER_QUEUE,
    &LEDGER_LOST,
    &LIMITS_STORE,
    &LIMITED_ALONE,
    &VERDICTS,
    &SPANS,
];

impl Metric {
    /// The name without what the exposition format appends by itself: the unit, and `_total` of counters.
    pub(super) fn stem(&self) -> &'static str {
        let name = match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        };
        name.strip_suffix(self.unit).map_or(name, |name| name.trim_end_matches('_'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for metric in ALL {
            let Metric { name, kind, labels, unit, help } = metric;
            assert!(name.starts_with("mk_") || *name == "process_start_time_seconds", "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            let base = name.strip_suffix("_total").unwrap_or(name);
            assert!(base.ends_with(unit), "{name} is not in {unit}");
            assert_eq!(unit.is_empty(), metric.stem() == base, "{name}");
            assert!(labels.iter().all(|label| label.bytes().all(|byte| byte.is_ascii_lowercase())), "{name}");
            assert!(help.ends_with('.') && !help.contains(['\n', '\\', '"']), "{name}: {help}");
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}

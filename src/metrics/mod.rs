//! What the server counts about itself, for Prometheus.
//!
//! `table` is the single list of all metrics; `value` holds the counters, `http` and `attempts` the groups of them, and
//! `page` writes the text. Counting is a few relaxed additions: nothing is locked, hashed or allocated per chunk of a
//! stream, and what is known elsewhere (the length of a queue, the state of a breaker) is read when the page is
//! requested.
//!
//! What must hold: the number of series has a bound that no caller can raise. Labels are routes, not paths, and models
//! that are known or have answered, not what callers write; keys, apps and addresses are never labels.

mod attempts;
mod http;
mod page;
pub mod table;
mod value;

#[cfg(test)]
mod tests;

pub use attempts::{Attempt, Attempts};
pub use http::Http;
pub use value::{Gauge, GaugeGuard};

use crate::clock::Time;
use page::{Page, Value};

/// The content type of the page: OpenMetrics text, which Prometheus reads since version 2.5.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All counters.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests, connections, refusals.
    pub http: Http,
    /// Calls to models.
    pub attempts: Attempts,
    started_unix_ms: i64,
}

/// Values that are not counted here, but read at their source when the page is requested.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// Whether keys can be looked up in the database.
    pub is_database_up: bool,
    /// Ledger rows that wait to be written.
    pub ledger_queue: u64,
    /// Ledger rows that were dropped since the start.
    pub ledger_rows_lost: u64,
    /// The shared limits store, if there is one.
    pub limits_store: Option<LimitsStore>,
    /// The existing circuit breakers; one that does not exist is closed, and left out.
    pub breakers: Vec<Breaker>,
    /// What was looked for in the verdict cache.
    pub verdicts: VerdictLookUps,
    /// What became of spans, if there are traces.
    pub spans: Option<Spans>,
}

/// What became of the spans of traces since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// The collector has taken them.
    pub sent: u64,
    /// There was no room for them.
    pub dropped: u64,
    /// The collector did not take them.
    pub failed: u64,
}

/// How many entries were looked for in the verdict cache since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictLookUps {
    /// What texts say: those that were found, and those that were not.
    pub texts: (u64, u64),
    /// Votes on claims: those that were found, and those that were not.
    pub claims: (u64, u64),
    /// Answers that are kept for callers: those that were found, and those that were not.
    pub answers: (u64, u64),
}

/// The state of the shared limits store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsStore {
    /// Whether it can be used.
    pub is_up: bool,
    /// Requests that were decided without it since the start.
    pub decided_alone: u64,
}

/// A circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// The provider's configured name.
    pub provider: String,
    /// The provider's own name of the model; `None` for the provider as a whole.
    pub model: Option<String>,
    /// Its state.
    pub state: BreakerState,
}

/// The state of a circuit breaker, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// Calls are made.
    Closed = 0,
    /// One call probes whether it has recovered.
    HalfOpen = 1,
    /// No call is made.
    Open = 2,
}

impl Metrics {
    /// All counters at zero. Only these providers and models (by their full identifiers), and some of the models that
    /// answer, get labels of their own.
    pub fn new(
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
        now: Time,
    ) -> Self {
        Self {
            http: Http::default(),
            attempts: Attempts::new(providers, models),
            started_unix_ms: now.unix_ms(),
        }
    }

    /// Gives these labels of their own as well from now on; existing counts stay.
    pub fn add_models(
        &self,
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
    ) {
        self.attempts.add_models(providers, models);
    }

    /// The page, of content type [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// If a value cannot be formatted, which would be a bug.
    pub fn page(&self, readings: &Readings) -> Result<String, std::fmt::Error> {
        self.collect(readings).into_text()
    }

    fn collect(&self, readings: &Readings) -> Page {
        let mut page = Page::default();
        let version = vec![env!("CARGO_PKG_VERSION").to_owned()];
        page.add(&table::BUILD, [(version, Value::Count(1))]);
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age are exact")]
        page.add_one(&table::STARTED, Value::Amount(self.started_unix_ms as f64 / 1e3));
        self.http.write(&mut page);
        self.attempts.write(&mut page, &readings.breakers);
        page.add_one(&table::DATABASE, Value::Count(u64::from(readings.is_database_up)));
        page.add_one(&table::LEDGER_QUEUE, Value::Count(readings.ledger_queue));
        page.add_one(&table::LEDGER_LOST, Value::Count(readings.ledger_rows_lost));
        let store = readings.limits_store;
        let sample = |value: u64| (Vec::new(), Value::Count(value));
        page.add(&table::LIMITS_STORE, store.map(|store| sample(u64::from(store.is_up))));
        page.add(&table::LIMITED_ALONE, store.map(|store| sample(store.decided_alone)));
        let VerdictLookUps { texts, claims, answers } = readings.verdicts;
        let entries = [("text", texts), ("claim", claims), ("answer", answers)];
        page.add(
            &table::VERDICTS,
            entries.into_iter().flat_map(|(entry, (hits, misses))| {
                [("hit", hits), ("miss", misses)]
                    .map(|(outcome, count)| (vec![entry.to_owned(), outcome.to_owned()], Value::Count(count)))
            }),
        );
        let spans = readings.spans.into_iter().flat_map(|Spans { sent, dropped, failed }| {
            [("sent", sent), ("dropped", dropped), ("failed", failed)]
        });
        page.add(
            &table::SPANS,
            spans.map(|(outcome, count)| (vec![outcome.to_owned()], Value::Count(count))),
        );
        page
    }
}

//! What the server counts of itself, for Prometheus.
//!
//! `table` is the one list of all metrics; `value` holds what counts, `http` and `attempts` who counts what, and
//! `page` writes the text. Counting is a few relaxed additions: nothing here is locked, hashed or allocated per chunk
//! of a stream, and what others know already (a queue's length, a breaker's state) is read when the page is asked for.
//!
//! What must hold: the number of series has a bound that no caller can move. Labels are routes, not paths, and models
//! that are known or have answered, not what callers write; keys, apps and addresses are never labels.

mod attempts;
mod http;
mod page;
pub mod table;
mod value;

#[cfg(test)]
mod tests;

pub use attempts::{Attempt, Attempts};
pub use http::{Http, ROUTES};
pub use value::{Held, Level};

use crate::clock::Time;
use page::{Page, Value};

/// The type of the page, as answers name it: OpenMetrics text, which Prometheus has read since its version 2.5.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests, connections, refusals.
    pub http: Http,
    /// Calls to models.
    pub attempts: Attempts,
    started_unix_ms: i64,
}

/// What is not counted here but read where it is known, when the page is asked for.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// Whether the database can be asked for keys.
    pub is_database_up: bool,
    /// Rows that wait to be written.
    pub ledger_queue: u64,
    /// Rows that were dropped since the start.
    pub ledger_rows_lost: u64,
    /// The store of shared limits, if there is one.
    pub limits_store: Option<LimitsStore>,
    /// The circuit breakers that there are; where there is none it is closed, and left out.
    pub breakers: Vec<Breaker>,
}

/// The store of limits that servers share.
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
    /// By the provider's own name; `None` for the provider as a whole.
    pub model: Option<String>,
    /// How it stands.
    pub state: BreakerState,
}

/// How a circuit breaker stands, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// Calls are made.
    Closed = 0,
    /// One call finds out if it is well.
    HalfOpen = 1,
    /// No call is made.
    Open = 2,
}

impl Metrics {
    /// All at zero. Only these providers, and of models these (by their full identifiers) and some of those that
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

    /// Gives these labels of their own as well from now on; what was counted so far stays.
    pub fn add_models(
        &self,
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
    ) {
        self.attempts.add_models(providers, models);
    }

    /// The page, of the type [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// If a value cannot be written, which is a defect.
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
        page
    }
}

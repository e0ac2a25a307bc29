//! Counters of requests, connections, and refusals at the gate.

use std::sync::Arc;
use std::time::Duration;

use super::page::{Page, Value};
use super::table;
use super::value::{Count, CountsByName, Gauge, Histogram, Merge};
use crate::api::endpoint::Endpoint;
use crate::api::error_code::ErrorCode;
use crate::net::workers::PerWorker;

const METHODS: [&str; 6] = ["POST", "GET", "HEAD", "PATCH", "DELETE", "other"];

/// The status of a request without a response because its caller left.
const CANCELLED: &str = "cancelled";

const STATUSES: [&str; 24] = [
    "200", "201", "204", "400", "401", "402", "403", "404", "405", "408", "409", "413", "414", "415", "422",
    "426", "429", "431", "500", "502", "503", "504", CANCELLED, "other",
];

const SUBJECTS: [&str; 7] = ["key", "session", "open_page", "login", "failed_auth", "end_user", "other"];

const REASONS: [&str; 10] = [
    ErrorCode::MissingApiKey.as_str(),
    ErrorCode::InvalidApiKey.as_str(),
    ErrorCode::ApiKeyRevoked.as_str(),
    ErrorCode::ApiKeyExpired.as_str(),
    ErrorCode::WrongService.as_str(),
    ErrorCode::AddressNotAllowed.as_str(),
    ErrorCode::InvalidSession.as_str(),
    ErrorCode::InvalidSetupToken.as_str(),
    ErrorCode::OriginNotAllowed.as_str(),
    "other",
];

/// Counters of what callers do.
#[derive(Debug, Default)]
pub struct Http {
    counts: PerWorker<Counts>,
    /// Open connections.
    pub connections: Arc<Gauge>,
    /// Streamed responses under way.
    pub streams: Arc<Gauge>,
}

#[derive(Debug)]
struct Counts {
    /// One for each endpoint, and one for all other paths, as callers make those up.
    routes: Vec<Route>,
    evicted: Count,
    limited_minute: CountsByName<{ SUBJECTS.len() }>,
    limited_day: CountsByName<{ SUBJECTS.len() }>,
    denied: CountsByName<{ REASONS.len() }>,
}

#[derive(Debug)]
struct Route {
    name: &'static str,
    methods: [CountsByName<{ STATUSES.len() }>; METHODS.len()],
    duration: Histogram,
}

impl Default for Counts {
    fn default() -> Self {
        let route = |name| Route {
            name,
            methods: std::array::from_fn(|_| CountsByName::new(&STATUSES)),
            duration: Histogram::default(),
        };
        Self {
            routes: Endpoint::all().map(Endpoint::path).chain(["other"]).map(route).collect(),
            evicted: Count::default(),
            limited_minute: CountsByName::new(&SUBJECTS),
            limited_day: CountsByName::new(&SUBJECTS),
            denied: CountsByName::new(&REASONS),
        }
    }
}

impl Merge for Counts {
    fn merge(&self, other: &Self) {
        for (route, more) in self.routes.iter().zip(&other.routes) {
            route.methods.iter().zip(&more.methods).for_each(|(statuses, more)| statuses.merge(more));
            route.duration.merge(&more.duration);
        }
        self.evicted.merge(&other.evicted);
        self.limited_minute.merge(&other.limited_minute);
        self.limited_day.merge(&other.limited_day);
        self.denied.merge(&other.denied);
    }
}

impl Http {
    /// Counts a request that has ended. Without a status, its caller left before there was one.
    pub fn count(&self, endpoint: Option<Endpoint>, method: &str, status: Option<&str>, took: Duration) {
        let index = endpoint.map_or(Endpoint::COUNT, |endpoint| endpoint as usize);
        let Some(route) = self.counts.here().routes.get(index) else { return };
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        if let Some(statuses) = route.methods.get(method) {
            statuses.add(status.unwrap_or(CANCELLED));
        }
        route.duration.observe(took);
    }

    /// Counts a request that was refused by the minute limit of a `key`, a `session`, an `open_page`, a `login`,
    /// `failed_auth` or an `end_user`.
    pub fn count_limited_by_minute(&self, subject: &str) {
        self.counts.here().limited_minute.add(subject);
    }

    /// Counts a request that was refused by the day limit.
    pub fn count_limited_by_day(&self, subject: &str) {
        self.counts.here().limited_day.add(subject);
    }

    /// Counts an idle connection that was closed for another one.
    pub fn count_evicted(&self) {
        self.counts.here().evicted.add(1);
    }

    /// Counts a request that was refused for its key, by the code in the response.
    pub fn count_denied(&self, reason: &str) {
        self.counts.here().denied.add(reason);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let counts = Counts::merged(self.counts.all());
        let requests = counts.routes.iter().flat_map(|route| {
            METHODS.iter().zip(&route.methods).flat_map(|(method, statuses)| {
                statuses
                    .seen()
                    .map(|(status, count)| (texts([route.name, method, status]), Value::Count(count)))
            })
        });
        page.add(&table::REQUESTS, requests);
        let durations = counts.routes.iter().map(|route| (texts([route.name]), route.duration.read()));
        let durations = durations.filter(|(_, reading)| reading.count > 0);
        page.add(&table::REQUEST_DURATION, durations.map(|(labels, it)| (labels, Value::Histogram(it))));
        page.add_one(&table::CONNECTIONS, Value::Count(self.connections.get()));
        page.add_one(&table::EVICTED, Value::Count(counts.evicted.get()));
        page.add_one(&table::STREAMS, Value::Count(self.streams.get()));
        let windows = [("minute", &counts.limited_minute), ("day", &counts.limited_day)];
        let limited = windows.into_iter().flat_map(|(window, subjects)| {
            subjects.all().map(move |(subject, count)| (texts([subject, window]), Value::Count(count)))
        });
        page.add(&table::LIMITED, limited);
        let denied = counts.denied.all().map(|(reason, count)| (texts([reason]), Value::Count(count)));
        page.add(&table::AUTH_FAILURES, denied);
    }
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<String> {
    values.map(str::to_owned).to_vec()
}

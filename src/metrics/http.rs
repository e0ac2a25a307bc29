//! Counters of requests, connections, and refusals at the gate.

use std::sync::Arc;
use std::time::Duration;

use super::page::{Page, Value};
use super::table;
use super::value::{Count, CountsByName, Gauge, Histogram, Merge};
use crate::workers::PerWorker;

/// The routes that are counted by name, with placeholders for ids; requests for any other path are counted together, as
/// callers make those up.
pub const ROUTES: [&str; 24] = [
    "/inference/v1/chat/completions",
    "/verify/v1/stream",
    "/verify/v1/extract",
    "/inference/v1/models",
    ONE_MODEL,
    "/verify/v1/health",
    "/verify/v1/receipt-key",
    "/inference/v1/health",
    "/metrics",
    "/v1/apps",
    "/v1/apps/{id}",
    "/v1/apps/{id}/keys",
    "/v1/apps/{id}/keys/{key_id}",
    "/v1/apps/{id}/keys/{key_id}/rotate",
    "/v1/apps/{id}/statement",
    "/v1/apps/{id}/try",
    "/v1/apps/{id}/try/chat",
    "/v1/apps/{id}/try/verify",
    "/v1/usage",
    "/v1/billing",
    "/v1/audit",
    "/v1/key",
    "/v1/auth/session",
    "/v1/auth/setup",
];

/// The prefix of the paths of single models.
const MODELS: &str = "/inference/v1/models/";
const ONE_MODEL: &str = "/inference/v1/models/{model}";

const METHODS: [&str; 6] = ["POST", "GET", "HEAD", "PATCH", "DELETE", "other"];

/// The status of a request without a response because its caller left.
const CANCELLED: &str = "cancelled";

const STATUSES: [&str; 22] = [
    "200", "201", "204", "400", "401", "402", "403", "404", "405", "408", "409", "413", "414", "415", "429",
    "431", "500", "502", "503", "504", CANCELLED, "other",
];

const SUBJECTS: [&str; 6] = ["key", "session", "open_page", "login", "failed_auth", "other"];

const REASONS: [&str; 10] = [
    "missing_api_key",
    "invalid_api_key",
    "api_key_revoked",
    "api_key_expired",
    "wrong_service",
    "address_not_allowed",
    "invalid_session",
    "invalid_setup_token",
    "origin_not_allowed",
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
    /// One for each of [`ROUTES`], and one for all other paths.
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
            routes: ROUTES.into_iter().chain(["other"]).map(route).collect(),
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
    pub fn count(&self, path: &str, method: &str, status: Option<&str>, took: Duration) {
        let Some(route) = self.counts.here().routes.get(route_index(path)) else { return };
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        if let Some(statuses) = route.methods.get(method) {
            statuses.add(status.unwrap_or(CANCELLED));
        }
        route.duration.observe(took);
    }

    /// Counts a request that was refused by the minute limit of a `key`, a `session`, an `open_page`, a `login` or
    /// `failed_auth`.
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

/// The index at which a request for this path is counted: that of its route in [`ROUTES`], or the one after the last.
fn route_index(path: &str) -> usize {
    let found = if path.starts_with("/v1/") {
        ROUTES.iter().position(|route| matches_route(route, path))
    } else {
        // These routes also accept a trailing slash.
        let path = path.strip_suffix('/').unwrap_or(path);
        // A model's identifier may contain slashes.
        let path = if path.starts_with(MODELS) { ONE_MODEL } else { path };
        ROUTES.iter().position(|route| *route == path)
    };
    found.unwrap_or(ROUTES.len())
}

/// Whether a path matches a route, with anything in place of ids.
fn matches_route(route: &str, path: &str) -> bool {
    let (mut route, mut path) = (route.split('/'), path.split('/'));
    loop {
        match (route.next(), path.next()) {
            (None, None) => return true,
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() => {}
            (Some(name), Some(part)) if name == part => {}
            _ => return false,
        }
    }
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<String> {
    values.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted_as(path: &str) -> &'static str {
        ROUTES.get(route_index(path)).copied().unwrap_or("other")
    }

    #[test]
    fn ids_are_no_part_of_a_route() {
        for (path, route) in [
            ("/verify/v1/stream", "/verify/v1/stream"),
            ("/verify/v1/stream/", "/verify/v1/stream"),
            ("/v1/apps", "/v1/apps"),
            ("/v1/apps/app_1", "/v1/apps/{id}"),
            ("/v1/apps/%7Bid%7D/keys", "/v1/apps/{id}/keys"),
            ("/v1/apps/app_1/keys/key_1", "/v1/apps/{id}/keys/{key_id}"),
            ("/v1/apps/app_1/keys/key_1/rotate", "/v1/apps/{id}/keys/{key_id}/rotate"),
            ("/v1/apps/keys/statement", "/v1/apps/{id}/statement"),
            ("/v1/key", "/v1/key"),
            ("/v1/auth/session", "/v1/auth/session"),
            ("/inference/v1/models/", "/inference/v1/models"),
            ("/inference/v1/models/fake/a/b", "/inference/v1/models/{model}"),
        ] {
            assert_eq!(counted_as(path), route);
        }
        for path in [
            "",
            "/",
            "/v1",
            "/v1/",
            "/v1/apps/",
            "/v1/apps//keys",
            "/v1/apps/a/b",
            "/v1/key/x",
            "/V1/apps",
            "/inference/v1/modelss/a",
        ] {
            assert_eq!(counted_as(path), "other", "{path}");
        }
    }
}

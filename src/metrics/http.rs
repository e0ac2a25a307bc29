//! Requests, connections, and what was refused at the gate.

use std::sync::Arc;
use std::time::Duration;

use super::page::{Page, Value};
use super::table;
use super::value::{Histogram, Level, Named};

/// The addresses that are counted by name; what is asked of others is counted together, as callers make them up.
pub const ROUTES: [&str; 6] = [
    "/inference/v1/chat/completions",
    "/verify/v1/stream",
    "/inference/v1/models",
    "/verify/v1/health",
    "/inference/v1/health",
    "/metrics",
];

const METHODS: [&str; 4] = ["POST", "GET", "HEAD", "other"];

/// Of a request that has no answer because its caller left.
const CANCELLED: &str = "cancelled";

const STATUSES: &[&str] = &[
    "200", "201", "204", "400", "401", "402", "403", "404", "405", "408", "409", "413", "414", "415", "429",
    "431", "500", "502", "503", "504", CANCELLED, "other",
];

const SUBJECTS: &[&str] = &["key", "session", "open_page", "login", "failed_auth", "other"];

const REASONS: &[&str] = &[
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

/// Counts what callers do.
#[derive(Debug)]
pub struct Http {
    /// One for each of [`ROUTES`], and one for all others.
    routes: Vec<Route>,
    /// Connections that are open.
    pub connections: Arc<Level>,
    /// Streamed answers under way.
    pub streams: Arc<Level>,
    limited_minute: Named,
    limited_day: Named,
    denied: Named,
}

#[derive(Debug)]
struct Route {
    name: &'static str,
    methods: [Named; METHODS.len()],
    duration: Histogram,
}

impl Default for Http {
    fn default() -> Self {
        let route = |name| Route {
            name,
            methods: std::array::from_fn(|_| Named::new(STATUSES)),
            duration: Histogram::default(),
        };
        Self {
            routes: ROUTES.into_iter().chain(["other"]).map(route).collect(),
            connections: Arc::default(),
            streams: Arc::default(),
            limited_minute: Named::new(SUBJECTS),
            limited_day: Named::new(SUBJECTS),
            denied: Named::new(REASONS),
        }
    }
}

impl Http {
    /// Counts a request that has ended. Without a status its caller left before there was one.
    pub fn count(&self, path: &str, method: &str, status: Option<&str>, took: Duration) {
        // Addresses are answered with a slash at their end as well.
        let path = path.strip_suffix('/').unwrap_or(path);
        let place = ROUTES.iter().position(|route| *route == path).unwrap_or(ROUTES.len());
        let Some(route) = self.routes.get(place) else { return };
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        if let Some(statuses) = route.methods.get(method) {
            statuses.add(status.unwrap_or(CANCELLED));
        }
        route.duration.observe(took);
    }

    /// Counts a request that was refused by the minute's limit of a `key`, a `session`, an `open_page`, a `login` or
    /// `failed_auth`.
    pub fn count_limited_by_minute(&self, subject: &str) {
        self.limited_minute.add(subject);
    }

    /// The same for a day's limit.
    pub fn count_limited_by_day(&self, subject: &str) {
        self.limited_day.add(subject);
    }

    /// Counts a request that was refused for its key, by the code of the answer.
    pub fn count_denied(&self, reason: &str) {
        self.denied.add(reason);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let requests = self.routes.iter().flat_map(|route| {
            METHODS.iter().zip(&route.methods).flat_map(|(method, statuses)| {
                statuses
                    .seen()
                    .map(|(status, count)| (texts([route.name, method, status]), Value::Count(count)))
            })
        });
        page.add(&table::REQUESTS, requests);
        let durations = self.routes.iter().map(|route| (texts([route.name]), route.duration.read()));
        let durations = durations.filter(|(_, reading)| reading.count > 0);
        page.add(&table::REQUEST_DURATION, durations.map(|(labels, it)| (labels, Value::Histogram(it))));
        page.add_one(&table::CONNECTIONS, Value::Count(self.connections.get()));
        page.add_one(&table::STREAMS, Value::Count(self.streams.get()));
        let windows = [("minute", &self.limited_minute), ("day", &self.limited_day)];
        let limited = windows.into_iter().flat_map(|(window, subjects)| {
            subjects.all().map(move |(subject, count)| (texts([subject, window]), Value::Count(count)))
        });
        page.add(&table::LIMITED, limited);
        let denied = self.denied.all().map(|(reason, count)| (texts([reason]), Value::Count(count)));
        page.add(&table::AUTH_FAILURES, denied);
    }
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<String> {
    values.map(str::to_owned).to_vec()
}

//! The record of one request: a line in the log and an entry in the metrics, written once, when everything is over.
//!
//! Everything that works on a request shares its record and adds what it learns; the record is written when the last
//! reference is dropped. So a stream is recorded when it ends, not when it begins, and a request whose caller left is
//! recorded too. What must hold: references are dropped only after the request's attempts are booked; nothing of a key
//! but its id, and nothing of prompts or answers, is recorded.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use super::log_fields;
use crate::api::endpoint::Endpoint;
use crate::lock::Lock;
use crate::metrics::{GaugeGuard, Metrics};
use crate::money::NanoUsd;
use crate::storage::KeyRow;
use crate::traces::{Parent, Span};
use crate::usage::{Accounting, Meter};

/// The outcome of a request that succeeded.
pub(crate) const OK: &str = "ok";
/// The outcome of a request that has no other: its caller left.
const CANCELLED: &str = "cancelled";

/// One request, from its head to its end.
pub(crate) struct Record {
    books: Arc<Accounting>,
    start: Instant,
    request_id: Arc<str>,
    client: IpAddr,
    method: Method,
    endpoint: Option<Endpoint>,
    path: Cow<'static, str>,
    notes: Mutex<Notes>,
    span: Span,
}

#[derive(Default)]
struct Notes {
    status: Option<StatusCode>,
    outcome: Option<Cow<'static, str>>,
    key: Option<Arc<KeyRow>>,
    work: Option<Work>,
    stream: Option<Stream>,
}

/// The completion or verification that a request asks for.
struct Work {
    meter: Meter,
    /// The id of a verification, which has many models.
    verification: Option<String>,
    model: Option<Arc<str>>,
    answered_by: Option<Arc<str>>,
}

struct Stream {
    first_token: Duration,
    _open: GaugeGuard,
}

impl Record {
    /// Starts the record of a request whose head has arrived, and whose `span` has begun.
    pub(crate) fn start(
        books: Arc<Accounting>,
        request_id: Arc<str>,
        client: IpAddr,
        method: Method,
        (endpoint, path): (Option<Endpoint>, &str),
        span: Span,
    ) -> Arc<Self> {
        Arc::new(Self {
            books,
            start: Instant::now(),
            request_id,
            client,
            method,
            endpoint,
            path: log_fields::path(endpoint, path),
            notes: Mutex::default(),
            span,
        })
    }

    /// How long ago the head arrived.
    pub(crate) fn age(&self) -> Duration {
        self.start.elapsed()
    }

    /// What the spans of its parts hang on.
    pub(crate) fn trace(&self) -> Parent {
        self.span.as_parent()
    }

    /// The request's path as it is logged.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Sets the key that the request came with, whether or not it is admitted.
    pub(crate) fn set_key(&self, key: impl Into<Arc<KeyRow>>) {
        self.notes.locked().key = Some(key.into());
    }

    /// Notes that the request asks for an answer of `model`, or of one of the pool of that name, metered by `meter`.
    pub(crate) fn set_completion(&self, model: Arc<str>, meter: &Meter) {
        let model = Some(model);
        self.notes.locked().work =
            Some(Work { meter: meter.clone(), verification: None, model, answered_by: None });
    }

    /// Notes that the request is the verification `id`, metered by `meter`.
    pub(crate) fn set_verification(&self, id: &str, meter: &Meter) {
        let verification = Some(id.to_owned());
        self.notes.locked().work =
            Some(Work { meter: meter.clone(), verification, model: None, answered_by: None });
    }

    /// Sets the model that answers.
    pub(crate) fn set_answering_model(&self, model: Arc<str>) {
        if let Some(work) = &mut self.notes.locked().work {
            work.answered_by = Some(model);
        }
    }

    /// Notes that the response is a stream whose first chunk is ready. The stream counts as open until the record is
    /// written; [`Record::end_stream`] sets its outcome.
    pub(crate) fn begin_stream(&self) {
        let stream =
            Stream { first_token: self.start.elapsed(), _open: self.books.metrics().http.streams.add_one() };
        self.notes.locked().stream = Some(stream);
    }

    /// Sets the status that is sent, and the outcome unless the response is a stream.
    pub(crate) fn set_status(&self, status: StatusCode, outcome: impl Into<Cow<'static, str>>) {
        let mut notes = self.notes.locked();
        notes.status = Some(status);
        if notes.stream.is_none() {
            notes.outcome = Some(outcome.into());
        }
    }

    /// Sets the outcome of a stream: [`OK`] or the code of its error.
    pub(crate) fn end_stream(&self, outcome: impl Into<Cow<'static, str>>) {
        self.notes.locked().outcome = Some(outcome.into());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let elapsed = self.start.elapsed();
        let notes = self.notes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let status = notes.status.as_ref().map(StatusCode::as_str);
        self.books.metrics().http.count(self.endpoint, self.method.as_str(), status, elapsed);

        let (key, work) = (notes.key.as_ref(), notes.work.as_ref());
        let sum = work.map(|work| work.meter.sum());
        // The message is a field and the address a string already: formatting them would cost more than all the rest.
        tracing::info!(
            message = "request",
            request_id = &*self.request_id,
            method = log_fields::method(&self.method),
            path = &*self.path,
            status = notes.status.map(|status| status.as_u16()),
            outcome = notes.outcome.as_deref().unwrap_or(CANCELLED),
            client = log_fields::address(self.client),
            key = key.map(|key| &*key.id),
            app = key.map(|key| &*key.app_id),
            verification = work.and_then(|work| work.verification.as_deref()),
            model = work.and_then(|work| work.model.as_deref()),
            answered_by = work.and_then(|work| work.answered_by.as_deref()),
            attempts = sum.map(|sum| sum.attempts),
            prompt_tokens = sum.map(|sum| sum.prompt_tokens),
            completion_tokens = sum.map(|sum| sum.completion_tokens),
            cost_usd = sum.and_then(|sum| sum.cost).map(NanoUsd::usd),
            first_token_ms = notes.stream.as_ref().map(|stream| milliseconds(stream.first_token)),
            ms = milliseconds(elapsed),
        );
        if self.span.is_recorded() {
            self.end_span();
        }
    }
}

impl Record {
    /// Tells the span what became of the request. One without a key is not traced: health checks, pages, and what
    /// strangers try would be most of what there is.
    fn end_span(&mut self) {
        let (span, notes) = (&mut self.span, self.notes.get_mut().unwrap_or_else(PoisonError::into_inner));
        let Some(key) = &notes.key else { return span.discard() };
        let endpoint = self.endpoint.filter(|endpoint| endpoint.allows(self.method.as_str()));
        let method = if endpoint.is_some() { self.method.as_str().to_owned() } else { "_OTHER".to_owned() };
        let route = self.endpoint.map(Endpoint::path);
        span.rename(route.map_or_else(|| method.clone(), |route| format!("{method} {route}")));
        span.set("http.request.method", method);
        span.set_some("http.route", route);
        span.set("url.path", self.path.clone());
        span.set("mk.request_id", self.request_id.clone());
        span.set("mk.key_id", key.id.clone());
        span.set("mk.app_id", key.app_id.clone());
        if let Some(work) = &mut notes.work {
            let sum = work.meter.sum();
            span.set_some("mk.verification_id", work.verification.take());
            span.set_some("mk.model", work.model.take());
            span.set_some("mk.answered_by", work.answered_by.take());
            span.set("mk.attempts", sum.attempts);
            span.set_some("mk.cost_usd", sum.cost.map(NanoUsd::usd));
        }
        let status = notes.status.map(|status| status.as_u16());
        span.set_some("http.response.status_code", status);
        match notes.outcome.take() {
            Some(Cow::Borrowed(OK)) => {}
            // What a caller did wrong is no error of this server; a stream that broke is one, whatever its status was.
            Some(code) if status.is_some_and(|status| (400..500).contains(&status)) => {
                span.set("error.type", code);
            }
            Some(code) => span.fail(code),
            None => span.set("error.type", CANCELLED),
        }
    }
}

/// Records a request that could not be parsed and was answered with `status`. Nothing of its head is trusted, so it has
/// no method and no path.
pub(crate) fn malformed(
    metrics: &Metrics,
    request_id: &str,
    client: IpAddr,
    status: StatusCode,
    outcome: &str,
) {
    metrics.http.count(None, "", Some(status.as_str()), Duration::ZERO);
    tracing::info!(
        request_id,
        status = status.as_u16(),
        outcome,
        client = log_fields::address(client),
        "request"
    );
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

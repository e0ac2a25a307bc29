//! The record of one request: a line in the log and its place in the metrics, once, when everything about it is over.
//!
//! Whoever works on a request shares its record and notes what it learns; the last one to let go writes it. So a
//! stream is on record when it ends and not when it begins, and a request whose caller left is on record too. What
//! must hold: holders let go only after the attempts of the request are booked; nothing of a key but its id, and
//! nothing of what was asked or answered, is noted.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use super::shown;
use crate::metrics::{GaugeGuard, Metrics};
use crate::money::NanoUsd;
use crate::storage::KeyRow;
use crate::usage::{Accounting, Meter};

/// The outcome of a request that came to its end.
pub(crate) const OK: &str = "ok";
/// The outcome of a request that has none: its caller left.
const CANCELLED: &str = "cancelled";

/// One request, from its head to its end.
pub(crate) struct Record {
    accounting: Arc<Accounting>,
    begun: Instant,
    request_id: Arc<str>,
    client: IpAddr,
    method: Method,
    path: Cow<'static, str>,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    status: Option<StatusCode>,
    outcome: Option<Cow<'static, str>>,
    key: Option<Arc<KeyRow>>,
    work: Option<Work>,
    stream: Option<Stream>,
}

/// What models are asked for.
struct Work {
    meter: Meter,
    /// A verification has many models, and an id of its own.
    verification: Option<String>,
    model: Option<Arc<str>>,
    answered_by: Option<Arc<str>>,
}

struct Stream {
    first_token: Duration,
    _open: GaugeGuard,
}

impl Record {
    /// The record of a request whose head has come.
    pub(crate) fn begin(
        accounting: Arc<Accounting>,
        request_id: Arc<str>,
        client: IpAddr,
        method: Method,
        path: &str,
    ) -> Arc<Self> {
        Arc::new(Self {
            accounting,
            begun: Instant::now(),
            request_id,
            client,
            method,
            path: shown::path(path),
            notes: Mutex::default(),
        })
    }

    /// How long ago the head came.
    pub(crate) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The request's path as it is logged.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Notes the key, whatever becomes of the request.
    pub(crate) fn came_with(&self, key: impl Into<Arc<KeyRow>>) {
        self.notes().key = Some(key.into());
    }

    /// Notes that `model` is asked, on this meter.
    pub(crate) fn asks(&self, model: Option<&Arc<str>>, meter: &Meter) {
        let model = model.cloned();
        self.notes().work = Some(Work { meter: meter.clone(), verification: None, model, answered_by: None });
    }

    /// Notes that the verification `id` is run, on this meter.
    pub(crate) fn verifies(&self, id: &str, meter: &Meter) {
        let verification = Some(id.to_owned());
        self.notes().work = Some(Work { meter: meter.clone(), verification, model: None, answered_by: None });
    }

    /// Notes which model answers.
    pub(crate) fn set_answering_model(&self, model: Arc<str>) {
        if let Some(work) = &mut self.notes().work {
            work.answered_by = Some(model);
        }
    }

    /// Notes that the answer is a stream whose first piece is there; from now on it is open until its end, which
    /// [`Record::ends`] tells.
    pub(crate) fn streams(&self) {
        let stream = Stream {
            first_token: self.begun.elapsed(),
            _open: self.accounting.metrics().http.streams.add_one(),
        };
        self.notes().stream = Some(stream);
    }

    /// Notes the status that is sent; unless a stream goes on, the request has come to this outcome.
    pub(crate) fn set_status(&self, status: StatusCode, outcome: impl Into<Cow<'static, str>>) {
        let mut notes = self.notes();
        notes.status = Some(status);
        if notes.stream.is_none() {
            notes.outcome = Some(outcome.into());
        }
    }

    /// Notes how a stream has ended: [`OK`] or the code of its error.
    pub(crate) fn ends(&self, outcome: impl Into<Cow<'static, str>>) {
        self.notes().outcome = Some(outcome.into());
    }

    /// Also after a panic elsewhere: notes are whole after every step.
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        let notes = self.notes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let status = notes.status.as_ref().map(StatusCode::as_str);
        self.accounting.metrics().http.count(&self.path, self.method.as_str(), status, took);

        let (key, work) = (notes.key.as_ref(), notes.work.as_ref());
        let sum = work.map(|work| work.meter.sum());
        // A message of its own text and an address that is a text already: what is formatted costs more than all the rest.
        tracing::info!(
            message = "request",
            request_id = &*self.request_id,
            method = shown::method(&self.method),
            path = &*self.path,
            status = notes.status.map(|status| status.as_u16()),
            outcome = notes.outcome.as_deref().unwrap_or(CANCELLED),
            client = shown::address(self.client),
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
            ms = milliseconds(took),
        );
    }
}

/// The record of what was no request that could be read, and was answered with `status` nevertheless. Nothing of its
/// head is believed, so that it has no method and no path.
pub(crate) fn unreadable(
    metrics: &Metrics,
    request_id: &str,
    client: IpAddr,
    status: StatusCode,
    outcome: &str,
) {
    metrics.http.count("", "", Some(status.as_str()), Duration::ZERO);
    tracing::info!(request_id, status = status.as_u16(), outcome, client = shown::address(client), "request");
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

//! The source of spans, and the queue in which those that have ended wait to be sent.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;

use super::context::{self, TraceContext};
use super::settings::Settings;
use super::span::{Ended, Kind, Origin, Span, Value};
use crate::clock::Time;
use crate::lock::Lock;

/// The most spans that are sent at once: the batch size of the specification's exporters.
pub(super) const BATCH: usize = 512;
/// The most spans that wait.
const MAX_WAITING: usize = 8 * BATCH;
/// The most bytes that they take, roughly, where they hold texts.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Makes spans and keeps those that have ended until they are sent.
pub struct Tracer {
    settings: Settings,
    waiting: Mutex<Waiting>,
    /// Told when there is a whole batch.
    pub(super) batch_ready: Notify,
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<Ended>,
    bytes: usize,
}

/// What became of spans since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The collector has taken them.
    pub sent: u64,
    /// There was no room for them.
    pub dropped: u64,
    /// The collector did not take them.
    pub failed: u64,
}

impl Tracer {
    /// A tracer with these settings; `None` if nobody is to get traces.
    pub fn new(settings: &Settings) -> Option<Arc<Self>> {
        settings.endpoint.as_ref()?;
        Some(Arc::new(Self {
            settings: settings.clone(),
            waiting: Mutex::default(),
            batch_ready: Notify::new(),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }))
    }

    /// The span of a request that arrives now, as a part of its caller's trace if there is one.
    pub fn begin(self: &Arc<Self>, caller: Option<TraceContext>, now: Time) -> Span {
        let at = Instant::now();
        let Some(trace) = caller.map(|caller| caller.trace).or_else(context::new_trace) else {
            return Span::default();
        };
        let Some(span) = context::new_span() else { return Span::default() };
        let sampler = self.settings.sampler;
        let is_sampled = match caller {
            Some(caller) if sampler.follows_caller => caller.is_sampled,
            _ => sampler.records(trace),
        };
        let context = TraceContext { trace, span, is_sampled };
        let unix_nanos = u64::try_from(now.unix_ms()).unwrap_or_default().saturating_mul(1_000_000);
        let origin = Origin { unix_nanos, at };
        let what = (Cow::Borrowed("request"), Kind::Server);
        Span::begin(self.clone(), context, caller.map(|caller| caller.span), what, (origin, at))
    }

    /// What became of spans since the start.
    pub fn counts(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts { sent: read(&self.sent), dropped: read(&self.dropped), failed: read(&self.failed) }
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Queues a span that has ended, if there is room.
    pub(super) fn queue(&self, span: Ended) {
        let bytes = size(&span);
        let mut waiting = self.waiting.locked();
        if waiting.spans.len() >= MAX_WAITING || waiting.bytes + bytes > MAX_WAITING_BYTES {
            drop(waiting);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.spans.push_back(span);
        waiting.bytes += bytes;
        let is_whole = waiting.spans.len() >= BATCH;
        drop(waiting);
        if is_whole {
            self.batch_ready.notify_one();
        }
    }

    /// Takes the oldest spans, at most a batch.
    pub(super) fn take(&self) -> Vec<Ended> {
        let mut waiting = self.waiting.locked();
        let count = waiting.spans.len().min(BATCH);
        let batch: Vec<Ended> = waiting.spans.drain(..count).collect();
        waiting.bytes = waiting.bytes.saturating_sub(batch.iter().map(size).sum());
        batch
    }

    /// Counts spans that the collector has taken.
    pub(super) fn count_sent(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    /// Counts spans that it did not take.
    pub(super) fn count_failed(&self, spans: u64) {
        self.failed.fetch_add(spans, Ordering::Relaxed);
    }
}

/// About how many bytes a span takes.
fn size(span: &Ended) -> usize {
    let value = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Texts(texts) => texts.iter().map(String::len).sum(),
        Value::Shared(_) | Value::Count(_) | Value::Amount(_) | Value::Flag(_) => 0,
    };
    size_of::<Ended>()
        + span.attributes.iter().map(|(_, one)| size_of::<(&str, Value)>() + value(one)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracer() -> Arc<Tracer> {
        let endpoint = Some("http://127.0.0.1:4318/v1/traces".to_owned());
        Tracer::new(&Settings { endpoint, ..Settings::default() }).unwrap()
    }

    #[test]
    fn without_an_endpoint_there_are_no_spans() {
        assert!(Tracer::new(&Settings::default()).is_none());
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let tracer = tracer();
        for _ in 0..MAX_WAITING + 3 {
            drop(tracer.begin(None, Time::from_unix_ms(1)));
        }
        assert_eq!(tracer.counts(), Counts { dropped: 3, ..Counts::default() });
        assert_eq!(tracer.take().len(), BATCH);
        let mut long = tracer.begin(None, Time::from_unix_ms(1));
        long.set("text", "x".repeat(MAX_WAITING_BYTES));
        drop(long);
        assert_eq!(tracer.counts().dropped, 4);
        while !tracer.take().is_empty() {}
        assert_eq!(tracer.waiting.locked().bytes, 0);
    }

    #[test]
    fn a_caller_decides_whether_its_trace_is_recorded_and_children_follow() {
        let tracer = tracer();
        let caller = |is_sampled| Some(TraceContext { trace: 7, span: 9, is_sampled });
        let unrecorded = tracer.begin(caller(false), Time::from_unix_ms(1));
        let child = unrecorded.as_parent().child("child", Kind::Client, Instant::now());
        assert!(child.traceparent().unwrap().to_str().unwrap().ends_with("-00"));
        drop((child, unrecorded));
        assert!(tracer.take().is_empty());
        let recorded = tracer.begin(caller(true), Time::from_unix_ms(1));
        drop(recorded.as_parent().child("child", Kind::Client, Instant::now()));
        drop(recorded);
        let [child, parent] = &tracer.take()[..] else { panic!("not two spans") };
        assert_eq!((parent.context.trace, parent.parent), (7, Some(9)));
        assert_eq!((child.context.trace, child.parent), (7, Some(parent.context.span)));
        assert!(parent.start <= child.start && child.end <= parent.end);
    }
}

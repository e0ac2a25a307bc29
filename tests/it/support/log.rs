//! Captures what a server logs during a test.

use std::sync::{Arc, Mutex, OnceLock};
use std::{fmt, io};

use mk::log_scope::LogScope;
use mk::server::Options;
use serde_json::{Value, json};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Format, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The captured log of one thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    /// The whole log.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The parsed lines.
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The lines of finished requests, without durations, which vary between runs.
    pub fn requests(&self) -> Vec<Value> {
        let mut lines: Vec<Value> = self.lines().into_iter().map(|line| line["fields"].clone()).collect();
        lines.retain(|fields| fields["message"] == "request");
        for fields in lines.iter_mut().map(|fields| fields.as_object_mut().unwrap()) {
            for name in ["ms", "first_token_ms"] {
                let taken = fields.remove(name);
                assert!(taken.is_none_or(|ms| ms.is_u64()), "{fields:?}");
            }
        }
        lines
    }

    /// Captures what this thread logs at this level and above, until the guard is dropped.
    pub fn capture(&self, level: &str) -> tracing::subscriber::DefaultGuard {
        // With only one subscriber, `tracing` caches each callsite's interest for good as decided by the first thread
        // to reach it, and the threads of other tests have no subscriber. A second one makes it ask every time.
        static ANOTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default()));
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(WithRequest(tracing_subscriber::fmt::format().json()))
            .with_max_level(LevelFilter::TRACE)
            .with_writer(self.clone())
            .finish()
            .with(format!("mk={level}").parse::<Targets>().unwrap());
        tracing::subscriber::set_default(subscriber)
    }
}

/// The subscriber's own JSON, with the request that a line is about as its span.
struct WithRequest(Format<Json>);

impl<S> FormatEvent<S, JsonFields> for WithRequest
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let mut line: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = LogScope::current().request_id() {
            line["span"] = json!({"name": "request", "id": id});
        }
        writeln!(out, "{line}")
    }
}

/// Serves on this thread, because only its log is captured.
pub fn on_this_thread(options: &mut Options) {
    options.workers = 0;
}

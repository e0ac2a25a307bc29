//! Formats a log line for a terminal: short, wrapped between words, and with the id of the request that it is about at
//! its end.
//!
//! ```text
//! 07:31:50 INFO request GET /verify/v1/health 200 ok client=127.0.0.1 0 ms request_id=req_…
//! ```

use std::fmt::{self, Debug, Write};
use std::io;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::{Paint, Style};
use crate::cli::terminal::wrap::wrap;
use crate::clock::Clock;
use crate::log_scope::LogScope;

/// Where the parts of a time of day (`07:31:50`) are in RFC 3339.
const TIME_OF_DAY: std::ops::Range<usize> = 11..19;

/// Fields whose values tell what they are.
const SELF_EXPLAINING: [&str; 4] = ["method", "path", "status", "outcome"];

/// The name of the field that ends a line.
const REQUEST_ID: &str = "request_id";

/// Formats events as lines of text. The time is UTC, as everywhere.
pub(super) struct TextLines {
    paint: Paint,
    /// The columns where the terminal does not tell.
    width: usize,
}

impl TextLines {
    pub(super) const fn new(paint: Paint, width: usize) -> Self {
        Self { paint, width }
    }

    fn width(&self) -> usize {
        let now = terminal_size::terminal_size_of(io::stderr());
        now.map_or(self.width, |(width, _)| usize::from(width.0))
    }

    fn level(&self, level: Level) -> String {
        match level {
            Level::ERROR => self.paint.apply(Style::False, "ERROR"),
            Level::WARN => self.paint.apply(Style::Open, "WARN"),
            other => other.to_string(),
        }
    }
}

impl<S, N> FormatEvent<S, N> for TextLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let now = Clock::system().now().rfc3339();
        let time = now.get(TIME_OF_DAY).unwrap_or_default();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = LogScope::current();
        if let Some(id) = scope.request_id() {
            fields.request_id = Some(id.to_string());
        }
        let level = *event.metadata().level();
        let text = format!("{level} {}", fields.text());
        let indent = time.len() + 1;
        for (at, row) in wrap(&text, self.width().saturating_sub(indent)).iter().enumerate() {
            match row.strip_prefix(level.as_str()) {
                Some(rest) if at == 0 => writeln!(out, "{time} {}{rest}", self.level(level))?,
                _ => writeln!(out, "{:indent$}{row}", "")?,
            }
        }
        Ok(())
    }
}

/// The message and the fields of an event, sanitized.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
    request_id: Option<String>,
}

impl Fields {
    fn text(&self) -> String {
        let mut text = format!("{}{}", self.message, self.others);
        if let Some(id) = &self.request_id {
            // Fails only without memory.
            let _ = write!(text, " {REQUEST_ID}={}", sanitize::line(id));
        }
        text
    }

    fn add(&mut self, name: &str, value: &str) {
        let value = sanitize::line(value);
        let written = match name {
            "message" => {
                self.message = value.into_owned();
                return;
            }
            REQUEST_ID => {
                self.request_id = Some(value.into_owned());
                return;
            }
            "ms" => write!(self.others, " {value} ms"),
            name if SELF_EXPLAINING.contains(&name) => write!(self.others, " {value}"),
            name if value.is_empty() || value.contains(' ') => write!(self.others, " {name}={value:?}"),
            name => write!(self.others, " {name}={value}"),
        };
        // Fails only without memory.
        let _ = written;
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field.name(), &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::written_by;
    use super::*;

    fn written(paint: Paint, width: usize, work: impl FnOnce()) -> String {
        written_by(
            |lines| {
                let log = tracing_subscriber::fmt().with_writer(lines);
                log.event_format(TextLines::new(paint, width)).finish()
            },
            work,
        )
    }

    #[test]
    fn a_line_is_short_and_ends_with_the_id_of_its_request() {
        let shown = written(Paint::Plain, 100, || {
            tracing::info!(count = 2, "started");
            tracing::info!(
                request_id = "req_1",
                method = "GET",
                path = "/v1/\u{1b}[2J",
                status = 200,
                outcome = "ok",
                ms = 3,
                client = "::1",
                "request"
            );
            LogScope::of_request("req_2".into()).run(|| tracing::warn!(why = "too late", "broke"));
        });
        let lines: Vec<&str> = shown.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        let expected = [
            "INFO started count=2",
            "INFO request GET /v1/\u{fffd}[2J 200 ok 3 ms client=::1 request_id=req_1",
            "WARN broke why=\"too late\" request_id=req_2",
        ];
        assert_eq!(lines, expected);
        assert!(shown.as_bytes()[..9].iter().enumerate().all(|(at, b)| match at {
            2 | 5 => *b == b':',
            8 => *b == b' ',
            _ => b.is_ascii_digit(),
        }));
    }

    #[test]
    fn lines_are_wrapped_between_words_and_only_the_level_is_painted() {
        let shown = written(Paint::Full, 40, || tracing::error!(one = 1, two = 2, "the disk is nearly full"));
        let (first, second) = shown.trim_end().split_once('\n').unwrap();
        assert_eq!(&first[9..], "\x1b[1;31mERROR\x1b[0m the disk is nearly full");
        assert_eq!(second, "         one=1 two=2");
    }
}

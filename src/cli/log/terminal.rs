//! Formats a log line for a terminal, with the id of the request that it is about at its end.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::log_scope::LogScope;

/// Formats events as lines of text.
pub(super) struct TextLines {
    format: Format,
    has_colour: bool,
}

impl TextLines {
    pub(super) fn new(has_colour: bool) -> Self {
        Self { format: Format::default().with_target(false).with_ansi(has_colour), has_colour }
    }
}

impl<S, N> FormatEvent<S, N> for TextLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        out.write_str(line.trim_end_matches('\n'))?;
        if let Some(id) = LogScope::current().request_id() {
            // Like the other fields.
            let name =
                if self.has_colour { "\x1b[3mrequest_id\x1b[0m\x1b[2m=\x1b[0m" } else { "request_id=" };
            write!(out, " {name}{id}")?;
        }
        out.write_char('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::written_by;
    use super::*;

    #[test]
    fn a_line_ends_with_the_id_of_its_request() {
        let written = |has_colour| {
            written_by(
                |lines| {
                    let log = tracing_subscriber::fmt().with_writer(lines).with_ansi(has_colour);
                    log.event_format(TextLines::new(has_colour)).finish()
                },
                || {
                    tracing::info!(count = 2, "started");
                    LogScope::of_request("req_1".into()).run(|| tracing::warn!(count = 3, "broke"));
                },
            )
        };
        let plain = written(false);
        let [first, second] = plain.lines().collect::<Vec<_>>()[..] else { panic!("{plain}") };
        assert!(first.ends_with(" INFO started count=2"), "{first}");
        assert!(second.ends_with(" WARN broke count=3 request_id=req_1"), "{second}");
        let coloured = written(true);
        assert!(coloured.ends_with("\x1b[3mrequest_id\x1b[0m\x1b[2m=\x1b[0mreq_1\n"), "{coloured:?}");
    }
}

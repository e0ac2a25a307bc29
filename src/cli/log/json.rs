//! A line of the log as JSON: `{"timestamp":…,"level":…,` the event's own fields, `"target":…,"span":{…}}`.
//!
//! The subscriber's own form of it builds every value first; a request has twenty fields, and its line was a twentieth
//! of the work that a short completion took. This one writes them where they go. What must hold: whatever the texts
//! contain, a line is one JSON object on one line.

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes events as JSON. Fields of spans are to be written as JSON as well.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
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
        out.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut out)?;
        write!(out, "\",\"level\":\"{}\"", event.metadata().level())?;
        let mut fields = Fields { out: &mut out, outcome: Ok(()) };
        event.record(&mut fields);
        fields.outcome?;
        out.write_str(",\"target\":")?;
        write_text(&mut out, event.metadata().target())?;
        if let Some(span) = context.lookup_current() {
            out.write_str(",\"span\":{\"name\":")?;
            write_text(&mut out, span.name())?;
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>();
            // An object, of which what stands inside is wanted.
            let inside = fields.and_then(|fields| fields.fields.strip_prefix('{')?.strip_suffix('}'));
            if let Some(inside) = inside.filter(|inside| !inside.is_empty()) {
                write!(out, ",{inside}")?;
            }
            out.write_char('}')?;
        }
        out.write_str("}\n")
    }
}

struct Fields<'a, 'w> {
    out: &'a mut Writer<'w>,
    outcome: fmt::Result,
}

impl Fields<'_, '_> {
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.outcome.is_ok() {
            self.outcome = self.try_write(field.name(), value);
        }
    }

    fn try_write(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) -> fmt::Result {
        self.out.write_char(',')?;
        write_text(self.out, name)?;
        self.out.write_char(':')?;
        value(self.out)
    }
}

impl Visit for Fields<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, |out| write_text(out, value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, |out| write!(out, "{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write(field, |out| write!(out, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, |out| write!(out, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no other numbers.
        self.write(
            field,
            |out| if value.is_finite() { write!(out, "{value}") } else { out.write_str("null") },
        );
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.write(field, |out| {
            out.write_char('"')?;
            write!(Escaped(out), "{value:?}")?;
            out.write_char('"')
        });
    }
}

fn write_text(out: &mut Writer<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    Escaped(out).write_str(text)?;
    out.write_char('"')
}

/// Escapes what is written, as the inside of a JSON text.
struct Escaped<'a, 'w>(&'a mut Writer<'w>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let mut rest = text;
        while let Some(at) = rest.as_bytes().iter().position(is_special) {
            let (plain, from) = rest.split_at(at);
            self.0.write_str(plain)?;
            match from.as_bytes()[0] {
                b'"' => self.0.write_str("\\\"")?,
                b'\\' => self.0.write_str("\\\\")?,
                b'\n' => self.0.write_str("\\n")?,
                control => write!(self.0, "\\u{control:04x}")?,
            }
            rest = &from[1..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let memory = Memory::default();
        let writer = memory.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .event_format(JsonLines)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    #[test]
    fn a_line_is_one_object_whatever_it_tells() {
        let nasty = "a\"b\\c\n\r\t\u{0}\u{1f}\u{7f}é😀</script>";
        let lines = logged(|| {
            let span = tracing::info_span!("request", id = nasty);
            let _inside = span.enter();
            tracing::warn!(text = nasty, shown = %nasty, debugged = ?nasty, none = None::<&str>, "told: {nasty}");
            tracing::info!(
                small = -7_i64,
                large = u64::MAX,
                share = 0.000_001_5,
                nothing = f64::NAN,
                yes = true
            );
        });
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(
            (&first["text"], &first["shown"], &first["level"]),
            (&json!(nasty), &json!(nasty), &json!("WARN"))
        );
        assert_eq!(first["debugged"], json!(format!("{nasty:?}")));
        assert_eq!(first["message"], json!(format!("told: {nasty}")));
        assert_eq!(first["span"], json!({"name": "request", "id": nasty}));
        assert!(first.get("none").is_none() && first["timestamp"].as_str().unwrap().ends_with('Z'));
        assert_eq!(first["target"], json!(module_path!()));
        assert_eq!((&second["small"], &second["large"]), (&json!(-7), &json!(u64::MAX)));
        assert_eq!(
            (&second["share"], &second["nothing"], &second["yes"]),
            (&json!(0.000_001_5), &Value::Null, &json!(true))
        );
    }
}

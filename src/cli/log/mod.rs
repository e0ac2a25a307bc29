//! The server's log: text on a terminal, JSON elsewhere; on standard error both ways.
//!
//! Lines are handed to a thread that writes them some at a time, so that no request waits for whoever reads the log (a
//! terminal may be held up by Ctrl-S), or pays a system call for its line. What must hold: lines keep their order and
//! are never mixed; a reader that has stopped costs a bounded amount of memory, is told how many lines it has missed, and
//! does not keep the process from its end; at an orderly end everything is written. A process that is killed loses the
//! lines of its last moment.

mod json;

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::json::{JsonLines, SpanFields};
use super::exit::{Failure, Kind};
use super::globals::Session;
use super::term::Paint;

/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(20);
/// So much is worth a write at once: what waits stays in the processor's cache, however much is logged.
const FULL: usize = 64 * 1024;
/// The most that waits to be written; lines beyond are dropped.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How long a reader that has stopped is waited for at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Heard at no level: one repeats every part of a path as it came, whatever secret stands in it, the other what is told
/// anyway where a connection was wanted.
const QUIET: [&str; 2] = ["warp", "deadpool"];

/// The log of this process, from [`begin`] on. What waits is written when it is dropped.
#[must_use = "the log ends when this is dropped"]
pub(crate) struct Log {
    lines: Lines,
    /// Hears of it, or is left alone, when everything is written.
    written: Receiver<()>,
}

/// What `MK_LOG` wants to be logged.
pub(crate) fn wanted(session: &Session) -> Result<Targets, Failure> {
    let wanted = session.env.text("MK_LOG")?.unwrap_or("info");
    filter(wanted).ok_or_else(|| {
        Failure::usage(format!("MK_LOG: `{wanted}` cannot be understood"))
            .hint("write a level (error, warn, info, debug, trace), or one for a part, such as mk=debug")
    })
}

/// Begins the log of this process, of what is [`wanted`].
pub(crate) fn begin(session: &Session, filter: Targets) -> Result<Log, Failure> {
    let unbegun =
        |cause: &dyn std::fmt::Display| Failure::new(Kind::Other, format!("cannot begin the log: {cause}"));
    let err = session.printer.terminal.err;
    // By default a log that cannot be written is complained about where nobody listens, and that is a panic: every
    // request would fail because nobody reads about it.
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).log_internal_errors(false);
    let lines = Lines::default();
    if err.is_terminal {
        let log = log.with_writer(lines.clone()).with_ansi(err.paint == Paint::Full).with_target(false);
        log.finish().with(filter).try_init().map_err(|cause| unbegun(&cause))?;
        return Log::writing(lines, io::stderr(), dropped_lines).map_err(|cause| unbegun(&cause));
    }
    let log = log.with_ansi(false).fmt_fields(SpanFields).event_format(JsonLines).with_writer(lines.clone());
    log.finish().with(filter).try_init().map_err(|cause| unbegun(&cause))?;
    Log::writing(lines, io::stderr(), json::dropped_lines).map_err(|cause| unbegun(&cause))
}

/// The line for a person that stands for `count` others.
fn dropped_lines(count: u64) -> String {
    format!("{count} lines of the log were dropped, as they were not taken in time\n")
}

/// What is heard. By targets and levels alone: a filter that may also ask for spans is asked at every step into one and
/// out of it. A word that is no level would be the name of a target, and nothing else would be heard: it is a mistake.
fn filter(wanted: &str) -> Option<Targets> {
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_clear = |part: &str| part.contains('=') || is_level(part.trim());
    if wanted.contains('[') || !wanted.split(',').all(is_clear) {
        return None;
    }
    let wanted: Targets = wanted.parse().ok()?;
    let default = wanted.default_level().unwrap_or(LevelFilter::OFF);
    let is_quiet = |target: &str| QUIET.iter().any(|quiet| target.starts_with(quiet));
    let named: Targets = wanted.into_iter().filter(|(target, _)| !is_quiet(target)).collect();
    Some(named.with_default(default).with_targets(QUIET.map(|quiet| (quiet, LevelFilter::OFF))))
}

impl Log {
    /// Writes `lines` to `out`; of those that found no room, `dropped` tells how many they were.
    fn writing(
        lines: Lines,
        mut out: impl Write + Send + 'static,
        dropped: fn(u64) -> String,
    ) -> io::Result<Self> {
        let (ends, written) = mpsc::channel();
        let writer = lines.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            let _ends: mpsc::Sender<()> = ends;
            writer.write_to(&mut out, dropped);
        })?;
        Ok(Self { lines, written })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.waiting().is_over = true;
        self.lines.0.changed.notify_one();
        // Nothing is sent: the other half goes with its thread.
        let _ = self.written.recv_timeout(LAST_WORDS);
    }
}

/// Lines on their way to the log; clones share them.
#[derive(Clone, Default)]
struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Lines that found no room.
    dropped: u64,
    is_over: bool,
}

impl Lines {
    /// Writes lines as they come, until it is over.
    fn write_to(&self, out: &mut impl Write, dropped_lines: fn(u64) -> String) {
        let mut taken = Vec::new();
        loop {
            let mut waiting = self.waiting();
            while waiting.bytes.is_empty() && !waiting.is_over {
                waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let has_time = |waiting: &mut Waiting| waiting.bytes.len() < FULL && !waiting.is_over;
            let gathered = self.0.changed.wait_timeout_while(waiting, GATHER, has_time);
            (waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
            let is_over = waiting.is_over;
            let dropped = std::mem::take(&mut waiting.dropped);
            std::mem::swap(&mut waiting.bytes, &mut taken);
            drop(waiting);
            // A log that cannot be written must not keep the server from its work.
            let _ = out.write_all(&taken);
            if dropped > 0 {
                let _ = out.write_all(dropped_lines(dropped).as_bytes());
            }
            taken.clear();
            if is_over {
                return;
            }
        }
    }

    /// Also after a panic elsewhere: lines are added whole.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes one whole line at a time, as the subscriber writes them.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.waiting();
        if waiting.bytes.len() + line.len() > MOST_BYTES {
            waiting.dropped += 1;
            return Ok(line.len());
        }
        let before = waiting.bytes.len();
        waiting.bytes.extend_from_slice(line);
        let is_heard = before == 0 || (before < FULL && waiting.bytes.len() >= FULL);
        drop(waiting);
        if is_heard {
            self.0.changed.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Sent(Sender<Vec<u8>>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_repeats_secrets_is_heard_at_no_level_and_a_mistyped_level_is_told() {
        for wanted in ["trace", "warp=trace", "info,warp::filters=trace", "w=trace,warp::filters::path=trace"]
        {
            let filter = filter(wanted).unwrap();
            for target in ["warp", "warp::filters::path"] {
                assert!(!filter.would_enable(target, &tracing::Level::ERROR), "{wanted}: {target}");
            }
        }
        let heard = |wanted, target| filter(wanted).unwrap().would_enable(target, &tracing::Level::DEBUG);
        assert!(heard("info,mk=debug", "mk::server") && !heard("info,mk=debug", "hyper"));
        assert!(heard("DEBUG", "hyper") && heard("mk=trace", "mk") && !heard("off", "mk"));
        for mistyped in ["inof", "warning", "info,nonsense", "mk=loud", "mk[x]=debug", ",", "info,"] {
            assert!(filter(mistyped).is_none(), "{mistyped}");
        }
    }

    #[test]
    fn everything_is_written_in_order_and_at_the_end() {
        let (sender, receiver) = channel();
        let lines = Lines::default();
        let log = Log::writing(lines.clone(), Sent(sender), dropped_lines).unwrap();
        (&lines).write_all(b"first\n").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"first\n", "written although nothing ends");
        let mut expected = Vec::new();
        for number in 0..1000 {
            let line = format!("line {number}\n");
            (&lines).write_all(line.as_bytes()).unwrap();
            expected.extend_from_slice(line.as_bytes());
        }
        drop(log);
        assert_eq!(receiver.iter().flatten().collect::<Vec<u8>>(), expected);
    }

    #[test]
    fn a_reader_who_has_stopped_does_not_keep_the_process_from_its_end() {
        struct Stopped(Receiver<()>);

        impl Write for Stopped {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let (never, stopped) = channel();
        let lines = Lines::default();
        let log = Log::writing(lines.clone(), Stopped(stopped), dropped_lines).unwrap();
        (&lines).write_all(b"line\n").unwrap();
        drop(log);
        drop(never);
    }

    #[test]
    fn a_reader_who_has_stopped_misses_lines_and_is_told_how_many() {
        let lines = Lines::default();
        let line = vec![b'x'; MOST_BYTES / 4];
        for _ in 0..7 {
            (&lines).write_all(&line).unwrap();
        }
        lines.waiting().is_over = true;
        let mut written = Vec::new();
        lines.write_to(&mut written, json::dropped_lines);
        let notice = written.split_off(4 * line.len());
        assert!(notice.ends_with(b"}\n"));
        let notice: serde_json::Value = serde_json::from_slice(&notice).unwrap();
        assert_eq!((&notice["level"], &notice["lines"]), (&"WARN".into(), &3.into()), "{notice}");
        for field in ["timestamp", "message", "target"] {
            assert!(notice[field].is_string(), "{notice}");
        }
    }
}

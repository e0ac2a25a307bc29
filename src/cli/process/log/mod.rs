//! The server's log: text on a terminal, JSON elsewhere; always on standard error.
//!
//! Lines are handed to a thread that writes them in batches, so that no request waits for whoever reads the log (Ctrl-S
//! stops a terminal), or pays for a system call per line. Lines keep their order and are never interleaved. A stalled
//! reader costs a bounded amount of memory, is told how many lines it missed, and does not keep the process from
//! exiting. At an orderly shutdown everything is written; a process that is killed loses the lines of its last moment.

mod json;
mod terminal;

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::json::{JsonLines, SpanFields};
use self::terminal::TextLines;
use super::exit::{Failure, Kind};
use crate::cli::args::globals::Session;
use crate::lock::Lock;

/// How long lines are collected before they are written.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// For how many such delays without a line the thread goes on looking for one. Afterwards it sleeps until it is woken,
/// which costs the request that logs the next line several microseconds.
const IDLE_DELAYS: u32 = 10;
/// The size at which a batch is written at once. This small, it stays in the processor's cache, however much is logged.
const BATCH_BYTES: usize = 64 * 1024;
/// The most bytes that may wait to be written; further lines are dropped.
const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;

/// How long a stalled reader is waited for at shutdown.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// Targets that are never logged: one repeats every path as received, with any secret in it, the other only repeats
/// what is reported anyway where a connection was requested.
const SILENCED_TARGETS: [&str; 2] = ["warp", "deadpool"];

/// The log of this process, from [`begin`] on. Pending lines are written when it is dropped.
#[must_use = "the log ends when this is dropped"]
pub(crate) struct Log {
    lines: Lines,
    /// Disconnected when everything is written.
    written: Receiver<()>,
}

/// The filter that `MK_LOG` sets.
pub(crate) fn filter_from_env(session: &Session) -> Result<Targets, Failure> {
    let wanted = session.env.text("MK_LOG")?.unwrap_or("info");
    filter(wanted).ok_or_else(|| {
        Failure::usage(format!("MK_LOG: `{wanted}` is not valid"))
            .hint("write a level (error, warn, info, debug, trace), or one for a part, such as mk=debug")
    })
}

/// Starts the log of this process with a filter from [`filter_from_env`].
pub(crate) fn begin(session: &Session, filter: Targets) -> Result<Log, Failure> {
    let failure =
        |cause: &dyn std::fmt::Display| Failure::new(Kind::Other, format!("cannot start logging: {cause}"));
    let err = session.printer.terminal.err;
    // By default, a failure to write the log is reported to standard error, which panics if nobody reads that: every
    // request would fail because nobody reads about it.
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).log_internal_errors(false);
    let lines = Lines::default();
    if err.is_terminal {
        let text = TextLines::new(err.paint, session.printer.terminal.full_width);
        let log = log.event_format(text).with_writer(lines.clone());
        log.finish().with(filter).try_init().map_err(|cause| failure(&cause))?;
        return Log::start(lines, io::stderr(), dropped_lines).map_err(|cause| failure(&cause));
    }
    let log = log.with_ansi(false).fmt_fields(SpanFields).event_format(JsonLines).with_writer(lines.clone());
    log.finish().with(filter).try_init().map_err(|cause| failure(&cause))?;
    Log::start(lines, io::stderr(), json::dropped_lines).map_err(|cause| failure(&cause))
}

/// The line that tells a person how many others are missing.
fn dropped_lines(count: u64) -> String {
    format!("{count} log lines were dropped, because they were not read in time\n")
}

/// The filter by targets and levels alone: one that may also depend on spans is consulted at every entry into one and
/// exit from it. A word that is not a level would be taken for a target, and nothing else would be logged: that is
/// refused as a mistake.
fn filter(wanted: &str) -> Option<Targets> {
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_clear = |part: &str| part.contains('=') || is_level(part.trim());
    if wanted.contains('[') || !wanted.split(',').all(is_clear) {
        return None;
    }
    let wanted: Targets = wanted.parse().ok()?;
    let default = wanted.default_level().unwrap_or(LevelFilter::OFF);
    let is_silenced = |target: &str| SILENCED_TARGETS.iter().any(|quiet| target.starts_with(quiet));
    let named: Targets = wanted.into_iter().filter(|(target, _)| !is_silenced(target)).collect();
    Some(named.with_default(default).with_targets(SILENCED_TARGETS.map(|quiet| (quiet, LevelFilter::OFF))))
}

impl Log {
    /// Starts the thread that writes `lines` to `out`. `dropped` makes the line that stands for those that found no
    /// room.
    fn start(
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
        let mut pending = self.lines.0.pending.locked();
        (pending.is_closed, pending.is_asleep) = (true, false);
        drop(pending);
        self.lines.0.changed.notify_one();
        // Nothing is ever sent: the sender is dropped with its thread.
        let _ = self.written.recv_timeout(LAST_WRITE_TIMEOUT);
    }
}

/// Lines on their way to the log; clones share them.
#[derive(Clone, Default)]
struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Number of lines dropped for lack of space.
    dropped: u64,
    is_closed: bool,
    /// Whether the thread has to be woken for the next line.
    is_asleep: bool,
}

impl Pending {
    const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped == 0
    }
}

impl Lines {
    /// Writes lines as they arrive, until shutdown.
    fn write_to(&self, out: &mut impl Write, dropped_lines: fn(u64) -> String) {
        let mut taken = Vec::new();
        let mut idle_delays = 0;
        loop {
            let has_time = |pending: &mut Pending| pending.bytes.len() < BATCH_BYTES && !pending.is_closed;
            let gathered = self.0.changed.wait_timeout_while(self.0.pending.locked(), BATCH_DELAY, has_time);
            let (mut pending, _) = gathered.unwrap_or_else(PoisonError::into_inner);
            if pending.is_empty() && !pending.is_closed {
                idle_delays += 1;
                if idle_delays >= IDLE_DELAYS {
                    pending.is_asleep = true;
                    let awake = self.0.changed.wait_while(pending, |pending| pending.is_asleep);
                    drop(awake.unwrap_or_else(PoisonError::into_inner));
                }
                continue;
            }
            idle_delays = 0;
            let is_closed = pending.is_closed;
            let dropped = std::mem::take(&mut pending.dropped);
            std::mem::swap(&mut pending.bytes, &mut taken);
            drop(pending);
            // A log that cannot be written must not keep the server from its work.
            let _ = out.write_all(&taken);
            if dropped > 0 {
                let _ = out.write_all(dropped_lines(dropped).as_bytes());
            }
            taken.clear();
            if is_closed {
                return;
            }
        }
    }
}

/// Receives one whole line per call from the subscriber.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut pending = self.0.pending.locked();
        if pending.bytes.len() + line.len() > MAX_PENDING_BYTES {
            pending.dropped += 1;
            return Ok(line.len());
        }
        let before = pending.bytes.len();
        pending.bytes.extend_from_slice(line);
        let is_full = before < BATCH_BYTES && pending.bytes.len() >= BATCH_BYTES;
        let needs_wakeup = std::mem::take(&mut pending.is_asleep) || is_full;
        drop(pending);
        if needs_wakeup {
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

    /// What is written for what `work` logs, by the subscriber that `format` makes.
    pub(super) fn written_by<S>(format: impl FnOnce(Lines) -> S, work: impl FnOnce()) -> String
    where
        S: tracing::Subscriber + Send + Sync + 'static,
    {
        let lines = Lines::default();
        tracing::subscriber::with_default(format(lines.clone()), work);
        String::from_utf8(lines.0.pending.locked().bytes.clone()).unwrap()
    }

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
    fn targets_that_repeat_secrets_are_never_logged_and_a_mistyped_level_is_refused() {
        for wanted in ["trace", "warp=trace", "info,warp::filters=trace", "w=trace,warp::filters::path=trace"]
        {
            let filter = filter(wanted).unwrap();
            for target in ["warp", "warp::filters::path"] {
                assert!(!filter.would_enable(target, &tracing::Level::ERROR), "{wanted}: {target}");
            }
        }
        let is_enabled =
            |wanted, target| filter(wanted).unwrap().would_enable(target, &tracing::Level::DEBUG);
        assert!(is_enabled("info,mk=debug", "mk::server") && !is_enabled("info,mk=debug", "hyper"));
        assert!(is_enabled("DEBUG", "hyper") && is_enabled("mk=trace", "mk") && !is_enabled("off", "mk"));
        for mistyped in ["inof", "warning", "info,nonsense", "mk=loud", "mk[x]=debug", ",", "info,"] {
            assert!(filter(mistyped).is_none(), "{mistyped}");
        }
    }

    #[test]
    fn everything_is_written_in_order_and_at_the_end() {
        let (sender, receiver) = channel();
        let lines = Lines::default();
        let log = Log::start(lines.clone(), Sent(sender), dropped_lines).unwrap();
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
    fn a_stalled_reader_does_not_keep_the_process_from_exiting() {
        struct Stalled(Receiver<()>);

        impl Write for Stalled {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let (never, stalled) = channel();
        let lines = Lines::default();
        let log = Log::start(lines.clone(), Stalled(stalled), dropped_lines).unwrap();
        (&lines).write_all(b"line\n").unwrap();
        drop(log);
        drop(never);
    }

    #[test]
    fn a_stalled_reader_misses_lines_and_is_told_how_many() {
        let lines = Lines::default();
        let line = vec![b'x'; MAX_PENDING_BYTES / 4];
        for _ in 0..7 {
            (&lines).write_all(&line).unwrap();
        }
        lines.0.pending.locked().is_closed = true;
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

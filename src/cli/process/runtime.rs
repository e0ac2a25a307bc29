//! Runs the asynchronous part of a client command until it completes, the person presses Ctrl-C, or whoever started it
//! sends SIGTERM.
//!
//! The first of these signals drops the work, which closes its connections, thereby ends the server's work for it, and
//! erases its progress display; the process then dies of the signal once any JSON document that was asked for is
//! written. The second signal ends the process at once. If nothing reacts to the first one, for example because output
//! waits for a stalled reader, the process dies of it shortly after: those who send SIGTERM often send it only once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::exit::{Failure, Kind};
use crate::cli::terminal::printer::Printer;

/// POSIX's number of the signal for Ctrl-C.
pub(crate) const SIGINT: i32 = 2;
/// POSIX's number of a supervisor's request to terminate.
pub(crate) const SIGTERM: i32 = 15;

impl Kind {
    /// The signal by which somebody stopped the command, and of which the process must die.
    pub(crate) const fn stop_signal(self) -> Option<i32> {
        match self {
            Self::Interrupted => Some(SIGINT),
            Self::Terminated => Some(SIGTERM),
            _ => None,
        }
    }
}

/// How long a command may take for an orderly exit. Whatever takes longer waits for a reader that does not read.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Whether Ctrl-C was pressed since the first call that listened for it.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// The same for SIGTERM.
static TERMINATED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The work of a command: boxed, so that a runtime is not compiled for each command anew (1.5 % of the program).
type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + 'a>>;

/// Runs `work` on a single-threaded runtime.
pub(crate) fn run<T>(
    printer: &Printer,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    interruptible(printer, Box::pin(work))
}

fn interruptible<T>(printer: &Printer, work: Work<'_, T>) -> Result<T, Failure> {
    stop_flag(&INTERRUPTED, SIGINT);
    terminable(Box::pin(async {
        let outcome = tokio::select! {
            // Listening begins before the work does, so that Ctrl-C is handled from the first moment on.
            biased;
            () = interrupted() => None,
            outcome = work => Some(outcome),
        };
        // The work is dropped by now, and its progress display erased.
        outcome.unwrap_or_else(|| {
            printer.notice("interrupted");
            Err(Failure::new(Kind::Interrupted, "interrupted"))
        })
    }))
}

/// A runtime on this thread.
pub(crate) fn build() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|cause| Failure::new(Kind::Other, format!("cannot start: {cause}")).caused_by(cause))
}

/// Runs `work` that handles Ctrl-C itself, by [`ctrl_c`].
pub(crate) fn run_handling_ctrl_c<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    terminable(Box::pin(work))
}

fn terminable<T>(work: Work<'_, T>) -> Result<T, Failure> {
    stop_flag(&TERMINATED, SIGTERM);
    let runtime = build()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            () = terminated() => Err(Failure::new(Kind::Terminated, "terminated")),
            outcome = work => outcome,
        }
    });
    // Do not wait for threads that still read standard input.
    runtime.shutdown_background();
    outcome
}

/// Resolves once Ctrl-C has been pressed, during this work or between two works of one command; the second one ends the
/// process.
async fn interrupted() {
    seen_or(stop_flag(&INTERRUPTED, SIGINT), ctrl_c()).await;
}

/// The same for SIGTERM.
async fn terminated() {
    seen_or(stop_flag(&TERMINATED, SIGTERM), sigterm()).await;
}

/// The signal that asked the command to stop, if one arrived during or after its work: the process must die of it even
/// if the work has completed meanwhile.
pub(crate) fn received_stop_signal() -> Option<i32> {
    let was_received =
        |seen: &OnceLock<Arc<AtomicBool>>| seen.get().is_some_and(|seen| seen.load(Ordering::SeqCst));
    let signals = [(&TERMINATED, SIGTERM), (&INTERRUPTED, SIGINT)];
    signals.into_iter().find(|(seen, _)| was_received(seen)).map(|(_, signal)| signal)
}

/// Starts to handle a stop signal at the first call: the signal sets the returned flag, and soon after kills the
/// process.
fn stop_flag(seen: &'static OnceLock<Arc<AtomicBool>>, signal: i32) -> &'static AtomicBool {
    seen.get_or_init(|| {
        let seen = exit_on_second(&[signal]);
        // If this fails, the second signal still ends a process that does not react.
        let _ = die_after_grace_period(signal);
        seen
    })
}

/// Lets the process die of the first such signal after the grace period for an orderly exit.
#[cfg(unix)]
fn die_after_grace_period(signal: i32) -> std::io::Result<()> {
    use std::io::Read;
    let (mut receiver, sender) = std::os::unix::net::UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal, sender)?;
    // A thread of its own, as the others may be stuck in a write.
    std::thread::Builder::new().name("last-words".to_owned()).spawn(move || {
        if receiver.read_exact(&mut [0]).is_ok() {
            std::thread::sleep(GRACE_PERIOD);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// There are no such signals on other systems.
#[cfg(not(unix))]
fn die_after_grace_period(_signal: i32) -> std::io::Result<()> {
    Ok(())
}

/// Waits until stop signals that this process was sent already are handled, so that their flags are set. The thread
/// that handles them may be scheduled later than one that sees another effect of the same Ctrl-C.
#[cfg(target_os = "linux")]
pub(crate) fn await_pending_signals() {
    const STEP: Duration = Duration::from_millis(1);
    const STEPS: u32 = 200;
    for _ in 0..STEPS {
        if received_stop_signal().is_some() || !is_stop_signal_under_way() {
            break;
        }
        std::thread::sleep(STEP);
    }
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn await_pending_signals() {}

/// Whether the process was sent a stop signal that no thread has handled yet, by proc(5): it is pending, or blocked in
/// the thread that is handling it.
#[cfg(target_os = "linux")]
fn is_stop_signal_under_way() -> bool {
    let holds = |status: &str, field: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
        let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        [SIGINT, SIGTERM].into_iter().any(|signal| mask & (1 << (signal - 1)) != 0)
    };
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    threads.flatten().any(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        ["ShdPnd:", "SigPnd:", "SigBlk:"].into_iter().any(|field| holds(&status, field))
    })
}

/// Resolves once the signal has been `seen`, or `next` reports another one.
async fn seen_or(seen: &AtomicBool, next: impl Future<Output = ()>) {
    let mut next = pin!(next);
    // The flag is set before any other effect of the signal, such as the end of a pipe whose writer dies of it. It is
    // checked only once `next` is listening, or a signal between the two would be lost.
    poll_fn(|context| {
        let was_received = next.as_mut().poll(context).is_ready() || seen.load(Ordering::SeqCst);
        if was_received { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Resolves at the next Ctrl-C; never where signals cannot be listened to, so that they take their default action.
pub(crate) async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The same for SIGTERM.
#[cfg(unix)]
async fn sigterm() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminations) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    if terminations.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// There is no such signal on other systems.
#[cfg(not(unix))]
async fn sigterm() {
    std::future::pending().await
}

/// Lets the second of these signals end the process at once, and returns the flag that the first one sets. The order of
/// registration matters: the signal that sets the flag must not be the one that acts on it.
pub(crate) fn exit_on_second(signals: &[i32]) -> Arc<AtomicBool> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in signals {
        if signal_hook::flag::register_conditional_default(*signal, Arc::clone(&seen)).is_ok() {
            // If this fails, the first signal still ends the work, and only the second one has no effect.
            let _ = signal_hook::flag::register(*signal, Arc::clone(&seen));
        }
    }
    seen
}

//! Runs the asynchronous part of a client command, until it ends, the person presses Ctrl-C, or whoever started it has it
//! end (SIGTERM).
//!
//! At the first of these signals the work is dropped, which closes its connections and thereby ends the server's work for
//! it, and erases what shows its progress; the process then dies of the signal, once a document that was asked for has been
//! written. The second one ends it at once, whatever it is doing. Where nobody hears the first one, as while output waits for
//! a reader that has stalled, the process dies of it a little later: those who send SIGTERM often send it once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use super::exit::{Failure, Kind};
use super::printer::Printer;

/// POSIX's number of Ctrl-C.
pub(crate) const SIGINT: i32 = 2;
/// POSIX's number of a supervisor's request to end.
pub(crate) const SIGTERM: i32 = 15;

/// How long a command may take to end in order. What takes longer waits for somebody who does not read.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Whether Ctrl-C was pressed since a work first listened for it.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// The same for SIGTERM.
static TERMINATED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Runs `work` on a runtime of this thread.
pub(crate) fn run<T>(
    printer: &Printer,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    listen(&INTERRUPTED, SIGINT);
    run_listening(async {
        let outcome = tokio::select! {
            // Listening begins before the work does: Ctrl-C finds somebody to clean up from the first moment on.
            biased;
            () = interrupted() => None,
            outcome = work => Some(outcome),
        };
        // The work is dropped by now, and its progress erased.
        outcome.unwrap_or_else(|| {
            printer.notice("interrupted");
            Err(Failure::new(Kind::Interrupted, "interrupted"))
        })
    })
}

/// Runs `work` that listens for Ctrl-C itself, by [`pressed`].
pub(crate) fn run_listening<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    listen(&TERMINATED, SIGTERM);
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = built
        .map_err(|cause| Failure::new(Kind::Other, format!("cannot start: {cause}")).caused_by(cause))?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            () = terminated() => Err(Failure::new(Kind::Terminated, "terminated")),
            outcome = work => outcome,
        }
    });
    // Threads that still read standard input would be waited for otherwise.
    runtime.shutdown_background();
    outcome
}

/// Resolves once Ctrl-C has been pressed, in this work or between works of one command; the second one ends the process.
async fn interrupted() {
    seen_or(listen(&INTERRUPTED, SIGINT), pressed()).await;
}

/// The same for SIGTERM.
async fn terminated() {
    seen_or(listen(&TERMINATED, SIGTERM), asked_to_end()).await;
}

/// The signal that asked a command to end, if one came while or after it worked: it is to die of that even if it has come
/// to its end meanwhile.
pub(crate) fn ended_by() -> Option<i32> {
    let has_come =
        |seen: &OnceLock<Arc<AtomicBool>>| seen.get().is_some_and(|seen| seen.load(Ordering::SeqCst));
    let asked = [(&TERMINATED, SIGTERM), (&INTERRUPTED, SIGINT)];
    asked.into_iter().find(|(seen, _)| has_come(seen)).map(|(_, signal)| signal)
}

/// From the first call on the signal asks to end: it sets the flag that is returned, and has the process die of it soon.
fn listen(seen: &'static OnceLock<Arc<AtomicBool>>, signal: i32) -> &'static AtomicBool {
    seen.get_or_init(|| {
        let seen = end_at_second(&[signal]);
        // Without it the second signal still ends what hears none.
        let _ = die_soon_after(signal);
        seen
    })
}

/// Has the process die of the first of these signals, once it had its time to end in order.
#[cfg(unix)]
fn die_soon_after(signal: i32) -> std::io::Result<()> {
    use std::io::Read;
    let (mut heard, tells) = std::os::unix::net::UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal, tells)?;
    // A thread, as the others may be stuck in a write.
    std::thread::Builder::new().name("last-words".to_owned()).spawn(move || {
        if heard.read_exact(&mut [0]).is_ok() {
            std::thread::sleep(LAST_WORDS);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// Nobody sends one there.
#[cfg(not(unix))]
fn die_soon_after(_signal: i32) -> std::io::Result<()> {
    Ok(())
}

/// Resolves once a signal has been seen, or comes `next`.
async fn seen_or(seen: &AtomicBool, next: impl Future<Output = ()>) {
    let mut next = pin!(next);
    // The flag is set before whatever else the signal brings about, such as the end of a pipe whose writer dies of it.
    // It is looked at once the next one is listened for, or one that comes between would be lost.
    poll_fn(|context| {
        let has_come = next.as_mut().poll(context).is_ready() || seen.load(Ordering::SeqCst);
        if has_come { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Resolves at the next Ctrl-C; never where signals cannot be listened to, so that they act by default.
pub(crate) async fn pressed() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The same for SIGTERM.
#[cfg(unix)]
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut asked) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    if asked.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Nobody asks in this way elsewhere.
#[cfg(not(unix))]
async fn asked_to_end() {
    std::future::pending().await
}

/// Lets the second of these signals end the process at once. The order matters: the signal that sets the flag is
/// not yet the one that acts on it. Returns the flag.
pub(crate) fn end_at_second(signals: &[i32]) -> Arc<AtomicBool> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in signals {
        if signal_hook::flag::register_conditional_default(*signal, Arc::clone(&seen)).is_ok() {
            // Without it the first signal still ends the work, and only the second one does nothing more.
            let _ = signal_hook::flag::register(*signal, Arc::clone(&seen));
        }
    }
    seen
}

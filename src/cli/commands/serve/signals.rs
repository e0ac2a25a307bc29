//! The signals that end a server: the first one requests a shutdown, the second one ends its grace period, the third
//! one kills the process.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::cli::process::exit::{Failure, Kind};
use crate::cli::process::runtime;

/// What requested the shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShutdownCause {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, which supervisors send for an orderly shutdown.
    Terminate,
}

/// What the signals say, as they come.
pub(super) struct ShutdownSignals {
    /// Resolves at the first one.
    pub(super) requested: oneshot::Receiver<ShutdownCause>,
    /// Cancelled by the second one.
    pub(super) abort: CancellationToken,
}

/// Starts to listen. The third signal kills the process by itself.
///
/// # Errors
/// If signals cannot be listened to.
#[cfg(unix)]
pub(super) fn listen() -> Result<ShutdownSignals, Failure> {
    use signal_hook::iterator::Signals;
    let (request, requested) = oneshot::channel();
    let abort = CancellationToken::new();
    let second = abort.clone();
    let follow = |mut signals: Signals| {
        // A thread of its own, as the runtime may be what does not react.
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut signals = signals.forever();
            let cause = match signals.next() {
                Some(runtime::SIGINT) => ShutdownCause::Interrupt,
                _ => ShutdownCause::Terminate,
            };
            // Not received by a server that has ended already.
            let _ = request.send(cause);
            signals.next();
            second.cancel();
            if let Some(third) = signals.next() {
                let _ = signal_hook::low_level::emulate_default_handler(third);
            }
        })
    };
    Signals::new([runtime::SIGINT, runtime::SIGTERM]).and_then(follow).map_err(|cause| {
        Failure::new(Kind::Other, format!("cannot listen for signals: {cause}")).caused_by(cause)
    })?;
    Ok(ShutdownSignals { requested, abort })
}

/// Starts to listen to Ctrl-C. The third one kills the process by itself.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(super) fn listen() -> Result<ShutdownSignals, Failure> {
    let (request, requested) = oneshot::channel();
    let abort = CancellationToken::new();
    let second = abort.clone();
    tokio::spawn(async move {
        runtime::ctrl_c().await;
        let _ = request.send(ShutdownCause::Interrupt);
        runtime::ctrl_c().await;
        second.cancel();
        runtime::ctrl_c().await;
        let _ = signal_hook::low_level::emulate_default_handler(runtime::SIGINT);
    });
    Ok(ShutdownSignals { requested, abort })
}

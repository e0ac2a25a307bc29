//! The signals that end a server: the first one requests a shutdown, the second one kills the process.

use crate::cli::runtime;

/// What requested the shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShutdownCause {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, which supervisors send for an orderly shutdown.
    Terminate,
}

/// Starts to listen, and resolves at the first signal that requests a shutdown; the second one kills the process by
/// itself.
#[cfg(unix)]
pub(super) fn shutdown_signal() -> impl Future<Output = ShutdownCause> {
    use tokio::signal::unix::{SignalKind, signal};
    let streams = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    runtime::exit_on_second(&[runtime::SIGINT, runtime::SIGTERM]);
    async {
        let (Ok(mut interrupt), Ok(mut terminate)) = streams else {
            // If signals cannot be listened to, they take their default action and end the server.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => ShutdownCause::Interrupt,
            _ = terminate.recv() => ShutdownCause::Terminate,
        }
    }
}

/// Resolves at the first Ctrl-C; the second one kills the process by itself.
#[cfg(not(unix))]
pub(super) async fn shutdown_signal() -> ShutdownCause {
    runtime::exit_on_second(&[runtime::SIGINT]);
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    ShutdownCause::Interrupt
}

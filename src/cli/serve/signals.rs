//! The signals that end a server: the first one requests a shutdown, the second one kills the process.

use crate::cli::runtime;

/// What requested the shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndedBy {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, which supervisors send for an orderly shutdown.
    Terminate,
}

/// Starts to listen, and resolves at the first signal that requests a shutdown; the second one kills the process by
/// itself.
#[cfg(unix)]
pub(super) fn signalled() -> impl Future<Output = EndedBy> {
    use tokio::signal::unix::{SignalKind, signal};
    let heard = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    runtime::end_at_second(&[runtime::SIGINT, runtime::SIGTERM]);
    async {
        let (Ok(mut interrupt), Ok(mut terminate)) = heard else {
            // If signals cannot be listened to, they take their default action and end the server.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => EndedBy::Interrupt,
            _ = terminate.recv() => EndedBy::Terminate,
        }
    }
}

/// Resolves at the first Ctrl-C; the second one kills the process by itself.
#[cfg(not(unix))]
pub(super) async fn signalled() -> EndedBy {
    runtime::end_at_second(&[runtime::SIGINT]);
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    EndedBy::Interrupt
}

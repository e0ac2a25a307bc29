//! The signals that end a server: the first one asks it to, the second one does.

use crate::cli::runtime;

/// What ended the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndedBy {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, as supervisors send it: an orderly end.
    Terminate,
}

/// Resolves at the first signal, from this call on, that asks the server to end; the second one ends it by itself.
#[cfg(unix)]
pub(super) fn signalled() -> impl Future<Output = EndedBy> {
    use tokio::signal::unix::{SignalKind, signal};
    let heard = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    runtime::end_at_second(&[runtime::SIGINT, runtime::SIGTERM]);
    async {
        let (Ok(mut interrupt), Ok(mut terminate)) = heard else {
            // Signals that cannot be listened to act by default, and end the server.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => EndedBy::Interrupt,
            _ = terminate.recv() => EndedBy::Terminate,
        }
    }
}

/// Resolves at the first Ctrl-C; the second one ends the server by itself.
#[cfg(not(unix))]
pub(super) async fn signalled() -> EndedBy {
    runtime::end_at_second(&[runtime::SIGINT]);
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    EndedBy::Interrupt
}

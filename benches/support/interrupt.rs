//! Signals that end a bench: it drops its handles then, and what it started ends with them.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// What becomes of `work`, or the exit code of a signal that comes before its end.
pub(crate) async fn or_interrupted(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    tokio::select! {
        // A Ctrl-C reaches what was started as well, and is why that answers no more.
        biased;
        code = interrupted() => code,
        code = work => code,
    }
}

/// Resolves at a signal that ends the bench, with its exit code.
async fn interrupted() -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let signal = tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt(),
        _ = terminate.recv() => SignalKind::terminate(),
        _ = hangup.recv() => SignalKind::hangup(),
    };
    Ok(ExitCode::from(128 + u8::try_from(signal.as_raw_value())?))
}

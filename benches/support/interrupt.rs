//! Signals that end a bench: its handles are dropped, which ends the processes it has started.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// The result of `work`, or the exit code of a signal that arrives before its end.
pub(crate) async fn or_interrupted(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    tokio::select! {
        // A Ctrl-C also reaches the child processes, whose failing requests must not be reported instead.
        biased;
        code = interrupted() => code,
        code = work => code,
    }
}

/// Resolves to the exit code at a signal that ends the bench.
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

//! SIGHUP: `mk serve` reads its configuration again.
//!
//! Reloads run one at a time, and the last signal is always followed by one, so that the last state of the files wins.
//! A configuration that `mk serve` would not start with changes nothing at all. The log names the settings that
//! changed, never their values.
//!
//! The system also sends SIGHUP when the terminal that a program was started on goes away. That is not a request to
//! reload: the server ends, as any program in that terminal does.

use std::fs::File;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::exit::Failure;
#[cfg(unix)]
use super::supervisor;
use crate::app::AppState;
use crate::cli::target::embedded::cannot_start;
use crate::clock::Clock;
use crate::config::{Env, ServerArgs, ServerConfig, changes, keep_fixed, load_server};
use crate::lock::Lock;
use crate::server::{Certificate, Tls};

/// A terminal may disappear only a moment after its signal.
const HANGUP_DELAY: Duration = Duration::from_millis(200);

/// The state that the server runs with.
pub(crate) struct Running {
    /// The configuration in force.
    pub(crate) config: ServerConfig,
    /// Whether it listens at its configured address rather than on a socket that was passed.
    pub(crate) has_own_listener: bool,
}

/// What a reload needs; clones share it.
#[derive(Clone)]
pub(crate) struct Reloader {
    pub(crate) args: ServerArgs,
    pub(crate) env: Env,
    pub(crate) app: Arc<AppState>,
    pub(crate) tls: Option<Tls>,
    pub(crate) running: Arc<Mutex<Running>>,
}

impl Reloader {
    /// Reloads the configuration and logs the outcome. Blocking.
    fn reload(&self) {
        if let Err(failure) = self.apply() {
            let failure = failure.hint("use `mk serve --check` to check a file before a reload");
            tracing::error!(
                hints = failure.hints.join("; "),
                "configuration not reloaded; the old one stays in force: {failure}"
            );
        }
    }

    /// Does everything that can fail before anything is changed.
    fn apply(&self) -> Result<(), Failure> {
        let mut running = self.running.locked();
        // Without its file, it would be judged as the configuration of a server that never had one.
        if let Some(missing) = running.config.file.as_ref().filter(|file| !file.exists()) {
            let message = format!("the configuration file {} no longer exists", missing.display());
            return Err(Failure::usage(message).hint("restore it, or restart without it"));
        }
        let mut env = self.env.clone();
        env.now = Clock::system().now();
        let mut next = load_server(&self.args, &env)?;
        let is_certificate_configured = next.tls.is_some();
        let fixed = keep_fixed(&running.config, &mut next, running.has_own_listener);
        let files = next.tls.as_ref().filter(|_| is_certificate_configured);
        let certificate = files.map(Certificate::read).transpose();
        let certificate = certificate.map_err(|cause| Failure::usage(cause.to_string()).caused_by(cause))?;

        self.app.reconfigure(&next).map_err(|cause| cannot_start(&next, cause))?;

        let mut changed = changes(&running.config, &next);
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate)
            && tls.present(certificate)
        {
            changed.push("the TLS certificate".to_owned());
        }
        log(&changed, &fixed, &next);
        let known = &running.config.warnings;
        for warning in next.warnings.iter().filter(|warning| !known.contains(warning)) {
            tracing::warn!("{warning}");
        }
        running.config = next;
        Ok(())
    }
}

/// Logs which settings changed, and which of them need a restart.
fn log(changed: &[String], fixed: &[&str], config: &ServerConfig) {
    let changed = (!changed.is_empty()).then(|| changed.join(", "));
    if !fixed.is_empty() {
        let needs_restart = fixed.join(", ");
        tracing::warn!(changed, needs_restart, "configuration reloaded, except for what needs a restart");
    } else if config.file.is_some() || changed.is_some() {
        let changed = changed.as_deref().unwrap_or("nothing");
        tracing::info!(changed, "configuration reloaded");
    } else {
        tracing::info!("nothing to reload: there is no configuration file");
    }
}

/// Signals that request a reload; from [`Reloads::listen`] on, none of them ends the process.
pub(crate) struct Reloads {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
    terminal: Option<Terminal>,
}

impl Reloads {
    /// Starts to listen for signals.
    pub(crate) fn listen() -> Self {
        Self {
            // If it cannot listen, the signal takes its default action and ends the server.
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
            terminal: Terminal::of_this_process(),
        }
    }

    /// Reloads once per signal, one at a time: signals that arrive during a reload are answered by a single further
    /// one. Returns when the terminal that the process was started on is gone.
    #[cfg(unix)]
    pub(crate) async fn follow(self, reloader: Reloader) {
        let Some(mut signals) = self.signals else { return std::future::pending().await };
        while signals.recv().await.is_some() {
            if let Some(terminal) = &self.terminal {
                tokio::time::sleep(HANGUP_DELAY).await;
                if terminal.is_gone() {
                    return;
                }
            }
            supervisor::notify_reloading();
            let reloader = reloader.clone();
            if let Err(cause) = tokio::task::spawn_blocking(move || reloader.reload()).await {
                tracing::error!(%cause, "configuration not reloaded; the old one stays in force");
            }
            supervisor::notify_ready();
        }
        std::future::pending::<()>().await;
    }

    /// There is no such signal elsewhere.
    #[cfg(not(unix))]
    pub(crate) async fn follow(self, _: Reloader) {
        std::future::pending::<()>().await;
    }
}

/// The terminal that the process was started on, if one of its streams is a terminal: a process started by `nohup`, for
/// example, has none.
#[derive(PartialEq, Eq)]
struct Terminal {
    streams: [bool; 3],
    is_controlling: bool,
}

impl Terminal {
    fn of_this_process() -> Option<Self> {
        let streams = [
            std::io::stdin().is_terminal(),
            std::io::stdout().is_terminal(),
            std::io::stderr().is_terminal(),
        ];
        let is_controlling = File::open("/dev/tty").is_ok();
        streams.contains(&true).then_some(Self { streams, is_controlling })
    }

    /// Whether it was hung up, or released when whatever first ran in it ended.
    fn is_gone(&self) -> bool {
        Self::of_this_process().as_ref() != Some(self)
    }
}

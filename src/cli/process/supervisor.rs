//! The interface to a supervisor (systemd, or one that follows its protocol) of `mk serve`.
//!
//! `NOTIFY_SOCKET` names a socket for notifications, and `LISTEN_FDS` passes listening sockets. Without them nothing
//! here has any effect.

use std::net::TcpListener;

use super::exit::Failure;

/// The listening socket that was passed, if any.
///
/// # Errors
/// If it is something else, or several were passed.
#[cfg(unix)]
pub(crate) fn listener() -> Result<Option<TcpListener>, Failure> {
    let mut passed = listenfd::ListenFd::from_env();
    match passed.len() {
        0 => return Ok(None),
        1 => {}
        count => {
            return Err(socket_failure(
                &format!("there are {count} of them"),
                "pass exactly one, with one ListenStream=",
            ));
        }
    }
    let wrong = |cause: std::io::Error| {
        socket_failure("it does not listen on TCP", "give ListenStream= a port, or an address and a port")
            .caused_by(cause)
    };
    let socket = passed.take_tcp_listener(0).map_err(wrong)?;
    if let Some(socket) = &socket {
        socket.set_nonblocking(true).map_err(wrong)?;
    }
    Ok(socket)
}

#[cfg(unix)]
fn socket_failure(why: &str, hint: &str) -> Failure {
    Failure::usage(format!("the listening socket that was passed (LISTEN_FDS) cannot be used: {why}"))
        .hint(hint)
}

/// Reports that requests are served from now on.
#[cfg(unix)]
pub(crate) fn notify_ready() {
    notify(&[sd_notify::NotifyState::Ready]);
}

/// Reports that the configuration is being reloaded; [`notify_ready`] reports that it is done, whatever came of it.
#[cfg(unix)]
pub(crate) fn notify_reloading() {
    // The timestamp lets the supervisor match this notification to its signal.
    let mut states = vec![sd_notify::NotifyState::Reloading];
    states.extend(sd_notify::NotifyState::monotonic_usec_now().ok());
    notify(&states);
}

/// Reports that shutdown has begun.
#[cfg(unix)]
pub(crate) fn notify_stopping() {
    notify(&[sd_notify::NotifyState::Stopping]);
}

#[cfg(unix)]
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!(%cause, "cannot notify the supervisor (NOTIFY_SOCKET)");
    }
}

/// Other systems pass no sockets.
#[cfg(not(unix))]
pub(crate) fn listener() -> Result<Option<TcpListener>, Failure> {
    Ok(None)
}

/// Other systems have no supervisor to notify.
#[cfg(not(unix))]
pub(crate) fn notify_ready() {}

/// Other systems have no supervisor to notify.
#[cfg(not(unix))]
pub(crate) fn notify_stopping() {}

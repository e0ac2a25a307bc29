//! What a supervisor (systemd, or one that does as it does) passes to `mk serve` and is told by it.
//!
//! It names a socket to tell by `NOTIFY_SOCKET`, and passes listening sockets by `LISTEN_FDS`. Without either, nothing
//! here does anything.

use std::net::TcpListener;

use super::exit::Failure;

/// The listening socket that was passed, if one was.
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
            return Err(unusable(&format!("there are {count} of them"), "pass one, by one ListenStream="));
        }
    }
    let wrong = |cause: std::io::Error| {
        unusable("it does not listen for TCP", "give ListenStream= a port, or an address and a port")
            .caused_by(cause)
    };
    let socket = passed.take_tcp_listener(0).map_err(wrong)?;
    if let Some(socket) = &socket {
        socket.set_nonblocking(true).map_err(wrong)?;
    }
    Ok(socket)
}

#[cfg(unix)]
fn unusable(why: &str, hint: &str) -> Failure {
    Failure::usage(format!("the listening socket that was passed (LISTEN_FDS) cannot be used: {why}"))
        .hint(hint)
}

/// Tells that requests are answered from now on.
#[cfg(unix)]
pub(crate) fn tell_ready() {
    tell(&[sd_notify::NotifyState::Ready]);
}

/// Tells that the configuration is read again; [`tell_ready`] tells that it was, whatever came of it.
#[cfg(unix)]
pub(crate) fn tell_reloading() {
    // The supervisor tells by the time which of its signals is answered.
    let mut states = vec![sd_notify::NotifyState::Reloading];
    states.extend(sd_notify::NotifyState::monotonic_usec_now().ok());
    tell(&states);
}

/// Tells that the end has begun.
#[cfg(unix)]
pub(crate) fn tell_stopping() {
    tell(&[sd_notify::NotifyState::Stopping]);
}

#[cfg(unix)]
fn tell(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!(%cause, "the supervisor cannot be told (NOTIFY_SOCKET)");
    }
}

/// Nobody passes sockets elsewhere.
#[cfg(not(unix))]
pub(crate) fn listener() -> Result<Option<TcpListener>, Failure> {
    Ok(None)
}

/// Nobody waits to be told elsewhere.
#[cfg(not(unix))]
pub(crate) fn tell_ready() {}

/// Nobody waits to be told elsewhere.
#[cfg(not(unix))]
pub(crate) fn tell_stopping() {}

//! What `mk serve` sees to before anybody may call: what cannot work, or would leave the server open, is said in one
//! sentence.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::app::App;
use crate::cli::exit::Failure;
use crate::cli::globals::Session;
use crate::cli::local::stored;
use crate::cli::welcome;
use crate::config::ServerConfig;

/// A crash would write the memory of this process to a disk, keys of providers included.
#[cfg(unix)]
pub(super) fn no_memory_on_disk() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(cause) = setrlimit(Resource::Core, none) {
        tracing::warn!(%cause, "a crash would write memory to a disk; set the limit of core files to 0");
    }
}

#[cfg(not(unix))]
pub(super) const fn no_memory_on_disk() {}

/// Where the database is, if commands beside the server do not look there of themselves.
pub(super) fn unusual_dir<'a>(session: &Session, config: &'a ServerConfig) -> Option<&'a Path> {
    let is_usual = session.env.data_home.as_deref() == Some(&*config.data_dir);
    (!is_usual).then_some(&*config.data_dir)
}

/// A server that others can reach needs an operator who can look after it. `data_dir` as in
/// [`unusual_dir`].
pub(super) fn refuse_open_door(
    app: &App,
    listen: SocketAddr,
    data_dir: Option<&Path>,
) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if app.store.has_console_key(app.clock.now()).map_err(|cause| stored(cause, "key"))? {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{listen} can be reached from other machines, and there is no console key yet"
    ))
    .hint(format!("make one first: mk keys create --service console{}", welcome::beside(data_dir))))
}

/// Said where nothing can be listened on.
pub(super) fn no_listener(listen: SocketAddr, cause: io::Error) -> Failure {
    let failure = match cause.kind() {
        io::ErrorKind::AddrInUse => Failure::usage(format!("{listen} is already in use"))
            .hint("does another mk serve run? choose another port: mk serve --listen 127.0.0.1:8081"),
        io::ErrorKind::PermissionDenied => Failure::usage(format!("{listen} may not be listened on"))
            .hint("ports below 1024 are for root; choose another: mk serve --listen 127.0.0.1:8080"),
        io::ErrorKind::AddrNotAvailable => {
            Failure::usage(format!("{listen} is not an address of this machine"))
                .hint("use 127.0.0.1, or 0.0.0.0 for all")
        }
        _ => Failure::usage(format!("cannot listen on {listen}: {cause}")),
    };
    failure.caused_by(cause)
}

//! Checks of `mk serve` before it accepts calls: what cannot work, or would leave the server open, is reported in one
//! sentence.

use std::io;
use std::net::SocketAddr;

use super::welcome;
use crate::app::AppState;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::Failure;
use crate::cli::target::database::store_failure;
use crate::config::{ServerConfig, paths};
use crate::storage::DatabaseUrl;

/// Disables core dumps: they would write the memory of this process to disk, provider keys included.
#[cfg(unix)]
pub(super) fn disable_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(cause) = setrlimit(Resource::Core, none) {
        tracing::warn!(%cause, "a crash would write memory to disk; set the core file limit to 0 (ulimit -c 0)");
    }
}

#[cfg(not(unix))]
pub(super) const fn disable_core_dumps() {}

/// The flags that lead other commands to this server's database, if they do not find it by themselves. An address that
/// only this process was given is not repeated, as it may hold a password.
pub(super) fn database_flags(session: &Session, config: &ServerConfig) -> String {
    match (&config.database, &config.file) {
        (DatabaseUrl::Sqlite, _) if session.env.data_home.as_deref() == Some(&*config.data_dir) => {
            String::new()
        }
        (DatabaseUrl::Sqlite, _) => welcome::flag("--data-dir", &config.data_dir),
        (DatabaseUrl::Postgres(_), Some(file)) if paths(&session.env).server_file.as_ref() != Some(file) => {
            welcome::flag("--config", file)
        }
        (DatabaseUrl::Postgres(_), _) => String::new(),
    }
}

/// Warns of a database with apps and keys that this server does not use, as it refuses those keys.
pub(super) fn warn_of_unused_database(config: &ServerConfig) {
    let left_alone = config.data_dir.join("mk.db");
    if let DatabaseUrl::Postgres(address) = &config.database
        && left_alone.is_file()
    {
        tracing::warn!(
            path = %left_alone.display(),
            database = %address,
            "the data directory holds apps and keys that this server does not use, because it has another \
             database; copy them with `mk backup --data-dir` and `mk restore`"
        );
    }
}

/// Refuses `--data-dir` together with PostgreSQL. For every other command that flag selects the database in a
/// directory, so a server must not serve another one.
pub(super) fn refuse_two_databases(config: &ServerConfig) -> Result<(), Failure> {
    match &config.database {
        DatabaseUrl::Sqlite => Ok(()),
        DatabaseUrl::Postgres(address) => Err(Failure::usage(format!(
            "--data-dir names a directory, but the configuration names the database {address}"
        ))
        .hint("omit --data-dir, or set MK_DATABASE_URL=sqlite")),
    }
}

/// Refuses to listen for other machines while there is no console key, as nobody could administer the server.
/// `database_flags` comes from [`database_flags`].
pub(super) fn refuse_exposed_server(
    app: &AppState,
    listen: SocketAddr,
    database_flags: &str,
) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if app.store.has_console_key(app.clock.now()).map_err(|cause| store_failure(cause, "key"))? {
        return Ok(());
    }
    Err(Failure::usage(format!("{listen} is reachable from other machines, and there is no console key yet"))
        .hint(format!("create one first: mk keys create --service console{database_flags}")))
}

/// The failure for an address that cannot be listened on.
pub(super) fn listen_failure(listen: SocketAddr, cause: io::Error) -> Failure {
    let failure = match cause.kind() {
        io::ErrorKind::AddrInUse => Failure::usage(format!("{listen} is already in use")).hint(
            "stop the other program (another mk serve?), or choose another port: mk serve --listen \
                127.0.0.1:8081",
        ),
        io::ErrorKind::PermissionDenied => Failure::usage(format!("no permission to listen on {listen}"))
            .hint("ports below 1024 need root; choose another: mk serve --listen 127.0.0.1:8080"),
        io::ErrorKind::AddrNotAvailable => {
            Failure::usage(format!("{listen} is not an address of this machine"))
                .hint("use 127.0.0.1, or 0.0.0.0 for all")
        }
        _ => Failure::usage(format!("cannot listen on {listen}: {cause}")),
    };
    failure.caused_by(cause)
}

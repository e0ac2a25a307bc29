//! The server's database for commands that open it themselves, beside a running server: where it is, and what its
//! errors mean.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parameters::under_flag;
use crate::api::console::Channel;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind};
use crate::clock::{Clock, Time};
use crate::config::{Env, ServerArgs, StorePlace, load_database};
use crate::keys::ManageError;
use crate::storage::{Actor, Error, Store, is_empty_postgres};

/// The most characters of a user's name in the audit log.
const MAX_USER_CHARS: usize = 64;

/// Time limit for a look at a database that may be far away.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Flags that select the database.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Database")]
pub(crate) struct DatabaseArgs {
    /// Directory of the SQLite database [default: the server's database]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// The server's configuration file, which names the database
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// An open database, and the present moment.
pub(crate) struct OpenDatabase {
    /// The store.
    pub(crate) store: Store,
    /// The time at which everything in this command happens.
    pub(crate) now: Time,
    /// Whether it stands in for a missing database, so that no id in it will exist later.
    pub(crate) is_placeholder: bool,
    /// Where it is; `None` for one in memory.
    pub(crate) place: Option<StorePlace>,
}

impl OpenDatabase {
    /// A new database in memory.
    pub(crate) fn in_memory() -> Result<Self, Failure> {
        let now = Clock::system().now();
        let store = Store::in_memory(now)
            .map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        Ok(Self { store, now, is_placeholder: false, place: None })
    }

    /// An empty database in memory, in place of one that does not exist.
    pub(crate) fn placeholder() -> Result<Self, Failure> {
        Ok(Self { is_placeholder: true, ..Self::in_memory()? })
    }

    /// The store for a write to apps and keys; fails with the server's message if it is read-only. The ledger is not
    /// checked, so that a key can be revoked even without it.
    pub(crate) fn writable_store(&self) -> Result<&Store, Failure> {
        if let Some(place) = &self.place {
            self.store.ensure_main_writable().map_err(|cause| database_failure(place, cause))?;
        }
        Ok(&self.store)
    }
}

impl DatabaseArgs {
    /// The same for whoever reads the server's configuration.
    pub(crate) fn server_args(&self) -> ServerArgs {
        ServerArgs { config: self.config.clone(), data_dir: self.data_dir.clone(), ..ServerArgs::default() }
    }

    /// The flag that selects the database, if one does.
    pub(crate) const fn flag(&self) -> Option<&'static str> {
        match (&self.data_dir, &self.config) {
            (Some(_), _) => Some("--data-dir"),
            (None, Some(_)) => Some("--config"),
            (None, None) => None,
        }
    }

    /// Where the database is.
    pub(crate) fn place(&self, session: &Session) -> Result<StorePlace, Failure> {
        Ok(load_database(&self.server_args(), &session.env)?)
    }

    /// Where the database is; also printed with `-v`.
    pub(crate) fn announced_place(&self, session: &Session) -> Result<StorePlace, Failure> {
        let place = self.place(session)?;
        session.printer.detail(&format!("database: {place}"));
        Ok(place)
    }

    /// The database's directory, for commands that work on files; `instead` hints at what does the same for PostgreSQL.
    pub(crate) fn dir(&self, session: &Session, instead: &str) -> Result<PathBuf, Failure> {
        match self.place(session)? {
            StorePlace::Directory(dir) => Ok(dir),
            StorePlace::Postgres(address) => Err(Failure::usage(format!(
                "the database is {address}; back it up with PostgreSQL's own tools"
            ))
            .hint(instead)
            .hint("--data-dir names the directory of an SQLite database")),
        }
    }

    /// Opens the database, creating it if it does not exist.
    pub(crate) fn open(&self, session: &Session) -> Result<OpenDatabase, Failure> {
        let place = self.announced_place(session)?;
        let now = Clock::system().now();
        let store = open_store(&place, now)?;
        let store = store.acting_as(current_user(&session.env));
        Ok(OpenDatabase { store, now, is_placeholder: false, place: Some(place) })
    }
}

/// Opens the database in this place.
pub(crate) fn open_store(place: &StorePlace, now: Time) -> Result<Store, Failure> {
    let opened = match place {
        StorePlace::Directory(dir) => Store::open(dir, now),
        StorePlace::Postgres(address) => Store::connect(address, now),
    };
    opened.map_err(|cause| database_failure(place, cause))
}

/// Whether nothing was ever stored there. If files cannot be examined, or only one of the two exists, opening them
/// reports it.
pub(crate) fn is_missing(place: &StorePlace) -> Result<bool, Failure> {
    match place {
        StorePlace::Directory(dir) => {
            Ok(["mk.db", "ledger.db"].iter().all(|name| matches!(dir.join(name).try_exists(), Ok(false))))
        }
        StorePlace::Postgres(address) => {
            is_empty_postgres(address, PROBE_TIMEOUT).map_err(|cause| database_failure(place, cause))
        }
    }
}

/// The account that this process runs as. Behind `sudo`, the one who called it stands beside it in brackets, as that is
/// what a variable says: anybody can set it, and nobody may so act under another name.
fn current_user(env: &Env) -> Actor {
    let account = short_name(&account(env));
    let caller = env.text("SUDO_USER").ok().flatten().map(short_name).filter(|name| !name.is_empty());
    let name = match caller.filter(|caller| *caller != account) {
        Some(caller) => format!("{account} (sudo by {caller})"),
        None => account,
    };
    Actor { name: Some(name), channel: Channel::Cli, ..Actor::default() }
}

fn short_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(MAX_USER_CHARS).collect()
}

/// The account's name by the system's own list; its number where that has no name, as in a container.
#[cfg(unix)]
fn account(_: &Env) -> String {
    let uid = nix::unistd::getuid();
    let named = nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(not(unix))]
fn account(env: &Env) -> String {
    env.text("USERNAME").ok().flatten().unwrap_or("the operator").to_owned()
}

/// The failure for a database that cannot be used, with a hint.
pub(crate) fn database_failure(place: &StorePlace, cause: Error) -> Failure {
    let what = match place {
        StorePlace::Directory(_) => "data directory",
        StorePlace::Postgres(_) => "database",
    };
    let kind = if cause.is_unreachable() { Kind::Unreachable } else { Kind::Usage };
    Failure::new(kind, format!("cannot use the {what} {place}: {}", cause.reason()))
        .hint(recovery_hint(place, &cause))
        .caused_by(cause)
}

/// What to do about a database that cannot be used.
pub(crate) fn recovery_hint(place: &StorePlace, cause: &Error) -> &'static str {
    match place {
        StorePlace::Postgres(_) if matches!(cause, Error::TooNew { .. }) => {
            "update mk here, or set `database_url` or MK_DATABASE_URL to another database"
        }
        StorePlace::Postgres(_) if cause.is_busy() => {
            "try again in a moment; pg_stat_activity shows what the database is busy with"
        }
        StorePlace::Postgres(_) => {
            "check `database_url` in server.toml or MK_DATABASE_URL, and that PostgreSQL runs there and this \
             user has the rights it needs"
        }
        StorePlace::Directory(_) if cause.is_busy() => {
            "try again when the other program is done; `fuser` on the file shows which one it is"
        }
        StorePlace::Directory(_) if cause.is_corrupt() => RESTORE_HINT,
        StorePlace::Directory(_) => {
            "name another directory with --data-dir or MK_DATA_DIR, or run mk as its owner"
        }
    }
}

/// What to do about a damaged database.
pub(crate) const RESTORE_HINT: &str =
    "stop the server, move the directory away, and restore a backup: `mk restore FILE`";

/// The failure for an error of the store; `what` names the thing that was asked for.
pub(crate) fn store_failure(cause: Error, what: &str) -> Failure {
    let failure = match &cause {
        Error::NotFound => Failure::new(Kind::NotFound, format!("there is no {what}")),
        Error::Conflict(why) => Failure::new(Kind::Conflict, conflict_message(what, why)),
        _ if cause.is_unreachable() => Failure::new(Kind::Unreachable, cause.to_string()),
        _ if cause.is_corrupt() => Failure::new(Kind::Other, cause.to_string()).hint(RESTORE_HINT),
        _ => Failure::new(Kind::Other, cause.to_string()),
    };
    failure.caused_by(cause)
}

/// Why something conflicts with what is stored, under its name; of a key, which has none here, the sentence itself
/// speaks.
pub(crate) fn conflict_message(what: &str, why: &str) -> String {
    if what == "key" { why.to_owned() } else { format!("{what}: {why}") }
}

/// The failure for an app or key that was not created or changed; `what` as in [`store_failure`].
pub(crate) fn manage_failure(cause: ManageError, what: &str) -> Failure {
    match cause {
        ManageError::Invalid(field, what) => Failure::usage(under_flag(&field, &what)),
        ManageError::Storage(cause) => store_failure(cause, what),
        ManageError::Randomness(_) => Failure::new(Kind::Other, cause.to_string()).caused_by(cause),
    }
}

//! The server's database, for the commands that work on it beside a server: where it is, and what its refusals mean.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::exit::{Failure, Kind};
use super::globals::Session;
use crate::api::console::Channel;
use crate::clock::{Clock, Time};
use crate::config::{Env, ServerArgs, StorePlace, load_database};
use crate::keys::ManageError;
use crate::storage::{Actor, Error, Store, is_empty_postgres};

/// Of a user's name, as the audit keeps it.
const MAX_USER_CHARS: usize = 64;

/// For a look at a database that may be far away.
const LOOK: Duration = Duration::from_secs(10);

/// Which database.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Database")]
pub(crate) struct Database {
    /// Directory of an SQLite database [default: the server's database]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// The server's configuration file, which names the database
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The database, and the present moment.
pub(crate) struct Local {
    /// The store.
    pub(crate) store: Store,
    /// The moment that everything of this command happens at.
    pub(crate) now: Time,
    /// Whether it stands in for one that is not there: nothing in it has an id that will be known later.
    pub(crate) is_stand_in: bool,
    /// Where it is, if it is anywhere but in memory.
    pub(crate) place: Option<StorePlace>,
}

impl Local {
    /// A new one, in memory.
    pub(crate) fn in_memory() -> Result<Self, Failure> {
        let now = Clock::system().now();
        let store = Store::in_memory(now)
            .map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        Ok(Self { store, now, is_stand_in: false, place: None })
    }

    /// One in which nothing has ever been done, in the place of one that is not there.
    pub(crate) fn stand_in() -> Result<Self, Failure> {
        Ok(Self { is_stand_in: true, ..Self::in_memory()? })
    }

    /// Its store, for a write to apps and keys: one that can only be read is told of as a server tells of it. The ledger is
    /// not asked about, so that a key can be revoked without it.
    pub(crate) fn to_write(&self) -> Result<&Store, Failure> {
        if let Some(place) = &self.place {
            self.store.ensure_main_writable().map_err(|cause| unusable(place, cause))?;
        }
        Ok(&self.store)
    }
}

impl Database {
    /// The flag that names it, if one does.
    pub(crate) const fn flag(&self) -> Option<&'static str> {
        match (&self.data_dir, &self.config) {
            (Some(_), _) => Some("--data-dir"),
            (None, Some(_)) => Some("--config"),
            (None, None) => None,
        }
    }

    /// Where it is.
    pub(crate) fn place(&self, session: &Session) -> Result<StorePlace, Failure> {
        let args = ServerArgs {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            ..ServerArgs::default()
        };
        Ok(load_database(&args, &session.env)?)
    }

    /// Where it is, told with `-v`.
    pub(crate) fn told_place(&self, session: &Session) -> Result<StorePlace, Failure> {
        let place = self.place(session)?;
        session.printer.detail(&format!("database: {place}"));
        Ok(place)
    }

    /// Its directory, for what is done with files alone; `instead` tells what does it elsewhere.
    pub(crate) fn dir(&self, session: &Session, instead: &str) -> Result<PathBuf, Failure> {
        match self.place(session)? {
            StorePlace::Directory(dir) => Ok(dir),
            StorePlace::Postgres(address) => Err(Failure::usage(format!(
                "the database is {address}, which PostgreSQL's own programs back up"
            ))
            .hint(instead)
            .hint("--data-dir names the directory of an SQLite database")),
        }
    }

    /// Opens it, making it if it is not there yet.
    pub(crate) fn open(&self, session: &Session) -> Result<Local, Failure> {
        let place = self.told_place(session)?;
        let now = Clock::system().now();
        let opened = match &place {
            StorePlace::Directory(dir) => Store::open(dir, now),
            StorePlace::Postgres(address) => Store::connect(address, now),
        };
        let store = opened.map_err(|cause| unusable(&place, cause))?;
        let store = store.acting_as(whoever(&session.env));
        Ok(Local { store, now, is_stand_in: false, place: Some(place) })
    }
}

/// Whether nothing was ever stored there. What keeps that from being seen of files is told when they are opened, and so
/// is that only one of them is there.
pub(crate) fn is_missing(place: &StorePlace) -> Result<bool, Failure> {
    match place {
        StorePlace::Directory(dir) => {
            Ok(["mk.db", "ledger.db"].iter().all(|name| matches!(dir.join(name).try_exists(), Ok(false))))
        }
        StorePlace::Postgres(address) => {
            is_empty_postgres(address, LOOK).map_err(|cause| unusable(place, cause))
        }
    }
}

/// Who sits at this command line, as far as the environment says.
fn whoever(env: &Env) -> Actor {
    let named = |variable| env.text(variable).ok().flatten().filter(|name| !name.is_empty());
    let name = named("USER").or_else(|| named("USERNAME"));
    let name = name.map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_USER_CHARS).collect());
    Actor { name, channel: Channel::Cli, ..Actor::default() }
}

/// Why a database cannot be used, and what to do.
pub(crate) fn unusable(place: &StorePlace, cause: Error) -> Failure {
    let what = match place {
        StorePlace::Directory(_) => "data directory",
        StorePlace::Postgres(_) => "database",
    };
    let kind = if cause.is_unreachable() { Kind::Unreachable } else { Kind::Usage };
    Failure::new(kind, format!("cannot use the {what} {place}: {}", cause.reason()))
        .hint(way_out(place, &cause))
        .caused_by(cause)
}

/// What to do about a database that cannot be used.
pub(crate) fn way_out(place: &StorePlace, cause: &Error) -> &'static str {
    match place {
        StorePlace::Postgres(_) if matches!(cause, Error::TooNew { .. }) => {
            "update mk here, or name another database by `database_url` or MK_DATABASE_URL"
        }
        StorePlace::Postgres(_) if cause.is_busy() => {
            "try again in a moment; pg_stat_activity there tells what it is busy with"
        }
        StorePlace::Postgres(_) => {
            "check `database_url` in server.toml or MK_DATABASE_URL, and that PostgreSQL runs there and lets this user do what is to be done"
        }
        StorePlace::Directory(_) if cause.is_busy() => {
            "try again when the other program is done; `fuser` on the file tells which it is"
        }
        StorePlace::Directory(_) if cause.is_corrupt() => RESTORE,
        StorePlace::Directory(_) => {
            "name another directory with --data-dir or MK_DATA_DIR, or run mk as its owner"
        }
    }
}

/// What to do about a database that is damaged.
pub(crate) const RESTORE: &str =
    "stop the server, move the directory away, and put a backup back: `mk restore FILE`";

/// What a refusal of the store means; `what` names the thing that was asked for.
pub(crate) fn stored(cause: Error, what: &str) -> Failure {
    let failure = match &cause {
        Error::NotFound => Failure::new(Kind::NotFound, format!("there is no {what}")),
        Error::Conflict(_) => Failure::new(Kind::Conflict, format!("{what}: {cause}")),
        _ if cause.is_unreachable() => Failure::new(Kind::Unreachable, cause.to_string()),
        _ => Failure::new(Kind::Other, cause.to_string()),
    };
    failure.caused_by(cause)
}

/// Why an app or key was not made or changed; `what` as in [`stored`].
pub(crate) fn refused(cause: ManageError, what: &str) -> Failure {
    match cause {
        ManageError::Invalid(field, why) => Failure::usage(invalid(&field, &why)),
        ManageError::Storage(cause) => stored(cause, what),
        ManageError::Randomness(_) => Failure::new(Kind::Other, cause.to_string()).caused_by(cause),
    }
}

/// What is wrong with a field, by the name that the command line has for it.
fn invalid(field: &str, why: &str) -> String {
    // Of several, the sentence quotes the one that is meant.
    let name = match field.split('[').next().unwrap_or_default() {
        "addresses" => "--address",
        "expires_at" => "--expires",
        "models" => "--model",
        "budget_usd" => "--budget-usd",
        other => other,
    };
    let goes_on = why.starts_with("must ") || why.starts_with("may ");
    if goes_on { format!("{name} {why}") } else { format!("{name}: {why}") }
}
